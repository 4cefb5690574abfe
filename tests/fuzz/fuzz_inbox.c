/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_inbox: producers' and owner's operations on a few rings, one after the other on one thread,
 * beside queues of record numbers: what is committed is read once, in order, byte for byte; what
 * was rewound is never seen; a ring with nothing in it has room.
 *
 * Input: operations.
 */
#include "fuzz.h"

#include "aggregate/inbox.h"

#include <stdlib.h>
#include <string.h>

enum { RINGS = 3, RECORDS_MAX = 512, NODES_MAX = 32 };

struct written {
    uint64_t number;
    uint64_t from; /* ring->at before it */
    uint64_t to;   /* and behind it */
    uint32_t bytes;
};

struct pair {
    struct wr_ring *ring;
    struct written w[RECORDS_MAX]; /* committed ones first, the oldest at 0 */
    size_t committed;
    size_t count;
    uint64_t received;
};

struct world {
    struct wr_inbox inbox;
    struct pair p[RINGS];
    uint64_t next_number;
    uint64_t gone_received;
    struct weir_signal_node nodes[NODES_MAX];
    size_t pushed;
    size_t taken;
};

static uint8_t byte_of(uint64_t number, uint32_t i)
{
    return (uint8_t)(number * 31 + i * 7 + 1);
}

static void fill(struct wr_record *r, uint64_t number, uint32_t bytes)
{
    *r = (struct wr_record){.bytes = bytes,
                            .key_bytes = (uint16_t)(bytes - sizeof *r),
                            .klass = (uint8_t)(number % WR_CLASS_PAD),
                            .hash = number,
                            .end_ns = (int64_t)(number << 20),
                            .weight = ~number};
    char *const key = wr_record_key(r);
    for (uint32_t i = 0; i < r->key_bytes; i++)
        key[i] = (char)byte_of(number, i);
}

static void expect_record(struct wr_record *r, const struct written *w)
{
    FZ_CHECK(r->bytes == w->bytes && r->hash == w->number && r->weight == ~w->number);
    FZ_CHECK(r->klass == w->number % WR_CLASS_PAD && r->end_ns == (int64_t)(w->number << 20));
    const char *const key = wr_record_key(r);
    for (uint32_t i = 0; i < r->key_bytes; i++)
        FZ_CHECK(key[i] == (char)byte_of(w->number, i));
}

static void op_open(struct world *w, struct pair *p, uint8_t shape)
{
    if (p->ring)
        return;
    const uint32_t flags = shape & 1 ? WEIR_PRODUCER_OWNER : 0;
    FZ_CHECK(wr_ring_new(&w->inbox, (size_t)4096 << (shape >> 1 & 1), flags, &p->ring) == WEIR_OK);
    p->committed = 0;
    p->count = 0;
    p->received = 0;
}

/* Multiples of 8, from a bare header to more than the ring holds. */
static uint32_t record_bytes(struct fz_in *in)
{
    const uint32_t small = (uint32_t)fz_u8(in) * 8;
    return (uint32_t)sizeof(struct wr_record) + (small & 8 ? small * 4 : small / 8 * 8);
}

static void op_write(struct world *w, struct pair *p, struct fz_in *in)
{
    const uint32_t bytes = record_bytes(in);
    if (!p->ring || p->count == RECORDS_MAX)
        return;
    struct wr_ring *const ring = p->ring;
    const uint64_t from = ring->at;
    struct wr_record *r = NULL;
    if (w->next_number & 1)
        r = wr_ring_try_here(ring, bytes);
    if (!r)
        r = wr_ring_reserve(ring, bytes);
    if (!r) {
        FZ_CHECK(ring->at == from);
        FZ_CHECK(p->count > 0 || bytes > (ring->mask + 1) / 2);
        return;
    }
    FZ_CHECK(!wr_ring_never_fits(ring, bytes));
    FZ_CHECK((char *)r >= ring->bytes && (char *)r + bytes <= ring->bytes + ring->mask + 1);
    fill(r, w->next_number, bytes);
    wr_ring_advance(ring, r);
    p->w[p->count++] = (struct written){w->next_number++, from, ring->at, bytes};
}

static void op_commit(struct pair *p, uint8_t which)
{
    if (!p->ring || p->count == p->committed)
        return;
    const size_t n = 1 + which % (p->count - p->committed);
    wr_ring_commit(p->ring, p->w[p->committed + n - 1].to);
    p->committed += n;
    atomic_fetch_add_explicit(&p->ring->counts.received, n, memory_order_relaxed);
    p->received += n;
}

static void op_rewind(struct pair *p, uint8_t which)
{
    if (!p->ring || p->count == p->committed)
        return;
    const size_t keep = which % (p->count - p->committed);
    wr_ring_rewind(p->ring, keep ? p->w[p->committed + keep].from : p->ring->tail_own);
    p->count = p->committed + keep;
}

static void op_read(struct pair *p, size_t most)
{
    struct wr_reader reader;
    if (!p->ring)
        return;
    const bool any = wr_reader_begin(&reader, p->ring);
    FZ_CHECK(any || p->committed == 0);
    if (!any)
        return;
    size_t n = 0;
    struct wr_record *r = NULL;
    while (n < most && (r = wr_reader_next(&reader)) != NULL) {
        FZ_CHECK(n < p->committed);
        expect_record(r, &p->w[n++]);
    }
    FZ_CHECK(r != NULL || n == p->committed || n == most);
    wr_reader_end(&reader);
    memmove(p->w, p->w + n, (p->count - n) * sizeof p->w[0]);
    p->count -= n;
    p->committed -= n;
}

static size_t index_of(const struct world *w, const struct wr_ring *ring)
{
    size_t i = 0;
    while (atomic_load_explicit(&w->inbox.rings[i], memory_order_relaxed) != ring)
        i++;
    return i;
}

/* The producer goes; what it committed is still read, then the ring is freed. */
static void op_close(struct world *w, struct pair *p)
{
    if (!p->ring)
        return;
    const size_t index = index_of(w, p->ring);
    FZ_CHECK(!wr_inbox_reap(&w->inbox, index));
    if (p->count > p->committed) {
        wr_ring_rewind(p->ring, p->ring->tail_own);
        p->count = p->committed;
    }
    atomic_store_explicit(&p->ring->closed, 1, memory_order_release);
    FZ_CHECK(p->committed == 0 || !wr_inbox_reap(&w->inbox, index));
    op_read(p, SIZE_MAX);
    FZ_CHECK(wr_inbox_reap(&w->inbox, index));
    w->gone_received += p->received;
    FZ_CHECK(atomic_load_explicit(&w->inbox.gone.received, memory_order_relaxed) ==
             w->gone_received);
    p->ring = NULL;
}

static void op_signals(struct world *w, uint8_t count)
{
    for (size_t i = 0; i < count && w->pushed < NODES_MAX; i++)
        wr_inbox_push_signal(&w->inbox, &w->nodes[w->pushed++]);
}

static void op_take_signals(struct world *w)
{
    struct weir_signal_node *node = wr_inbox_take_signals(&w->inbox);
    for (; node; node = node->next)
        FZ_CHECK(node == &w->nodes[w->taken++]);
    FZ_CHECK(w->taken == w->pushed);
    w->pushed = 0;
    w->taken = 0;
}

static void op(struct world *w, struct fz_in *in)
{
    const uint8_t code = fz_u8(in);
    struct pair *const p = &w->p[code % RINGS];
    switch (code / RINGS % 16) {
    case 0:
        op_close(w, p);
        break;
    case 1:
    case 2:
        op_read(p, 1 + (size_t)fz_u8(in) % 8);
        break;
    case 3:
        op_read(p, SIZE_MAX);
        break;
    case 4:
        op_rewind(p, fz_u8(in));
        break;
    case 5:
    case 6:
        op_commit(p, fz_u8(in));
        break;
    case 7:
        op_signals(w, fz_u8(in) % 8);
        break;
    case 8:
        op_take_signals(w);
        break;
    case 9:
        op_open(w, p, fz_u8(in));
        break;
    default:
        op_open(w, p, 0);
        op_write(w, p, in);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size);
    struct world *const w = calloc(1, sizeof *w);
    FZ_CHECK(w != NULL);
    const struct weir_alloc alloc = wr_alloc_or_default(NULL);
    wr_inbox_init(&w->inbox, &alloc);
    while (in.left > 0)
        op(w, &in);
    for (size_t i = 0; i < RINGS; i++) {
        if (i == 0)
            op_close(w, &w->p[i]);
        else
            op_read(&w->p[i], SIZE_MAX);
    }
    op_take_signals(w);
    wr_inbox_done(&w->inbox);
    free(w);
    return 0;
}
