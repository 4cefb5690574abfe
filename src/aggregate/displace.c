/* SPDX-License-Identifier: Apache-2.0 */
/* displace: see displace.h. */
#include "aggregate/displace.h"

#include "aggregate/window.h"

static uint64_t heat_of(const struct wr_entry *e)
{
    uint64_t most = e->slot.start_ns == WR_NO_WINDOW ? 0 : e->slot.hits;
    for (const struct wr_old_slot *o = e->older; o; o = o->next) {
        if (o->slot.hits > most)
            most = o->slot.hits;
    }
    uint64_t heat;
    return __builtin_add_overflow(most, e->credit, &heat) ? UINT64_MAX : heat;
}

/* A heap with the hottest at 0. */
static void sift_down(struct wr_cold_entry *at, size_t count, size_t i)
{
    const struct wr_cold_entry x = at[i];
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && at[child + 1].heat > at[child].heat)
            child++;
        if (at[child].heat <= x.heat)
            break;
        at[i] = at[child];
    }
    at[i] = x;
}

static void offer(struct wr_cold *c, struct wr_entry *e)
{
    const struct wr_cold_entry x = {.entry = e, .hash = e->hash, .heat = heat_of(e)};
    if (c->count < WR_COLD_MAX) {
        c->at[c->count++] = x;
        if (c->count == WR_COLD_MAX) {
            for (size_t i = WR_COLD_MAX / 2; i-- > 0;)
                sift_down(c->at, WR_COLD_MAX, i);
        }
    } else if (x.heat < c->at[0].heat) {
        c->at[0] = x;
        sift_down(c->at, WR_COLD_MAX, 0);
    }
}

static void walk(struct wr_shard *s)
{
    struct wr_cold *const c = &s->cold;
    const struct wr_table *const t = &s->table;
    c->next = 0;
    c->count = 0;
    for (size_t i = 0; i <= t->mask; i++) {
        if (t->buckets[(i + 8) & t->mask].entry)
            WR_PREFETCH(t->buckets[(i + 8) & t->mask].entry);
        if (t->buckets[i].entry)
            offer(c, t->buckets[i].entry);
    }
    for (size_t i = c->count / 2; i-- > 0;)
        sift_down(c->at, c->count, i);
    for (size_t n = c->count; n > 1; n--) {
        const struct wr_cold_entry hottest = c->at[0];
        c->at[0] = c->at[n - 1];
        sift_down(c->at, n - 1, 0);
        c->at[n - 1] = hottest;
    }
    c->floor = c->count ? c->at[0].heat : 0;
}

void wr_cold_reset(struct wr_shard *s)
{
    s->cold.next = 0;
    s->cold.count = 0;
    s->cold.floor = 0;
    s->cold.credit = UINT64_MAX / 2; /* the first walk of a window is free */
}

/* The coldest, if it is below bound. */
static struct wr_entry *coldest(struct wr_shard *s, uint64_t bound)
{
    struct wr_cold *const c = &s->cold;
    for (int walks = 0; walks < 2; walks++) {
        for (; c->next < c->count; c->next++) {
            const struct wr_cold_entry *const x = &c->at[c->next];
            if (!wr_table_holds(&s->table, x->hash, x->entry))
                continue;
            if (x->heat >= bound) {
                c->floor = x->heat;
                return NULL;
            }
            if (heat_of(x->entry) == x->heat) /* else it has warmed since */
                return c->at[c->next++].entry;
        }
        const uint64_t cost = s->table.size + s->table.mask / 8;
        if (c->credit < cost)
            break;
        c->credit = 0;
        walk(s);
    }
    return NULL;
}

/* Move the sketch at *from, and what it weighs, to *to. WEIR_ENOMEM, WEIR_ERANGE: nothing moved. */
static int fold_part(struct wr_shard *s, struct weir_sketch **from, struct weir_sketch **to)
{
    if (!*from)
        return WEIR_OK;
    if (*to) {
        const int r = weir_sketch_merge(*to, *from);
        if (r != WEIR_OK)
            return r;
        weir_sketch_pool_put(s->pool, *from);
    } else {
        *to = *from;
    }
    *from = NULL;
    return WEIR_OK;
}

static void move_counts(struct wr_slot *from, struct wr_slot *to, uint64_t hits, uint64_t errors)
{
    const uint64_t top = from->top_level < hits ? from->top_level : hits;
    from->hits -= hits;
    from->errors -= errors;
    from->top_level -= top;
    to->hits += hits;
    to->errors += errors;
    to->top_level += top;
}

/* Sums that would wrap are left where they are. */
static int fold_slot(struct wr_shard *s, struct wr_slot *from, struct wr_slot *to)
{
    uint64_t sum;
    if (__builtin_add_overflow(from->hits, to->hits, &sum))
        return WEIR_ERANGE;
    int r = fold_part(s, &from->ok, &to->ok);
    if (r != WEIR_OK)
        return r;
    move_counts(from, to, from->hits - from->errors, 0);
    r = fold_part(s, &from->error, &to->error);
    if (r != WEIR_OK)
        return r;
    move_counts(from, to, from->hits, from->errors);
    return WEIR_OK;
}

static struct wr_window *window_at(struct wr_shard *s, int64_t start_ns)
{
    struct wr_window *const w = wr_window_find(&s->open, start_ns);
    return w ? w : wr_window_find(&s->corrections, start_ns);
}

/* What was folded before a failure is in the overflow row, the rest stays the entry's. */
static int fold(struct wr_shard *s, struct wr_entry *e)
{
    while (e->live > 0) {
        const int64_t start_ns =
            e->slot.start_ns != WR_NO_WINDOW ? e->slot.start_ns : e->older->slot.start_ns;
        struct wr_window *const w = window_at(s, start_ns);
        struct wr_slot *const to = wr_slot_get(s, s->overflow, w);
        const int r = to ? fold_slot(s, wr_slot_find(e, start_ns), to) : WEIR_ENOMEM;
        if (r != WEIR_OK)
            return r;
        wr_window_untouch(w, e);
        wr_slot_drop(s, e, start_ns);
    }
    return WEIR_OK;
}

bool wr_displace(struct wr_shard *s, uint64_t bound)
{
    struct wr_cold *const c = &s->cold;
    if (bound <= c->floor)
        return false;
    struct wr_entry *const e = coldest(s, bound);
    if (!e)
        return false;
    const uint64_t heat = heat_of(e);
    const uint64_t hash = e->hash;
    if (fold(s, e) != WEIR_OK)
        return false;
    wr_newcomers_lower(s->newcomers, hash, heat);
    s->totals.displaced++;
    return true;
}
