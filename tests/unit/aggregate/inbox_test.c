/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregate/inbox.h"
#include "t.h"

struct fixture {
    struct t_heap heap;
    struct wr_inbox inbox;
    struct wr_ring *ring;
};

static void setup(struct fixture *f, uint32_t flags)
{
    f->heap = (struct t_heap){.fail_at = -1};
    const struct weir_alloc a = {t_heap_fn, &f->heap};
    wr_inbox_init(&f->inbox, &a);
    T_OK(wr_ring_new(&f->inbox, 4096, flags, &f->ring));
}

static void teardown(struct fixture *f)
{
    wr_inbox_done(&f->inbox);
    T_EQ_I64(f->heap.live, 0);
}

static bool put(struct fixture *f, uint64_t number, size_t key_bytes)
{
    struct wr_record *const r =
        wr_ring_reserve(f->ring, sizeof *r + ((key_bytes + 7) & ~(size_t)7));
    if (!r)
        return false;
    *r = (struct wr_record){.bytes = (uint32_t)(sizeof *r + ((key_bytes + 7) & ~(size_t)7)),
                            .key_bytes = (uint16_t)key_bytes,
                            .hash = number};
    memset(wr_record_key(r), (int)(number & 0xff), key_bytes);
    wr_ring_advance(f->ring, r);
    return true;
}

/* Reads all that is visible, checks that numbers go on from *next. */
static size_t take(struct fixture *f, uint64_t *next)
{
    struct wr_reader r;
    if (!wr_reader_begin(&r, f->ring))
        return 0;
    size_t n = 0;
    for (struct wr_record *rec; (rec = wr_reader_next(&r));) {
        T_EQ_U64(rec->hash, (*next)++);
        for (size_t i = 0; i < rec->key_bytes; i++)
            T_EQ_U64((uint8_t)wr_record_key(rec)[i], rec->hash & 0xff);
        n++;
    }
    wr_reader_end(&r);
    return n;
}

TEST(what_is_not_committed_is_not_seen)
{
    struct fixture f;
    setup(&f, 0);
    uint64_t next = 0;
    T_TRUE(put(&f, 0, 10));
    T_EQ_U64(take(&f, &next), 0);
    wr_ring_commit(f.ring, f.ring->at);
    T_TRUE(put(&f, 99, 10));
    T_EQ_U64(take(&f, &next), 1);
    wr_ring_rewind(f.ring, f.ring->tail_own);
    T_TRUE(put(&f, 1, 10));
    wr_ring_commit(f.ring, f.ring->at);
    T_EQ_U64(take(&f, &next), 1);
    teardown(&f);
}

TEST(a_full_ring_refuses_and_takes_again_once_read)
{
    struct fixture f;
    setup(&f, 0);
    uint64_t put_count = 0;
    while (put(&f, put_count, 24))
        put_count++;
    T_EQ_U64(put_count, 4096 / 64);
    wr_ring_commit(f.ring, f.ring->at);
    T_TRUE(!put(&f, put_count, 24));
    uint64_t next = 0;
    T_EQ_U64(take(&f, &next), put_count);
    T_TRUE(put(&f, put_count, 24));
    T_TRUE(wr_ring_never_fits(f.ring, 4097));
    teardown(&f);
}

TEST(records_of_any_size_keep_their_order_over_the_edge)
{
    for (uint32_t flags = 0; flags < 2; flags++) {
        struct fixture f;
        setup(&f, flags);
        struct t_rng rng = t_rng(t_seed());
        uint64_t written = 0;
        uint64_t next = 0;
        for (int i = 0; i < 20000; i++) {
            const uint64_t at = f.ring->at;
            const size_t burst = (size_t)t_below(&rng, 8);
            size_t done = 0;
            while (done < burst && put(&f, written + done, (size_t)t_below(&rng, 300)))
                done++;
            if (t_below(&rng, 4) == 0) {
                wr_ring_rewind(f.ring, at);
            } else {
                wr_ring_commit(f.ring, f.ring->at);
                written += done;
            }
            if (t_below(&rng, 3) == 0)
                (void)take(&f, &next);
        }
        (void)take(&f, &next);
        T_EQ_U64(next, written);
        T_TRUE(written > 10000);
        teardown(&f);
    }
}

TEST(an_owners_ring_begins_again_at_its_first_byte)
{
    struct fixture f;
    setup(&f, WEIR_PRODUCER_OWNER);
    uint64_t next = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        T_TRUE(put(&f, i, 100));
        wr_ring_commit(f.ring, f.ring->at);
        T_EQ_U64(take(&f, &next), 1);
        T_EQ_U64(f.ring->at & f.ring->mask, 0);
    }
    teardown(&f);
}

TEST(signals_come_out_in_the_order_they_went_in)
{
    struct fixture f;
    setup(&f, 0);
    struct weir_signal_node n[3] = {
        {.kind = WEIR_SIGNAL_REPORT}, {.kind = WEIR_SIGNAL_CLEAR}, {.kind = WEIR_SIGNAL_STOP}};
    T_TRUE(!wr_inbox_take_signals(&f.inbox));
    for (size_t i = 0; i < 3; i++)
        wr_inbox_push_signal(&f.inbox, &n[i]);
    const struct weir_signal_node *at = wr_inbox_take_signals(&f.inbox);
    for (size_t i = 0; i < 3; i++, at = at->next)
        T_TRUE(at == &n[i]);
    T_TRUE(!at && !wr_inbox_take_signals(&f.inbox));
    teardown(&f);
}

TEST(more_producers_than_the_bound_are_refused)
{
    struct fixture f;
    setup(&f, 0);
    struct wr_ring *ring;
    for (size_t i = 1; i < WR_RINGS_MAX; i++)
        T_OK(wr_ring_new(&f.inbox, 4096, 0, &ring));
    T_ERR(wr_ring_new(&f.inbox, 4096, 0, &ring), WEIR_EFULL);
    /* One that closed and is drained makes room. */
    atomic_store(&f.ring->closed, 1);
    T_TRUE(wr_inbox_reap(&f.inbox, 0));
    T_OK(wr_ring_new(&f.inbox, 4096, 0, &ring));
    teardown(&f);
}

TEST(a_closed_ring_stays_until_it_is_drained)
{
    struct fixture f;
    setup(&f, 0);
    T_TRUE(put(&f, 0, 8));
    wr_ring_commit(f.ring, f.ring->at);
    atomic_store(&f.ring->counts.truncated, 7);
    atomic_store(&f.ring->closed, 1);
    T_TRUE(!wr_inbox_reap(&f.inbox, 0));
    uint64_t next = 0;
    T_EQ_U64(take(&f, &next), 1);
    T_TRUE(wr_inbox_reap(&f.inbox, 0));
    T_EQ_U64(atomic_load(&f.inbox.gone.truncated), 7);
    teardown(&f);
}

static int make_ring(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    struct wr_inbox inbox;
    struct wr_ring *ring;
    wr_inbox_init(&inbox, alloc);
    const int r = wr_ring_new(&inbox, 4096, 0, &ring);
    wr_inbox_done(&inbox);
    return r;
}

TEST(no_memory_for_a_ring_leaves_nothing_behind)
{
    t_each_oom(make_ring, NULL);
}
