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
static const uint64_t fields_mask = (UINT64_C(1) << WR_FIELDS_MAX) - 1;

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

static void budgets_free(struct wr_limits *l, struct wr_budgets *b)
{
    if (!b)
        return;
    for (uint64_t left = b->own; left; left &= left - 1)
        budget_free(l->alloc, b->at[__builtin_ctzll(left)]);
    wr_free(l->alloc, b, sizeof *b);
}

/* Which field of the first schema has the budget of this one's; WR_FIELDS_MAX: none, it is of a
 * peer tag of its own. */
static size_t shared_field(const struct wr_schema *first, const struct wr_schema *schema, size_t i)
{
    if (i < WR_FIELD_FIXED)
        return i;
    const size_t peers_end = WR_FIELD_FIXED + schema->peers;
    return i < peers_end ? WR_FIELDS_MAX : i - schema->peers + first->peers;
}

static struct wr_budgets *budgets_new(struct wr_limits *l, const struct wr_schema *schema)
{
    const struct wr_budgets *const first = l->of[0];
    const struct wr_schema *const first_schema = wr_schema_of(l->schemas, NULL, 0);
    struct wr_budgets *const b = wr_alloc_zero(l->alloc, sizeof *b);
    for (size_t i = 0; b && i < schema->fields; i++) {
        const enum weir_limit which = limit_of(schema, i);
        if (which == WEIR_LIMIT_COUNT || l->limits[which] == WEIR_LIMIT_OFF)
            continue;
        const size_t shared = first ? shared_field(first_schema, schema, i) : WR_FIELDS_MAX;
        b->by_limit[i] = (uint8_t)which;
        b->at[i] =
            shared < WR_FIELDS_MAX ? first->at[shared] : budget_new(l->alloc, l->limits[which]);
        if (!b->at[i]) {
            budgets_free(l, b);
            return NULL;
        }
        b->limited |= UINT64_C(1) << i;
        b->own |= (uint64_t)(shared == WR_FIELDS_MAX) << i;
    }
    return b;
}

int wr_limits_init(struct wr_limits *l, const struct wr_schemas *schemas, const uint32_t *limits,
                   uint64_t seed)
{
    const struct wr_schema *const first = wr_schema_of(schemas, NULL, 0);
    memset(l, 0, sizeof *l);
    l->schemas = schemas;
    l->alloc = &schemas->opts.alloc;
    l->seed = seed;
    memcpy(l->limits, limits, sizeof l->limits);
    for (size_t i = 0; i < WEIR_LIMIT_COUNT; i++)
        l->limited |= limits[i] != WEIR_LIMIT_OFF;
    if (!l->limited)
        return WEIR_OK;
    l->of[0] = budgets_new(l, first);
    l->key = wr_alloc(l->alloc, WR_KEY_MAX);
    if (l->of[0] && l->key)
        return WEIR_OK;
    wr_limits_done(l);
    return WEIR_ENOMEM;
}

void wr_limits_forget(struct wr_limits *l, uint32_t numbers)
{
    for (uint32_t left = numbers; left; left &= left - 1) {
        struct wr_budgets **const b = &l->of[__builtin_ctz(left)];
        budgets_free(l, *b);
        *b = NULL;
    }
    /* Their names are gone with them. */
    for (size_t i = 0; i < WEIR_LIMIT_COUNT; i++) {
        struct wr_folded_values *const v = l->folded[i];
        for (size_t k = 0; v && k < v->used; k++)
            v->at[k].field = numbers >> v->at[k].epoch & 1 ? WR_FIELDS_MAX : v->at[k].field;
    }
}

void wr_limits_done(struct wr_limits *l)
{
    if (!l->schemas)
        return;
    wr_limits_forget(l, (1u << WR_EPOCHS) - 1);
    for (size_t i = 0; i < WEIR_LIMIT_COUNT; i++)
        wr_free(l->alloc, l->folded[i], sizeof *l->folded[i]);
    wr_free(l->alloc, l->key, WR_KEY_MAX);
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
                            size_t len, uint64_t *ret_hash)
{
    if (len == SENTINEL_BYTES && memcmp(field + 2, sentinel, len) == 0)
        return ADMITTED; /* it is that already, and asks for no room */
    const uint64_t hash = wr_hash(field + 2, len, l->seed) | 1;
    *ret_hash = hash;
    struct known *const here = find(b->current, b->mask, hash, field, len);
    if (here->hash)
        return ADMITTED;
    if (b->used >= b->limit)
        return BLOCKED;
    struct known *const before = find(b->prior, b->mask, hash, field, len);
    char *bytes = before->bytes;
    before->bytes = NULL;
    if (!bytes) {
        bytes = wr_alloc(l->alloc, 2 + len);
        if (!bytes)
            return NO_MEMORY;
        memcpy(bytes, field, 2 + len);
    }
    *here = (struct known){.hash = hash, .bytes = bytes};
    b->used++;
    return ADMITTED;
}

/* key with the sentinel in the blocked fields. */
static void fold(struct wr_limits *l, const struct wr_budgets *b, const char *key, uint64_t blocked,
                 struct wr_folded *ret)
{
    const uint64_t present = wr_load64le(key);
    char *out = l->key + 8;
    const char *at = key + 8;
    wr_store64le(l->key, present);
    for (uint64_t left = present & fields_mask; left; left &= left - 1) {
        const size_t i = (size_t)__builtin_ctzll(left);
        const size_t len = wr_load16le(at);
        if (blocked >> i & 1) {
            wr_store16le(out, SENTINEL_BYTES);
            memcpy(out + 2, sentinel, SENTINEL_BYTES);
            out += 2 + SENTINEL_BYTES;
            l->collapsed[b->by_limit[i]]++;
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

static struct wr_budgets *budgets_of(struct wr_limits *l, const char *key, size_t key_bytes)
{
    struct wr_budgets **const b = &l->of[wr_key_epoch(key, key_bytes)];
    if (WR_UNLIKELY(!*b))
        *b = budgets_new(l, wr_schema_of(l->schemas, key, key_bytes));
    return *b;
}

/* A blocked value of a field, for who wants to know. No memory: it is not told. */
static void note(struct wr_limits *l, unsigned epoch, size_t field, uint64_t hash, const char *at,
                 size_t len, uint64_t weight)
{
    struct wr_folded_values **const v = &l->folded[l->of[epoch]->by_limit[field]];
    if (WR_UNLIKELY(!*v)) {
        *v = wr_alloc_zero(l->alloc, sizeof **v);
        if (!*v)
            return;
    }
    /* Values of several tags share a summary: each by its own name. */
    wr_folded_add(*v, hash + field * UINT64_C(0x9E3779B97F4A7C15), epoch, field, at + 2, len,
                  weight);
}

int wr_limits_admit(void *ctx, const char *key, size_t key_bytes, uint64_t weight,
                    struct wr_folded *ret_folded)
{
    struct wr_limits *const l = ctx;
    const uint64_t present = wr_load64le(key);
    const char *at = key + 8;
    uint64_t blocked = 0;
    struct wr_budgets *const b = budgets_of(l, key, key_bytes);
    if (!b)
        return WEIR_ENOMEM;
    for (uint64_t left = present & fields_mask; left; left &= left - 1) {
        const size_t i = (size_t)__builtin_ctzll(left);
        const size_t len = wr_load16le(at);
        if (b->limited >> i & 1) {
            uint64_t hash = 0;
            const enum admission a = admit(l, b->at[i], at, len, &hash);
            if (a == NO_MEMORY)
                return WEIR_ENOMEM;
            if (a == BLOCKED) {
                blocked |= UINT64_C(1) << i;
                note(l, wr_key_epoch(key, key_bytes), i, hash, at, len, weight);
            }
        }
        at += 2 + len;
    }
    if (!blocked)
        return 0;
    fold(l, b, key, blocked, ret_folded);
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
    for (size_t i = 0; i < WEIR_LIMIT_COUNT; i++) {
        if (l->folded[i])
            wr_folded_cycle(l->folded[i]);
    }
    for (size_t e = 0; e < WR_EPOCHS; e++) {
        const struct wr_budgets *const b = l->of[e];
        for (uint64_t left = b ? b->own : 0; left; left &= left - 1)
            budget_cycle(l->alloc, b->at[__builtin_ctzll(left)]);
    }
}
