/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_AGGREGATE_INBOX_H
#define WR_AGGREGATE_INBOX_H
/*
 * inbox: the bounded hand-over of records from producers to the one owner of a shard.
 *
 * A byte ring a producer, single writer and single reader, and beside them a list of signals that
 * any thread may push. A producer writes records past its published tail, where the owner cannot
 * see them, and publishes a whole payload by moving the tail once: no slot is claimed, no producer
 * waits for another, and a payload that turns out bad is forgotten by moving back. A line
 * handed to another core is the dearest thing here (contracts: engine §1), so the tail moves once
 * a payload and each side keeps a copy of the other's index, read anew only when it has run out.
 *
 * What remains: a producer stopped between two commits hides nothing of others, but its own
 * uncommitted records. A full ring refuses; the caller counts.
 *
 * Orders: tail is stored with release after the records were written, and loaded with acquire
 * before they are read; head is stored with release after they were read, and loaded with acquire
 * before the room is written again. A signal is pushed with release and taken with acquire, and
 * the owner reads every tail after it took the signals: so what a thread committed before it
 * pushed a signal is drained before that signal is handled.
 *
 * Threads: functions say producer or owner.
 */
#include "base/alloc.h"
#include "base/bits.h"

#include <stdatomic.h>
#include <weir/stats.h>

enum wr_class {
    WR_CLASS_COUNTED = 0,
    WR_CLASS_INELIGIBLE,
    WR_CLASS_PARTIAL,
    WR_CLASS_DROPPED,   /* reason in flags */
    WR_CLASS_PAD,       /* the rest of the ring before it wraps */
    WR_CLASS_UNWEIGHTED /* counted, but for the bins of its sketch, where its weight is one */
};

enum wr_record_flag { WR_RECORD_ERROR = 1 << 0, WR_RECORD_TOP_LEVEL = 1 << 1 };

/* Followed by key_bytes of key, padded to 8. Records begin on 8-byte boundaries. */
struct wr_record {
    uint32_t bytes; /* header, key and padding */
    uint16_t key_bytes;
    uint8_t klass; /* enum wr_class */
    uint8_t flags; /* enum wr_record_flag, or enum weir_drop for WR_CLASS_DROPPED */
    uint64_t hash;
    int64_t end_ns;
    int64_t duration_ns; /* >= 0 */
    uint64_t weight;     /* units of 2^-20 */
};

static inline char *wr_record_key(struct wr_record *r)
{
    return (char *)(r + 1);
}

/* Counted by producers, read by the owner: relaxed, each an independent total. */
struct wr_producer_counts {
    _Atomic uint64_t received;
    _Atomic uint64_t inbox_full;
    _Atomic uint64_t negative_duration;
    _Atomic uint64_t time_missing;
    _Atomic uint64_t before_2000;
    _Atomic uint64_t utf8_repaired;
    _Atomic uint64_t truncated;
    _Atomic uint64_t weight_capped;
    _Atomic uint64_t bad_status;
    /* Of profile client. */
    _Atomic uint64_t oversized;
    _Atomic uint64_t bad_rate;
    _Atomic uint64_t traces_in;
    _Atomic uint64_t spans_in;
    _Atomic uint64_t dropped_p0_traces;
    _Atomic uint64_t dropped_p0_spans;
};

struct wr_ring {
    /* Producer's line. */
    uint64_t at;        /* where the next record goes; >= tail_own */
    uint64_t tail_own;  /* what was published */
    uint64_t head_seen; /* of the owner, as last read */
    uint64_t mask;      /* capacity - 1 */
    char *bytes;        /* capacity bytes, 64-byte aligned */
    uint32_t flags;     /* enum weir_producer_flag */
    /* Shared lines, one each. */
    _Alignas(64) _Atomic uint64_t tail;
    _Alignas(64) _Atomic uint64_t head;
    _Atomic int closed; /* the producer is gone: free when drained */
    uint64_t full_seen; /* owner: of counts.inbox_full, what was booked already */
    _Alignas(64) struct wr_producer_counts counts;
    void *block; /* of this struct */
    size_t block_bytes;
    void *bytes_block;
    size_t bytes_block_bytes;
};

#define WR_RINGS_MAX 64

struct wr_inbox {
    struct weir_alloc alloc;
    _Atomic(struct wr_ring *) rings[WR_RINGS_MAX];
    _Atomic(struct weir_signal_node *) signals; /* newest first */
    struct wr_producer_counts gone;             /* totals of producers that were freed; owner */
};

void wr_inbox_init(struct wr_inbox *inbox, const struct weir_alloc *alloc);
void wr_inbox_done(struct wr_inbox *inbox); /* frees rings that are left */

/* Threads: any. WEIR_EFULL past WR_RINGS_MAX. capacity is a power of two >= 4096. */
int wr_ring_new(struct wr_inbox *inbox, size_t capacity, uint32_t flags, struct wr_ring **ret_ring);

/*
 * Room for a record of up to bytes bytes (header included), contiguous; NULL when there is none.
 * Nothing is claimed until wr_ring_advance. Threads: producer.
 */
struct wr_record *wr_ring_reserve(struct wr_ring *ring, size_t bytes);
/* The same, at the place where at stands alone and by what was last known of the owner: no wrap,
 * no look at a shared line. */
static inline struct wr_record *wr_ring_try_here(struct wr_ring *ring, size_t bytes)
{
    const uint64_t to_edge = ring->mask + 1 - (ring->at & ring->mask);
    const uint64_t room = ring->mask + 1 - (ring->at - ring->head_seen);
    if (to_edge < bytes || room < bytes)
        return NULL;
    return (struct wr_record *)(void *)(ring->bytes + (ring->at & ring->mask));
}
/* The record just reserved is record->bytes long: the next goes behind it. */
static inline void wr_ring_advance(struct wr_ring *ring, const struct wr_record *record)
{
    ring->at += record->bytes;
}
/* Publish everything before the position upto; what lies behind it stays uncommitted. */
void wr_ring_commit(struct wr_ring *ring, uint64_t upto);
/* Move back to a position of before: ring->at as it was then, not before the last commit. */
static inline void wr_ring_rewind(struct wr_ring *ring, uint64_t at)
{
    WR_ASSERT(at >= ring->tail_own && at <= ring->at);
    ring->at = at;
}
/* Is the capacity too small for bytes bytes, even when the ring is empty? */
static inline bool wr_ring_never_fits(const struct wr_ring *ring, size_t bytes)
{
    return bytes > ring->mask + 1;
}

/* Threads: any. */
void wr_inbox_push_signal(struct wr_inbox *inbox, struct weir_signal_node *node);
/* All signals, oldest first. Threads: owner. */
struct weir_signal_node *wr_inbox_take_signals(struct wr_inbox *inbox);

/* Owner's walk: from head to the tail seen at begin. */
struct wr_reader {
    struct wr_ring *ring;
    uint64_t at;
    uint64_t end;
};
/* true when there is something to read. */
bool wr_reader_begin(struct wr_reader *r, struct wr_ring *ring);
/* The next record that is not padding, or NULL at the end. */
static inline struct wr_record *wr_reader_next(struct wr_reader *r)
{
    while (r->at < r->end) {
        struct wr_record *const rec =
            (struct wr_record *)(void *)(r->ring->bytes + (r->at & r->ring->mask));
        r->at += rec->bytes;
        if (WR_LIKELY(rec->klass != WR_CLASS_PAD))
            return rec;
    }
    return NULL;
}
/* Give the room back. */
void wr_reader_end(struct wr_reader *r);
/* If its producer is gone and it is drained: fold its counts, free it. Returns true if freed. */
bool wr_inbox_reap(struct wr_inbox *inbox, size_t ring_index);
uint64_t wr_ring_waiting_bytes(const struct wr_ring *ring);
#endif
