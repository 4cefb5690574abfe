/* SPDX-License-Identifier: Apache-2.0 */
/* limits: see limits.h. */
#include "stats/limits.h"

#include "base/hash.h"

/* A value of a cycle. hash 0: nothing was ever here; bytes NULL with a hash: taken over. */
struct known {
    uint64_t hash;
    char *bytes; /* 16-bit little-endian length, then the text */
};

struct wr_budget {
    uint32_t limit;
    uint32_t used;
    size_t mask; /* slots - 1, of both tables; at most half of them are used */
    struct known *current;
    struct known *prior;
};

static const char sentinel[] = WR_SENTINEL;
enum { SENTINEL_BYTES = sizeof sentinel - 1 };

/* The limit that a field falls under; WEIR_LIMIT_COUNT: none. */
static enum weir_limit limit_of(const struct wr_schema *schema, size_t field)
{
    static const uint8_t fixed[WR_FIELD_FIXED] = {
        [WR_FIELD_ENV] = WEIR_LIMIT_COUNT,
        [WR_FIELD_SERVICE] = WEIR_LIMIT_SERVICE,
        [WR_FIELD_OPERATION] = WEIR_LIMIT_OPERATION,
        [WR_FIELD_RESOURCE] = WEIR_LIMIT_RESOURCE,
        [WR_FIELD_TYPE] = WEIR_LIMIT_TYPE,
        [WR_FIELD_KIND] = WEIR_LIMIT_KIND,
        [WR_FIELD_HTTP_STATUS] = WEIR_LIMIT_COUNT, /* a number of three digits */
        [WR_FIELD_HTTP_METHOD] = WEIR_LIMIT_HTTP_METHOD,
        [WR_FIELD_HTTP_ROUTE] = WEIR_LIMIT_HTTP_ENDPOINT,
        [WR_FIELD_GRPC_STATUS] = WEIR_LIMIT_GRPC_STATUS,
        [WR_FIELD_SYNTHETIC] = WEIR_LIMIT_COUNT,
        [WR_FIELD_BASE_SERVICE] = WEIR_LIMIT_PEER_TAGS,
        [WR_FIELD_SERVICE_SOURCE] = WEIR_LIMIT_SERVICE_SOURCE,
        [WR_FIELD_TRACE_ROOT] = WEIR_LIMIT_COUNT,
        [WR_FIELD_HTTP_ENDPOINT] = WEIR_LIMIT_HTTP_ENDPOINT,
    };
    if (field >= WR_FIELD_FIXED)
        return field < WR_FIELD_FIXED + schema->peers ? WEIR_LIMIT_PEER_TAGS
                                                      : WEIR_LIMIT_ADDITIONAL;
    /* Outside of profile client kinds are six, and codes 17: numbers, with no text for a sentinel.
     */
    if (!schema->client && (field == WR_FIELD_KIND || field == WR_FIELD_GRPC_STATUS))
        return WEIR_LIMIT_COUNT;
    return (enum weir_limit)fixed[field];
}

static void budget_free(const struct weir_alloc *a, struct wr_budget *b)
{
    if (!b)
        return;
    struct known *const tables[] = {b->current, b->prior};
    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; tables[t] && i <= b->mask; i++) {
            if (tables[t][i].bytes)
                wr_free(a, tables[t][i].bytes, 2u + wr_load16le(tables[t][i].bytes));
        }
        wr_free(a, tables[t], (b->mask + 1) * sizeof *tables[t]);
    }
    wr_free(a, b, sizeof *b);
}

static struct wr_budget *budget_new(const struct weir_alloc *a, uint32_t limit)
{
    struct wr_budget *const b = wr_alloc_zero(a, sizeof *b);
    if (!b)
        return NULL;
    b->limit = limit;
    b->mask = wr_pow2_ceil((size_t)limit * 2) - 1;
    b->current = wr_alloc_zero(a, (b->mask + 1) * sizeof *b->current);
    b->prior = wr_alloc_zero(a, (b->mask + 1) * sizeof *b->prior);
    if (b->current && b->prior)
        return b;
    budget_free(a, b);
    return NULL;
}

int wr_limits_init(struct wr_limits *l, const struct wr_schema *schema, const uint32_t *limits,
                   uint64_t seed)
{
    memset(l, 0, sizeof *l);
    l->schema = schema;
    l->seed = seed;
    for (size_t i = 0; i < schema->fields; i++) {
        const enum weir_limit which = limit_of(schema, i);
        if (which == WEIR_LIMIT_COUNT || limits[which] == WEIR_LIMIT_OFF)
            continue;
        l->by_limit[i] = (uint8_t)which;
        l->budgets[i] = budget_new(&schema->alloc, limits[which]);
        if (!l->budgets[i])
            goto no_memory;
        l->limited |= UINT64_C(1) << i;
    }
    if (l->limited) {
        l->key = wr_alloc(&schema->alloc, WR_KEY_MAX);
        if (!l->key)
            goto no_memory;
    }
    return WEIR_OK;

no_memory:
    wr_limits_done(l);
    return WEIR_ENOMEM;
}

void wr_limits_done(struct wr_limits *l)
{
    if (!l->schema)
        return;
    for (size_t i = 0; i < WR_FIELDS_MAX; i++)
        budget_free(&l->schema->alloc, l->budgets[i]);
    wr_free(&l->schema->alloc, l->key, WR_KEY_MAX);
    memset(l, 0, sizeof *l);
}

/* Where the value is, or the free slot where it would be. field points at its length. */
static struct known *find(struct known *table, size_t mask, uint64_t hash, const char *field,
                          size_t len)
{
    size_t i = (size_t)hash & mask;
    while (table[i].hash) {
        if (table[i].hash == hash && table[i].bytes && memcmp(table[i].bytes, field, 2 + len) == 0)
            break;
        i = (i + 1) & mask;
    }
    return &table[i];
}

enum admission { ADMITTED, BLOCKED, NO_MEMORY };

static enum admission admit(const struct wr_limits *l, struct wr_budget *b, const char *field,
                            size_t len)
{
    if (len == SENTINEL_BYTES && memcmp(field + 2, sentinel, len) == 0)
        return ADMITTED; /* it is that already, and asks for no room */
    const uint64_t hash = wr_hash(field + 2, len, l->seed) | 1;
    struct known *const here = find(b->current, b->mask, hash, field, len);
    if (here->hash)
        return ADMITTED;
    if (b->used >= b->limit)
        return BLOCKED;
    struct known *const before = find(b->prior, b->mask, hash, field, len);
    char *bytes = before->bytes;
    before->bytes = NULL;
    if (!bytes) {
        bytes = wr_alloc(&l->schema->alloc, 2 + len);
        if (!bytes)
            return NO_MEMORY;
        memcpy(bytes, field, 2 + len);
    }
    *here = (struct known){.hash = hash, .bytes = bytes};
    b->used++;
    return ADMITTED;
}

/* key with the sentinel in the blocked fields. */
static void fold(struct wr_limits *l, const char *key, uint64_t blocked, struct wr_folded *ret)
{
    const uint64_t present = wr_load64le(key);
    char *out = l->key + 8;
    const char *at = key + 8;
    wr_store64le(l->key, present);
    for (uint64_t left = present; left; left &= left - 1) {
        const size_t i = (size_t)__builtin_ctzll(left);
        const size_t len = wr_load16le(at);
        if (blocked >> i & 1) {
            wr_store16le(out, SENTINEL_BYTES);
            memcpy(out + 2, sentinel, SENTINEL_BYTES);
            out += 2 + SENTINEL_BYTES;
            l->collapsed[l->by_limit[i]]++;
        } else {
            memcpy(out, at, 2 + len);
            out += 2 + len;
        }
        at += 2 + len;
    }
    ret->key = l->key;
    ret->key_bytes = (size_t)(out - l->key);
    ret->hash = wr_hash_key(l->key, ret->key_bytes, l->seed);
}

int wr_limits_admit(void *ctx, const char *key, size_t key_bytes, struct wr_folded *ret_folded)
{
    struct wr_limits *const l = ctx;
    const uint64_t present = wr_load64le(key);
    const char *at = key + 8;
    uint64_t blocked = 0;
    (void)key_bytes;
    for (uint64_t left = present; left; left &= left - 1) {
        const size_t i = (size_t)__builtin_ctzll(left);
        const size_t len = wr_load16le(at);
        if (l->limited >> i & 1) {
            const enum admission a = admit(l, l->budgets[i], at, len);
            if (a == NO_MEMORY)
                return WEIR_ENOMEM;
            blocked |= (uint64_t)(a == BLOCKED) << i;
        }
        at += 2 + len;
    }
    if (!blocked)
        return 0;
    fold(l, key, blocked, ret_folded);
    return 1;
}

static void budget_cycle(const struct weir_alloc *a, struct wr_budget *b)
{
    struct known *const old = b->prior;
    for (size_t i = 0; i <= b->mask; i++) {
        if (old[i].bytes)
            wr_free(a, old[i].bytes, 2u + wr_load16le(old[i].bytes));
    }
    memset(old, 0, (b->mask + 1) * sizeof *old);
    b->prior = b->current;
    b->current = old;
    b->used = 0;
}

void wr_limits_cycle(void *ctx)
{
    struct wr_limits *const l = ctx;
    for (uint64_t left = l->limited; left; left &= left - 1)
        budget_cycle(&l->schema->alloc, l->budgets[__builtin_ctzll(left)]);
}
