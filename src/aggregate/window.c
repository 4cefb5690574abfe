/* SPDX-License-Identifier: Apache-2.0 */
/* window: see window.h. */
#include "aggregate/window.h"

int64_t wr_window_align(const struct wr_shard *s, int64_t t_ns)
{
    const int64_t w = s->opts.window_for_ns;
    int64_t past = t_ns % w;
    if (past < 0)
        past += w;
    return t_ns < INT64_MIN + w ? INT64_MIN + w : t_ns - past;
}

int64_t wr_window_oldest_open(const struct wr_shard *s)
{
    return wr_sat_sub_i64(s->current_start_ns, s->opts.lateness_for_ns);
}

static int windows_grow(struct wr_shard *s, struct wr_windows *list)
{
    if (list->count < list->cap)
        return WEIR_OK;
    const size_t cap = list->cap ? list->cap * 2 : 8;
    struct wr_window **const p =
        wr_realloc(&s->opts.alloc, list->at, list->cap * sizeof *list->at, cap * sizeof *list->at);
    if (!p)
        return WEIR_ENOMEM;
    list->at = p;
    list->cap = cap;
    return WEIR_OK;
}

/* The place of start in list: where it is, or where it would go. */
static size_t windows_place(const struct wr_windows *list, int64_t start_ns)
{
    size_t lo = 0;
    size_t hi = list->count;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (list->at[mid]->start_ns < start_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct wr_window *window_make(struct wr_shard *s)
{
    if (s->spare_windows.count > 0)
        return s->spare_windows.at[--s->spare_windows.count];
    /* Its place among the spares is made now, so that retiring never fails. */
    const size_t all = s->open.count + s->corrections.count + 1;
    while (s->spare_windows.cap < all) {
        const size_t keep = s->spare_windows.count;
        s->spare_windows.count = s->spare_windows.cap;
        const int r = windows_grow(s, &s->spare_windows);
        s->spare_windows.count = keep;
        if (r != WEIR_OK)
            return NULL;
    }
    return wr_alloc_zero(&s->opts.alloc, sizeof(struct wr_window));
}

struct wr_window *wr_window_find(const struct wr_windows *list, int64_t start_ns)
{
    const size_t place = windows_place(list, start_ns);
    return place < list->count && list->at[place]->start_ns == start_ns ? list->at[place] : NULL;
}

struct wr_window *wr_window_get(struct wr_shard *s, struct wr_windows *list, int64_t start_ns,
                                uint32_t flags)
{
    const size_t place = windows_place(list, start_ns);
    if (place < list->count && list->at[place]->start_ns == start_ns)
        return list->at[place];
    if (windows_grow(s, list) != WEIR_OK)
        return NULL;
    struct wr_window *const w = window_make(s);
    if (!w)
        return NULL;
    w->start_ns = start_ns;
    w->flags = flags;
    memmove(list->at + place + 1, list->at + place, (list->count - place) * sizeof *list->at);
    list->at[place] = w;
    list->count++;
    return w;
}

void wr_window_retire(struct wr_shard *s, struct wr_windows *list, size_t i)
{
    struct wr_window *const w = list->at[i];
    if (s->current == w)
        s->current = NULL;
    memmove(list->at + i, list->at + i + 1, (list->count - i - 1) * sizeof *list->at);
    list->count--;
    w->touched_count = 0;
    w->key_bytes = 0;
    memset(&w->counts, 0, sizeof w->counts);
    WR_ASSERT(s->spare_windows.count < s->spare_windows.cap);
    s->spare_windows.at[s->spare_windows.count++] = w;
}

void wr_windows_done(struct wr_shard *s, struct wr_windows *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct wr_window *const w = list->at[i];
        wr_free(&s->opts.alloc, w->touched, w->touched_cap * sizeof *w->touched);
        wr_free(&s->opts.alloc, w, sizeof *w);
    }
    wr_free(&s->opts.alloc, list->at, list->cap * sizeof *list->at);
    *list = (struct wr_windows){0};
}

static int touched_grow(struct wr_shard *s, struct wr_window *w)
{
    if (w->touched_count < w->touched_cap)
        return WEIR_OK;
    const size_t cap = w->touched_cap ? w->touched_cap * 2 : 64;
    struct wr_entry **const p = wr_realloc(
        &s->opts.alloc, w->touched, w->touched_cap * sizeof *w->touched, cap * sizeof *w->touched);
    if (!p)
        return WEIR_ENOMEM;
    w->touched = p;
    w->touched_cap = cap;
    return WEIR_OK;
}

static struct wr_old_slot *old_slot_make(struct wr_shard *s)
{
    struct wr_old_slot *const old = s->spare_slots;
    if (!old)
        return wr_alloc(&s->opts.alloc, sizeof *old);
    s->spare_slots = old->next;
    return old;
}

struct wr_slot *wr_slot_find(struct wr_entry *e, int64_t start_ns)
{
    if (e->slot.start_ns == start_ns)
        return &e->slot;
    for (struct wr_old_slot *o = e->older; o; o = o->next) {
        if (o->slot.start_ns == start_ns)
            return &o->slot;
    }
    return NULL;
}

uint32_t *wr_slot_touched_at(struct wr_entry *e, int64_t start_ns)
{
    if (e->slot.start_ns == start_ns)
        return &e->touched_at;
    struct wr_old_slot *o = e->older;
    while (o->slot.start_ns != start_ns)
        o = o->next;
    return &o->touched_at;
}

void wr_window_untouch(struct wr_window *w, struct wr_entry *e)
{
    const uint32_t at = *wr_slot_touched_at(e, w->start_ns);
    struct wr_entry *const last = w->touched[w->touched_count - 1];
    WR_ASSERT(w->touched[at] == e);
    w->touched[at] = last;
    *wr_slot_touched_at(last, w->start_ns) = at;
    w->touched_count--;
    w->key_bytes -= e->key_bytes;
}

struct wr_slot *wr_slot_get(struct wr_shard *s, struct wr_entry *e, struct wr_window *w)
{
    struct wr_slot *const there = wr_slot_find(e, w->start_ns);
    if (there)
        return there;
    if (touched_grow(s, w) != WEIR_OK)
        return NULL;
    const bool inline_taken = e->slot.start_ns != WR_NO_WINDOW;
    /* The inline slot holds the newest window: an older one goes to the list, a newer one pushes
     * the inline slot there. */
    const bool newest =
        (!inline_taken && !e->older) || (inline_taken && w->start_ns > e->slot.start_ns);
    struct wr_slot *slot = &e->slot;
    if (inline_taken || !newest) {
        struct wr_old_slot *const old = old_slot_make(s);
        if (!old)
            return NULL;
        if (newest) {
            old->slot = e->slot;
            old->touched_at = e->touched_at;
            e->credit = 0;
        } else {
            slot = &old->slot;
        }
        old->next = e->older;
        e->older = old;
    }
    *slot = (struct wr_slot){.start_ns = w->start_ns};
    *wr_slot_touched_at(e, w->start_ns) = (uint32_t)w->touched_count;
    w->touched[w->touched_count++] = e;
    w->key_bytes += e->key_bytes;
    if (e->last_start_ns < w->start_ns)
        e->last_start_ns = w->start_ns;
    if (e != s->overflow)
        wr_table_slot_added(&s->table, e);
    return slot;
}

void wr_slot_drop(struct wr_shard *s, struct wr_entry *e, int64_t start_ns)
{
    if (e->slot.start_ns == start_ns) {
        e->slot = (struct wr_slot){.start_ns = WR_NO_WINDOW};
    } else {
        struct wr_old_slot **at = &e->older;
        while ((*at)->slot.start_ns != start_ns)
            at = &(*at)->next;
        struct wr_old_slot *const old = *at;
        *at = old->next;
        old->next = s->spare_slots;
        s->spare_slots = old;
    }
    if (e != s->overflow)
        wr_table_slot_gone(&s->table, e);
}

void wr_slots_done(struct wr_shard *s)
{
    while (s->spare_slots) {
        struct wr_old_slot *const old = s->spare_slots;
        s->spare_slots = old->next;
        wr_free(&s->opts.alloc, old, sizeof *old);
    }
}
