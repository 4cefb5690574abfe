/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inbox: the two shapes that a hand-over from many producers to one owner can have, bare, with
 * records of the size of ours: docs/decisions/0003-inbox.md.
 *   slots_N   one queue of fixed slots, each with a sequence; N producers claim eight at a time
 *   rings_N   a byte ring a producer, its tail moved once for eight; the owner drains each in turn
 * The figure is the producers' thread CPU time a record, waits included; the owner sums a word of
 * each line of a record. N is 1 or 8.
 */
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD = 192, WORDS = RECORD / 8, BATCH = 8, RECORDS = 1 << 16, MOST = 8 };
/* 256 KiB for each producer in both shapes. An owner that found little looks away for a while, or
 * it would fight with the producers for the line it waits for. */
enum { RING_WORDS = 1365 * WORDS, SLOTS = 1024, FEW = 256, LOOK_AWAY = 1000 };

struct slot {
    _Alignas(64) _Atomic uint64_t sequence;
    uint64_t words[WORDS];
};

struct ring {
    _Alignas(64) uint64_t at; /* producer's */
    uint64_t head_seen;
    _Alignas(64) _Atomic uint64_t tail;
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) uint64_t words[RING_WORDS];
};

struct inbox {
    struct slot *slots;
    size_t slot_count;
    _Alignas(64) _Atomic uint64_t claimed;
    _Alignas(64) uint64_t taken; /* owner's */
    struct ring *rings;
    size_t producers;
    atomic_int running;
};

struct worker {
    struct inbox *in;
    size_t number;
    size_t records;
    int64_t cpu_ns;
    pthread_t thread;
};

static const uint64_t labels[WORDS] = {1, 2, 3, 4, 5, 6, 7, 8};

/* Eight slots, claimed when the last of them is free. */
static void slots_put(struct inbox *in)
{
    uint64_t at = atomic_load_explicit(&in->claimed, memory_order_relaxed);
    for (;;) {
        const struct slot *const last = &in->slots[(at + BATCH - 1) % in->slot_count];
        /* acquire: the owner has read what was there */
        if (atomic_load_explicit(&last->sequence, memory_order_acquire) != at + BATCH - 1) {
            (void)sched_yield();
            at = atomic_load_explicit(&in->claimed, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(
                       &in->claimed, &at, at + BATCH, memory_order_relaxed, memory_order_relaxed)) {
            break;
        }
    }
    for (size_t k = 0; k < BATCH; k++) {
        struct slot *const s = &in->slots[(at + k) % in->slot_count];
        memcpy(s->words, labels, sizeof labels);
        s->words[0] = at + k;
        atomic_store_explicit(&s->sequence, at + k + 1, memory_order_release);
    }
}

static uint64_t slots_take(struct inbox *in, size_t *ret_count)
{
    uint64_t sum = 0;
    size_t n = 0;
    for (; n < in->slot_count; n++) {
        struct slot *const s = &in->slots[in->taken % in->slot_count];
        if (atomic_load_explicit(&s->sequence, memory_order_acquire) != in->taken + 1)
            break;
        sum += s->words[1] + s->words[9] + s->words[17];
        atomic_store_explicit(&s->sequence, in->taken + in->slot_count, memory_order_release);
        in->taken++;
    }
    *ret_count = n;
    return sum;
}

static void rings_put(struct ring *r)
{
    enum { ALL = BATCH * WORDS };
    while (RING_WORDS - (r->at - r->head_seen) < ALL) {
        r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
        if (RING_WORDS - (r->at - r->head_seen) < ALL)
            (void)sched_yield();
    }
    for (size_t k = 0; k < BATCH; k++, r->at += WORDS) {
        uint64_t *const words = &r->words[r->at % RING_WORDS];
        memcpy(words, labels, sizeof labels);
        words[0] = r->at;
    }
    atomic_store_explicit(&r->tail, r->at, memory_order_release);
}

static uint64_t rings_take(struct inbox *in, size_t *ret_count)
{
    uint64_t sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < in->producers; i++) {
        struct ring *const r = &in->rings[i];
        uint64_t at = atomic_load_explicit(&r->head, memory_order_relaxed);
        const uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
        for (; at < tail; at += WORDS, n++) {
            const uint64_t *const words = &r->words[at % RING_WORDS];
            sum += words[1] + words[9] + words[17];
        }
        atomic_store_explicit(&r->head, at, memory_order_release);
    }
    *ret_count = n;
    return sum;
}

static void *work(void *arg)
{
    struct worker *const w = arg;
    const int64_t from = bench_thread_cpu_ns();
    for (size_t i = 0; i < w->records; i += BATCH) {
        if (w->in->rings)
            rings_put(&w->in->rings[w->number]);
        else
            slots_put(w->in);
    }
    w->cpu_ns = bench_thread_cpu_ns() - from;
    atomic_fetch_sub(&w->in->running, 1);
    return NULL;
}

static void *lines(size_t bytes)
{
    void *const p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (!p)
        abort();
    memset(p, 0, bytes);
    return p;
}

static double round_of(bool rings, size_t producers)
{
    struct inbox *const in = lines(sizeof *in);
    struct worker w[MOST];
    in->producers = producers;
    if (rings) {
        in->rings = lines(producers * sizeof *in->rings);
    } else {
        in->slot_count = producers * SLOTS;
        in->slots = lines(in->slot_count * sizeof *in->slots);
        for (size_t i = 0; i < in->slot_count; i++)
            atomic_store(&in->slots[i].sequence, i);
    }
    atomic_store(&in->running, (int)producers);
    for (size_t i = 0; i < producers; i++) {
        w[i] = (struct worker){.in = in, .number = i, .records = RECORDS / producers};
        if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
            abort();
    }
    size_t taken = 0;
    uint64_t sum = 0;
    while (taken < RECORDS) {
        size_t n;
        sum += rings ? rings_take(in, &n) : slots_take(in, &n);
        taken += n;
        if (n < FEW) {
            for (volatile int k = 0; k < LOOK_AWAY; k++)
                continue;
            (void)sched_yield();
        }
    }
    int64_t cpu = 0;
    for (size_t i = 0; i < producers; i++) {
        (void)pthread_join(w[i].thread, NULL);
        cpu += w[i].cpu_ns;
    }
    if (sum != (labels[1] + labels[9] + labels[17]) * (uint64_t)RECORDS)
        abort();
    free(in->slots);
    free(in->rings);
    free(in);
    return (double)cpu / RECORDS;
}

int main(int argc, char **argv)
{
    static double slots[2][1000];
    static double rings[2][1000];
    static const size_t producers[2] = {1, MOST};
    struct bench b;
    bench_begin(&b, "inbox", "What a producer pays to hand over one record of 192 bytes.", argc,
                argv);
    for (int i = 0; i < b.rounds; i++) {
        for (size_t k = 0; k < 2; k++) {
            slots[k][i] = round_of(false, producers[k]);
            rings[k][i] = round_of(true, producers[k]);
        }
    }
    const size_t n = (size_t)b.rounds;
    bench_report(&b, "slots_1", "ns_per_record", "ns", BENCH_LOWER, slots[0], n);
    bench_report(&b, "rings_1", "ns_per_record", "ns", BENCH_LOWER, rings[0], n);
    bench_report(&b, "slots_8", "ns_per_record", "ns", BENCH_LOWER, slots[1], n);
    bench_report(&b, "rings_8", "ns_per_record", "ns", BENCH_LOWER, rings[1], n);
    return 0;
}
