/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asapv1: DDSketch in an ASAPv1 envelope.
 *
 *   "ASAPv1", version 1, length of the kind 2, kind 0500, two 32-bit lengths, big end first, then
 *   MessagePack: a map {metadata_version, alpha} and an array
 *     [counts, offset, sum, min, max]                                     metadata_version 1
 *     ... [counts, offset] of negative values by magnitude, zero count    metadata_version 2
 *
 * The schema is closed: no other key, order or length is read. What is written is what the format
 * calls canonical: integers of minimal width, no empty bin at an end, version 1 when there are
 * neither zeros nor negative values. Bins are those of a logarithm without offset, gamma
 * (1 + alpha) / (1 - alpha). The other kinds are known by name and refused.
 *
 * Threads: any. Memory: the sketch's.
 * Source: contracts windows §2.4.
 */
#include "codec/counts.h"
#include "wire/mp_read.h"
#include "wire/mp_write.h"

#define HEAD_BYTES 18
#define KIND_DDSKETCH 0x0500
#define KEY_VERSION "metadata_version"
#define KEY_ALPHA "alpha"
/* map, two keys, a small integer, a double */
#define METADATA_BYTES 34

static const struct kind {
    uint16_t id;
    const char *reason;
} kinds[] = {
    {0x0101, "an HLL (classic), not a DDSketch"},
    {0x0102, "an HLL (Ertl), not a DDSketch"},
    {0x0103, "an HLL (HIP), not a DDSketch"},
    {0x0200, "a CMS, not a DDSketch"},
    {0x0300, "a CMSHeap, not a DDSketch"},
    {0x0400, "a CS, not a DDSketch"},
    {0x0600, "a KLL, not a DDSketch"},
    {0x0601, "a KLL (dynamic), not a DDSketch"},
    {0x0700, "a Hydra (KLL), not a DDSketch"},
    {0x0701, "a Hydra (CM), not a DDSketch"},
    {0x0702, "a Hydra (CS), not a DDSketch"},
    {0x0703, "a Hydra (HLL), not a DDSketch"},
    {0x0704, "a Hydra (UnivMon), not a DDSketch"},
    {0x0800, "a SetAggregator, not a DDSketch"},
    {0x0900, "a DeltaResult, not a DDSketch"},
    {0x0a00, "a CSHeap, not a DDSketch"},
    {0x0b00, "an Elastic, not a DDSketch"},
    {0x0c00, "a Coco, not a DDSketch"},
    {0x0d00, "a Uniform, not a DDSketch"},
    {0x0e00, "a KMV, not a DDSketch"},
    {0x0f00, "a HashEnsemble, not a DDSketch"},
    {0x1000, "a UnivMon, not a DDSketch"},
    {0x1100, "a UnivMon (optimized), not a DDSketch"},
    {0x1200, "a NitroBatch, not a DDSketch"},
    {0x1300, "an EH, not a DDSketch"},
    {0x1400, "an EHSketchList, not a DDSketch"},
    {0x1500, "an EHUnivOpt, not a DDSketch"},
    {0x1600, "an Octo, not a DDSketch"},
    {0x1900, "a CountL2HH, not a DDSketch"},
};

struct envelope {
    struct wr_mp mp;
    const uint8_t *metadata;
    const uint8_t *payload;
    uint64_t version; /* of the metadata */
    double alpha;
    struct wr_bins_stats stats;
};

static const char *kind_reason(uint16_t id)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].id == id)
            return kinds[i].reason;
    return "an unknown kind of sketch";
}

static int read_head(struct envelope *e, const uint8_t *src, size_t bytes, struct weir_where *where)
{
    static const uint8_t head[8] = {'A', 'S', 'A', 'P', 'v', '1', 1, 2};
    if (bytes < HEAD_BYTES)
        return wr_codec_refuse(where, bytes, "the bytes end in the header", WEIR_ETRUNCATED);
    if (memcmp(src, head, 6) != 0)
        return wr_codec_refuse(where, 0, "not an ASAPv1 envelope", WEIR_EFORMAT);
    if (memcmp(src, head, sizeof head) != 0)
        return wr_codec_refuse(where, 6, "a version or length of kind that is not known",
                               WEIR_EVERSION);
    const uint16_t kind = wr_load16be(src + 8);
    if (kind != KIND_DDSKETCH)
        return wr_codec_refuse(where, 8, kind_reason(kind), WEIR_EVERSION);
    const uint64_t metadata = wr_load32be(src + 10);
    const uint64_t payload = wr_load32be(src + 14);
    if (metadata + payload > bytes - HEAD_BYTES)
        return wr_codec_refuse(where, 10, "lengths past the end of the bytes", WEIR_ETRUNCATED);
    if (metadata + payload < bytes - HEAD_BYTES)
        return wr_codec_refuse(where, 10, "bytes behind the envelope", WEIR_EFORMAT);
    e->metadata = src + HEAD_BYTES;
    e->payload = e->metadata + metadata;
    return WEIR_OK;
}

static const uint8_t *read_key(struct wr_mp *mp, const uint8_t *at, const char *key)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(mp, at, &item);
    if (!next)
        return NULL;
    if (item.type != WR_MP_STR || item.len != strlen(key) || memcmp(item.v.ptr, key, item.len) != 0)
        return wr_mp_fail(mp, at, WEIR_EFORMAT, "a key of the metadata that does not belong there");
    return next;
}

static const uint8_t *read_double(struct wr_mp *mp, const uint8_t *at, double *ret)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(mp, at, &item);
    if (!next)
        return NULL;
    if (item.type != WR_MP_FLOAT)
        return wr_mp_fail(mp, at, WEIR_EFORMAT, "not a float");
    *ret = item.v.d;
    return next;
}

static const uint8_t *read_uint(struct wr_mp *mp, const uint8_t *at, uint64_t *ret)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(mp, at, &item);
    if (!next)
        return NULL;
    if (item.type != WR_MP_UINT)
        return wr_mp_fail(mp, at, WEIR_EFORMAT, "not an integer of 0 or more");
    *ret = item.v.u;
    return next;
}

static const uint8_t *read_offset(struct wr_mp *mp, const uint8_t *at, int64_t *ret)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(mp, at, &item);
    if (!next)
        return NULL;
    const bool fits = (item.type == WR_MP_UINT && item.v.u <= INT32_MAX) ||
                      (item.type == WR_MP_INT && item.v.i >= INT32_MIN);
    if (!fits)
        return wr_mp_fail(mp, at, WEIR_EFORMAT, "not an offset of 32 bits");
    *ret = item.type == WR_MP_UINT ? (int64_t)item.v.u : item.v.i;
    return next;
}

static int read_metadata(struct envelope *e)
{
    struct wr_mp_item item;
    const uint8_t *at = wr_mp_item(&e->mp, e->metadata, &item);
    if (at && !(item.type == WR_MP_MAP && item.len == 2))
        at = wr_mp_fail(&e->mp, e->metadata, WEIR_EFORMAT, "metadata is not a map of two");
    at = at ? read_key(&e->mp, at, KEY_VERSION) : NULL;
    at = at ? read_uint(&e->mp, at, &e->version) : NULL;
    if (at && e->version != 1 && e->version != 2)
        at = wr_mp_fail(&e->mp, at, WEIR_EVERSION, "a metadata version that is not known");
    at = at ? read_key(&e->mp, at, KEY_ALPHA) : NULL;
    at = at ? read_double(&e->mp, at, &e->alpha) : NULL;
    if (at && !(e->alpha > 0 && e->alpha < 1))
        at = wr_mp_fail(&e->mp, at, WEIR_EFORMAT, "alpha is not between 0 and 1");
    if (at && at != e->payload)
        at = wr_mp_fail(&e->mp, at, WEIR_EFORMAT, "metadata is not as long as it says");
    return at ? WEIR_OK : e->mp.err;
}

/* [counts], offset. r gets what the sketch says of them. */
static const uint8_t *walk_store(struct envelope *e, const uint8_t *at, struct wr_counts *c,
                                 enum wr_bins_sign sign, int *r)
{
    struct wr_mp *const mp = &e->mp;
    uint32_t n = 0;
    int64_t offset = 0;
    uint64_t count = 0;
    at = wr_mp_array(mp, at, &n);
    const uint8_t *const counts = at;
    for (uint32_t i = 0; i < n && at; i++) /* the offset comes after them */
        at = read_uint(mp, at, &count);
    at = at ? read_offset(mp, at, &offset) : NULL;
    const uint8_t *in = counts;
    for (uint32_t i = 0; at && i < n && *r == WEIR_OK; i++) {
        uint64_t weight;
        in = read_uint(mp, in, &count); /* as it did before */
        *r = wr_counts_weight(count, &weight) ? wr_counts_take(c, sign, offset + i, weight)
                                              : WEIR_ERANGE;
    }
    return at;
}

/* The whole payload. Errors: the envelope's, or those of wr_counts_take. */
static int walk_payload(struct envelope *e, struct wr_counts *c)
{
    struct wr_mp *const mp = &e->mp;
    uint32_t n = 0;
    int r = WEIR_OK;
    uint64_t zeros = 0;
    uint64_t weight = 0;
    const uint8_t *at = wr_mp_array(mp, e->payload, &n);
    if (at && n != (e->version == 1 ? 5u : 8u))
        at = wr_mp_fail(mp, e->payload, WEIR_EFORMAT, "a payload of another metadata version");
    at = at ? walk_store(e, at, c, WR_BINS_POSITIVE, &r) : NULL;
    at = at ? read_double(mp, at, &e->stats.sum) : NULL;
    at = at ? read_double(mp, at, &e->stats.min) : NULL;
    at = at ? read_double(mp, at, &e->stats.max) : NULL;
    if (e->version == 2) {
        at = at ? walk_store(e, at, c, WR_BINS_NEGATIVE, &r) : NULL;
        at = at ? read_uint(mp, at, &zeros) : NULL;
    }
    if (at && at != mp->end)
        at = wr_mp_fail(mp, at, WEIR_EFORMAT, "the payload is not as long as it says");
    if (!at)
        return mp->err;
    if (r == WEIR_OK && !c->loading)
        r = wr_counts_weight(zeros, &weight) ? wr_counts_take_zero(c, weight) : WEIR_ERANGE;
    return r;
}

static int refused(const struct envelope *e, const uint8_t *src, struct weir_where *where)
{
    return wr_codec_refuse(where, (size_t)(e->mp.bad - src), e->mp.reason, e->mp.err);
}

int wr_asapv1_decode(const struct weir_codec_opts *opts, const uint8_t *src, size_t bytes,
                     struct weir_sketch *sk, struct weir_where *where)
{
    struct envelope e;
    memset(&e, 0, sizeof e);
    int r = read_head(&e, src, bytes, where);
    if (r != WEIR_OK)
        return r;
    e.mp = wr_mp_init(src, bytes);
    if (read_metadata(&e) != WEIR_OK)
        return refused(&e, src, where);
    struct wr_counts c;
    r = wr_counts_begin_log(&c, sk, opts, e.alpha);
    if (r != WEIR_OK)
        return wr_codec_refuse(where, HEAD_BYTES, "an alpha that is not supported here", r);
    r = walk_payload(&e, &c);
    if (e.mp.err != WEIR_OK)
        return refused(&e, src, where);
    if (r != WEIR_OK)
        return wr_codec_refuse(where, (size_t)(e.payload - src),
                               "a bin past the range of doubles, or counts past 2^44", r);
    r = wr_counts_load(&c);
    if (r == WEIR_OK)
        r = walk_payload(&e, &c);
    e.stats.has_sum = true;
    e.stats.has_min = true;
    e.stats.has_max = true;
    return r == WEIR_OK ? wr_counts_end(&c, &e.stats) : r;
}

/* Writing */

/* The bytes of a count, an offset, the head of an array. */
struct item {
    char bytes[WR_MP_INT_MAX];
    size_t n;
};

static struct item item_int(int64_t v)
{
    struct item it;
    it.n = (size_t)(wr_mp_raw_int(it.bytes, v) - it.bytes);
    return it;
}

static struct item item_double(double v)
{
    struct item it;
    it.n = (size_t)(wr_mp_raw_double(it.bytes, v) - it.bytes);
    return it;
}

static struct item item_array(uint32_t n)
{
    struct item it;
    it.n = (size_t)(wr_mp_raw_array(it.bytes, n) - it.bytes);
    return it;
}

/* out NULL: only measured. Returns the bytes. */
static size_t put_item(struct wr_codec_out *out, struct item it)
{
    if (out)
        wr_counts_put_bytes(out, it.bytes, it.n);
    return it.n;
}

static size_t put_store(struct wr_codec_out *out, const struct wr_whole *w)
{
    struct wr_whole_walk walk;
    uint64_t count;
    const uint32_t n = w->total ? (uint32_t)(w->last - w->first + 1) : 0;
    size_t bytes = put_item(out, item_array(n));
    wr_whole_begin(&walk, w);
    while (wr_whole_next(&walk, &count))
        bytes += put_item(out, item_int((int64_t)count));
    return bytes + put_item(out, item_int(w->total ? w->first : 0));
}

struct contents {
    struct wr_whole pos;
    struct wr_whole neg;
    uint64_t zeros;
    struct wr_counts_stats stats;
    bool is_signed;
};

static size_t put_payload(struct wr_codec_out *out, const struct contents *c)
{
    size_t bytes = put_item(out, item_array(c->is_signed ? 8 : 5));
    bytes += put_store(out, &c->pos);
    bytes += put_item(out, item_double(c->stats.sum));
    bytes += put_item(out, item_double(c->stats.min));
    bytes += put_item(out, item_double(c->stats.max));
    if (c->is_signed) {
        bytes += put_store(out, &c->neg);
        bytes += put_item(out, item_int((int64_t)c->zeros));
    }
    return bytes;
}

/* alpha as it was given: the shortest decimal that makes this gamma, or what is nearest to it. */
static double alpha_of(double gamma)
{
    const double near = wr_counts_alpha(gamma);
    double power = 1;
    for (int digits = 1; digits <= 17; digits++) {
        power *= 10; /* exact */
        const double alpha = rint(near * power) / power;
        if (alpha > 0 && alpha < 1 && (1 + alpha) / (1 - alpha) == gamma)
            return alpha;
    }
    return near;
}

static void put_metadata(struct wr_codec_out *out, const struct contents *c, double gamma)
{
    wr_codec_put_u8(out, 0x82);
    wr_codec_put_u8(out, 0xa0 | (sizeof KEY_VERSION - 1));
    wr_counts_put_bytes(out, KEY_VERSION, sizeof KEY_VERSION - 1);
    wr_codec_put_u8(out, c->is_signed ? 2 : 1);
    wr_codec_put_u8(out, 0xa0 | (sizeof KEY_ALPHA - 1));
    wr_counts_put_bytes(out, KEY_ALPHA, sizeof KEY_ALPHA - 1);
    put_item(out, item_double(alpha_of(gamma)));
}

static int read_contents(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                         double *ret_gamma, struct contents *c)
{
    int64_t add;
    int64_t carry = 0;
    if (!wr_counts_log(weir_sketch_mapping(sk), ret_gamma, &add))
        return WEIR_EVERSION;
    const int r = wr_counts_unit(opts, sk, &c->stats);
    if (r != WEIR_OK)
        return r;
    wr_whole_init(&c->pos, sk, WR_BINS_POSITIVE, add, 0, &carry);
    c->zeros = wr_counts_whole(wr_bins_zero(sk), &carry);
    wr_whole_init(&c->neg, sk, WR_BINS_NEGATIVE, add, 0, &carry);
    c->is_signed = c->zeros || c->neg.total;
    if (c->pos.first < INT32_MIN || c->pos.last > INT32_MAX || c->neg.first < INT32_MIN ||
        c->neg.last > INT32_MAX)
        return WEIR_ERANGE;
    if (!(c->pos.total || c->is_signed))
        c->stats = (struct wr_counts_stats){.min = (double)INFINITY, .max = -(double)INFINITY};
    return WEIR_OK;
}

int wr_asapv1_encode(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                     struct wr_codec_out *out)
{
    struct contents c;
    double gamma;
    const int r = read_contents(opts, sk, &gamma, &c);
    if (r != WEIR_OK)
        return r;
    uint8_t head[HEAD_BYTES] = {'A', 'S', 'A', 'P', 'v', '1', 1, 2};
    wr_store16be(head + 8, KIND_DDSKETCH);
    wr_store32be(head + 10, METADATA_BYTES);
    wr_store32be(head + 14, (uint32_t)put_payload(NULL, &c));
    wr_counts_put_bytes(out, head, sizeof head);
    put_metadata(out, &c, gamma);
    put_payload(out, &c);
    return WEIR_OK;
}

/* A count takes up to 9 bytes: 2^44 is past 32 bits. */
size_t wr_asapv1_bound(const struct weir_codec_opts *opts, const struct weir_sketch *sk)
{
    (void)opts;
    return 128 + WR_MP_INT_MAX * wr_counts_spans(sk);
}
