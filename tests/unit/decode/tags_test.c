/* SPDX-License-Identifier: Apache-2.0 */
/* tags: the fixed names, added names, chains, refusals, memory. */
#include "support.h"

#include <string.h>

/* The rank by which name fills slot at a place, or -1. */
static int rank_of(const struct weir_tags *tags, const char *name, unsigned slot, unsigned where)
{
    const struct weir_tag_match *m = weir_tags_find(tags, name, strlen(name));
    for (; m; m = weir_tags_next(tags, m))
        if (m->slot == slot && (m->where & where))
            return m->rank;
    return -1;
}

TEST(the_fixed_fields_of_both_protocols_are_always_wanted)
{
    static const struct {
        const char *name;
        unsigned slot;
        unsigned where;
        int rank;
    } rows[] = {
        {"env", WEIR_TAG_ENV, WEIR_IN_DD_META, 0},
        {"deployment.environment.name", WEIR_TAG_ENV, WEIR_IN_OTLP_RESOURCE, 0},
        {"deployment.environment", WEIR_TAG_ENV, WEIR_IN_OTLP_RESOURCE, 1},
        {"service.name", WEIR_TAG_SERVICE, WEIR_IN_OTLP_RESOURCE, 0},
        {"service.name", WEIR_TAG_SERVICE, WEIR_IN_OTLP_SPAN, -1},
        {"operation.name", WEIR_TAG_OPERATION, WEIR_IN_OTLP_SPAN, 0},
        {"resource.name", WEIR_TAG_RESOURCE, WEIR_IN_OTLP_SPAN, 0},
        {"span.type", WEIR_TAG_TYPE, WEIR_IN_OTLP_SPAN, 0},
        {"span.kind", WEIR_TAG_KIND, WEIR_IN_DD_META, 0},
        {"http.status_code", WEIR_TAG_HTTP_STATUS, WEIR_IN_DD_META, 0},
        {"http.status_code", WEIR_TAG_HTTP_STATUS, WEIR_IN_DD_METRICS, 1},
        {"http.status_code", WEIR_TAG_HTTP_STATUS, WEIR_IN_OTLP_SPAN, 1},
        {"http.response.status_code", WEIR_TAG_HTTP_STATUS, WEIR_IN_OTLP_SPAN, 0},
        {"http.method", WEIR_TAG_HTTP_METHOD, WEIR_IN_DD_META, 0},
        {"http.request.method", WEIR_TAG_HTTP_METHOD, WEIR_IN_DD_META, 1},
        {"http.request.method", WEIR_TAG_HTTP_METHOD, WEIR_IN_OTLP_SPAN, 0},
        {"http.method", WEIR_TAG_HTTP_METHOD, WEIR_IN_OTLP_SPAN, 1},
        {"http.route", WEIR_TAG_HTTP_ROUTE, WEIR_IN_OTLP_SPAN, 0},
        {"http.endpoint", WEIR_TAG_HTTP_ROUTE, WEIR_IN_DD_META, 1},
        {"http.endpoint", WEIR_TAG_HTTP_ROUTE, WEIR_IN_OTLP_SPAN, -1},
        {"rpc.grpc.status_code", WEIR_TAG_GRPC_STATUS, WEIR_IN_DD_META, 0},
        {"grpc.code", WEIR_TAG_GRPC_STATUS, WEIR_IN_DD_META, 1},
        {"rpc.grpc.status.code", WEIR_TAG_GRPC_STATUS, WEIR_IN_DD_META, 2},
        {"grpc.status.code", WEIR_TAG_GRPC_STATUS, WEIR_IN_DD_META, 3},
        {"rpc.grpc.status_code", WEIR_TAG_GRPC_STATUS, WEIR_IN_DD_METRICS, 4},
        {"grpc.status.code", WEIR_TAG_GRPC_STATUS, WEIR_IN_DD_METRICS, 7},
        {"grpc.status.code", WEIR_TAG_GRPC_STATUS, WEIR_IN_OTLP_SPAN, 3},
        {"_dd.origin", WEIR_TAG_ORIGIN, WEIR_IN_DD_META, 0},
        {"_dd.base_service", WEIR_TAG_BASE_SERVICE, WEIR_IN_DD_META, 0},
        {"_dd.top_level", WEIR_TAG_TOP_LEVEL, WEIR_IN_DD_METRICS, 0},
        {"_top_level", WEIR_TAG_TOP_LEVEL, WEIR_IN_DD_METRICS, 1},
        {"_dd.measured", WEIR_TAG_MEASURED, WEIR_IN_DD_METRICS, 0},
        {"_dd.partial_version", WEIR_TAG_PARTIAL, WEIR_IN_DD_METRICS, 0},
    };
    struct weir_tags *tags = NULL;
    T_OK(weir_tags_new(NULL, NULL, 0, &tags));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int rank = rank_of(tags, rows[i].name, rows[i].slot, rows[i].where);
        if (rank != rows[i].rank)
            T_FAIL("%s at %u: rank %d, want %d", rows[i].name, rows[i].where, rank, rows[i].rank);
    }
    weir_tags_free(tags);
}

TEST(names_near_a_wanted_one_are_not_found)
{
    static const char *const strange[] = {"",
                                          "e",
                                          "en",
                                          "enw",
                                          "envs",
                                          "http.routes",
                                          "http.routf",
                                          "deployment.environment.nam",
                                          "http.statux_code",
                                          "deployment.envirxnment.name"};
    struct weir_tags *tags = NULL;
    T_OK(weir_tags_new(NULL, NULL, 0, &tags));
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        if (weir_tags_find(tags, strange[i], strlen(strange[i])))
            T_FAIL("%s was found", strange[i]);
    T_TRUE(!weir_tags_find(tags, NULL, 0));
    weir_tags_free(tags);
    weir_tags_free(NULL);
}

TEST(one_name_may_fill_several_slots)
{
    static const struct weir_tag_name names[] = {
        {"http.route", WEIR_TAG_FIXED, 3, WEIR_IN_DD_META},
        {"http.route", 63, 127, WEIR_IN_OTLP_RESOURCE},
    };
    struct weir_tags *tags = NULL;
    T_OK(weir_tags_new(NULL, names, 2, &tags));
    T_EQ_I64(rank_of(tags, "http.route", WEIR_TAG_HTTP_ROUTE, WEIR_IN_DD_META), 0);
    T_EQ_I64(rank_of(tags, "http.route", WEIR_TAG_FIXED, WEIR_IN_DD_META), 3);
    T_EQ_I64(rank_of(tags, "http.route", 63, WEIR_IN_OTLP_RESOURCE), 127);
    T_EQ_I64(rank_of(tags, "http.route", 63, WEIR_IN_DD_META), -1);
    weir_tags_free(tags);
}

TEST(as_many_names_as_allowed_are_all_found_and_one_more_is_refused)
{
    static char text[220][24];
    static struct weir_tag_name names[220];
    for (unsigned i = 0; i < 220; i++) {
        (void)snprintf(text[i], sizeof text[i], "%.*s%u", (int)(i % 19), "dimension.of.length.", i);
        names[i] = (struct weir_tag_name){text[i], 20, (uint8_t)(i % 128), WEIR_IN_OTLP_SPAN};
    }
    struct weir_tags *tags = NULL;
    T_ERR(weir_tags_new(NULL, names, 220, &tags), WEIR_EFULL);
    T_OK(weir_tags_new(NULL, names, 219, &tags));
    for (unsigned i = 0; i < 219; i++)
        T_EQ_I64(rank_of(tags, text[i], 20, WEIR_IN_OTLP_SPAN), names[i].rank);
    T_TRUE(!weir_tags_find(tags, text[219], strlen(text[219])));
    weir_tags_free(tags);
}

TEST(names_out_of_range_are_refused)
{
    static const struct weir_tag_name bad[] = {
        {"", 20, 0, WEIR_IN_DD_META},
        {NULL, 20, 0, WEIR_IN_DD_META},
        {"a", 64, 0, WEIR_IN_DD_META},
        {"a", 20, 128, WEIR_IN_DD_META},
        {"a", 20, 0, 0},
        {"a", 20, 0, 16},
    };
    struct weir_tags *tags = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        T_ERR(weir_tags_new(NULL, &bad[i], 1, &tags), WEIR_EINVAL);
    T_ERR(weir_tags_new(NULL, NULL, 1, &tags), WEIR_EINVAL);
    T_TRUE(!tags);
}

static int make_both(const struct weir_alloc *alloc, void *ctx)
{
    static const uint8_t payload[] = {0x92, 0x92, 0xa1, 'a', 0xa1, 'b', 0x90};
    struct weir_tags *tags = NULL;
    struct weir_decoder *decoder = NULL;
    (void)ctx;
    int r = weir_tags_new(alloc, NULL, 0, &tags);
    if (r == WEIR_OK)
        r = weir_decoder_new(alloc, tags, &decoder);
    if (r == WEIR_OK) {
        struct weir_where where = {.offset = 77};
        r = weir_decode_dd_v05(decoder, payload, sizeof payload, NULL, NULL, &where);
        T_EQ_U64(where.offset, 77);
    }
    weir_decoder_free(decoder);
    weir_tags_free(tags);
    return r;
}

TEST(a_refused_allocation_is_reported_and_leaks_nothing)
{
    t_each_oom(make_both, NULL);
}
