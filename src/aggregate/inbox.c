/* SPDX-License-Identifier: Apache-2.0 */
/* inbox: see inbox.h, which gives the orders and why they suffice. */
#include "aggregate/inbox.h"

void wr_inbox_init(struct wr_inbox *inbox, const struct weir_alloc *alloc)
{
    memset(inbox, 0, sizeof *inbox);
    inbox->alloc = *alloc;
}

static void ring_free(struct wr_inbox *inbox, struct wr_ring *ring)
{
    wr_free(&inbox->alloc, ring->bytes_block, ring->bytes_block_bytes);
    wr_free(&inbox->alloc, ring->block, ring->block_bytes);
}

void wr_inbox_done(struct wr_inbox *inbox)
{
    for (size_t i = 0; i < WR_RINGS_MAX; i++) {
        struct wr_ring *const ring = atomic_load_explicit(&inbox->rings[i], memory_order_acquire);
        if (ring)
            ring_free(inbox, ring);
    }
}

static struct wr_ring *ring_make(struct wr_inbox *inbox, size_t capacity, uint32_t flags)
{
    void *block;
    size_t block_bytes;
    struct wr_ring *const ring =
        wr_alloc_aligned64(&inbox->alloc, sizeof *ring, &block, &block_bytes);
    if (!ring)
        return NULL;
    memset(ring, 0, sizeof *ring);
    ring->block = block;
    ring->block_bytes = block_bytes;
    ring->mask = capacity - 1;
    ring->flags = flags;
    ring->bytes =
        wr_alloc_aligned64(&inbox->alloc, capacity, &ring->bytes_block, &ring->bytes_block_bytes);
    if (!ring->bytes) {
        wr_free(&inbox->alloc, block, block_bytes);
        return NULL;
    }
    return ring;
}

int wr_ring_new(struct wr_inbox *inbox, size_t capacity, uint32_t flags, struct wr_ring **ret_ring)
{
    WR_ASSERT((capacity & (capacity - 1)) == 0 && capacity >= 4096);
    struct wr_ring *const ring = ring_make(inbox, capacity, flags);
    if (!ring)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < WR_RINGS_MAX; i++) {
        struct wr_ring *none = NULL;
        /* release: the owner that sees the pointer sees the ring made. */
        if (atomic_compare_exchange_strong_explicit(&inbox->rings[i], &none, ring,
                                                    memory_order_release, memory_order_relaxed)) {
            *ret_ring = ring;
            return WEIR_OK;
        }
    }
    ring_free(inbox, ring);
    return WEIR_EFULL;
}

/* Bytes that may be written from at on without passing the owner's head. */
static uint64_t room_of(struct wr_ring *ring, uint64_t want)
{
    uint64_t room = ring->mask + 1 - (ring->at - ring->head_seen);
    if (room < want) {
        /* acquire: the owner has finished reading what lies before head. */
        ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
        room = ring->mask + 1 - (ring->at - ring->head_seen);
    }
    return room;
}

struct wr_record *wr_ring_reserve(struct wr_ring *ring, size_t bytes)
{
    const uint64_t to_edge = ring->mask + 1 - (ring->at & ring->mask);
    if (WR_LIKELY(to_edge >= bytes)) {
        if (WR_UNLIKELY(room_of(ring, bytes) < bytes))
            return NULL;
        return (struct wr_record *)(void *)(ring->bytes + (ring->at & ring->mask));
    }
    /* The rest up to the edge becomes padding, if there is room behind it too. */
    if (room_of(ring, to_edge + bytes) < to_edge + bytes)
        return NULL;
    struct wr_record *const pad =
        (struct wr_record *)(void *)(ring->bytes + (ring->at & ring->mask));
    /* Records are multiples of 8, so at least 8 bytes are there: bytes, key_bytes, klass. */
    pad->bytes = (uint32_t)to_edge;
    pad->klass = WR_CLASS_PAD;
    ring->at += to_edge;
    return (struct wr_record *)(void *)ring->bytes;
}

void wr_ring_commit(struct wr_ring *ring, uint64_t upto)
{
    WR_ASSERT(upto >= ring->tail_own && upto <= ring->at);
    if (upto == ring->tail_own)
        return;
    ring->tail_own = upto;
    /* release: the records before the tail are written. */
    atomic_store_explicit(&ring->tail, upto, memory_order_release);
}

void wr_inbox_push_signal(struct wr_inbox *inbox, struct weir_signal_node *node)
{
    node->next = atomic_load_explicit(&inbox->signals, memory_order_relaxed);
    /* release: the node is whole, and what this thread committed before is visible with it. */
    while (!atomic_compare_exchange_weak_explicit(&inbox->signals, &node->next, node,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

struct weir_signal_node *wr_inbox_take_signals(struct wr_inbox *inbox)
{
    if (!atomic_load_explicit(&inbox->signals, memory_order_relaxed))
        return NULL;
    /* acquire: pairs with the push. */
    struct weir_signal_node *node =
        atomic_exchange_explicit(&inbox->signals, NULL, memory_order_acquire);
    struct weir_signal_node *oldest = NULL;
    while (node) {
        struct weir_signal_node *const next = node->next;
        node->next = oldest;
        oldest = node;
        node = next;
    }
    return oldest;
}

bool wr_reader_begin(struct wr_reader *r, struct wr_ring *ring)
{
    r->ring = ring;
    r->at = atomic_load_explicit(&ring->head, memory_order_relaxed); /* the owner's own */
    r->end = atomic_load_explicit(&ring->tail, memory_order_acquire);
    return r->at != r->end;
}

void wr_reader_end(struct wr_reader *r)
{
    struct wr_ring *const ring = r->ring;
    /* release: everything before is read. */
    atomic_store_explicit(&ring->head, r->at, memory_order_release);
    if ((ring->flags & WEIR_PRODUCER_OWNER) && ring->at == r->at) {
        /* One thread on both sides and nothing left: begin again at the first byte, so that a ring
         * larger than the cache stays in it (contracts: engine §2.6). */
        const uint64_t again = (r->at + ring->mask) & ~ring->mask;
        ring->at = again;
        ring->tail_own = again;
        ring->head_seen = again;
        atomic_store_explicit(&ring->tail, again, memory_order_relaxed);
        atomic_store_explicit(&ring->head, again, memory_order_relaxed);
    }
}

static void fold(_Atomic uint64_t *dst, _Atomic uint64_t *src)
{
    atomic_fetch_add_explicit(dst, atomic_load_explicit(src, memory_order_relaxed),
                              memory_order_relaxed);
}

static void fold_counts(struct wr_producer_counts *dst, struct wr_producer_counts *src)
{
    fold(&dst->received, &src->received);
    fold(&dst->inbox_full, &src->inbox_full);
    fold(&dst->negative_duration, &src->negative_duration);
    fold(&dst->time_missing, &src->time_missing);
    fold(&dst->before_2000, &src->before_2000);
    fold(&dst->utf8_repaired, &src->utf8_repaired);
    fold(&dst->truncated, &src->truncated);
    fold(&dst->weight_capped, &src->weight_capped);
    fold(&dst->bad_status, &src->bad_status);
    fold(&dst->oversized, &src->oversized);
    fold(&dst->bad_rate, &src->bad_rate);
    fold(&dst->traces_in, &src->traces_in);
    fold(&dst->spans_in, &src->spans_in);
    fold(&dst->dropped_p0_traces, &src->dropped_p0_traces);
    fold(&dst->dropped_p0_spans, &src->dropped_p0_spans);
}

bool wr_inbox_reap(struct wr_inbox *inbox, size_t ring_index)
{
    struct wr_ring *const ring =
        atomic_load_explicit(&inbox->rings[ring_index], memory_order_acquire);
    /* acquire: the producer's last words were said before it closed. */
    if (!ring || !atomic_load_explicit(&ring->closed, memory_order_acquire))
        return false;
    if (wr_ring_waiting_bytes(ring) > 0 ||
        ring->full_seen != atomic_load_explicit(&ring->counts.inbox_full, memory_order_relaxed))
        return false;
    fold_counts(&inbox->gone, &ring->counts);
    atomic_store_explicit(&inbox->rings[ring_index], NULL, memory_order_release);
    ring_free(inbox, ring);
    return true;
}

uint64_t wr_ring_waiting_bytes(const struct wr_ring *ring)
{
    return atomic_load_explicit(&ring->tail, memory_order_acquire) -
           atomic_load_explicit(&ring->head, memory_order_relaxed);
}
