/* SPDX-License-Identifier: Apache-2.0 */
/* epoch: see epoch.h. Asked about once a window at most, and only while there is more than one. */
#include "aggregate/epoch.h"

#include "aggregate/shard.h"

uint32_t wr_shard_epochs(const struct wr_shard *s)
{
    uint32_t held = 1u << wr_key_epoch(wr_entry_key(s->overflow), s->overflow->key_bytes) | 1;
    for (size_t i = 0; i <= s->table.mask; i++) {
        struct wr_entry *const e = s->table.buckets[i].entry;
        if (e)
            held |= 1u << wr_key_epoch(wr_entry_key(e), e->key_bytes);
    }
    for (unsigned e = 0; e < WR_EPOCHS; e++)
        held |= (uint32_t)(s->epoch_batches[e] > 0) << e;
    return held;
}

void wr_shard_forget_names(struct wr_shard *s, uint32_t epochs)
{
    struct wr_newcomers *const n = s->newcomers;
    for (size_t i = 0; n && i < n->top_count;) {
        if (epochs >> wr_key_epoch(n->top[i].key, n->top[i].key_bytes) & 1)
            n->top[i] = n->top[--n->top_count];
        else
            i++;
    }
    if (n && n->top_count < WR_TOP_MAX)
        n->top_least = 0;
}

int wr_shard_set_overflow(struct wr_shard *s, const char *key, size_t key_bytes, uint64_t hash)
{
    if (s->overflow->slot.start_ns != WR_NO_WINDOW || s->overflow->older)
        return WEIR_EBUSY;
    struct wr_entry *const e = wr_entry_make(&s->opts.alloc, hash, key, key_bytes);
    if (!e)
        return WEIR_ENOMEM;
    wr_entry_free(&s->opts.alloc, s->overflow);
    s->overflow = e;
    return WEIR_OK;
}
