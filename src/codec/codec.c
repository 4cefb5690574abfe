/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec: which encoding is which, and what they share. See codec.h.
 *
 * Threads: any. Memory: a mapping, when bytes bring one that the sketch does not have.
 */
#include "codec/codec.h"

#include "sketch/mapping.h"

/* What counts beyond this do, 64 bits of weight do not: 2^64 / 2^20. */
#define COUNT_END 0x1p44
#define UNIT 0x1p20
#define NS_PER_S 1e9

int wr_codec_refuse(struct weir_where *where, size_t offset, const char *reason, int err)
{
    where->offset = offset;
    where->reason = reason;
    return err;
}

/* Building */

/* m is the mapping that was said, or BASE2 of its bounds; *ret_minus is then what to take from the
 * indices of the bytes. */
static bool same_bins(const struct weir_mapping *m, const struct wr_codec_mapping *said,
                      int64_t *ret_minus)
{
    if (!wr_codec_near(weir_mapping_gamma(m), said->gamma))
        return false;
    *ret_minus = 0;
    if (weir_mapping_kind(m) != WEIR_MAPPING_BASE2)
        return weir_mapping_kind(m) == said->kind &&
               wr_codec_near(weir_mapping_offset(m), said->offset);
    if (said->kind != WEIR_MAPPING_LOG || !(fabs(said->offset) < 0x1p31) ||
        said->offset != rint(said->offset))
        return false;
    *ret_minus = wr_i64_from_double(said->offset);
    return true;
}

static int new_mapping(const struct weir_sketch *sk, const struct wr_codec_mapping *said,
                       struct weir_mapping **ret_mapping)
{
    if (!(said->gamma > 1 && said->gamma <= DBL_MAX && fabs(said->offset) <= DBL_MAX))
        return WEIR_EFORMAT;
    /* most of what is decoded is read and merged, and never recorded into */
    const int r =
        wr_mapping_read_only(wr_bins_alloc(sk), said->kind, said->gamma, said->offset, ret_mapping);
    return r == WEIR_OK || r == WEIR_ENOMEM ? r : WEIR_EVERSION;
}

/* A mapping that is there already: the sketch's own, or what the options give. */
static const struct weir_mapping *at_hand(const struct weir_sketch *sk,
                                          const struct weir_codec_opts *opts,
                                          const struct wr_codec_mapping *said, int64_t *ret_minus)
{
    *ret_minus = 0;
    if (!said)
        return opts->mapping;
    const struct weir_mapping *const own = weir_sketch_mapping(sk);
    if (same_bins(own, said, ret_minus))
        return own;
    if (opts->mapping && same_bins(opts->mapping, said, ret_minus))
        return opts->mapping;
    return NULL;
}

int wr_codec_begin(struct wr_codec_bins *b, struct weir_sketch *sk,
                   const struct weir_codec_opts *opts, const struct wr_codec_mapping *said)
{
    *b = (struct wr_codec_bins){.sk = sk};
    struct weir_mapping *made = NULL;
    const struct weir_mapping *m = at_hand(sk, opts, said, &b->minus);
    if (!m) {
        const int r = said ? new_mapping(sk, said, &made) : WEIR_EFORMAT;
        if (r != WEIR_OK)
            return r;
        m = made;
    }
    const bool ceil = opts->flags & WEIR_CODEC_CEIL;
    const bool log =
        weir_mapping_kind(m) == WEIR_MAPPING_LOG || weir_mapping_kind(m) == WEIR_MAPPING_BASE2;
    b->minus += ceil;
    const int r = log || !ceil ? wr_bins_begin(sk, m) : WEIR_EVERSION;
    weir_mapping_unref(made);
    return r;
}

int wr_codec_weight_any(struct wr_codec_bins *b, double count, uint64_t *ret_weight)
{
    if (!(count >= 0 && count <= DBL_MAX))
        return WEIR_EFORMAT;
    if (count >= COUNT_END)
        return WEIR_ERANGE;
    const double exact = count * UNIT + b->carry;
    uint64_t weight = exact > 0 ? (uint64_t)exact : 0;
    const double rest = exact - (double)weight;
    weight += rest >= 0.5;
    b->carry = rest >= 0.5 ? rest - 1 : rest;
    *ret_weight = weight;
    return WEIR_OK;
}

/* The sketch's index of one that was read. */
static bool own_index(const struct wr_codec_bins *b, int64_t index, int32_t *ret_index)
{
    int64_t own;
    if (wr_sub_i64(index, b->minus, &own) || own < INT32_MIN || own > INT32_MAX)
        return false;
    *ret_index = (int32_t)own;
    return true;
}

int wr_codec_add(struct wr_codec_bins *b, enum wr_bins_sign sign, int64_t index, double count)
{
    uint64_t weight;
    int32_t own;
    if (index < INT32_MIN || index > INT32_MAX || !own_index(b, index, &own))
        return WEIR_EFORMAT;
    if (count == 0)
        return WEIR_OK;
    const int r = wr_codec_weight(b, count, &weight);
    return r == WEIR_OK ? wr_bins_add(b->sk, sign, own, weight) : r;
}

int wr_codec_add_zero(struct wr_codec_bins *b, double count)
{
    uint64_t weight;
    const int r = wr_codec_weight(b, count, &weight);
    return r == WEIR_OK ? wr_bins_add_zero(b->sk, weight) : r;
}

/* The sketch's index of first, if that and the last of n are of 32 bits in both. */
static bool own_run(const struct wr_codec_bins *b, int64_t first, size_t n, int32_t *ret_own)
{
    int32_t last;
    return first >= INT32_MIN && first <= INT32_MAX && n - 1 <= (size_t)(INT32_MAX - first) &&
           own_index(b, first, ret_own) && own_index(b, first + (int64_t)n - 1, &last);
}

int wr_codec_add_run(struct wr_codec_bins *b, enum wr_bins_sign sign, int64_t first,
                     const uint64_t *weights, size_t n)
{
    int32_t own;
    if (!n)
        return WEIR_OK;
    return own_run(b, first, n, &own) ? wr_bins_add_run(b->sk, sign, own, weights, n)
                                      : WEIR_EFORMAT;
}

int wr_codec_add_counts(struct wr_codec_bins *b, enum wr_bins_sign sign, int64_t first,
                        const uint16_t *counts, size_t n)
{
    int32_t own;
    if (!n)
        return WEIR_OK;
    return own_run(b, first, n, &own) ? wr_bins_add_counts(b->sk, sign, own, counts, n)
                                      : WEIR_EFORMAT;
}

/* Statistics that no values with these bins can have are left out. */
int wr_codec_end(struct wr_codec_bins *b, const struct wr_bins_stats *stats)
{
    struct wr_bins_stats s = *stats;
    s.has_min = s.has_min && fabs(s.min) <= DBL_MAX;
    s.has_max = s.has_max && fabs(s.max) <= DBL_MAX;
    s.has_sum = s.has_sum && fabs(s.sum) <= DBL_MAX;
    if (s.has_min != s.has_max || (s.has_min && s.min > s.max)) {
        s.has_min = false;
        s.has_max = false;
    }
    if (s.has_sum && s.has_min) {
        const double count = (double)weir_sketch_weight(b->sk) / UNIT;
        const double slack = 1e-9 * count * fmax(fabs(s.min), fabs(s.max)) + DBL_MIN;
        s.has_sum = !(s.sum < s.min * count - slack || s.sum > s.max * count + slack);
    }
    return wr_bins_end(b->sk, &s);
}

/* Writing */

int wr_codec_unit(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                  struct wr_codec_unit *ret_unit)
{
    const struct weir_mapping *const m = weir_sketch_mapping(sk);
    const uint32_t kind = weir_mapping_kind(m);
    const bool base2 = kind == WEIR_MAPPING_BASE2;
    const bool seconds = base2 || weir_sketch_grid(sk) != WEIR_GRID_NS; /* what its bins are of */
    const bool as_ns =
        weir_sketch_grid(sk) == WEIR_GRID_NS && (opts->flags & WEIR_CODEC_NANOSECONDS);
    struct wr_codec_unit u = {.mapping = {.kind = base2 ? WEIR_MAPPING_LOG : kind,
                                          .gamma = weir_mapping_gamma(m),
                                          .offset = base2 ? 0 : weir_mapping_offset(m)},
                              .factor = as_ns ? NS_PER_S : 1};
    if (weir_sketch_grid(sk) == WEIR_GRID_NS && as_ns == seconds) {
        if (u.mapping.kind != WEIR_MAPPING_LOG)
            return WEIR_EVERSION; /* another unit is not another offset */
        const int32_t scale = weir_mapping_scale(m);
        const double shift = !base2       ? log(NS_PER_S) / log(u.mapping.gamma)
                             : scale >= 0 ? log2(NS_PER_S) * (double)(1 << scale) /* exact too */
                                          : ldexp(log2(NS_PER_S), scale);
        u.mapping.offset += as_ns ? -shift : shift;
    }
    *ret_unit = u;
    return WEIR_OK;
}

size_t wr_codec_span(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t *ret_lo)
{
    int32_t hi;
    if (!wr_bins_range(sk, sign, ret_lo, &hi))
        return 0;
    return (size_t)((int64_t)hi - *ret_lo) + 1;
}

/* The encodings */

static int weir_form_encode(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                            struct wr_codec_out *out)
{
    (void)opts;
    size_t bytes = 0;
    const int r = weir_sketch_encode(sk, out->at, (size_t)(out->end - out->at), &bytes);
    out->at += bytes;
    return r;
}

static size_t weir_form_bound(const struct weir_codec_opts *opts, const struct weir_sketch *sk)
{
    (void)opts;
    return weir_sketch_encoded_bytes(sk);
}

struct codec {
    const char *name;
    wr_codec_decode_fn *decode; /* NULL: weir_sketch_decode */
    wr_codec_encode_fn *encode; /* NULL: it is only read */
    wr_codec_bound_fn *bound;
};

static const struct codec codecs[] = {
    [WEIR_CODEC_WEIR] = {.name = "weir", .encode = weir_form_encode, .bound = weir_form_bound},
    [WEIR_CODEC_DD_PROTO] = {.name = "dd_proto",
                             .decode = wr_dd_proto_decode,
                             .encode = wr_dd_proto_encode,
                             .bound = wr_dd_proto_bound},
    [WEIR_CODEC_DD_COMPACT] = {.name = "dd_compact",
                               .decode = wr_dd_compact_decode,
                               .encode = wr_dd_compact_encode,
                               .bound = wr_dd_compact_bound},
    [WEIR_CODEC_DOGSKETCH] = {.name = "dogsketch",
                              .decode = wr_dogsketch_decode,
                              .encode = wr_dogsketch_encode,
                              .bound = wr_dogsketch_bound},
    [WEIR_CODEC_OTLP_EXP] = {.name = "otlp_exp",
                             .decode = wr_otlp_exp_decode,
                             .encode = wr_otlp_exp_encode,
                             .bound = wr_otlp_exp_bound},
    [WEIR_CODEC_OTLP_HISTOGRAM] = {.name = "otlp_histogram", .decode = wr_otlp_hist_decode},
    [WEIR_CODEC_PROMETHEUS] = {.name = "prometheus",
                               .decode = wr_prometheus_decode,
                               .encode = wr_prometheus_encode,
                               .bound = wr_prometheus_bound},
    [WEIR_CODEC_SKETCHLIB] = {.name = "sketchlib",
                              .decode = wr_sketchlib_decode,
                              .encode = wr_sketchlib_encode,
                              .bound = wr_sketchlib_bound},
    [WEIR_CODEC_SKETCHLIB_DELTA] = {.name = "sketchlib_delta",
                                    .decode = wr_sketchlib_delta_decode,
                                    .encode = wr_sketchlib_delta_encode,
                                    .bound = wr_sketchlib_delta_bound},
    [WEIR_CODEC_ASAPV1] = {.name = "asapv1",
                           .decode = wr_asapv1_decode,
                           .encode = wr_asapv1_encode,
                           .bound = wr_asapv1_bound},
};

_Static_assert(sizeof codecs / sizeof codecs[0] == WEIR_CODEC_COUNT, "one row a codec");

static const struct codec *codec_of(uint32_t codec)
{
    return codec < WEIR_CODEC_COUNT ? &codecs[codec] : NULL;
}

static struct weir_codec_opts opts_of(const struct weir_codec_opts *opts)
{
    struct weir_codec_opts o;
    memset(&o, 0, sizeof o);
    if (opts)
        memcpy(&o, opts,
               opts->struct_size && opts->struct_size < sizeof o ? opts->struct_size : sizeof o);
    return o;
}

/* The mapping that sk had stays to the end: a refusal gives it back. */
static int decode_foreign(const struct codec *c, const struct weir_codec_opts *opts,
                          const void *src, size_t bytes, struct weir_sketch *sk,
                          struct weir_where *where)
{
    static const uint8_t none[1] = {0};
    const struct weir_mapping *const had = weir_mapping_ref(weir_sketch_mapping(sk));
    weir_sketch_clear(sk);
    const int r = c->decode(opts, bytes ? src : none, bytes, sk, where);
    if (r != WEIR_OK) {
        WR_IGNORE(wr_bins_begin(sk, had)); /* it held that before, so it has room for it */
        weir_sketch_clear(sk);
    }
    weir_mapping_unref(had);
    return r;
}

int weir_codec_decode(uint32_t codec, const struct weir_codec_opts *opts, const void *src,
                      size_t bytes, struct weir_sketch *sk, struct weir_where *ret_where)
{
    const struct codec *const c = codec_of(codec);
    struct weir_where where = {.offset = 0, .reason = "not a sketch of this encoding"};
    int r = WEIR_EINVAL;
    if (!c || (c->decode && weir_sketch_grid(sk) != WEIR_GRID_VALUE)) {
        where.reason = "no such encoding, or a sketch of another grid";
        weir_sketch_clear(sk);
    } else if (c->decode) {
        const struct weir_codec_opts o = opts_of(opts);
        r = decode_foreign(c, &o, src, bytes, sk, &where);
    } else {
        r = weir_sketch_decode(sk, src, bytes);
    }
    if (r != WEIR_OK && ret_where)
        *ret_where = where;
    return r;
}

int weir_codec_encode(uint32_t codec, const struct weir_codec_opts *opts,
                      const struct weir_sketch *sk, void *dst, size_t cap, size_t *ret_bytes)
{
    uint8_t none[1];
    const struct codec *const c = codec_of(codec);
    if (!c || !c->encode)
        return WEIR_EINVAL;
    const struct weir_codec_opts o = opts_of(opts);
    uint8_t *const begin = cap ? dst : none;
    struct wr_codec_out out = {.at = begin, .end = begin + cap};
    const int r = c->encode(&o, sk, &out);
    if (r != WEIR_OK)
        return r;
    if (out.full)
        return WEIR_EFULL;
    *ret_bytes = (size_t)(out.at - begin);
    return WEIR_OK;
}

size_t weir_codec_encode_bound(uint32_t codec, const struct weir_codec_opts *opts,
                               const struct weir_sketch *sk)
{
    const struct codec *const c = codec_of(codec);
    const struct weir_codec_opts o = opts_of(opts);
    return c && c->bound ? c->bound(&o, sk) : 0;
}

const char *weir_codec_name(uint32_t codec)
{
    const struct codec *const c = codec_of(codec);
    return c ? c->name : NULL;
}
