/* SPDX-License-Identifier: Apache-2.0 */
/* newcomers: see newcomers.h. */
#include "aggregate/newcomers.h"

#include "base/hll.h"

enum { SLOT_MASK = WR_HEAVY_SLOTS - 1, SAMPLE = 63 };

/* Where hash is, or the free slot where it would go; there is always one. */
static struct wr_heavy *slot_of(struct wr_heavy *slots, uint64_t hash)
{
    size_t i = (hash >> 16) & SLOT_MASK;
    while (slots[i].weight != 0 && slots[i].hash != hash)
        i = (i + 1) & SLOT_MASK;
    return &slots[i];
}

static void sort(uint64_t *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint64_t x = v[i];
        size_t k = i;
        for (; k > 0 && v[k - 1] > x; k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

/* Of a sample that walks the slots in even steps: hashes are in no order there. */
static uint64_t median(const struct wr_newcomers *n)
{
    uint64_t sample[SAMPLE];
    size_t count = 0;
    const size_t step = WR_HEAVY_SLOTS / SAMPLE;
    for (size_t i = 0; i < WR_HEAVY_SLOTS && count < SAMPLE; i++) {
        const size_t at = (i * step + i / SAMPLE) & SLOT_MASK;
        if (n->slots[at].weight != 0)
            sample[count++] = n->slots[at].weight;
    }
    sort(sample, count);
    return sample[count / 2];
}

static void purge(struct wr_newcomers *n)
{
    const uint64_t off = median(n);
    memset(n->spare, 0, sizeof n->spare);
    n->used = 0;
    for (size_t i = 0; i < WR_HEAVY_SLOTS; i++) {
        const struct wr_heavy *const h = &n->slots[i];
        if (h->weight <= off)
            continue;
        *slot_of(n->spare, h->hash) = (struct wr_heavy){.hash = h->hash, .weight = h->weight - off};
        n->used++;
    }
    memcpy(n->slots, n->spare, sizeof n->slots);
    n->error += off;
}

static uint64_t raise(struct wr_newcomers *n, uint64_t hash, uint64_t weight)
{
    struct wr_heavy *h = slot_of(n->slots, hash);
    if (h->weight == 0) {
        if (n->used == WR_HEAVY_MAX) {
            purge(n);
            h = slot_of(n->slots, hash);
        }
        h->hash = hash;
        n->used++;
    }
    if (__builtin_add_overflow(h->weight, weight, &h->weight))
        h->weight = UINT64_MAX;
    return h->weight;
}

static void find_least(struct wr_newcomers *n)
{
    n->top_least = UINT64_MAX;
    for (size_t i = 0; i < n->top_count; i++) {
        if (n->top[i].weight < n->top_least)
            n->top_least = n->top[i].weight;
    }
}

/* The key is in the list, or is to be: it passes the least of it, or there is room. */
static void list(struct wr_newcomers *n, uint64_t hash, const char *key, size_t key_bytes,
                 uint64_t weight)
{
    struct wr_top *t = NULL;
    for (size_t i = 0; i < n->top_count && !t; i++) {
        if (n->top[i].hash == hash)
            t = &n->top[i];
    }
    if (!t) {
        if (key_bytes > WR_TOP_KEY_MAX)
            return;
        if (n->top_count < WR_TOP_MAX)
            t = &n->top[n->top_count++];
        else
            for (t = n->top; t->weight != n->top_least; t++) {
            }
        t->hash = hash;
        t->key_bytes = key_bytes;
        memcpy(t->key, key, key_bytes);
    }
    t->weight = weight;
    if (n->top_count == WR_TOP_MAX)
        find_least(n);
}

uint64_t wr_newcomers_add(struct wr_newcomers *n, uint64_t hash, const char *key, size_t key_bytes,
                          uint64_t weight)
{
    if (n->used == 0 && n->error == 0) { /* the first of a window: what was known is the last's */
        memset(n->registers, 0, sizeof n->registers);
        n->top_count = 0;
        n->top_least = 0;
    }
    wr_hll_add(n->registers, WR_DISTINCT_BITS, hash);
    const uint64_t bound = raise(n, hash, weight);
    if (bound > n->top_least)
        list(n, hash, key, key_bytes, bound);
    return bound;
}

void wr_newcomers_lower(struct wr_newcomers *n, uint64_t hash, uint64_t weight)
{
    if (weight)
        (void)raise(n, hash, weight);
}

void wr_newcomers_forget(struct wr_newcomers *n, uint64_t hash)
{
    struct wr_heavy *const h = slot_of(n->slots, hash);
    if (h->weight != 0)
        h->weight = 1; /* a slot that is freed would break the way to others; a purge takes it */
}

void wr_newcomers_turn(struct wr_newcomers *n)
{
    if (n->used == 0 && n->error == 0)
        return;
    memset(n->slots, 0, sizeof n->slots);
    n->used = 0;
    n->error = 0;
}

uint64_t wr_newcomers_distinct(const struct wr_newcomers *n)
{
    return wr_hll_estimate(n->registers, WR_DISTINCT_BITS);
}

const struct wr_top *wr_newcomers_top(const struct wr_newcomers *n, size_t rank)
{
    if (rank >= n->top_count)
        return NULL;
    for (size_t i = 0; i < n->top_count; i++) {
        size_t above = 0; /* larger, or as large and earlier */
        for (size_t k = 0; k < n->top_count; k++)
            above += n->top[k].weight > n->top[i].weight ||
                     (k < i && n->top[k].weight == n->top[i].weight);
        if (above == rank)
            return &n->top[i];
    }
    return NULL;
}
