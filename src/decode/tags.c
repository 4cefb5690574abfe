/* SPDX-License-Identifier: Apache-2.0 */
/* tags: see tags.h and weir/span.h. Here: the fixed names of both protocols, and the making. */
#include "decode/tags.h"

#include "base/alloc.h"

#define RANK_MAX 127u /* decoders add 128 to what a resource attribute filled */
#define MULTIPLIER_TRIES 64u

/* contracts: rows §2, the table of fields, in its order of preference; wire §2.9 for the gRPC
 * status: every string before every number. */
static const struct {
    char name[28]; /* not a pointer: the table needs no relocation */
    uint8_t slot;
    uint8_t rank;
    uint8_t where;
} fixed_names[] = {
    {"env", WEIR_TAG_ENV, 0, WEIR_IN_DD_META},
    {"deployment.environment.name", WEIR_TAG_ENV, 0, WEIR_IN_OTLP_RESOURCE},
    {"deployment.environment", WEIR_TAG_ENV, 1, WEIR_IN_OTLP_RESOURCE},
    {"service.name", WEIR_TAG_SERVICE, 0, WEIR_IN_OTLP_RESOURCE},
    {"operation.name", WEIR_TAG_OPERATION, 0, WEIR_IN_OTLP_SPAN},
    {"resource.name", WEIR_TAG_RESOURCE, 0, WEIR_IN_OTLP_SPAN},
    {"span.type", WEIR_TAG_TYPE, 0, WEIR_IN_OTLP_SPAN},
    {"span.kind", WEIR_TAG_KIND, 0, WEIR_IN_DD_META},
    {"http.status_code", WEIR_TAG_HTTP_STATUS, 0, WEIR_IN_DD_META},
    {"http.status_code", WEIR_TAG_HTTP_STATUS, 1, WEIR_IN_DD_METRICS | WEIR_IN_OTLP_SPAN},
    {"http.response.status_code", WEIR_TAG_HTTP_STATUS, 0, WEIR_IN_OTLP_SPAN},
    {"http.method", WEIR_TAG_HTTP_METHOD, 0, WEIR_IN_DD_META},
    {"http.method", WEIR_TAG_HTTP_METHOD, 1, WEIR_IN_OTLP_SPAN},
    {"http.request.method", WEIR_TAG_HTTP_METHOD, 1, WEIR_IN_DD_META},
    {"http.request.method", WEIR_TAG_HTTP_METHOD, 0, WEIR_IN_OTLP_SPAN},
    {"http.route", WEIR_TAG_HTTP_ROUTE, 0, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN},
    {"http.endpoint", WEIR_TAG_HTTP_ROUTE, 1, WEIR_IN_DD_META},
    {"rpc.grpc.status_code", WEIR_TAG_GRPC_STATUS, 0, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN},
    {"grpc.code", WEIR_TAG_GRPC_STATUS, 1, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN},
    {"rpc.grpc.status.code", WEIR_TAG_GRPC_STATUS, 2, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN},
    {"grpc.status.code", WEIR_TAG_GRPC_STATUS, 3, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN},
    {"rpc.grpc.status_code", WEIR_TAG_GRPC_STATUS, 4, WEIR_IN_DD_METRICS},
    {"grpc.code", WEIR_TAG_GRPC_STATUS, 5, WEIR_IN_DD_METRICS},
    {"rpc.grpc.status.code", WEIR_TAG_GRPC_STATUS, 6, WEIR_IN_DD_METRICS},
    {"grpc.status.code", WEIR_TAG_GRPC_STATUS, 7, WEIR_IN_DD_METRICS},
    {"_dd.origin", WEIR_TAG_ORIGIN, 0, WEIR_IN_DD_META},
    {"_dd.base_service", WEIR_TAG_BASE_SERVICE, 0, WEIR_IN_DD_META},
    {"_dd.top_level", WEIR_TAG_TOP_LEVEL, 0, WEIR_IN_DD_METRICS},
    {"_top_level", WEIR_TAG_TOP_LEVEL, 1, WEIR_IN_DD_METRICS},
    {"_dd.measured", WEIR_TAG_MEASURED, 0, WEIR_IN_DD_METRICS},
    {"_dd.partial_version", WEIR_TAG_PARTIAL, 0, WEIR_IN_DD_METRICS},
};
#define FIXED_COUNT (sizeof fixed_names / sizeof fixed_names[0])

static const uint8_t everywhere =
    WEIR_IN_DD_META | WEIR_IN_DD_METRICS | WEIR_IN_OTLP_SPAN | WEIR_IN_OTLP_RESOURCE;

static int check_names(const struct weir_tag_name *names, size_t count, size_t *ret_bytes)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct weir_tag_name *const n = &names[i];
        if (!n->name || n->name[0] == '\0' || n->slot >= WEIR_TAG_SLOTS_MAX || n->rank > RANK_MAX ||
            n->where == 0 || (n->where & ~everywhere))
            return WEIR_EINVAL;
        if (wr_add_size(bytes, strlen(n->name), &bytes) || bytes > UINT32_MAX)
            return WEIR_EINVAL;
    }
    *ret_bytes += bytes;
    return WEIR_OK;
}

static struct wr_tag_entry *entry_of(struct weir_tags *tags, const char *name, size_t len)
{
    for (size_t i = 0; i < tags->entry_count; i++) {
        struct wr_tag_entry *const e = &tags->entries[i];
        if (e->len == len && memcmp(e->name, name, len) == 0)
            return e;
    }
    return NULL;
}

/* Add one name; its bytes are copied to *text, which moves on. */
static void add_name(struct weir_tags *tags, const struct weir_tag_name *n, char **text)
{
    const size_t len = strlen(n->name);
    const uint8_t index = (uint8_t)tags->match_count++;
    struct weir_tag_match *const match = &tags->matches[index];
    *match = (struct weir_tag_match){
        .slot = n->slot, .rank = n->rank, .where = n->where, .next = WR_TAG_MATCH_END};
    struct wr_tag_entry *e = entry_of(tags, n->name, len);
    if (e) {
        match->next = e->match;
        e->match = index;
        return;
    }
    e = &tags->entries[tags->entry_count++];
    memcpy(*text, n->name, len);
    *e = (struct wr_tag_entry){.name = *text, .len = (uint32_t)len, .match = index};
    wr_tag_words(*text, len, &e->head, &e->tail);
    *text += len;
}

/* Fill the table with one multiplier; returns how many entries are not at their own place. */
static size_t fill_table(struct weir_tags *tags, uint64_t multiplier)
{
    size_t displaced = 0;
    tags->multiplier = multiplier;
    memset(tags->table, 0, sizeof tags->table);
    for (size_t i = 0; i < tags->entry_count; i++) {
        const struct wr_tag_entry *const e = &tags->entries[i];
        size_t place = wr_tag_place(multiplier, e->head, e->tail, e->len);
        displaced += tags->table[place] != 0;
        while (tags->table[place] != 0)
            place = (place + 1) % sizeof tags->table;
        tags->table[place] = (uint8_t)(i + 1);
    }
    return displaced;
}

WR_WRAPS static void choose_multiplier(struct weir_tags *tags)
{
    /* Odd multiples of the golden ratio's fraction: spread, and the same in every process. */
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t best = golden;
    size_t least = SIZE_MAX;
    for (unsigned i = 0; i < MULTIPLIER_TRIES && least > 0; i++) {
        const uint64_t multiplier = golden * (2 * (uint64_t)i + 1);
        const size_t displaced = fill_table(tags, multiplier);
        if (displaced < least) {
            least = displaced;
            best = multiplier;
        }
    }
    WR_IGNORE((int)fill_table(tags, best));
}

int weir_tags_new(const struct weir_alloc *alloc, const struct weir_tag_name *names, size_t count,
                  struct weir_tags **ret_tags)
{
    if (count && !names)
        return WEIR_EINVAL;
    if (count > WR_TAG_NAMES_MAX - FIXED_COUNT)
        return WEIR_EFULL;
    size_t bytes = sizeof(struct weir_tags);
    const int r = check_names(names, count, &bytes);
    if (r != WEIR_OK)
        return r;
    bytes += sizeof fixed_names; /* more than their text */
    const struct weir_alloc a = wr_alloc_or_default(alloc);
    struct weir_tags *const tags = wr_alloc_zero(&a, bytes);
    if (!tags)
        return WEIR_ENOMEM;
    tags->alloc = a;
    tags->block_bytes = bytes;
    char *text = (char *)(tags + 1);
    for (size_t i = 0; i < FIXED_COUNT; i++) {
        const struct weir_tag_name fixed = {.name = fixed_names[i].name,
                                            .slot = fixed_names[i].slot,
                                            .rank = fixed_names[i].rank,
                                            .where = fixed_names[i].where};
        add_name(tags, &fixed, &text);
    }
    for (size_t i = 0; i < count; i++)
        add_name(tags, &names[i], &text);
    choose_multiplier(tags);
    *ret_tags = tags;
    return WEIR_OK;
}

void weir_tags_free(struct weir_tags *tags)
{
    if (!tags)
        return;
    const struct weir_alloc a = tags->alloc;
    wr_free(&a, tags, tags->block_bytes);
}

const struct weir_tag_match *weir_tags_find(const struct weir_tags *tags, const char *name,
                                            size_t len)
{
    return wr_tags_find(tags, name, len);
}

const struct weir_tag_match *weir_tags_next(const struct weir_tags *tags,
                                            const struct weir_tag_match *match)
{
    return wr_tags_next(tags, match);
}
