/* SPDX-License-Identifier: Apache-2.0 */
/* dict: see dict.h. */
#include "trace/dict.h"
#include "base/hash.h"

#define FIRST_ENTRIES 64

void wr_trace_dict_init(struct wr_trace_dict *d, const struct weir_alloc *alloc, size_t max_text,
                        uint64_t seed)
{
    *d = (struct wr_trace_dict){.alloc = *alloc, .seed = seed};
    wr_out_init(&d->text, alloc, max_text);
}

void wr_trace_dict_done(struct wr_trace_dict *d)
{
    wr_out_done(&d->text);
    wr_free(&d->alloc, d->entries, d->entry_cap * sizeof *d->entries);
    wr_free(&d->alloc, d->owners, d->owner_cap * sizeof *d->owners);
    wr_free(&d->alloc, d->slots, d->slot_count * sizeof *d->slots);
    d->entries = NULL;
    d->owners = NULL;
    d->owner_cap = 0;
    d->slots = NULL;
    d->count = 0;
    d->entry_cap = 0;
    d->slot_count = 0;
}

/* The slot that holds s, or the free one where it would go. The table has a free slot. */
static struct wr_trace_dict_slot *slot_of(const struct wr_trace_dict *d, struct weir_bytes s,
                                          uint32_t hash)
{
    const size_t mask = d->slot_count - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        struct wr_trace_dict_slot *const slot = &d->slots[at];
        if (slot->index1 == 0)
            return slot;
        if (slot->hash != hash)
            continue;
        const struct wr_trace_dict_entry *const e = &d->entries[slot->index1 - 1];
        if (e->len == s.len && (s.len == 0 || memcmp(d->text.ptr + e->offset, s.ptr, s.len) == 0))
            return slot;
    }
}

static int grow_entries(struct wr_trace_dict *d)
{
    const size_t cap = d->entry_cap ? d->entry_cap * 2 : FIRST_ENTRIES;
    size_t bytes;
    if (wr_mul_size(cap, sizeof *d->entries, &bytes))
        return WEIR_ENOMEM;
    if (d->owner_cap < cap) { /* the two may fail apart */
        const struct weir_text **const owners =
            wr_realloc(&d->alloc, d->owners, d->owner_cap * sizeof *owners, cap * sizeof *owners);
        if (!owners)
            return WEIR_ENOMEM;
        d->owners = owners;
        d->owner_cap = cap;
    }
    struct wr_trace_dict_entry *const entries =
        wr_realloc(&d->alloc, d->entries, d->entry_cap * sizeof *d->entries, bytes);
    if (!entries)
        return WEIR_ENOMEM;
    d->entries = entries;
    d->entry_cap = cap;
    return WEIR_OK;
}

/* Entries go in by index, so that removing newest first stays valid after growth. */
static int grow_slots(struct wr_trace_dict *d)
{
    const size_t count = d->slot_count ? d->slot_count * 2 : 2 * FIRST_ENTRIES;
    size_t bytes;
    if (wr_mul_size(count, sizeof *d->slots, &bytes))
        return WEIR_ENOMEM;
    struct wr_trace_dict_slot *const slots = wr_alloc_zero(&d->alloc, bytes);
    if (!slots)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < d->count; i++) {
        size_t at = d->entries[i].hash & (count - 1);
        while (slots[at].index1)
            at = (at + 1) & (count - 1);
        slots[at].hash = d->entries[i].hash;
        slots[at].index1 = (uint32_t)i + 1;
    }
    wr_free(&d->alloc, d->slots, d->slot_count * sizeof *d->slots);
    d->slots = slots;
    d->slot_count = count;
    return WEIR_OK;
}

static int make_room(struct wr_trace_dict *d)
{
    if (d->count >= UINT32_MAX - 1)
        return WEIR_ERANGE;
    if (d->count == d->entry_cap) {
        const int err = grow_entries(d);
        if (err)
            return err;
    }
    return d->count * 2 >= d->slot_count ? grow_slots(d) : WEIR_OK;
}

/* Append the framed string; an error leaves text as it was. */
static int add_text(struct wr_trace_dict *d, struct weir_bytes s, size_t *ret_offset)
{
    struct wr_out *const text = &d->text;
    const size_t mark = text->len;
    if (mark == 0) {
        static const char gap[WR_TRACE_DICT_GAP] = {0};
        wr_out_put(text, gap, sizeof gap);
    }
    wr_mp_put_str(text, s);
    if (text->err) {
        const int err = text->err;
        wr_out_rewind(text, mark);
        return err;
    }
    *ret_offset = text->len - s.len;
    return WEIR_OK;
}

bool wr_trace_dict_find(const struct wr_trace_dict *d, struct weir_bytes s, uint32_t *ret_hash,
                        uint32_t *ret_index)
{
    const uint32_t hash = (uint32_t)wr_hash(s.len ? s.ptr : "", s.len, d->seed);
    *ret_hash = hash;
    if (!d->slot_count)
        return false;
    const struct wr_trace_dict_slot *const slot = slot_of(d, s, hash);
    if (!slot->index1)
        return false;
    *ret_index = slot->index1 - 1;
    return true;
}

int wr_trace_dict_add(struct wr_trace_dict *d, struct weir_bytes s, uint32_t hash,
                      uint32_t *ret_index)
{
    int err = make_room(d);
    if (err)
        return err;
    size_t offset = 0;
    err = add_text(d, s, &offset);
    if (err)
        return err;
    struct wr_trace_dict_slot *const slot = slot_of(d, s, hash);
    d->entries[d->count] =
        (struct wr_trace_dict_entry){.offset = offset, .len = (uint32_t)s.len, .hash = hash};
    d->owners[d->count] = NULL;
    slot->hash = hash;
    slot->index1 = (uint32_t)d->count + 1;
    *ret_index = (uint32_t)d->count;
    d->count++;
    return WEIR_OK;
}

static void remove_newest(struct wr_trace_dict *d)
{
    const size_t mask = d->slot_count - 1;
    const uint32_t index1 = (uint32_t)d->count;
    size_t at = d->entries[d->count - 1].hash & mask;
    while (d->slots[at].index1 != index1)
        at = (at + 1) & mask;
    d->slots[at] = (struct wr_trace_dict_slot){.hash = 0, .index1 = 0};
    d->count--;
}

void wr_trace_dict_rewind(struct wr_trace_dict *d, size_t count)
{
    /* One memset is cheaper than many removals, unless the table is mostly empty. */
    if (count == 0 && d->count * 8 > d->slot_count) {
        memset(d->slots, 0, d->slot_count * sizeof *d->slots);
        d->count = 0;
    }
    while (d->count > count)
        remove_newest(d);
    wr_out_rewind(&d->text, wr_trace_dict_text_end(d));
}

size_t wr_trace_dict_text_end(const struct wr_trace_dict *d)
{
    if (d->count == 0)
        return d->text.len < WR_TRACE_DICT_GAP ? d->text.len : WR_TRACE_DICT_GAP;
    const struct wr_trace_dict_entry *const last = &d->entries[d->count - 1];
    return last->offset + last->len;
}
