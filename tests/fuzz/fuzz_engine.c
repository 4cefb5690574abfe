/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_engine: spans, time, seals, signals and failing allocations. Both conservation equations
 * hold in every batch, what all batches say is what went in, and the same operations give the
 * same batches.
 *
 * Input: 3 bytes options, a wall time, then operations.
 */
#include "fuzz.h"
#include "wire/mp_read.h"

#include <stdlib.h>
#include <string.h>
#include <weir/payload.h>
#include <weir/sketch.h>
#include <weir/stats.h>

enum { PRODUCERS = 2, HELD_MAX = 8, SNAPSHOTS = 6, NODES_MAX = 64, OPERATIONS_MAX = 600 };

static const int64_t second = 1000000000;

struct world {
    struct weir_stats *stats;
    struct weir_payload *payload;
    struct weir_producer *p[PRODUCERS];
    uint64_t open[PRODUCERS];  /* spans of the open trace */
    uint64_t ended[PRODUCERS]; /* spans behind a trace_end, not committed */
    bool begun[PRODUCERS];
    struct weir_batch *held[HELD_MAX];
    struct weir_signal_node nodes[NODES_MAX];
    size_t signals;
    size_t signals_done;
    int64_t wall;
    int64_t mono;
    uint64_t received;             /* by the model */
    struct weir_window_counts sum; /* of all sealed batches */
    uint64_t batches;
    uint64_t digest;
    size_t refuse_after; /* allocations; SIZE_MAX: none is refused */
    uint64_t refused;
    size_t live_bytes;
};

static void *heap_fn(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    struct world *const w = ctx;
    if (new_size > 0 && w->refuse_after != SIZE_MAX) {
        if (w->refuse_after == 0) {
            w->refused++;
            return NULL;
        }
        w->refuse_after--;
    }
    w->live_bytes += new_size;
    w->live_bytes -= ptr ? old_size : 0;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

/* Batches. */

static void see_row(struct world *w, const struct weir_batch *b, size_t row, uint64_t *hits)
{
    struct weir_row r;
    weir_batch_get_row(b, row, &r);
    const struct weir_sketch *const s[] = {r.ok, r.error};
    uint64_t weight = 0;
    for (size_t i = 0; i < 2; i++) {
        if (!s[i])
            continue;
        FZ_CHECK(weir_sketch_weight(s[i]) > 0);
        FZ_CHECK(weir_sketch_weight(s[i]) == weir_sketch_bins_weight(s[i]));
        weight += weir_sketch_weight(s[i]);
        const struct weir_u128 sum = weir_sketch_sum_ns(s[i]);
        w->digest = fz_digest_u64(fz_digest_u64(w->digest, sum.lo), sum.hi);
    }
    FZ_CHECK(weight == r.hits && r.errors <= r.hits && r.top_level <= r.hits);
    FZ_CHECK((r.error ? weir_sketch_weight(r.error) : 0) == r.errors);
    *hits += r.hits;
    const uint64_t numbers[] = {r.hits, r.errors, r.top_level};
    w->digest = fz_digest(w->digest, numbers, sizeof numbers);
    struct weir_label labels[WEIR_LABELS_MAX];
    const size_t n = weir_batch_get_labels(b, row, labels, WEIR_LABELS_MAX);
    FZ_CHECK(n <= WEIR_LABELS_MAX);
    for (size_t i = 0; i < n; i++) {
        FZ_CHECK(labels[i].value.len > 0);
        w->digest = fz_digest(w->digest, labels[i].name.ptr, labels[i].name.len);
        w->digest = fz_digest(w->digest, labels[i].value.ptr, labels[i].value.len);
    }
}

static void see_batch(struct world *w, const struct weir_batch *b, struct weir_batch_info *ret_info)
{
    weir_batch_get_info(b, ret_info);
    const struct weir_window_counts *const c = &ret_info->counts;
    uint64_t terms = c->aggregated + c->ineligible + c->partial;
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        terms += c->dropped[i];
    FZ_CHECK(terms == c->received);
    FZ_CHECK(c->rows_weight == c->admitted_weight && c->sketch_weight == c->admitted_weight);
    FZ_CHECK(c->late <= c->aggregated && c->future <= c->aggregated);
    FZ_CHECK(c->overflow <= c->aggregated);
    w->digest = fz_digest_u64(w->digest, (uint64_t)ret_info->start_ns);
    w->digest = fz_digest_u64(w->digest, ret_info->flags);
    w->digest = fz_digest(w->digest, c, sizeof *c);
    uint64_t hits = 0;
    for (size_t i = 0; i < ret_info->rows; i++)
        see_row(w, b, i, &hits);
    FZ_CHECK(hits == c->rows_weight);
}

/* A body of it is whole MessagePack, whatever was in the fields; there may be no memory for one. */
static void see_body(struct world *w, const struct weir_batch *b, size_t rows)
{
    struct weir_bytes body;
    const int r = weir_payload_encode(w->payload, b, w->wall, &body);
    if (r != WEIR_OK) {
        FZ_CHECK(r == WEIR_ENOMEM || (r == WEIR_EEMPTY && rows == 0));
        return;
    }
    struct wr_mp m = wr_mp_init(body.ptr, body.len);
    FZ_CHECK(wr_mp_skip(&m, m.begin, 8) == m.end);
    w->digest = fz_digest(w->digest, body.ptr, body.len);
}

static void add_counts(struct weir_window_counts *sum, const struct weir_window_counts *c)
{
    sum->received += c->received;
    sum->aggregated += c->aggregated;
    sum->ineligible += c->ineligible;
    sum->partial += c->partial;
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        sum->dropped[i] += c->dropped[i];
    sum->late += c->late;
    sum->future += c->future;
    sum->overflow += c->overflow;
}

static void hold(struct world *w, struct weir_batch *b)
{
    struct weir_batch **const place = &w->held[w->batches % HELD_MAX];
    weir_batch_release(*place);
    *place = b;
}

static void op_take(struct world *w)
{
    for (struct weir_batch *b; (b = weir_stats_take_batch(w->stats)) != NULL;) {
        struct weir_batch_info info;
        see_batch(w, b, &info);
        see_body(w, b, info.rows);
        FZ_CHECK(!(info.flags & WEIR_BATCH_OPEN));
        add_counts(&w->sum, &info.counts);
        w->batches++;
        hold(w, b);
    }
}

static void op_snapshot(struct world *w)
{
    struct weir_batch *b[SNAPSHOTS];
    const size_t n = weir_stats_snapshot(w->stats, b, SNAPSHOTS);
    FZ_CHECK(n <= SNAPSHOTS);
    for (size_t i = 0; i < n; i++) {
        struct weir_batch_info info;
        see_batch(w, b[i], &info);
        FZ_CHECK(info.flags & WEIR_BATCH_OPEN);
        weir_batch_release(b[i]);
    }
}

/* Spans. */

static struct weir_bytes take_text(struct fz_in *in)
{
    static const char words[] = "svc-a\xff\xc3\xa9"
                                "b/users/17HTTP GET";
    const uint8_t code = fz_u8(in);
    const size_t n = code >> 5;
    return (struct weir_bytes){words + (code & 15), n};
}

struct span_store {
    struct weir_span span;
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
};

static void take_slots(struct fz_in *in, struct span_store *s)
{
    const size_t count = fz_u8(in) % 6;
    for (size_t i = 0; i < count; i++) {
        const uint8_t slot = fz_u8(in) % (WEIR_TAG_FIXED + 6);
        struct weir_value *const v = &s->slots[slot];
        *v = (struct weir_value){.type = (uint8_t)(1 + fz_u8(in) % 4)};
        if (v->type == WEIR_VALUE_BYTES) {
            const struct weir_bytes text = take_text(in);
            v->v.ptr = text.ptr;
            v->len = (uint32_t)text.len;
        } else if (v->type == WEIR_VALUE_DOUBLE) {
            v->v.d = fz_u8(in) / 16.0;
        } else {
            v->v.i = (int64_t)fz_any(in);
        }
        s->span.present |= UINT64_C(1) << slot;
    }
}

static int64_t take_start(const struct world *w, struct fz_in *in, uint8_t shape)
{
    if (shape & 1)
        return (int64_t)fz_u64(in);
    const int64_t back = (int64_t)fz_u8(in) * (shape & 2 ? second : second / 16);
    int64_t start;
    if (__builtin_sub_overflow(w->wall, shape & 4 ? -back : back, &start))
        return w->wall;
    return start;
}

static void take_span(const struct world *w, struct fz_in *in, struct span_store *s)
{
    const uint8_t shape = fz_u8(in);
    s->span = (struct weir_span){.service = take_text(in), .name = take_text(in)};
    s->span.resource = take_text(in);
    s->span.start_ns = take_start(w, in, shape);
    s->span.duration_ns = shape & 8 ? (int64_t)fz_any(in) : (int64_t)fz_u8(in) << 20;
    const uint8_t ids = fz_u8(in);
    s->span.trace_id = 1 + (ids == 0xff);
    s->span.span_id = ids & 7;
    s->span.parent_id = ids >> 3 & 7;
    s->span.flags = fz_u8(in) & 31;
    s->span.kind = fz_u8(in) % 6;
    if (shape & 16)
        s->span.weight = WEIR_WEIGHT_ONE + (fz_any(in) >> (shape & 64 ? 0 : 24)) % (UINT64_MAX / 2);
    s->span.slots = s->slots;
    if (shape & 32)
        take_slots(in, s);
}

static struct weir_source source_of(const struct world *w, uint8_t flags)
{
    return (struct weir_source){.lang = {"go", flags & 2 ? 2 : 0},
                                .flags = flags & 1 ? WEIR_SOURCE_TOP_LEVEL_COMPUTED : 0,
                                .now_ns = w->wall};
}

static void op_publish(struct world *w, struct fz_in *in, size_t p)
{
    struct span_store s[3];
    struct weir_span spans[3];
    const uint8_t flags = fz_u8(in);
    const size_t n = (flags >> 2) % 4;
    if (w->begun[p])
        return;
    for (size_t i = 0; i < n; i++) {
        take_span(w, in, &s[i]);
        spans[i] = s[i].span;
    }
    const struct weir_source source = source_of(w, flags);
    const int r = weir_stats_publish(w->p[p], &source, spans, n);
    FZ_CHECK(r == WEIR_OK || r == WEIR_EFULL || (r == WEIR_ENOMEM && w->refuse_after == 0));
    w->received += n;
}

static void op_add(struct world *w, struct fz_in *in, size_t p)
{
    struct span_store s;
    take_span(w, in, &s);
    if (!w->begun[p]) {
        const struct weir_source source = source_of(w, 0);
        weir_stats_begin(w->p[p], &source);
        w->begun[p] = true;
    }
    const int r = weir_stats_add(w->p[p], &s.span);
    FZ_CHECK(r == WEIR_OK || r == WEIR_EFULL || (r == WEIR_ENOMEM && w->refuse_after == 0));
    w->open[p] += r == WEIR_OK;
}

static void op_trace_end(struct world *w, size_t p)
{
    if (!w->begun[p])
        return;
    const int r = weir_stats_trace_end(w->p[p]);
    if (r != WEIR_OK) {
        FZ_CHECK(r == WEIR_ENOMEM && w->refuse_after == 0);
        weir_stats_abandon(w->p[p]);
        w->ended[p] = 0;
        w->begun[p] = false;
    } else {
        w->ended[p] += w->open[p];
    }
    w->open[p] = 0;
}

/* Spans of a trace that has no end yet are given up first: what becomes of them is not promised. */
static void op_commit(struct world *w, size_t p)
{
    if (!w->begun[p])
        return;
    op_trace_end(w, p);
    if (!w->begun[p])
        return;
    weir_stats_commit(w->p[p]);
    w->received += w->ended[p];
    w->ended[p] = 0;
    w->begun[p] = false;
}

static void op_abandon(struct world *w, size_t p)
{
    if (!w->begun[p])
        return;
    weir_stats_abandon(w->p[p]);
    w->open[p] = 0;
    w->ended[p] = 0;
    w->begun[p] = false;
}

/* Time and signals. */

static void op_poll(struct world *w)
{
    (void)weir_stats_poll(w->stats, w->wall, w->mono);
    FZ_CHECK(weir_stats_next_seal_for_ns(w->stats, w->mono) >= 0);
}

static void op_time(struct world *w, struct fz_in *in, bool apart)
{
    const int64_t step = (int64_t)fz_u8(in) * (second / 4);
    w->mono += step;
    int64_t wall_step = step;
    if (apart)
        wall_step = (int64_t)(int8_t)fz_u8(in) * second * (fz_u8(in) & 1 ? 60 : 1);
    if (__builtin_add_overflow(w->wall, wall_step, &w->wall))
        w->wall = INT64_MAX;
    op_poll(w);
}

static void signal_done(struct weir_signal_node *node)
{
    struct world *const w = node->ctx;
    w->signals_done++;
}

static void op_signal(struct world *w, enum weir_signal kind)
{
    if (w->signals == NODES_MAX)
        return;
    struct weir_signal_node *const node = &w->nodes[w->signals++];
    *node = (struct weir_signal_node){.kind = kind, .done = signal_done, .ctx = w};
    weir_stats_signal(w->stats, node);
}

static void op_other(struct world *w, struct fz_in *in, uint8_t code, size_t p)
{
    switch (code >> 4) {
    case 0:
        weir_stats_seal_all(w->stats, w->wall, w->mono);
        break;
    case 1:
        op_snapshot(w);
        break;
    case 2:
        op_signal(w, WEIR_SIGNAL_CLEAR);
        break;
    case 3:
        op_signal(w, WEIR_SIGNAL_REPORT);
        break;
    case 4:
        if (fz_u8(in) == 0x55) /* seldom: nothing comes in after it */
            op_signal(w, WEIR_SIGNAL_STOP);
        break;
    case 5:
        w->refuse_after = fz_u8(in) % 16;
        break;
    case 6:
        w->refuse_after = SIZE_MAX;
        break;
    case 7: {
        const uint16_t spans = fz_u16(in);
        if (w->begun[p])
            break;
        weir_stats_drop(w->p[p], spans);
        w->received += spans;
        break;
    }
    case 8:
        op_abandon(w, p);
        break;
    case 9:
        op_time(w, in, true);
        break;
    default:
        op_take(w);
        break;
    }
}

static void op(struct world *w, struct fz_in *in)
{
    const uint8_t code = fz_u8(in);
    const size_t p = code & 1;
    switch (code >> 1 & 7) {
    case 0:
        op_other(w, in, code, p);
        break;
    case 1:
        op_poll(w);
        break;
    case 2:
        op_time(w, in, false);
        break;
    case 3:
        op_add(w, in, p);
        break;
    case 4:
        op_trace_end(w, p);
        break;
    case 5:
        op_commit(w, p);
        break;
    default:
        op_publish(w, in, p);
        break;
    }
}

static void expect_totals(struct world *w)
{
    struct weir_stats_health h;
    weir_stats_get_health(w->stats, &h);
    /* Records for which not even a window could be made are in the totals alone. */
    const uint64_t homeless = h.dropped[WEIR_DROP_MEMORY] - w->sum.dropped[WEIR_DROP_MEMORY];
    FZ_CHECK(homeless == 0 || w->refused > 0);
    w->sum.dropped[WEIR_DROP_MEMORY] += homeless;
    w->sum.received += homeless;
    FZ_CHECK(h.received == w->received && w->sum.received == w->received);
    FZ_CHECK(h.aggregated == w->sum.aggregated && h.ineligible == w->sum.ineligible);
    FZ_CHECK(h.partial == w->sum.partial && h.overflow == w->sum.overflow);
    FZ_CHECK(h.late == w->sum.late && h.future == w->sum.future);
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        FZ_CHECK(h.dropped[i] == w->sum.dropped[i]);
    FZ_CHECK(h.sealed_batches == w->batches && h.inbox_bytes == 0 && h.open_windows == 0);
    FZ_CHECK(w->signals_done == w->signals);
}

static void start(struct world *w, struct fz_in *in)
{
    const uint8_t shape = fz_u8(in);
    const uint8_t more = fz_u8(in);
    const uint8_t client = fz_u8(in); /* 0: what there was before */
    static const char *const dimensions[] = {"region,zone"};
    const struct weir_stats_opts o = {
        .struct_size = sizeof o,
        .alloc = {heap_fn, w},
        .profile = client & 1 ? WEIR_PROFILE_CLIENT : shape & 1,
        .flags = client >> 1 & 15,
        .limits = {[WEIR_LIMIT_RESOURCE] = client >> 5, [WEIR_LIMIT_SERVICE] = client >> 6},
        .late = (uint32_t)(shape >> 1 & 3) % 3,
        .window_for_ns = shape & 8 ? second : 0,
        .lateness_for_ns = shape & 16 ? -1 : (int64_t)(shape >> 5) * 7 * second,
        .max_keys = more & 15,
        .max_corrections = more >> 4 & 3,
        .idle_windows = more >> 6,
        .seed = 42,
        .dimensions = dimensions,
        .dimension_count = shape >> 7,
    };
    w->refuse_after = SIZE_MAX;
    w->digest = FZ_DIGEST_EMPTY;
    FZ_CHECK(weir_stats_new(&o, &w->stats) == WEIR_OK);
    FZ_CHECK(weir_payload_new(w->stats, NULL, &w->payload) == WEIR_OK);
    FZ_CHECK(weir_producer_new(w->stats, 4096, WEIR_PRODUCER_OWNER, &w->p[0]) == WEIR_OK);
    FZ_CHECK(weir_producer_new(w->stats, 4096, 0, &w->p[1]) == WEIR_OK);
    w->wall = INT64_C(1800000000) * second;
    if (more == 0xff)
        w->wall = (int64_t)fz_u64(in);
    op_poll(w);
}

static uint64_t run(struct fz_in in)
{
    struct world *const w = calloc(1, sizeof *w);
    FZ_CHECK(w != NULL);
    start(w, &in);
    for (int i = 0; in.left > 0 && i < OPERATIONS_MAX; i++)
        op(w, &in);
    w->refuse_after = SIZE_MAX;
    for (size_t p = 0; p < PRODUCERS; p++) {
        op_commit(w, p);
        weir_producer_free(w->p[p]);
    }
    op_poll(w);
    weir_stats_seal_all(w->stats, w->wall, w->mono);
    op_take(w);
    expect_totals(w);
    for (size_t i = 0; i < HELD_MAX; i++)
        weir_batch_release(w->held[i]);
    weir_payload_free(w->payload);
    weir_stats_free(w->stats);
    FZ_CHECK(w->live_bytes == 0);
    const uint64_t digest = w->digest;
    free(w);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fz_in in = fz_in(data, size);
    FZ_CHECK(run(in) == run(in));
    return 0;
}
