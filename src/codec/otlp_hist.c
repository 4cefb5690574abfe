/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_hist: HistogramDataPoint of OpenTelemetry's metrics, protobuf, read only.
 *
 *   4 count, 5 sum, 6 bucket_counts, 7 explicit_bounds, 10 flags, 11 min, 12 max
 *
 * A bucket (lo, hi] says how many values lie in it and not where. They are placed so that all that
 * is known holds:
 *
 *   - one value at min and one at max, where those are known: they were seen;
 *   - the others evenly over a part of their bucket. Of every bucket it is the same part, told by
 *     one number t in [0, 1], the mean's place between the bucket's ends; t is chosen so that the
 *     total is the sum. So nothing piles up at an edge, and a single value is put at the sum;
 *   - the last bucket ends at max, or so far out that the sum comes right; the first one begins at
 *     min, or at 0 (at its bound, if that is not above 0), or so far out that the sum comes right.
 *     Without any of these its values are put on the one bound that it has.
 *
 * The bins' own accuracy says nothing about this: a value lies somewhere in its bucket. So the
 * sketch inherits the greatest relative distance between two places in a bucket, (hi - lo) / lo,
 * and without a bound when a bucket reaches to 0 or on and on.
 *
 * Threads: any. Memory: the sketch's.
 * Source: opentelemetry-proto 1.7, metrics/v1; contracts wire §2.11.
 */
#include "codec/counts.h"

#include <float.h>

#define FIXED64(number) WR_PB_TAG(number, WR_PB_FIXED64)
#define VARINT(number) WR_PB_TAG(number, WR_PB_VARINT)

#define FLAG_NO_RECORDED_VALUE 1u
#define UNBOUNDED ((double)INFINITY)

struct hist {
    struct wr_pb pb;
    struct weir_sketch *sk;
    const struct weir_mapping *mapping;
    uint64_t count;
    uint64_t flags;
    struct wr_bins_stats stats;
    bool whole; /* the point came without buckets: it is one of everything */
    /* of the buckets that are not empty, by number */
    uint64_t first;
    uint64_t last;
    bool min_seen; /* in the first of them, and placed for itself */
    bool max_seen;
    /* where the buckets end that have no bound there */
    double low;
    double high;
    double t;
};

static const uint8_t *read_field(struct hist *h, const struct wr_pb_field *f, const uint8_t *end)
{
    switch (f->tag) {
    case FIXED64(4):
        h->count = f->u;
        break;
    case FIXED64(5):
        h->stats.sum = wr_counts_double(f->u);
        h->stats.has_sum = fabs(h->stats.sum) <= DBL_MAX;
        break;
    case VARINT(10):
        h->flags = f->u;
        break;
    case FIXED64(11):
        h->stats.min = wr_counts_double(f->u);
        h->stats.has_min = fabs(h->stats.min) <= DBL_MAX;
        break;
    case FIXED64(12):
        h->stats.max = wr_counts_double(f->u);
        h->stats.has_max = fabs(h->stats.max) <= DBL_MAX;
        break;
    default:
        break;
    }
    return end;
}

static bool read_point(struct hist *h)
{
    for (const uint8_t *at = h->pb.begin; at < h->pb.end;) {
        struct wr_pb_field f;
        const uint8_t *const next = wr_pb_field(&h->pb, at, h->pb.end, &f);
        if (!next || !read_field(h, &f, next))
            return false;
        at = next;
    }
    return true;
}

/* The buckets one by one: counts and bounds are two fields that are read side by side. */
struct buckets {
    struct wr_values counts;
    struct wr_values bounds;
    uint64_t number; /* of the bucket last given */
    uint64_t n;
    double lo; /* -UNBOUNDED: the first one */
    double hi; /* UNBOUNDED: the last one */
};

static struct buckets buckets_of(struct hist *h)
{
    return (struct buckets){
        .counts = wr_values(&h->pb, h->pb.begin, h->pb.end, 6, WR_PB_FIXED64),
        .bounds = wr_values(&h->pb, h->pb.begin, h->pb.end, 7, WR_PB_FIXED64),
        .number = UINT64_MAX,
        .hi = -UNBOUNDED,
    };
}

/* false: there is no more, or pb.err. */
WR_WRAPS static bool next_bucket(struct hist *h, struct buckets *b)
{
    uint64_t bits;
    if (h->whole)
        b->n = h->count;
    if (h->whole ? b->number != UINT64_MAX : !wr_values_next(&b->counts, &b->n))
        return false;
    b->number++;
    b->lo = b->hi;
    b->hi = wr_values_next(&b->bounds, &bits) ? wr_counts_double(bits) : UNBOUNDED;
    return h->pb.err == WEIR_OK;
}

static bool next_used(struct hist *h, struct buckets *b)
{
    while (next_bucket(h, b))
        if (b->n)
            return true;
    return false;
}

static bool without_buckets(struct hist *h)
{
    struct wr_values counts = wr_values(&h->pb, h->pb.begin, h->pb.end, 6, WR_PB_FIXED64);
    struct wr_values bounds = wr_values(&h->pb, h->pb.begin, h->pb.end, 7, WR_PB_FIXED64);
    uint64_t v;
    return !wr_values_next(&counts, &v) && !wr_values_next(&bounds, &v) && h->pb.err == WEIR_OK;
}

/* Counts and bounds belong together, bounds ascend, counts are all there. */
static const char *check_buckets(struct hist *h)
{
    struct buckets b = buckets_of(h);
    uint64_t total = 0;
    uint64_t v;
    bool any = false;
    while (next_bucket(h, &b)) {
        if (!(b.hi > b.lo) || (b.hi == UNBOUNDED && wr_values_next(&b.bounds, &v)))
            return "bounds that do not ascend, or are too many";
        if (__builtin_add_overflow(total, b.n, &total))
            return "count is not that of the buckets";
        if (!b.n)
            continue;
        h->first = any ? h->first : b.number;
        h->last = b.number;
        any = true;
    }
    if (h->pb.err != WEIR_OK)
        return NULL;
    if (b.hi != UNBOUNDED || wr_values_next(&b.bounds, &v))
        return "there is not one bucket more than bounds";
    return total == h->count ? NULL : "count is not that of the buckets";
}

/* One value is its own sum, minimum and maximum, if the sum is a place in its bucket. */
static void know_single(struct hist *h, const struct buckets *b)
{
    struct wr_bins_stats *const s = &h->stats;
    if (h->count != 1 || !s->has_sum || !(s->sum >= b->lo && s->sum <= b->hi))
        return;
    s->min = s->has_min ? s->min : s->sum;
    s->max = s->has_max ? s->max : s->sum;
    s->has_min = true;
    s->has_max = true;
}

/* What min and max mean for the buckets; false: they contradict them. */
static bool check_extremes(struct hist *h)
{
    struct wr_bins_stats *const s = &h->stats;
    struct buckets b = buckets_of(h);
    while (next_used(h, &b)) {
        know_single(h, &b);
        if (b.number == h->first && s->has_min) {
            if (s->min > b.hi)
                return false;
            h->min_seen = s->min >= b.lo;
        }
        if (b.number == h->last && s->has_max) {
            if (s->max < b.lo)
                return false;
            h->max_seen = s->max <= b.hi;
        }
    }
    return !(s->has_min && s->has_max && s->min > s->max);
}

/* A value of its own, that is, not the minimum's. */
static bool max_placed(const struct hist *h)
{
    return h->max_seen && !(h->min_seen && h->count == 1);
}

/* How many values of a bucket are still to be placed, and between what. */
struct slice {
    uint64_t n;
    double lo;
    double hi;
};

static struct slice slice_of(const struct hist *h, const struct buckets *b)
{
    struct slice s = {.n = b->n,
                      .lo = b->lo == -UNBOUNDED ? h->low : b->lo,
                      .hi = b->hi == UNBOUNDED ? h->high : b->hi};
    if (h->stats.has_min && s.lo < h->stats.min)
        s.lo = h->stats.min;
    if (h->stats.has_max && s.hi > h->stats.max)
        s.hi = h->stats.max;
    if (s.hi < s.lo) /* an end that is not known */
        s.hi = s.lo;
    s.n -= b->number == h->first && h->min_seen;
    s.n -= b->number == h->last && max_placed(h);
    return s;
}

/* Totals when every value is as low, or as high, as it can be. */
struct totals {
    double low;
    double high;
    struct slice first; /* of the bucket without a lower bound; n 0: it is empty */
    struct slice last;
};

static struct totals totals_of(struct hist *h)
{
    struct totals t = {.low = 0};
    struct buckets b = buckets_of(h);
    while (next_used(h, &b)) {
        const struct slice s = slice_of(h, &b);
        t.low += (double)s.n * s.lo;
        t.high += (double)s.n * s.hi;
        if (b.lo == -UNBOUNDED)
            t.first = s;
        if (b.hi == UNBOUNDED)
            t.last = s;
    }
    return t;
}

static double finite(double v)
{
    return fmax(fmin(v, DBL_MAX), -DBL_MAX);
}

/* The mean that a slice must have, when all others have theirs in the middle. */
static double mean_left(double sum, const struct totals *t, const struct slice *s)
{
    const double n = (double)s->n;
    return (sum - ((t->low - n * s->lo) / 2 + (t->high - n * s->hi) / 2)) / n;
}

/* Where the first and the last bucket end, as far as min, max, bounds and the sum say. */
static void settle_ends(struct hist *h, double sum)
{
    struct buckets b = buckets_of(h);
    const bool bounded = next_bucket(h, &b) && b.hi != UNBOUNDED;
    h->low = h->stats.has_min ? h->stats.min : bounded ? fmin(b.hi, 0) : -UNBOUNDED;
    while (next_bucket(h, &b))
        ;
    h->high = h->stats.has_max ? h->stats.max : b.lo;
    if (h->low == -UNBOUNDED && !h->stats.has_max) { /* one bucket of everything */
        h->low = sum / (double)h->count;
        h->high = h->low;
    } else if (h->low == -UNBOUNDED) {
        h->low = h->high;
    } else if (h->high == -UNBOUNDED) {
        h->high = h->low;
    }
    if (!h->stats.has_sum)
        return;
    struct totals t = totals_of(h);
    if (t.last.n && !h->stats.has_max) {
        const double mean = mean_left(sum, &t, &t.last);
        h->high = finite(fmax(h->high, 2 * mean - t.last.lo));
        t = totals_of(h);
    }
    if (t.first.n && !h->stats.has_min && sum < t.low) {
        const double mean = mean_left(sum, &t, &t.first);
        h->low = finite(fmin(h->low, 2 * mean - t.first.hi));
    }
}

static void settle(struct hist *h)
{
    double sum = h->stats.sum;
    if (h->min_seen)
        sum -= h->stats.min;
    if (max_placed(h))
        sum -= h->stats.max;
    h->t = 0.5;
    settle_ends(h, sum);
    const struct totals t = totals_of(h);
    if (h->stats.has_sum && t.high > t.low && t.high - t.low <= DBL_MAX)
        h->t = fmax(0, fmin(1, (sum - t.low) / (t.high - t.low)));
}

static int put(struct hist *h, double value, uint64_t n)
{
    const double magnitude = fabs(value);
    int32_t index;
    const uint64_t weight = n << 20;
    if (weir_mapping_index(h->mapping, magnitude, &index) != WEIR_OK)
        return wr_bins_add_zero(h->sk, weight);
    return wr_bins_add(h->sk, value > 0 ? WR_BINS_POSITIVE : WR_BINS_NEGATIVE, index, weight);
}

/* The upper end, in order of value, of the bin that value falls into; above value also where the
 * index of a logarithm is rounded over a bound. */
static double bin_end(const struct hist *h, double value)
{
    int32_t index;
    if (weir_mapping_index(h->mapping, fabs(value), &index) != WEIR_OK)
        return 0x1p-1022;
    if (value > 0) {
        const double end = weir_mapping_lower(h->mapping, index + 1);
        return end > value ? end : weir_mapping_lower(h->mapping, index + 2);
    }
    const double end = -weir_mapping_lower(h->mapping, index);
    return end > value ? end : -weir_mapping_lower(h->mapping, index - 1);
}

/* n values evenly over [lo, hi]: value i is (i + 1/2) / n of the way, so their mean is the middle.
 */
struct part {
    double lo;
    double hi;
    uint64_t n;
};

static struct part part_of(const struct hist *h, const struct slice *s)
{
    const double mean = s->lo * (1 - h->t) + s->hi * h->t;
    struct part p = {.lo = s->lo, .hi = s->hi, .n = s->n};
    if (h->t <= 0.5)
        p.hi = fmax(s->lo, fmin(s->hi, mean + (mean - s->lo)));
    else
        p.lo = fmin(s->hi, fmax(s->lo, mean - (s->hi - mean)));
    return p;
}

static double value_of(const struct part *p, uint64_t i)
{
    const double f = ((double)i + 0.5) / (double)p->n;
    return fmax(p->lo, fmin(p->hi, p->lo * (1 - f) + p->hi * f));
}

/* The first `most` values of a part, a bin at a time: no more steps than bins, or values. */
static int spread(struct hist *h, const struct part *p, uint64_t most)
{
    const double width = p->hi / 2 - p->lo / 2; /* halves do not overflow */
    for (uint64_t i = 0; i < most;) {
        const double value = value_of(p, i);
        const double end = bin_end(h, value);
        uint64_t next = most;
        if (end < p->hi && width > 0) {
            const double past = floor((end / 2 - p->lo / 2) / width * (double)p->n + 0.5);
            if (past < (double)most)
                next = past > (double)i + 1 ? (uint64_t)past : i + 1;
        }
        const int r = put(h, value, next - i);
        if (r != WEIR_OK)
            return r;
        i = next;
    }
    return WEIR_OK;
}

/* The extremes that were seen, and the highest of the others: the highest come first, so that a
 * limit of bins costs one move and not one for each bin that comes. */
static int place_ends(struct hist *h, const struct part *top)
{
    int r = max_placed(h) ? put(h, h->stats.max, 1) : WEIR_OK;
    if (r == WEIR_OK && top->n)
        r = put(h, value_of(top, top->n - 1), 1);
    return r == WEIR_OK && h->min_seen ? put(h, h->stats.min, 1) : r;
}

static int place(struct hist *h)
{
    struct buckets b = buckets_of(h);
    struct part top = {.n = 0};
    uint64_t last = 0;
    while (next_used(h, &b)) {
        const struct slice s = slice_of(h, &b);
        if (!s.n)
            continue;
        top = part_of(h, &s);
        last = b.number;
    }
    int r = place_ends(h, &top);
    b = buckets_of(h);
    while (r == WEIR_OK && next_used(h, &b)) {
        const struct slice s = slice_of(h, &b);
        const struct part p = part_of(h, &s);
        r = spread(h, &p, p.n - (p.n && b.number == last));
    }
    return r;
}

/* The greatest relative distance of two places in a bucket. */
static double inherited(struct hist *h)
{
    struct buckets b = buckets_of(h);
    double error = 0;
    while (next_used(h, &b)) {
        const double lo = h->stats.has_min ? fmax(b.lo, h->stats.min) : b.lo;
        const double hi = h->stats.has_max ? fmin(b.hi, h->stats.max) : b.hi;
        const double near = lo > 0 ? lo : hi < 0 ? -hi : 0;
        error = hi > lo ? fmax(error, near > 0 ? (hi - lo) / near : UNBOUNDED) : error;
    }
    return error;
}

static int check_point(struct hist *h, struct weir_where *where)
{
    uint64_t weight;
    if (h->flags & FLAG_NO_RECORDED_VALUE)
        return wr_codec_refuse(where, 0, "a point without a recorded value", WEIR_EEMPTY);
    if (!wr_counts_weight(h->count, &weight))
        return wr_codec_refuse(where, 0, "a count of more than 2^44", WEIR_ERANGE);
    h->whole = without_buckets(h);
    const char *const reason = h->pb.err == WEIR_OK ? check_buckets(h) : NULL;
    if (h->pb.err != WEIR_OK)
        return wr_counts_refused(&h->pb, where);
    if (reason)
        return wr_codec_refuse(where, 0, reason, WEIR_EFORMAT);
    if (!h->count)
        return WEIR_OK;
    if (!check_extremes(h))
        return wr_codec_refuse(where, 0, "min or max is not of the buckets", WEIR_EFORMAT);
    if (h->whole && !(h->stats.has_sum || h->stats.has_min || h->stats.has_max))
        return wr_codec_refuse(where, 0, "a count alone", WEIR_EEMPTY);
    return WEIR_OK;
}

/* One of min and max may be known without the other, unlike anywhere else. */
static int end(struct hist *h)
{
    struct wr_codec_bins b = {.sk = h->sk};
    return h->stats.has_min == h->stats.has_max ? wr_codec_end(&b, &h->stats)
                                                : wr_bins_end(h->sk, &h->stats);
}

int wr_otlp_hist_decode(const struct weir_codec_opts *opts, const uint8_t *src, size_t bytes,
                        struct weir_sketch *sk, struct weir_where *where)
{
    struct hist h;
    memset(&h, 0, sizeof h);
    h.pb = wr_pb_init(src, bytes);
    h.sk = sk;
    if (!read_point(&h))
        return wr_counts_refused(&h.pb, where);
    int r = check_point(&h, where);
    if (r != WEIR_OK)
        return r;
    r = wr_bins_begin(sk, opts->mapping ? opts->mapping : weir_sketch_mapping(sk));
    h.mapping = weir_sketch_mapping(sk);
    if (r == WEIR_OK && h.count) {
        settle(&h);
        r = place(&h);
    }
    if (r == WEIR_OK)
        r = wr_bins_inherit(sk, inherited(&h));
    return r == WEIR_OK ? end(&h) : r;
}
