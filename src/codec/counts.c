/* SPDX-License-Identifier: Apache-2.0 */
/* counts: see counts.h. */
#include "codec/counts.h"

#include <float.h>

/* Subnormals go 52 octaves below 2^-1022; one more for who rounds their index the other way. */
#define SUBNORMAL_OCTAVES 53

int wr_counts_begin_base2(struct weir_sketch *sk, int32_t scale)
{
    const struct weir_mapping *const own = weir_sketch_mapping(sk);
    if (weir_mapping_kind(own) == WEIR_MAPPING_BASE2 && weir_mapping_scale(own) == scale)
        return wr_bins_begin(sk, own);
    struct weir_mapping *made;
    int r = weir_mapping_base2(wr_bins_alloc(sk), scale, &made);
    if (r != WEIR_OK)
        return r;
    r = wr_bins_begin(sk, made);
    weir_mapping_unref(made);
    return r;
}

void wr_counts_init(struct wr_counts *c, struct weir_sketch *sk, int64_t minus)
{
    const struct weir_mapping *const m = weir_sketch_mapping(sk);
    int32_t low = 0;
    int32_t high = 0;
    int32_t one = 0;
    int32_t two = 0;
    memset(c, 0, sizeof *c);
    c->sk = sk;
    c->minus = minus;
    /* none of these values is out of range */
    WR_IGNORE(weir_mapping_index(m, 0x1.0000000000001p-1022, &low));
    WR_IGNORE(weir_mapping_index(m, DBL_MAX, &high));
    WR_IGNORE(weir_mapping_index(m, 1, &one));
    WR_IGNORE(weir_mapping_index(m, 2, &two));
    c->zero = low;
    c->most = high;
    c->least = low - SUBNORMAL_OCTAVES * ((int64_t)two - one + 1);
}

int wr_counts_begin_log(struct wr_counts *c, struct weir_sketch *sk,
                        const struct weir_codec_opts *opts, double alpha)
{
    const struct wr_codec_mapping said = {.kind = WEIR_MAPPING_LOG,
                                          .gamma = (1 + alpha) / (1 - alpha)};
    const struct weir_codec_opts o = {.mapping = opts->mapping}; /* nobody writes these by ceil */
    struct wr_codec_bins b;
    const int r = wr_codec_begin(&b, sk, &o, &said);
    if (r == WEIR_OK)
        wr_counts_init(c, sk, b.minus);
    return r;
}

static int take(struct wr_counts *c, uint64_t weight)
{
    return __builtin_add_overflow(c->total, weight, &c->total) ? WEIR_ERANGE : WEIR_OK;
}

int wr_counts_take_zero(struct wr_counts *c, uint64_t weight)
{
    c->zeros += weight; /* as long as the total fits */
    return take(c, weight);
}

static int flush(struct wr_counts *c)
{
    const size_t n = c->run;
    c->run = 0;
    return n ? wr_bins_add_run(c->sk, c->run_sign, c->run_first, c->run_weights, n) : WEIR_OK;
}

/* Into the sketch, by runs of bins. */
static int put(struct wr_counts *c, enum wr_bins_sign sign, int32_t index, uint64_t weight)
{
    const bool next =
        c->run && sign == c->run_sign && (int64_t)c->run_first + (int64_t)c->run == index;
    if (!next && !weight)
        return WEIR_OK;
    if (!next || c->run == WR_COUNTS_RUN) {
        const int r = flush(c);
        if (r != WEIR_OK)
            return r;
        c->run_sign = sign;
        c->run_first = index;
    }
    c->run_weights[c->run++] = weight;
    return WEIR_OK;
}

/* Second walk: index was found good, unless weight is 0. */
static int take_again(struct wr_counts *c, enum wr_bins_sign sign, int64_t index, uint64_t weight)
{
    struct wr_counts_top *const top = &c->top[sign];
    if (index < c->zero || index > c->most)
        return WEIR_OK; /* zeros are there already */
    if (weight && top->seen++ == top->at)
        weight = 0; /* and so is this one */
    return put(c, sign, (int32_t)index, weight);
}

int wr_counts_take(struct wr_counts *c, enum wr_bins_sign sign, int64_t index, uint64_t weight)
{
    struct wr_counts_top *const top = &c->top[sign];
    if (wr_sub_i64(index, c->minus, &index))
        return weight ? WEIR_EFORMAT : WEIR_OK;
    if (c->loading)
        return take_again(c, sign, index, weight);
    if (!weight)
        return WEIR_OK;
    if (index < c->least || index > c->most)
        return WEIR_EFORMAT;
    if (index < c->zero)
        return wr_counts_take_zero(c, weight);
    if (!top->weight || index > top->index) {
        top->at = top->seen;
        top->index = index;
        top->weight = weight;
    }
    top->seen++;
    return take(c, weight);
}

int wr_counts_load(struct wr_counts *c)
{
    c->loading = true;
    int r = wr_bins_add_zero(c->sk, c->zeros);
    for (unsigned sign = WR_BINS_POSITIVE; sign <= WR_BINS_NEGATIVE && r == WEIR_OK; sign++) {
        struct wr_counts_top *const top = &c->top[sign];
        top->seen = 0;
        if (top->weight)
            r = wr_bins_add(c->sk, sign, (int32_t)top->index, top->weight);
    }
    return r;
}

int wr_counts_end(struct wr_counts *c, const struct wr_bins_stats *stats)
{
    struct wr_codec_bins b = {.sk = c->sk};
    const int r = flush(c);
    return r == WEIR_OK ? wr_codec_end(&b, stats) : r;
}

const uint8_t *wr_counts_varint(struct wr_pb *pb, const uint8_t *at, const uint8_t *end,
                                uint64_t *ret)
{
    const uint8_t *const bad = at;
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
        const uint8_t b = *at++;
        if (shift == 63 && b > 1)
            return wr_pb_fail(pb, bad, WEIR_EFORMAT, "varint of more than 64 bits");
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            *ret = v;
            return at;
        }
    }
    return wr_pb_fail(pb, bad, WEIR_EFORMAT, "a varint reaches past the end of its field");
}

struct wr_values wr_values(struct wr_pb *pb, const uint8_t *at, const uint8_t *end, uint32_t number,
                           enum wr_pb_wire wire)
{
    return (struct wr_values){.pb = pb, .at = at, .end = end, .number = number, .wire = wire};
}

static bool next_packed(struct wr_values *it, uint64_t *ret)
{
    if (it->wire == WR_PB_VARINT) {
        it->chunk = wr_counts_varint(it->pb, it->chunk, it->chunk_end, ret);
        return it->chunk != NULL;
    }
    if (it->chunk_end - it->chunk < 8) {
        it->chunk =
            wr_pb_fail(it->pb, it->chunk, WEIR_EFORMAT, "a packed field of a broken length");
        return false;
    }
    *ret = wr_load64le(it->chunk);
    it->chunk += 8;
    return true;
}

bool wr_values_next(struct wr_values *it, uint64_t *ret)
{
    if (it->pb->err != WEIR_OK)
        return false;
    if (it->chunk < it->chunk_end)
        return next_packed(it, ret);
    while (it->at < it->end) {
        struct wr_pb_field f;
        const uint8_t *const next = wr_pb_field(it->pb, it->at, it->end, &f);
        if (!next)
            return false;
        it->at = next;
        if (f.tag == WR_PB_TAG(it->number, it->wire)) {
            *ret = f.u;
            return true;
        }
        if (f.tag == WR_PB_TAG(it->number, WR_PB_LEN) && f.ptr && f.u) {
            it->chunk = f.ptr;
            it->chunk_end = next;
            return next_packed(it, ret);
        }
    }
    return false;
}

int wr_counts_refused(const struct wr_pb *pb, struct weir_where *where)
{
    return wr_codec_refuse(where, (size_t)(pb->bad - pb->begin), pb->reason, pb->err);
}

bool wr_counts_base2(const struct weir_mapping *m, int32_t *ret_scale, int64_t *ret_add)
{
    if (weir_mapping_kind(m) == WEIR_MAPPING_BASE2) {
        *ret_scale = weir_mapping_scale(m);
        *ret_add = 0;
        return true;
    }
    const double gamma = weir_mapping_gamma(m);
    const double offset = weir_mapping_offset(m);
    if (weir_mapping_kind(m) != WEIR_MAPPING_LOG || offset != rint(offset) ||
        fabs(offset) > INT32_MAX)
        return false;
    const double scale = rint(-log2(log2(gamma)));
    /* finer ones are so near 1 that a double does not tell their bins apart */
    if (!(scale >= WEIR_SCALE_MIN && scale <= 12))
        return false;
    if (fabs(gamma / exp2(exp2(-scale)) - 1) > 4 * DBL_EPSILON)
        return false;
    *ret_scale = (int32_t)scale;
    *ret_add = -(int64_t)offset;
    return true;
}

bool wr_counts_log(const struct weir_mapping *m, double *ret_gamma, int64_t *ret_add)
{
    const bool base2 = weir_mapping_kind(m) == WEIR_MAPPING_BASE2;
    const double offset = base2 ? 0 : weir_mapping_offset(m);
    if (!(base2 || weir_mapping_kind(m) == WEIR_MAPPING_LOG) || offset != rint(offset) ||
        fabs(offset) > INT32_MAX)
        return false;
    *ret_gamma = weir_mapping_gamma(m);
    *ret_add = -(int64_t)offset;
    return true;
}

double wr_counts_alpha(double gamma)
{
    const double near = (gamma - 1) / (gamma + 1);
    double up = near;
    double down = near;
    for (int i = 0; i < 8; i++) { /* ulps: three roundings are behind it */
        if ((1 + up) / (1 - up) == gamma)
            return up;
        if ((1 + down) / (1 - down) == gamma)
            return down;
        up = nextafter(up, 1);
        down = nextafter(down, 0);
    }
    return near;
}

int wr_counts_unit(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                   struct wr_counts_stats *ret_stats)
{
    struct wr_counts_stats s = {.sum = weir_sketch_sum(sk)};
    const bool any =
        weir_sketch_min(sk, &s.min) == WEIR_OK && weir_sketch_max(sk, &s.max) == WEIR_OK;
    if (weir_sketch_grid(sk) == WEIR_GRID_NS) {
        const bool bins_ns = weir_mapping_kind(weir_sketch_mapping(sk)) != WEIR_MAPPING_BASE2;
        if (bins_ns != ((opts->flags & WEIR_CODEC_NANOSECONDS) != 0))
            return WEIR_EVERSION;
        if (bins_ns) {
            const struct weir_u128 ns = weir_sketch_sum_ns(sk);
            s.sum = (double)ns.hi * 0x1p44 + (double)ns.lo * 0x1p-20;
            s.min = any ? rint(s.min * 1e9) : 0;
            s.max = any ? rint(s.max * 1e9) : 0;
        }
    }
    *ret_stats = s;
    return WEIR_OK;
}

static void start(struct wr_whole_walk *walk, const struct wr_whole *w, int64_t begin,
                  int64_t index, int64_t last, int64_t carry)
{
    int32_t low = 0;
    int32_t high = -1;
    walk->w = w;
    walk->index = index;
    walk->last = last;
    walk->carry = carry;
    walk->next = begin;
    walk->at = 0;
    walk->n = 0;
    walk->high = wr_bins_range(w->sk, w->sign, &low, &high) ? high : begin - 1;
}

/* The weight of the sketch's bin walk->next, which is not past its highest. */
static uint64_t weight_here(struct wr_whole_walk *walk)
{
    if (walk->at == walk->n) {
        const int64_t left = walk->high - walk->next + 1;
        walk->n = left < WR_WHOLE_CHUNK ? (size_t)left : WR_WHOLE_CHUNK;
        walk->at = 0;
        wr_bins_read(walk->w->sk, walk->w->sign, (int32_t)walk->next, walk->n, walk->weights);
    }
    return walk->weights[walk->at];
}

static uint64_t count_here(struct wr_whole_walk *walk)
{
    const struct wr_whole *const w = walk->w;
    uint64_t weight = 0;
    while (walk->next <= walk->high &&
           wr_counts_coarser(walk->next + w->add, w->shift) == walk->index) {
        weight += weight_here(walk);
        walk->next++;
        walk->at++;
    }
    walk->index++;
    return wr_counts_whole(weight, &walk->carry);
}

void wr_whole_init(struct wr_whole *w, const struct weir_sketch *sk, enum wr_bins_sign sign,
                   int64_t add, unsigned shift, int64_t *carry)
{
    int32_t low;
    int32_t high;
    *w = (struct wr_whole){.sk = sk, .sign = sign, .add = add, .shift = shift};
    if (!wr_bins_range(sk, sign, &low, &high))
        return;
    struct wr_whole_walk walk;
    const int64_t last = wr_counts_coarser(high + add, shift);
    start(&walk, w, low, wr_counts_coarser(low + add, shift), last, *carry);
    while (walk.index <= last) {
        const int64_t before = walk.carry;
        const int64_t begin = walk.next;
        const uint64_t count = count_here(&walk);
        if (!count)
            continue;
        if (!w->total) {
            w->first = walk.index - 1;
            w->begin = begin;
            w->carry = before;
        }
        w->last = walk.index - 1;
        w->total += count;
    }
    *carry = walk.carry;
}

void wr_whole_begin(struct wr_whole_walk *walk, const struct wr_whole *w)
{
    start(walk, w, w->begin, w->first, w->total ? w->last : w->first - 1, w->carry);
}

bool wr_whole_next(struct wr_whole_walk *walk, uint64_t *ret_count)
{
    if (walk->index > walk->last)
        return false;
    *ret_count = count_here(walk);
    return true;
}

size_t wr_whole_varint_bytes(const struct wr_whole *w)
{
    struct wr_whole_walk walk;
    size_t bytes = 0;
    uint64_t count;
    wr_whole_begin(&walk, w);
    while (wr_whole_next(&walk, &count))
        bytes += wr_codec_varint_bytes(count);
    return bytes;
}

void wr_whole_put_varints(struct wr_codec_out *out, const struct wr_whole *w)
{
    struct wr_whole_walk walk;
    uint64_t count;
    wr_whole_begin(&walk, w);
    while (wr_whole_next(&walk, &count))
        wr_codec_put_varint(out, count);
}

size_t wr_counts_spans(const struct weir_sketch *sk)
{
    int32_t low;
    return wr_codec_span(sk, WR_BINS_POSITIVE, &low) + wr_codec_span(sk, WR_BINS_NEGATIVE, &low);
}
