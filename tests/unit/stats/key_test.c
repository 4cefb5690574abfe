/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

/* One span, sealed: its row. */
static struct weir_batch *row_of(struct fixture *f, const struct weir_span *span)
{
    f_publish(f, span, 1);
    f_seal(f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(f, &info);
    T_TRUE(b && info.rows == 1);
    return b;
}

static struct weir_value text(const char *s)
{
    return (struct weir_value){
        .type = WEIR_VALUE_BYTES, .len = (uint32_t)strlen(s), .v = {.ptr = s}};
}

static void set(struct weir_span *span, struct weir_value *slots, size_t slot, struct weir_value v)
{
    slots[slot] = v;
    span->slots = slots;
    span->present |= UINT64_C(1) << slot;
}

static size_t slot_named(const struct fixture *f, const char *name)
{
    const struct weir_tag_match *const m =
        weir_tags_find(weir_stats_tags(f->st), name, strlen(name));
    T_TRUE(m != NULL);
    return m->slot;
}

TEST(a_row_answers_by_the_labels_of_the_table)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    struct weir_span s = f_span("shop", "GET /cart", f.now + 1, 1000);
    s.kind = WEIR_KIND_CLIENT;
    set(&s, slots, WEIR_TAG_ENV, text("prod"));
    set(&s, slots, WEIR_TAG_HTTP_STATUS, text("503"));
    set(&s, slots, WEIR_TAG_HTTP_METHOD, text("GET"));
    set(&s, slots, WEIR_TAG_HTTP_ROUTE, text("/cart"));
    set(&s, slots, WEIR_TAG_GRPC_STATUS,
        (struct weir_value){.type = WEIR_VALUE_DOUBLE, .v = {.d = 5}});
    set(&s, slots, WEIR_TAG_ORIGIN, text("synthetics-browser"));
    set(&s, slots, slot_named(&f, "db.system"), text("mysql"));
    set(&s, slots, slot_named(&f, "out.host"), text("10.1.2.3"));
    struct weir_batch *const b = row_of(&f, &s);
    T_TRUE(f_has(b, 0, "env", "prod"));
    T_TRUE(f_has(b, 0, "service_name", "shop"));
    T_TRUE(f_has(b, 0, "operation_name", "op"));
    T_TRUE(f_has(b, 0, "span_name", "GET /cart"));
    T_TRUE(f_has(b, 0, "span_type", "web"));
    T_TRUE(f_has(b, 0, "span_kind", "SPAN_KIND_CLIENT"));
    T_TRUE(f_has(b, 0, "http_response_status_code", "503"));
    T_TRUE(f_has(b, 0, "http_request_method", "GET"));
    T_TRUE(f_has(b, 0, "http_route", "/cart"));
    T_TRUE(f_has(b, 0, "rpc_grpc_status_code", "5"));
    T_TRUE(f_has(b, 0, "synthetic", "true"));
    T_TRUE(f_has(b, 0, "db_system", "mysql"));
    T_TRUE(f_has(b, 0, "server_address", "blocked-ip-address"));
    T_TRUE(f_has(b, 0, "peer_service", NULL));
    struct weir_label l[WEIR_LABELS_MAX];
    const size_t n = weir_batch_get_labels(b, 0, l, WEIR_LABELS_MAX);
    for (size_t i = 1; i < n; i++)
        T_TRUE(strncmp(l[i - 1].name.ptr, l[i].name.ptr, l[i].name.len + 1) < 0);
    T_EQ_U64(weir_batch_get_labels(b, 0, l, 2), n);
    weir_batch_release(b);
    f_close(&f);
}

TEST(what_is_empty_or_unknown_has_no_label_but_the_kind)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    struct weir_span s = f_span("", "", f.now + 1, 1000);
    s.type = f_str("");
    s.kind = 77;
    set(&s, slots, WEIR_TAG_HTTP_STATUS, text("999"));
    set(&s, slots, WEIR_TAG_GRPC_STATUS,
        (struct weir_value){.type = WEIR_VALUE_INT, .v = {.i = 17}});
    set(&s, slots, WEIR_TAG_ORIGIN, text("Synthetics"));
    set(&s, slots, slot_named(&f, "db.system"), text("mysql")); /* no peer tag for this kind */
    struct weir_batch *const b = row_of(&f, &s);
    T_TRUE(f_has(b, 0, "service_name", "unnamed-service"));
    T_TRUE(f_has(b, 0, "span_name", "op"));
    T_TRUE(f_has(b, 0, "span_kind", "SPAN_KIND_UNSPECIFIED"));
    const char *const absent[] = {
        "env",       "span_type", "http_response_status_code", "rpc_grpc_status_code",
        "synthetic", "db_system"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        T_TRUE(f_has(b, 0, absent[i], NULL));
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.bad_status, 1);
    weir_batch_release(b);
    f_close(&f);
}

TEST(a_service_without_a_name_is_named_after_the_language)
{
    struct fixture f; /* case S18 */
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    const struct weir_span s = f_span("", "r", f.now + 1, 1000);
    const struct weir_source source = {.lang = f_str("nodejs"), .now_ns = f.now};
    T_OK(weir_stats_publish(f.p, &source, &s, 1));
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_TRUE(b && f_has(b, 0, "service_name", "unnamed-nodejs-service"));
    weir_batch_release(b);
    f_close(&f);
}

TEST(synthetics_is_a_prefix_of_the_origin_by_case)
{
    static const struct {
        const char *origin;
        const char *want;
    } rows[] = {{"synthetics", "true"}, {"synthetics-browser", "true"}, /* case S17 */
                {"Synthetics", NULL},   {"synthetic", NULL},
                {"xsynthetics", NULL},  {"", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        const struct weir_stats_opts o = f_opts(&f);
        f_open(&f, &o);
        struct weir_value slots[WEIR_TAG_SLOTS_MAX];
        struct weir_span s = f_span("a", "r", f.now + 1, 1000);
        set(&s, slots, WEIR_TAG_ORIGIN, text(rows[i].origin));
        struct weir_batch *const b = row_of(&f, &s);
        T_TRUE(f_has(b, 0, "synthetic", rows[i].want));
        weir_batch_release(b);
        f_close(&f);
    }
}

TEST(a_service_keeps_its_name_whatever_it_begins_with)
{
    static const char *const names[] = {"1password", "-a", "Ab C/d"}; /* case S18 */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct fixture f;
        const struct weir_stats_opts o = f_opts(&f);
        f_open(&f, &o);
        const struct weir_span s = f_span(names[i], "r", f.now + 1, 1000);
        struct weir_batch *const b = row_of(&f, &s);
        T_TRUE(f_has(b, 0, "service_name", names[i]));
        weir_batch_release(b);
        f_close(&f);
    }
}

TEST(fields_that_only_together_look_alike_make_two_rows)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    struct weir_span s[3] = {f_span("a", "bc", f.now, 10), f_span("ab", "c", f.now, 10),
                             f_span("a", "b\0c", f.now, 10)};
    s[2].resource.len = 3;
    f_publish(&f, s, 3);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_TRUE(b != NULL);
    T_EQ_U64(info.rows, 3);
    weir_batch_release(b);
    f_close(&f);
}

TEST(over_long_and_broken_text_is_cut_mended_and_counted)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    char service[600];
    for (size_t i = 0; i < sizeof service; i += 2)
        memcpy(service + i, "\xc3\xa9", 2); /* 300 x e acute (case S18) */
    char resource[6000];
    memset(resource, 'r', sizeof resource);
    resource[10] = (char)0xff;
    struct weir_span s = f_span("x", "y", f.now, 10);
    s.service = (struct weir_bytes){service, sizeof service};
    s.resource = (struct weir_bytes){resource, sizeof resource};
    struct weir_batch *const b = row_of(&f, &s);
    struct weir_label l[WEIR_LABELS_MAX];
    const size_t n = weir_batch_get_labels(b, 0, l, WEIR_LABELS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (l[i].name.len == 12 && memcmp(l[i].name.ptr, "service_name", 12) == 0)
            T_EQ_BYTES(l[i].value.ptr, l[i].value.len, service, 100);
        if (l[i].name.len == 9 && memcmp(l[i].name.ptr, "span_name", 9) == 0) {
            T_EQ_U64(l[i].value.len, 5000);
            T_EQ_BYTES(l[i].value.ptr + 10, 3, "\xef\xbf\xbd", 3);
        }
    }
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.truncated, 2);
    T_EQ_U64(h.utf8_repaired, 1);
    weir_batch_release(b);
    f_close(&f);
}

TEST(peer_tags_and_dimensions_are_configured_by_lists)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    const char *const peers[] = {"my.peer,old.peer"};
    const char *const dims[] = {"version", "region-name"};
    o.peer_tags = peers;
    o.peer_tag_count = 1;
    o.dimensions = dims;
    o.dimension_count = 2;
    f_open(&f, &o);
    T_TRUE(!weir_tags_find(weir_stats_tags(f.st), "db.system", 9));
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    struct weir_span s = f_span("a", "b", f.now, 10);
    s.kind = WEIR_KIND_PRODUCER;
    set(&s, slots, slot_named(&f, "old.peer"), text("p"));
    set(&s, slots, slot_named(&f, "region-name"), text("eu"));
    set(&s, slots, slot_named(&f, "version"),
        (struct weir_value){.type = WEIR_VALUE_BOOL, .v = {.i = 1}});
    struct weir_batch *const b = row_of(&f, &s);
    T_TRUE(f_has(b, 0, "my_peer", "p"));
    T_TRUE(f_has(b, 0, "region_name", "eu"));
    T_TRUE(f_has(b, 0, "version", "true"));
    weir_batch_release(b);
    f_close(&f);
}

TEST(options_that_make_no_sense_are_refused)
{
    struct fixture f;
    struct weir_stats *st;
    const char *const bad[][2] = {{"", NULL},    {"a,,b", NULL},        {"a,", NULL},
                                  {"env", NULL}, {"status_code", NULL}, {"x", "x"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct weir_stats_opts o = f_opts(&f);
        o.dimensions = bad[i];
        o.dimension_count = bad[i][1] ? 2 : 1;
        T_ERR(weir_stats_new(&o, &st), WEIR_EINVAL);
        T_EQ_I64(f.heap.live, 0);
    }
    const char *many[WEIR_TAG_SLOTS_MAX];
    char names[WEIR_TAG_SLOTS_MAX][8];
    for (size_t i = 0; i < WEIR_TAG_SLOTS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "d%zu", i);
        many[i] = names[i];
    }
    struct weir_stats_opts o = f_opts(&f);
    o.dimensions = many;
    o.dimension_count = WEIR_TAG_SLOTS_MAX;
    T_ERR(weir_stats_new(&o, &st), WEIR_EFULL);
    o = f_opts(&f);
    o.window_for_ns = 1;
    T_ERR(weir_stats_new(&o, &st), WEIR_EINVAL);
    o = f_opts(&f);
    o.struct_size = 3;
    T_ERR(weir_stats_new(&o, &st), WEIR_EINVAL);
    o = f_opts(&f);
    o.struct_size = offsetof(struct weir_stats_opts, seed); /* an older, smaller struct */
    T_OK(weir_stats_new(&o, &st));
    weir_stats_free(st);
    T_EQ_I64(f.heap.live, 0);
}
