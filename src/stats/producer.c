/* SPDX-License-Identifier: Apache-2.0 */
/*
 * producer: spans to records in a ring. One pass: the key is built in the ring itself, hashed
 * there, and becomes visible at commit. What only the whole trace can tell (top level, eligibility)
 * is written into the records at its end (trace.c).
 */
#include "stats/stats.h"

#include "base/hash.h"
#include "stats/key.h"

enum { RING_DEFAULT = 256 << 10, RING_MIN = 4096, RING_MAX = 64 << 20 };

/* 2000-01-01T00:00:00Z; an earlier start is no time (contracts: wire §2.9). */
static const int64_t year_2000_ns = INT64_C(946684800) * 1000000000;

int weir_producer_new(struct weir_stats *stats, size_t ring_bytes, uint32_t flags,
                      struct weir_producer **ret_producer)
{
    if (ring_bytes == 0)
        ring_bytes = RING_DEFAULT;
    if (ring_bytes < RING_MIN || ring_bytes > RING_MAX)
        return WEIR_EINVAL;
    struct weir_producer *const p = wr_alloc_zero(&stats->alloc, sizeof *p);
    if (!p)
        return WEIR_ENOMEM;
    p->stats = stats;
    p->fork_word = stats->fork_word;
    p->generation = wr_stats_generation(stats);
    p->schema = &stats->schema;
    const int r = wr_ring_new(&stats->shard.inbox, wr_pow2_ceil(ring_bytes), flags, &p->ring);
    if (r != WEIR_OK) {
        wr_free(&stats->alloc, p, sizeof *p);
        return r;
    }
    *ret_producer = p;
    return WEIR_OK;
}

void weir_producer_free(struct weir_producer *producer)
{
    if (!producer)
        return;
    struct weir_stats *const st = producer->stats;
    wr_producer_unpin(producer);
    if (producer->generation == wr_stats_generation(st)) {
        wr_free(&st->alloc, producer->trace, producer->trace_cap * sizeof *producer->trace);
        wr_free(&st->alloc, producer->parents, producer->parents_cap * sizeof *producer->parents);
        /* release: the counts and the last commit come first. */
        atomic_store_explicit(&producer->ring->closed, 1, memory_order_release);
    } else { /* of before a fork, and in no inbox here */
        wr_ring_discard(&st->shard.inbox, producer->ring);
    }
    if (producer->automatic) { /* the list frees it */
        (void)pthread_setspecific(st->producer_key, NULL);
        wr_registry_mark(&st->producers, &producer->listed);
    } else {
        wr_free(&st->alloc, producer, sizeof *producer);
    }
}

void weir_stats_begin(struct weir_producer *producer, const struct weir_source *source)
{
    wr_producer_check(producer);
    WR_ASSERT(producer->trace_count == 0);
    producer->source = *source;
    producer->trace_at = producer->ring->at;
    producer->committable = 0;
    producer->kept = (struct wr_kept){0};
    producer->keep = false;
}

/* End and duration by the rules of rows §3; notes what had to be mended. */
static void settle_time(struct weir_producer *p, const struct weir_span *span,
                        struct wr_record *rec)
{
    struct wr_notes *const c = &p->notes;
    int64_t start = span->start_ns;
    int64_t duration = span->duration_ns;
    if (span->flags & (WEIR_SPAN_NO_END | WEIR_SPAN_NO_START)) {
        c->time_missing++;
        if (span->flags & WEIR_SPAN_NO_END)
            start = p->source.now_ns;
        duration = 0;
    }
    if (duration < 0) {
        /* The end is where it was said to be; what is negative is the length. */
        c->negative_duration++;
        if (!(span->flags & WEIR_SPAN_DD))
            start = wr_sat_add_i64(start, duration);
        duration = 0;
    }
    int64_t end;
    if (wr_add_i64(start, duration, &end)) {
        duration = 0;
        end = start;
    }
    if ((span->flags & WEIR_SPAN_DD) && start < year_2000_ns) {
        c->before_2000++;
        end = p->source.now_ns;
    }
    rec->end_ns = end;
    rec->duration_ns = duration;
}

uint64_t weir_weight_of_rate(double rate)
{
    if (!(rate > 0.0 && rate <= 1.0))
        return WEIR_WEIGHT_UNKNOWN;
    const double units = (double)WEIR_WEIGHT_ONE / rate + 0.5;
    return units < 0x1p62 ? (uint64_t)units : UINT64_C(1) << 62;
}

static uint64_t settle_weight(struct weir_producer *p, const struct weir_span *span)
{
    if (span->weight == 0)
        return WEIR_WEIGHT_ONE;
    if (span->weight <= WR_WEIGHT_MAX)
        return span->weight;
    if (span->weight == WEIR_WEIGHT_UNKNOWN) {
        p->notes.bad_rate++;
        return WEIR_WEIGHT_ONE;
    }
    p->notes.weight_capped++;
    return WR_WEIGHT_MAX;
}

/* A metric that is 1, as the reference reads it (contracts: rows §3). */
static bool is_one(const struct weir_span *span, enum weir_tag slot)
{
    if (!(span->present >> slot & 1))
        return false;
    const struct weir_value *const v = &span->slots[slot];
    return (v->type == WEIR_VALUE_DOUBLE && v->v.d - 1.0 == 0.0) ||
           (v->type == WEIR_VALUE_INT && v->v.i == 1);
}

static bool is_partial(const struct weir_span *span)
{
    if (!(span->present >> WEIR_TAG_PARTIAL & 1))
        return false;
    const struct weir_value *const v = &span->slots[WEIR_TAG_PARTIAL];
    return (v->type == WEIR_VALUE_DOUBLE && v->v.d >= 0.0) ||
           (v->type == WEIR_VALUE_INT && v->v.i >= 0);
}

static bool is_positive(const struct weir_value *v)
{
    return v->type == WEIR_VALUE_DOUBLE ? v->v.d > 0.0 : v->v.i > 0;
}

WR_INLINE unsigned marks_of(const struct weir_span *span)
{
    unsigned marks = 0;
    if (span->kind >= WEIR_KIND_SERVER && span->kind <= WEIR_KIND_CONSUMER)
        marks |= WR_MARK_KIND;
    const uint64_t told = UINT64_C(1) << WEIR_TAG_TOP_LEVEL | UINT64_C(1) << WEIR_TAG_MEASURED |
                          UINT64_C(1) << WEIR_TAG_PARTIAL;
    if (span->present & told) {
        if (is_one(span, WEIR_TAG_TOP_LEVEL))
            marks |= WR_MARK_TOP_LEVEL;
        if (is_one(span, WEIR_TAG_MEASURED))
            marks |= WR_MARK_MEASURED;
        if (is_partial(span))
            marks |= WR_MARK_PARTIAL;
    }
    return marks;
}

unsigned wr_marks_of(const struct weir_span *span)
{
    return marks_of(span);
}

unsigned wr_marks_of_client(const struct weir_span *span)
{
    unsigned marks = marks_of(span) & ~(unsigned)(WR_MARK_KIND | WR_MARK_PARTIAL);
    if (wr_key_client_kind(span) >= WEIR_KIND_SERVER)
        marks |= WR_MARK_KIND;
    if (is_partial(span) && is_positive(&span->slots[WEIR_TAG_PARTIAL]))
        marks |= WR_MARK_PARTIAL;
    return marks;
}

/* Contracts: span-stats §1.2: what lasted, by the kinds that a text says, and not unfinished. */
static void settle_client(struct weir_producer *p, const struct weir_span *span,
                          struct wr_record *rec, struct wr_traced *t)
{
    t->marks = (uint8_t)wr_marks_of_client(span);
    if (span->duration_ns <= 0 || (span->flags & (WEIR_SPAN_NO_END | WEIR_SPAN_NO_START)))
        rec->klass = WR_CLASS_INELIGIBLE; /* or partial, below */
    if (!(p->stats->schema.flags & WEIR_STATS_ALIGN))
        rec->end_ns = p->source.now_ns;
}

static int trace_grow(struct weir_producer *p)
{
    const size_t cap = p->trace_cap ? p->trace_cap * 2 : 64;
    struct wr_traced *const t = wr_realloc(&p->stats->alloc, p->trace,
                                           p->trace_cap * sizeof *p->trace, cap * sizeof *p->trace);
    if (!t)
        return WEIR_ENOMEM;
    p->trace = t;
    p->trace_cap = cap;
    return WEIR_OK;
}

/* What was mended counts when the payload does. */
static void count_notes(struct weir_producer *p)
{
    struct wr_producer_counts *const c = &p->ring->counts;
    const struct wr_notes *const n = &p->notes;
    wr_count(&c->negative_duration, n->negative_duration);
    wr_count(&c->time_missing, n->time_missing);
    wr_count(&c->before_2000, n->before_2000);
    wr_count(&c->weight_capped, n->weight_capped);
    wr_count(&c->duplicate_ids, n->duplicate_ids);
    wr_count(&c->utf8_repaired, n->key.repaired);
    wr_count(&c->truncated, n->key.truncated);
    wr_count(&c->bad_status, n->key.bad_status);
    wr_count(&c->oversized, n->key.oversized);
    wr_count(&c->bad_rate, n->bad_rate);
}

void wr_producer_count_kept(struct weir_producer *p)
{
    struct wr_producer_counts *const c = &p->ring->counts;
    wr_count(&c->traces_in, p->kept.traces);
    wr_count(&c->spans_in, p->kept.spans);
    wr_count(&c->dropped_p0_traces, p->kept.free_traces);
    wr_count(&c->dropped_p0_spans, p->kept.free_spans);
    p->kept = (struct wr_kept){0};
}

/* Room for any key, where there is so much; its own bound is worked out only near the ring's end.
 */
static struct wr_record *room_for(struct weir_producer *p, const struct weir_span *span)
{
    const size_t most = (sizeof(struct wr_record) + WR_KEY_MAX + 7) & ~(size_t)7;
    struct wr_record *const rec = wr_ring_try_here(p->ring, most);
    if (WR_LIKELY(rec != NULL))
        return rec;
    return wr_ring_reserve(p->ring,
                           (sizeof(struct wr_record) + wr_key_bound(span) + 7) & ~(size_t)7);
}

int weir_stats_add(struct weir_producer *producer, const struct weir_span *span)
{
    struct weir_producer *const p = producer;
    if (p->trace_count == p->trace_cap && trace_grow(p) != WEIR_OK)
        return WEIR_ENOMEM;
    const struct wr_schema *const schema = p->schema;
    struct wr_record *const rec = room_for(p, span);
    if (!rec)
        return WEIR_EFULL;
    struct wr_traced *const t = &p->trace[p->trace_count++];
    struct weir_bytes service;
    const size_t key_bytes =
        WR_UNLIKELY(schema->client)
            ? wr_key_build_client(schema, span, wr_record_key(rec), &service, &p->notes.key)
            : wr_key_build(schema, span, p->source.lang, wr_record_key(rec), &service,
                           &p->notes.key);
    rec->key_bytes = (uint16_t)key_bytes;
    rec->bytes = (uint32_t)((sizeof *rec + key_bytes + 7) & ~(size_t)7);
    rec->hash = wr_hash_key(wr_record_key(rec), key_bytes, p->stats->seed);
    rec->flags = span->flags & WEIR_SPAN_ERROR ? WR_RECORD_ERROR : 0;
    rec->weight = settle_weight(p, span);
    settle_time(p, span, rec);
    *t = (struct wr_traced){.ring_at = p->ring->at,
                            .trace_id = span->trace_id,
                            .span_id = span->span_id,
                            .parent_id = span->parent_id,
                            .service = service.ptr,
                            .service_bytes = (uint32_t)service.len,
                            .marks = (uint8_t)marks_of(span),
                            .span_flags = span->flags};
    rec->klass = WR_CLASS_COUNTED;
    if (WR_UNLIKELY(schema->client))
        settle_client(p, span, rec, t);
    if (t->marks & WR_MARK_PARTIAL)
        rec->klass = WR_CLASS_PARTIAL;
    wr_ring_advance(p->ring, rec);
    return WEIR_OK;
}

int weir_stats_trace_end(struct weir_producer *producer)
{
    const int r = wr_trace_settle(producer);
    if (r != WEIR_OK)
        return r;
    producer->committable += producer->trace_count;
    producer->trace_count = 0;
    producer->trace_at = producer->ring->at;
    return WEIR_OK;
}

void weir_stats_commit(struct weir_producer *producer)
{
    wr_producer_check(producer); /* what a fork interrupted is the parent's */
    wr_count(&producer->ring->counts.received, producer->committable);
    producer->committable = 0;
    static const struct wr_notes none;
    if (memcmp(&producer->notes, &none, sizeof none) != 0) {
        count_notes(producer);
        producer->notes = none;
    }
    if (producer->kept.traces)
        wr_producer_count_kept(producer);
    wr_ring_commit(producer->ring, producer->trace_at);
}

void weir_stats_abandon(struct weir_producer *producer)
{
    wr_producer_check(producer);
    producer->trace_count = 0;
    producer->committable = 0;
    producer->notes = (struct wr_notes){0};
    producer->kept = (struct wr_kept){0};
    producer->keep = false;
    wr_ring_rewind(producer->ring, producer->ring->tail_own);
    producer->trace_at = producer->ring->at;
}

void weir_stats_drop(struct weir_producer *producer, uint64_t spans)
{
    wr_producer_check(producer);
    wr_count(&producer->ring->counts.received, spans);
    wr_count(&producer->ring->counts.inbox_full, spans);
}

bool weir_stats_must_keep(const struct weir_producer *producer)
{
    return producer->keep;
}

/* The trace of a publish that failed: none of it is counted, so any error keeps it. */
static void count_refused(struct weir_producer *p, const struct weir_span *spans, size_t n)
{
    weir_stats_drop(p, n);
    if (!p->stats->schema.client)
        return;
    p->keep = false;
    for (size_t i = 0; i < n; i++)
        p->keep |= (spans[i].flags & WEIR_SPAN_ERROR) != 0;
    p->kept = (struct wr_kept){.traces = 1, .free_traces = !p->keep, .free_spans = p->keep ? 0 : n};
    wr_producer_count_kept(p);
}

static int refuse_trace(struct weir_producer *p, const struct weir_span *spans, size_t n, int why)
{
    weir_stats_abandon(p);
    p->full_spans = why == WEIR_EFULL ? n : 0;
    p->full_head = p->ring->head_seen;
    count_refused(p, spans, n);
    return WEIR_EFULL;
}

/*
 * The owner has read nothing since a trace of as many spans, or fewer, found no room: so it is for
 * this one, and what it costs to find that out again is more than all the rest of a refusal. A ring
 * with nothing in it is not full, whatever came before: it may be another process's.
 */
static bool is_still_full(const struct weir_producer *p, size_t spans)
{
    return p->full_spans && spans >= p->full_spans &&
           atomic_load_explicit(&p->ring->head, memory_order_relaxed) == p->full_head &&
           p->ring->tail_own != p->full_head;
}

int weir_stats_publish(struct weir_producer *producer, const struct weir_source *source,
                       const struct weir_span *spans, size_t count_)
{
    if (WR_UNLIKELY(is_still_full(producer, count_))) {
        count_refused(producer, spans, count_);
        return WEIR_EFULL;
    }
    weir_stats_begin(producer, source);
    int r = WEIR_OK;
    for (size_t i = 0; i < count_ && r == WEIR_OK; i++)
        r = weir_stats_add(producer, &spans[i]);
    if (r == WEIR_OK)
        r = weir_stats_trace_end(producer);
    if (r != WEIR_OK)
        return refuse_trace(producer, spans, count_, r);
    weir_stats_commit(producer);
    return WEIR_OK;
}
