/* SPDX-License-Identifier: Apache-2.0 */
/* schemas: see schemas.h, which gives the orders and why they suffice. */
#include "stats/schemas.h"

#include "stats/text.h"

#include <sched.h>
#include <string.h>

/* Peer tags and dimensions that there are slots for. */
enum { ADDED_MAX = WEIR_TAG_SLOTS_MAX - WEIR_TAG_FIXED };
_Static_assert(WR_FIELD_FIXED + ADDED_MAX <= WR_FIELDS_MAX && WR_FIELDS_MAX == WR_EPOCH_SHIFT,
               "a key's mask has room for the fields and the number");

int wr_schemas_init(struct wr_schemas *s, struct wr_schema *first,
                    const struct weir_stats_opts *opts)
{
    memset(s, 0, sizeof *s);
    s->opts = *opts;
    s->opts.alloc = first->alloc;
    const size_t count = opts->dimension_count;
    size_t bytes = count * sizeof(char *);
    for (size_t i = 0; i < count; i++)
        bytes += opts->dimensions[i] ? strlen(opts->dimensions[i]) + 1 : 0;
    if (bytes) {
        s->text = wr_alloc(&first->alloc, bytes);
        if (!s->text)
            return WEIR_ENOMEM;
        s->text_bytes = bytes;
        const char **const own = (const char **)(void *)s->text;
        char *at = s->text + count * sizeof(char *);
        for (size_t i = 0; i < count; i++) {
            const size_t len = opts->dimensions[i] ? strlen(opts->dimensions[i]) + 1 : 0;
            own[i] = len ? memcpy(at, opts->dimensions[i], len) : NULL;
            at += len;
        }
        s->opts.dimensions = own;
    }
    atomic_store_explicit(&s->at[0], first, memory_order_release);
    atomic_store_explicit(&s->count, 1, memory_order_relaxed);
    return WEIR_OK;
}

static void schema_free(struct wr_schemas *s, struct wr_schema *schema)
{
    wr_schema_done(schema);
    wr_free(&s->opts.alloc, schema, sizeof *schema);
}

void wr_schemas_done(struct wr_schemas *s)
{
    for (size_t i = 1; i < WR_EPOCHS; i++) {
        struct wr_schema *const schema = atomic_load_explicit(&s->at[i], memory_order_acquire);
        if (schema)
            schema_free(s, schema);
    }
    if (s->text)
        wr_free(&s->opts.alloc, s->text, s->text_bytes);
}

static bool try_lock(struct wr_schemas *s)
{
    /* acquire: what the holder before did is seen. */
    return atomic_exchange_explicit(&s->locked, 1, memory_order_acquire) == 0;
}

static void unlock(struct wr_schemas *s)
{
    atomic_store_explicit(&s->locked, 0, memory_order_release);
}

void wr_schemas_forget(struct wr_schemas *s)
{
    for (size_t i = 0; i < WR_EPOCHS; i++) {
        if (atomic_load_explicit(&s->at[i], memory_order_relaxed))
            atomic_fetch_add(&s->pins[i], 1);
    }
    unlock(s);
}

const struct wr_schema *wr_schemas_pin(struct wr_schemas *s)
{
    for (;;) {
        const uint32_t k = atomic_load(&s->current);
        atomic_fetch_add(&s->pins[k], 1);
        if (atomic_load(&s->current) == k)
            return atomic_load_explicit(&s->at[k], memory_order_acquire);
        atomic_fetch_sub(&s->pins[k], 1);
    }
}

void wr_schemas_pin_more(struct wr_schemas *s, const struct wr_schema *pinned)
{
    atomic_fetch_add(&s->pins[pinned->number], 1);
}

void wr_schemas_unpin(struct wr_schemas *s, const struct wr_schema *pinned)
{
    atomic_fetch_sub(&s->pins[pinned->number], 1);
}

static bool is_peer_of(const struct wr_schema *schema, const char *name)
{
    for (size_t i = WR_FIELD_FIXED; i < WR_FIELD_FIXED + schema->peers; i++) {
        if (strcmp(schema->tags_text[i], name) == 0)
            return true;
    }
    return false;
}

/* names are count different ones. */
static bool is_schema_of(const struct wr_schema *schema, const char *const *names, size_t count)
{
    bool same = schema->plain && schema->peers == count;
    for (size_t i = 0; same && i < count; i++)
        same = is_peer_of(schema, names[i]);
    return same;
}

static bool is_name(const char *name)
{
    const size_t len = name ? strnlen(name, WR_TAG_MAX + 1) : 0;
    if (len == 0 || len > WR_TAG_MAX || memchr(name, ',', len))
        return false;
    char text[WR_TAG_MAX * 3];
    bool bad;
    bool cut;
    (void)wr_text_repair(text, name, len, sizeof text, &bad, &cut);
    return !bad && !cut;
}

/* The different ones, in the order in which they first come. */
static int take_names(const struct wr_schemas *s, const char *const *names, size_t count,
                      const char *ret_names[ADDED_MAX], size_t *ret_count)
{
    const struct wr_schema *const first = atomic_load_explicit(&s->at[0], memory_order_relaxed);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_name(names[i]))
            return WEIR_EINVAL;
        bool known = false;
        for (size_t k = 0; k < n && !known; k++)
            known = strcmp(ret_names[k], names[i]) == 0;
        if (known)
            continue;
        if (n + first->dimensions >= ADDED_MAX)
            return WEIR_EFULL;
        ret_names[n++] = names[i];
    }
    *ret_count = n;
    return WEIR_OK;
}

static int make(struct wr_schemas *s, const char *const *names, size_t count, uint32_t *ret_number)
{
    static const char *const none[1];
    uint32_t k = 1;
    while (k < WR_EPOCHS && atomic_load_explicit(&s->at[k], memory_order_relaxed))
        k++;
    if (k == WR_EPOCHS)
        return WEIR_EBUSY;
    struct wr_schema *const schema = wr_alloc(&s->opts.alloc, sizeof *schema);
    if (!schema)
        return WEIR_ENOMEM;
    struct weir_stats_opts o = s->opts;
    o.peer_tags = count ? names : none;
    o.peer_tag_count = count;
    const int r = wr_schema_init(schema, &o);
    if (r != WEIR_OK) {
        wr_free(&s->opts.alloc, schema, sizeof *schema);
        return r;
    }
    schema->number = k;
    schema->mark = (uint64_t)k << WR_EPOCH_SHIFT;
    atomic_store_explicit(&s->at[k], schema, memory_order_release);
    atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
    *ret_number = k;
    return WEIR_OK;
}

/* Locked. */
static int set(struct wr_schemas *s, const char *const *names, size_t count)
{
    const uint32_t current = atomic_load(&s->current);
    for (uint32_t i = 0; i < WR_EPOCHS; i++) {
        const uint32_t k = (current + i) % WR_EPOCHS;
        const struct wr_schema *const schema =
            atomic_load_explicit(&s->at[k], memory_order_relaxed);
        if (!schema || !is_schema_of(schema, names, count))
            continue;
        if (k != current) {
            atomic_fetch_add(&s->uses[k], 1);
            atomic_store(&s->current, k);
        }
        return WEIR_OK;
    }
    uint32_t k;
    const int r = make(s, names, count, &k);
    if (r == WEIR_OK) {
        atomic_fetch_add(&s->uses[k], 1);
        atomic_store(&s->current, k);
    }
    return r;
}

int wr_schemas_set(struct wr_schemas *s, const char *const *names, size_t count)
{
    const char *own[ADDED_MAX];
    size_t n = 0;
    int r = take_names(s, names, count, own, &n);
    if (r != WEIR_OK)
        return r;
    while (!try_lock(s))
        (void)sched_yield();
    r = set(s, own, n);
    unlock(s);
    return r;
}

size_t wr_schemas_labels(const void *ctx, const char *key, size_t key_bytes,
                         struct weir_label *labels, size_t cap)
{
    return wr_schema_labels(wr_schema_of(ctx, key, key_bytes), key, key_bytes, labels, cap);
}

/* Nobody has it, and nobody can begin to while it is not made current. */
static bool is_idle(struct wr_schemas *s, uint32_t k)
{
    return atomic_load_explicit(&s->at[k], memory_order_relaxed) && atomic_load(&s->current) != k &&
           atomic_load(&s->pins[k]) == 0;
}

void wr_schemas_find_idle(struct wr_schemas *s, struct wr_idle_schemas *ret_idle)
{
    ret_idle->set = 0;
    if (atomic_load_explicit(&s->count, memory_order_relaxed) <= 1)
        return;
    for (uint32_t k = 1; k < WR_EPOCHS; k++) {
        ret_idle->uses[k] = atomic_load(&s->uses[k]);
        ret_idle->set |= (uint32_t)is_idle(s, k) << k;
    }
}

uint32_t wr_schemas_free_idle(struct wr_schemas *s, const struct wr_idle_schemas *idle,
                              uint32_t held)
{
    uint32_t freed = 0;
    if ((idle->set & ~held) == 0 || !try_lock(s))
        return 0;
    for (uint32_t k = 1; k < WR_EPOCHS; k++) {
        if (!((idle->set & ~held) >> k & 1) || atomic_load(&s->uses[k]) != idle->uses[k] ||
            !is_idle(s, k))
            continue;
        struct wr_schema *const schema = atomic_load_explicit(&s->at[k], memory_order_relaxed);
        atomic_store_explicit(&s->at[k], NULL, memory_order_relaxed);
        schema_free(s, schema);
        atomic_fetch_sub_explicit(&s->count, 1, memory_order_relaxed);
        freed |= 1u << k;
    }
    unlock(s);
    return freed;
}
