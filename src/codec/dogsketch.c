/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dogsketch: the message Dogsketch of a Datadog agent. See docs/formats/dogsketch.md.
 *
 * The agent's key k of a magnitude is round(log_g v) + 1338 with g = 1.015625, so bin k is
 * [g^(k - 1338.5), g^(k - 1337.5)): a DDSketch logarithm of offset 1338.5, key and index are the
 * same number. Key 0 is the zero bin, a negative key the bin of a negative value; 32767 is what the
 * agent takes infinity for.
 *
 * Keys and counts are two lists that may each come in pieces, in any order of fields: two cursors
 * over the same bytes walk them side by side. The bins are trusted. What is said of another number
 * of values than they hold, as agents do that sample, is not: then the sum is derived.
 *
 * Threads: any. Memory: none but the sketch's.
 * Source: agent_payload.proto of datadog-agent, pkg/util/quantile of it.
 */
#include "codec/codec.h"
#include "wire/pb_read.h"

#define GAMMA 1.015625
#define OFFSET 1338.5
#define KEY_MAX 32767
#define KEY_FINITE_MAX 32766

enum { CHUNK = 256 };

#define TS WR_PB_TAG(1, WR_PB_VARINT)
#define CNT WR_PB_TAG(2, WR_PB_VARINT)
#define MIN WR_PB_TAG(3, WR_PB_FIXED64)
#define MAX WR_PB_TAG(4, WR_PB_FIXED64)
#define AVG WR_PB_TAG(5, WR_PB_FIXED64)
#define SUM WR_PB_TAG(6, WR_PB_FIXED64)
#define KEYS WR_PB_TAG(7, WR_PB_LEN)
#define KEY WR_PB_TAG(7, WR_PB_VARINT)
#define COUNTS WR_PB_TAG(8, WR_PB_LEN)
#define COUNT WR_PB_TAG(8, WR_PB_VARINT)

/* Reading */

/* One of the two lists. */
struct list {
    uint32_t packed;
    uint32_t single;
    const uint8_t *at;   /* the next field of the message */
    const uint8_t *in;   /* what is left of a packed field */
    const uint8_t *stop; /* the end of it */
};

static struct list list_of(const struct wr_pb *pb, uint32_t packed, uint32_t single)
{
    return (struct list){
        .packed = packed, .single = single, .at = pb->begin, .in = pb->begin, .stop = pb->begin};
}

/* A varint inside a packed field; protobuf's, of at most 10 bytes. */
static const uint8_t *packed_varint(struct wr_pb *pb, const uint8_t *at, const uint8_t *end,
                                    uint64_t *ret)
{
    const uint8_t *const bad = at;
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
        const uint64_t b = *at++;
        if (shift == 63 && b > 1)
            break;
        v |= (b & 0x7f) << shift;
        if (b < 0x80) {
            *ret = v;
            return at;
        }
    }
    return wr_pb_fail(pb, bad, WEIR_EFORMAT, "a packed varint that is cut, or of over 64 bits");
}

/* The next number; false: there is none, or pb has failed. */
static bool next_number(struct wr_pb *pb, struct list *list, uint64_t *ret)
{
    while (list->in == list->stop) {
        struct wr_pb_field f;
        if (pb->err || list->at >= pb->end)
            return false;
        list->at = wr_pb_field(pb, list->at, pb->end, &f);
        if (!list->at)
            return false;
        if (f.tag == list->single) {
            *ret = f.u;
            return true;
        }
        if (f.tag == list->packed) {
            list->in = f.ptr;
            list->stop = list->at;
        }
    }
    list->in = packed_varint(pb, list->in, list->stop, ret);
    return list->in != NULL;
}

static void take_bin(struct wr_pb *pb, struct wr_codec_bins *b, uint64_t k, uint64_t n)
{
    const int64_t key = wr_codec_unzigzag(k & UINT32_MAX);
    if (k > UINT32_MAX || n > UINT32_MAX || key > KEY_MAX || key < -KEY_MAX) {
        wr_pb_fail(pb, pb->begin, WEIR_EFORMAT, "a key past 32767, or a count past 32 bits");
        return;
    }
    int64_t index = key < 0 ? -key : key;
    index = index > KEY_FINITE_MAX ? KEY_FINITE_MAX : index;
    const int r =
        key == 0 ? wr_codec_add_zero(b, (double)n)
                 : wr_codec_add(b, key < 0 ? WR_BINS_NEGATIVE : WR_BINS_POSITIVE, index, (double)n);
    if (r != WEIR_OK)
        wr_pb_fail(pb, pb->begin, r, "more than a sketch holds");
}

static void take_bins(struct wr_pb *pb, struct wr_codec_bins *b)
{
    struct list keys = list_of(pb, KEYS, KEY);
    struct list counts = list_of(pb, COUNTS, COUNT);
    for (;;) {
        uint64_t k = 0;
        uint64_t n = 0;
        const bool has_key = next_number(pb, &keys, &k);
        const bool has_count = next_number(pb, &counts, &n);
        if (pb->err || (!has_key && !has_count))
            return;
        if (has_key != has_count) {
            wr_pb_fail(pb, pb->begin, WEIR_EFORMAT, "keys and counts of different number");
            return;
        }
        take_bin(pb, b, k, n);
    }
}

struct summary {
    uint64_t cnt;
    double min;
    double max;
    double sum;
};

static double double_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static struct summary take_summary(struct wr_pb *pb)
{
    struct summary s = {.cnt = 0};
    const uint8_t *at = pb->begin;
    while (at < pb->end) {
        struct wr_pb_field f;
        at = wr_pb_field(pb, at, pb->end, &f);
        if (!at)
            return s;
        switch (f.tag) {
        case CNT:
            s.cnt = f.u;
            break;
        case MIN:
            s.min = double_of(f.u);
            break;
        case MAX:
            s.max = double_of(f.u);
            break;
        case SUM:
            s.sum = double_of(f.u);
            break;
        default: /* the time and the average are not a sketch's; unknown fields are skipped */
            break;
        }
    }
    return s;
}

int wr_dogsketch_decode(const struct weir_codec_opts *opts, const uint8_t *src, size_t bytes,
                        struct weir_sketch *sk, struct weir_where *where)
{
    static const struct wr_codec_mapping mapping = {
        .kind = WEIR_MAPPING_LOG, .gamma = GAMMA, .offset = OFFSET};
    struct wr_pb pb = wr_pb_init(src, bytes);
    struct wr_codec_bins b;
    struct weir_codec_opts o = *opts;
    o.flags &= ~WEIR_CODEC_CEIL;
    const struct summary s = take_summary(&pb);
    const int r = pb.err ? pb.err : wr_codec_begin(&b, sk, &o, &mapping);
    if (r == WEIR_OK)
        take_bins(&pb, &b);
    if (pb.err)
        return wr_codec_refuse(where, (size_t)(pb.bad - pb.begin), pb.reason, pb.err);
    if (r != WEIR_OK)
        return wr_codec_refuse(where, 0, "no memory", r);
    const struct wr_bins_stats stats = {.has_sum = s.cnt == weir_sketch_weight(sk) >> 20,
                                        .has_min = true,
                                        .has_max = true,
                                        .sum = s.sum,
                                        .min = s.min,
                                        .max = s.max};
    return wr_codec_end(&b, &stats);
}

/* Writing */

/* What index keys are of, and the rest of rounding to whole counts. */
struct writer {
    const struct weir_sketch *sk;
    int64_t plus;   /* key less index */
    uint64_t carry; /* units of 2^-20, less than one */
    uint64_t total;
    uint64_t keys_bytes;
    uint64_t counts_bytes;
    /* NULL: it is only measured */
    struct wr_codec_out *keys;
    struct wr_codec_out *counts;
};

/* One bin of the agent's, in ascending order of keys. More than 32 bits go into several. */
static void put_bin(struct writer *w, int64_t key, uint64_t weight)
{
    /* a half rounds up: the carry starts at one half, so that the total is rounded */
    const uint64_t sum = (weight & (WEIR_WEIGHT_ONE - 1)) + w->carry;
    uint64_t n = (weight >> 20) + (sum >> 20);
    w->carry = sum & (WEIR_WEIGHT_ONE - 1);
    w->total += n;
    while (n) {
        const uint64_t part = n > UINT32_MAX ? UINT32_MAX : n;
        const uint64_t k = wr_codec_zigzag(key);
        w->keys_bytes += wr_codec_varint_bytes(k);
        w->counts_bytes += wr_codec_varint_bytes(part);
        if (w->keys)
            wr_codec_put_varint(w->keys, k);
        if (w->counts)
            wr_codec_put_varint(w->counts, part);
        n -= part;
    }
}

/* Bins [lo, lo + n) of one sign; down: from the highest. */
static void put_span(struct writer *w, enum wr_bins_sign sign, int64_t lo, size_t span)
{
    const bool down = sign == WR_BINS_NEGATIVE;
    uint64_t weights[CHUNK];
    for (size_t done = 0; done < span;) {
        const size_t n = span - done < CHUNK ? span - done : CHUNK;
        const int64_t first = lo + (int64_t)(down ? span - done - n : done);
        wr_bins_read(w->sk, sign, (int32_t)first, n, weights);
        for (size_t i = 0; i < n; i++) {
            const size_t at = down ? n - 1 - i : i;
            const int64_t key = first + (int64_t)at + w->plus;
            if (weights[at])
                put_bin(w, down ? -key : key, weights[at]);
        }
        done += n;
    }
}

/* Weight of what is nearer zero than key 1; the rest of the span is left. */
static uint64_t below_keys(const struct writer *w, enum wr_bins_sign sign, int64_t *lo,
                           size_t *span)
{
    uint64_t sum = 0;
    while (*span && *lo + w->plus < 1) {
        uint64_t weights[CHUNK];
        const int64_t below = 1 - w->plus - *lo;
        size_t n = *span < CHUNK ? *span : CHUNK;
        n = (int64_t)n > below ? (size_t)below : n;
        wr_bins_read(w->sk, sign, (int32_t)*lo, n, weights);
        for (size_t i = 0; i < n; i++)
            sum += weights[i];
        *lo += (int64_t)n;
        *span -= n;
    }
    return sum;
}

/* All bins. Errors: WEIR_ERANGE. */
static int put_bins(struct writer *w)
{
    int32_t lo[2] = {0, 0};
    int64_t from[2];
    size_t span[2];
    uint64_t zeros = wr_bins_zero(w->sk);
    for (int sign = WR_BINS_POSITIVE; sign <= WR_BINS_NEGATIVE; sign++) {
        span[sign] = wr_codec_span(w->sk, (enum wr_bins_sign)sign, &lo[sign]);
        from[sign] = lo[sign];
        if (span[sign] && from[sign] + (int64_t)span[sign] - 1 + w->plus > KEY_FINITE_MAX)
            return WEIR_ERANGE;
        zeros += below_keys(w, (enum wr_bins_sign)sign, &from[sign], &span[sign]);
    }
    w->carry = WEIR_WEIGHT_ONE / 2;
    w->total = 0;
    put_span(w, WR_BINS_NEGATIVE, from[WR_BINS_NEGATIVE], span[WR_BINS_NEGATIVE]);
    put_bin(w, 0, zeros);
    put_span(w, WR_BINS_POSITIVE, from[WR_BINS_POSITIVE], span[WR_BINS_POSITIVE]);
    return WEIR_OK;
}

/* The bins are the agent's, or as much higher or lower. */
static bool agent_bins(const struct wr_codec_mapping *m, int64_t *ret_plus)
{
    const double plus = OFFSET - m->offset;
    if (m->kind != WEIR_MAPPING_LOG || !(fabs(m->gamma - GAMMA) <= 1e-12 * GAMMA) ||
        !(fabs(plus) < 0x1p31) || !(fabs(plus - rint(plus)) <= 1e-9))
        return false;
    *ret_plus = wr_i64_from_double(rint(plus));
    return true;
}

static void put_summary(struct wr_codec_out *out, const struct weir_sketch *sk, uint64_t cnt)
{
    double min = 0;
    double max = 0;
    const double sum = weir_sketch_sum(sk);
    WR_IGNORE(weir_sketch_min(sk, &min));
    WR_IGNORE(weir_sketch_max(sk, &max));
    const struct {
        uint8_t tag;
        double v;
    } fields[4] = {{MIN, min}, {MAX, max}, {AVG, sum / (double)cnt}, {SUM, sum}};
    wr_codec_put_u8(out, CNT);
    wr_codec_put_varint(out, cnt);
    for (size_t i = 0; i < 4; i++) {
        if (fields[i].v == 0)
            continue;
        wr_codec_put_u8(out, fields[i].tag);
        wr_codec_put_double(out, fields[i].v);
    }
}

int wr_dogsketch_encode(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                        struct wr_codec_out *out)
{
    struct wr_codec_unit unit;
    struct writer w = {.sk = sk};
    struct weir_codec_opts seconds = *opts;
    seconds.flags &= ~WEIR_CODEC_NANOSECONDS;
    int r = wr_codec_unit(&seconds, sk, &unit);
    if (r == WEIR_OK && !agent_bins(&unit.mapping, &w.plus))
        r = WEIR_EVERSION;
    if (r == WEIR_OK)
        r = put_bins(&w); /* measures */
    if (r != WEIR_OK || !w.total)
        return r;
    const uint64_t counts_bytes = w.counts_bytes;
    put_summary(out, sk, w.total);
    wr_codec_put_u8(out, KEYS);
    wr_codec_put_varint(out, w.keys_bytes);
    w.keys = out;
    WR_IGNORE(put_bins(&w));
    w.keys = NULL;
    wr_codec_put_u8(out, COUNTS);
    wr_codec_put_varint(out, counts_bytes);
    w.counts = out;
    WR_IGNORE(put_bins(&w));
    return WEIR_OK;
}

size_t wr_dogsketch_bound(const struct weir_codec_opts *opts, const struct weir_sketch *sk)
{
    (void)opts;
    int32_t lo;
    const size_t bins =
        wr_codec_span(sk, WR_BINS_POSITIVE, &lo) + wr_codec_span(sk, WR_BINS_NEGATIVE, &lo) + 1;
    /* cnt 11, four doubles 36, two lists 22; a bin a key of 3 and a count of 5, and again for every
     * 2^32 - 1 */
    const size_t parts = bins + (size_t)(weir_sketch_weight(sk) >> 20) / UINT32_MAX;
    return 11 + 36 + 22 + 8 * parts;
}
