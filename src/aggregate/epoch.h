/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_AGGREGATE_EPOCH_H
#define WR_AGGREGATE_EPOCH_H
/*
 * epoch: the three bits of a key that say by which of up to eight readings its other bytes mean
 * something. The engine does not know what an epoch means, only which of them something that it
 * holds belongs to: entries, newcomers that it can name, and batches that were not given back.
 *
 * Threads: owner.
 */
#include <stddef.h>
#include <stdint.h>

enum { WR_EPOCHS = 8, WR_EPOCH_SHIFT = 61 };

/* The top bits of the first eight bytes, which are little endian. */
static inline unsigned wr_key_epoch(const char *key, size_t key_bytes)
{
    return key_bytes < 8 ? 0 : (unsigned char)key[7] >> 5;
}

struct wr_shard;
/* Bit e: something is held of epoch e. Bit 0 is always set. O(entries). */
uint32_t wr_shard_epochs(const struct wr_shard *s);
/* Newcomers of these epochs are not told by name any more. */
void wr_shard_forget_names(struct wr_shard *s, uint32_t epochs);
/* Another overflow key. WEIR_EBUSY: the old one has spans in an open window; WEIR_ENOMEM. */
int wr_shard_set_overflow(struct wr_shard *s, const char *key, size_t key_bytes, uint64_t hash);
#endif
