/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_sketch: adds (single, many, in pairs), merges (of sketches, of forms), clears and copies on
 * four sketches of one mapping, beside lists of every sample with its weight. Weights, nanosecond
 * sums, minimum and maximum are exact; quantiles lie within the accuracy of the sample of their
 * rank; a sketch made of the samples in their order has the same bytes.
 *
 * Input: 1 byte grid, bin limit, width and mapping, then operations.
 */
#include "fuzz.h"

#include "sketch/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SKETCHES = 4, SAMPLES_MAX = 256, CHECKS_MAX = 8, INPUT_MAX_BYTES = 1536 };

struct sample {
    double value;
    int64_t ns;
    uint64_t weight;
};

struct pair {
    struct weir_sketch *sk;
    struct sample s[SAMPLES_MAX];
    size_t n;
    uint64_t weight;
};

struct world {
    uint32_t grid;
    uint32_t max_bins;
    bool wide; /* values of any exponent: many bins, slow */
    struct weir_mapping *mapping;
    unsigned checks;
    struct pair p[SKETCHES];
};

static struct weir_sketch *new_sketch(const struct world *w)
{
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .grid = w->grid, .max_bins = w->max_bins, .mapping = w->mapping};
    struct weir_sketch *sk = NULL;
    FZ_CHECK(weir_sketch_new(&o, &sk) == WEIR_OK);
    return sk;
}

static int add(const struct world *w, struct weir_sketch *sk, const struct sample *s)
{
    return w->grid == WEIR_GRID_NS ? weir_sketch_add_ns(sk, s->ns, s->weight)
                                   : weir_sketch_add(sk, s->value, s->weight);
}

static void op_add(struct world *w, struct pair *p, struct fz_in *in)
{
    struct sample s = {.weight = 0};
    const uint8_t shape = fz_u8(in);
    if (shape & 1)
        s.weight = fz_any(in);
    const uint64_t bits = shape & 2 ? fz_u64(in) : fz_any(in);
    s.ns = (int64_t)bits;
    if (w->wide)
        memcpy(&s.value, &bits, sizeof bits);
    else
        s.value = (double)(int64_t)bits / 256;
    if (p->n == SAMPLES_MAX)
        return;
    const int r = add(w, p->sk, &s);
    const uint64_t weight = s.weight ? s.weight : WEIR_WEIGHT_ONE;
    uint64_t total;
    if ((w->grid == WEIR_GRID_VALUE && !isfinite(s.value)) ||
        __builtin_add_overflow(p->weight, weight, &total)) {
        FZ_CHECK(r == WEIR_ERANGE);
        return;
    }
    FZ_CHECK(r == WEIR_OK);
    s.weight = weight;
    p->s[p->n++] = s;
    p->weight = total;
}

/* Values of one sign or both, as they come from a byte each: one array, or pairs of two sketches.
 */
static void op_add_many(struct world *w, struct pair *p, struct pair *q, struct fz_in *in)
{
    struct weir_sketch_pair pairs[64];
    double values[64];
    const uint8_t shape = fz_u8(in);
    const size_t n = fz_u8(in) % 65;
    if (p->n + n > SAMPLES_MAX || q->n + n > SAMPLES_MAX)
        return;
    size_t want = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t byte = fz_u8(in);
        struct pair *const to = shape & 1 && i % 2 ? q : p;
        values[i] = shape & 2 ? (double)byte - 100 : 1 + byte / 7.0;
        if (byte == 0xff && shape & 4)
            values[i] = HUGE_VAL;
        pairs[i] = (struct weir_sketch_pair){to->sk, values[i]};
        uint64_t total;
        if (w->grid == WEIR_GRID_NS || !isfinite(values[i]) ||
            __builtin_add_overflow(to->weight, (uint64_t)WEIR_WEIGHT_ONE, &total)) {
            want++;
            continue;
        }
        to->s[to->n++] = (struct sample){.value = values[i], .weight = WEIR_WEIGHT_ONE};
        to->weight = total;
    }
    size_t refused = 0;
    if (shape & 1) {
        FZ_CHECK(weir_sketch_add_pairs(pairs, n, &refused) == WEIR_OK && refused == want);
        return;
    }
    const int r = weir_sketch_add_many(p->sk, values, n, &refused);
    FZ_CHECK(r == (w->grid == WEIR_GRID_NS ? WEIR_EINVAL : WEIR_OK));
    FZ_CHECK(r != WEIR_OK || refused == want);
}

static int merge_by_form(struct weir_sketch *sk, const struct weir_sketch *from);

static void op_merge(struct pair *p, const struct pair *q, bool by_form)
{
    if (p == q && !by_form) {
        FZ_CHECK(weir_sketch_merge(p->sk, q->sk) == WEIR_EINVAL);
        return;
    }
    if (p->n + q->n > SAMPLES_MAX)
        return;
    const int r = by_form ? merge_by_form(p->sk, q->sk) : weir_sketch_merge(p->sk, q->sk);
    uint64_t total;
    if (__builtin_add_overflow(p->weight, q->weight, &total)) {
        FZ_CHECK(r == WEIR_ERANGE);
        return;
    }
    FZ_CHECK(r == WEIR_OK);
    const size_t n = q->n;
    memcpy(p->s + p->n, q->s, n * sizeof q->s[0]);
    p->n += n;
    p->weight = total;
}

static uint8_t *form_of(const struct weir_sketch *sk, size_t *ret_bytes)
{
    const size_t cap = weir_sketch_encoded_bytes(sk);
    uint8_t *const bytes = fz_alloc(cap);
    FZ_CHECK(weir_sketch_encode(sk, bytes, cap, ret_bytes) == WEIR_OK && *ret_bytes == cap);
    return bytes;
}

static int merge_by_form(struct weir_sketch *sk, const struct weir_sketch *from)
{
    size_t n;
    uint8_t *const form = form_of(from, &n);
    const int r = weir_sketch_merge_encoded(sk, form, n);
    free(form);
    return r;
}

/* p becomes q, by way of q's form or not. */
static void op_copy(struct pair *p, const struct pair *q, bool by_form)
{
    size_t n;
    size_t m;
    uint8_t *const form = form_of(q->sk, &n);
    if (by_form || p == q)
        FZ_CHECK(weir_sketch_decode(p->sk, form, n) == WEIR_OK);
    else
        FZ_CHECK(weir_sketch_copy(p->sk, q->sk) == WEIR_OK && weir_sketch_equal(p->sk, q->sk));
    uint8_t *const again = form_of(p->sk, &m);
    FZ_CHECK(fz_same(form, n, again, m));
    free(form);
    free(again);
    if (p == q)
        return;
    memcpy(p->s, q->s, q->n * sizeof q->s[0]);
    p->n = q->n;
    p->weight = q->weight;
}

static double answer(const struct world *w, const struct sample *s)
{
    if (w->grid == WEIR_GRID_NS)
        return s->ns > 0 ? (double)s->ns / 1e9 : 0;
    return fabs(s->value) <= 0x1p-1022 ? 0 : s->value;
}

struct ranked {
    double value;
    uint64_t weight;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *const x = a;
    const struct ranked *const y = b;
    return (x->value > y->value) - (x->value < y->value);
}

static double at_rank(const struct ranked *r, size_t n, uint64_t rank)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += r[i].weight;
        if (sum > rank)
            return r[i].value;
    }
    return r[n - 1].value;
}

/* The rank is a double's product: its neighbours are as good. */
static void expect_quantile(const struct pair *p, const struct ranked *r, double q)
{
    const double a = weir_sketch_accuracy(p->sk) * (1 + 1e-12);
    const uint64_t rest = p->weight > WEIR_WEIGHT_ONE ? p->weight - WEIR_WEIGHT_ONE : 0;
    const long double rank = (long double)q * (long double)rest;
    const long double slack = 1 + rank * 0x1p-50L;
    const double low = at_rank(r, p->n, rank > slack ? (uint64_t)(rank - slack) : 0);
    const long double top = rank + slack;
    const double high = at_rank(r, p->n, top >= 0x1p64L ? UINT64_MAX : (uint64_t)top);
    double got;
    FZ_CHECK(weir_sketch_quantile(p->sk, q, &got) == WEIR_OK);
    FZ_CHECK(got >= low - a * fabs(low) - 0x1p-1022 && got <= high + a * fabs(high) + 0x1p-1022);
}

/* Those of the zero bin are kept as they are. */
static bool is_near(double got, double want)
{
    return fabs(got - want) <= 1e-15 * fabs(got) + 0x1p-1022;
}

/* Whatever their weights, q 0 and 1 are the ends. */
static void expect_ends(const struct pair *p, double low, double high)
{
    double v;
    double end;
    FZ_CHECK(weir_sketch_min(p->sk, &v) == WEIR_OK && is_near(v, low));
    FZ_CHECK(weir_sketch_quantile(p->sk, 0, &end) == WEIR_OK && !(end < v) && !(end > v));
    FZ_CHECK(weir_sketch_max(p->sk, &v) == WEIR_OK && is_near(v, high));
    FZ_CHECK(weir_sketch_quantile(p->sk, 1, &end) == WEIR_OK && !(end < v) && !(end > v));
}

static bool is_collapsed(const struct weir_sketch *sk)
{
    const struct wr_store *const neg = wr_sketch_negative(sk);
    return sk->flags & WR_SK_COLLAPSED || (neg && neg->collapsed);
}

static void expect_quantiles(const struct world *w, const struct pair *p)
{
    struct ranked r[SAMPLES_MAX];
    for (size_t i = 0; i < p->n; i++)
        r[i] = (struct ranked){answer(w, &p->s[i]), p->s[i].weight};
    qsort(r, p->n, sizeof r[0], by_value);
    expect_ends(p, r[0].value, r[p->n - 1].value);
    if (w->max_bins < 32768 || is_collapsed(p->sk))
        return; /* collapsed bins have no bound on their error */
    for (int i = 1; i < 8; i++)
        expect_quantile(p, r, i / 8.0);
}

struct bins {
    uint64_t digest;
    uint64_t weight;
    double upper;
    bool any;
};

static void see_bin(void *ctx, double lower, double upper, uint64_t weight)
{
    struct bins *const b = ctx;
    uint64_t bits[2];
    memcpy(&bits[0], &lower, sizeof bits[0]);
    memcpy(&bits[1], &upper, sizeof bits[1]);
    FZ_CHECK(weight > 0 && lower <= upper && (!b->any || lower >= b->upper));
    b->digest = fz_digest(b->digest, bits, sizeof bits);
    b->digest = fz_digest_u64(b->digest, weight);
    b->weight += weight;
    b->upper = upper;
    b->any = true;
}

static struct bins bins_of(const struct weir_sketch *sk)
{
    struct bins b = {.digest = FZ_DIGEST_EMPTY};
    weir_sketch_bins(sk, see_bin, &b);
    return b;
}

/* To the byte; of doubles the sum depends on the order of merges in its last bits. */
static void expect_rebuilt(const struct world *w, const struct pair *p)
{
    struct weir_sketch *const sk = new_sketch(w);
    for (size_t i = 0; i < p->n; i++)
        FZ_CHECK(add(w, sk, &p->s[i]) == WEIR_OK);
    if (w->grid == WEIR_GRID_NS) {
        size_t n;
        size_t m;
        uint8_t *const a = form_of(sk, &n);
        uint8_t *const b = form_of(p->sk, &m);
        FZ_CHECK(fz_same(a, n, b, m) && weir_sketch_equal(sk, p->sk));
        free(a);
        free(b);
    }
    const struct bins a = bins_of(sk);
    const struct bins b = bins_of(p->sk);
    FZ_CHECK(a.digest == b.digest && a.weight == b.weight && a.weight == p->weight);
    weir_sketch_free(sk);
}

static void expect_sum(const struct world *w, const struct pair *p)
{
    if (w->grid == WEIR_GRID_VALUE)
        return;
    wr_uint128 sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += (wr_uint128)(p->s[i].ns > 0 ? (uint64_t)p->s[i].ns : 0) * p->s[i].weight;
    const struct weir_u128 got = weir_sketch_sum_ns(p->sk);
    FZ_CHECK(got.lo == (uint64_t)sum && got.hi == (uint64_t)(sum >> 64));
}

static void expect(const struct world *w, const struct pair *p)
{
    FZ_CHECK(wr_sketch_check(p->sk));
    FZ_CHECK(weir_sketch_weight(p->sk) == p->weight);
    FZ_CHECK(weir_sketch_bins_weight(p->sk) == p->weight);
    expect_sum(w, p);
    expect_rebuilt(w, p);
    if (p->n > 0)
        expect_quantiles(w, p);
}

static void op(struct world *w, struct fz_in *in)
{
    const uint8_t code = fz_u8(in);
    struct pair *const p = &w->p[code & 3];
    struct pair *const q = &w->p[code >> 2 & 3];
    switch (code >> 4) {
    case 0:
        weir_sketch_clear(p->sk);
        p->n = 0;
        p->weight = 0;
        break;
    case 1:
        op_merge(p, q, true);
        break;
    case 2:
        op_merge(p, q, false);
        break;
    case 3:
        op_copy(p, q, code & 1);
        break;
    case 5:
        op_add_many(w, p, q, in);
        break;
    case 4:
        if (w->checks++ < CHECKS_MAX)
            expect(w, p);
        break;
    default:
        op_add(w, p, in);
        break;
    }
    FZ_CHECK(weir_sketch_weight(p->sk) == p->weight);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t limits[4] = {32768, 2048, 100, 2};
    struct fz_in in = fz_in(data, size < INPUT_MAX_BYTES ? size : INPUT_MAX_BYTES);
    const uint8_t options = fz_u8(&in);
    struct world *const w = fz_alloc(sizeof *w);
    w->grid = options & 1 ? WEIR_GRID_NS : WEIR_GRID_VALUE;
    w->max_bins = limits[options >> 1 & 3];
    w->wide = options >> 3 == 31;
    w->checks = 0;
    w->mapping = NULL;
    if (options >> 6 == 1)
        FZ_CHECK(weir_mapping_base2(NULL, (options >> 3 & 7) - 5, &w->mapping) == WEIR_OK);
    else if (options >> 6 == 2)
        FZ_CHECK(weir_mapping_log(NULL, 0.01 * (1 + (options >> 3 & 7)), &w->mapping) == WEIR_OK);
    for (size_t i = 0; i < SKETCHES; i++) {
        w->p[i].sk = new_sketch(w);
        w->p[i].n = 0;
        w->p[i].weight = 0;
    }
    while (in.left > 0)
        op(w, &in);
    for (size_t i = 0; i < SKETCHES; i++) {
        expect(w, &w->p[i]);
        weir_sketch_free(w->p[i].sk);
    }
    weir_mapping_unref(w->mapping);
    free(w);
    return 0;
}
