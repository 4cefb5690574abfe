/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dd_v1_kept: spans of a long chunk that wait for what stands behind the spans. A held span has
 * room for every slot, some 1.5 KB; here only those that it fills are copied behind it:
 *
 *   [struct weir_span][struct weir_value: of each bit of present, lowest first] [struct weir_span]…
 *
 * That costs a tenth of reading it again (callgrind, 1,000 spans of bench/encode.c in one chunk).
 *
 * Memory: one array of the decoder, doubled up to a bound and kept for the next payload. Where it
 * is full or memory is not to be had, spans do not wait and are read again: that is no error.
 */
#include "base/alloc.h"
#include "decode/dd_v1.h"

enum { FIRST_BYTES = 16 * 1024, MAX_BYTES = 512 * 1024 };

static bool grow(struct weir_decoder *d)
{
    const size_t cap = d->kept_cap ? d->kept_cap * 2 : FIRST_BYTES;
    if (cap > MAX_BYTES)
        return false;
    char *const kept = wr_realloc(&d->alloc, d->kept, d->kept_cap, cap);
    if (!kept)
        return false;
    d->kept = kept;
    d->kept_cap = cap;
    return true;
}

/* A span with all its slots fits what one doubling adds. */
_Static_assert(sizeof(struct wr_held) < FIRST_BYTES, "one growth is enough");

bool wr_v1_keep(struct weir_decoder *d, const struct wr_held *h)
{
    uint64_t present = h->span.present;
    const size_t bytes =
        sizeof h->span + (size_t)__builtin_popcountll(present) * sizeof(struct weir_value);
    if (WR_UNLIKELY(d->kept_cap - d->kept_len < bytes) && !grow(d))
        return false;
    char *to = d->kept + d->kept_len;
    d->kept_len += bytes;
    memcpy(to, &h->span, sizeof h->span);
    for (to += sizeof h->span; present; present &= present - 1) {
        memcpy(to, &h->slots[__builtin_ctzll(present)], sizeof(struct weir_value));
        to += sizeof(struct weir_value);
    }
    return true;
}

void wr_v1_take_kept(const struct weir_decoder *d, size_t *at, struct wr_held *ret)
{
    const char *from = d->kept + *at;
    memcpy(&ret->span, from, sizeof ret->span);
    from += sizeof ret->span;
    for (uint64_t present = ret->span.present; present; present &= present - 1) {
        memcpy(&ret->slots[__builtin_ctzll(present)], from, sizeof(struct weir_value));
        from += sizeof(struct weir_value);
    }
    *at = (size_t)(from - d->kept);
}
