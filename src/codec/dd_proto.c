/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dd_proto: the protobuf message DDSketch. See docs/formats/ddsketch-proto.md.
 *
 * Reading follows protobuf where its rules are those of a stream: fields in any order, unknown ones
 * skipped, a sub-message that comes again continues the first, the last scalar stands. Counts that
 * lie one behind the other and counts with a key of their own add; so do two of the same key. The
 * mapping and the index of the first count may come last: a first walk finds them, a second one
 * takes the counts.
 *
 * Writing puts each sign as one run of packed counts, or as keys and counts where that is shorter,
 * with the fields that sketches-java writes.
 *
 * Threads: any. Memory: none but the sketch's.
 * Source: DDSketch.proto of sketches-go and sketches-java.
 */
#include "codec/dd_proto.h"

#include "codec/codec.h"
#include "wire/pb_read.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))
#endif

enum {
    CHUNK = 128,
    RUN = 2048, /* counts that go to the sketch at once: the default limit of a sketch */
    PAD = 8     /* zeros behind the counts of a run */
};

/* Sketch */
#define MAPPING WR_PB_TAG(1, WR_PB_LEN)
#define POSITIVE WR_PB_TAG(2, WR_PB_LEN)
#define NEGATIVE WR_PB_TAG(3, WR_PB_LEN)
#define ZERO_COUNT WR_PB_TAG(4, WR_PB_FIXED64)
/* Mapping */
#define GAMMA WR_PB_TAG(1, WR_PB_FIXED64)
#define INDEX_OFFSET WR_PB_TAG(2, WR_PB_FIXED64)
#define INTERPOLATION WR_PB_TAG(3, WR_PB_VARINT)
/* Store */
#define KEYED WR_PB_TAG(1, WR_PB_LEN)
#define COUNTS WR_PB_TAG(2, WR_PB_LEN)
#define COUNT WR_PB_TAG(2, WR_PB_FIXED64)
#define FIRST_INDEX WR_PB_TAG(3, WR_PB_VARINT)
/* An entry of a store's map */
#define KEY WR_PB_TAG(1, WR_PB_VARINT)
#define VALUE WR_PB_TAG(2, WR_PB_FIXED64)

#define INTERPOLATION_LAST 4 /* quartic: of sketches-java, not in the .proto */

struct reader {
    struct wr_pb pb;
    struct wr_codec_bins bins;
    struct wr_codec_mapping mapping;
    bool has_mapping;
    double zero;
    int64_t next[2]; /* by sign: the index of the next count that has no key */
};

static double double_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static int64_t index_of(struct reader *r, const uint8_t *at, uint64_t u)
{
    if (u > UINT32_MAX)
        wr_pb_fail(&r->pb, at, WEIR_EFORMAT, "an index of more than 32 bits");
    return wr_codec_unzigzag(u & UINT32_MAX);
}

/* The first walk */

static void walk_mapping(struct reader *r, const uint8_t *at, const uint8_t *end)
{
    r->has_mapping = true;
    while (at && at < end) {
        struct wr_pb_field f;
        const uint8_t *const bad = at;
        at = wr_pb_field(&r->pb, at, end, &f);
        if (!at)
            return;
        if (f.tag == GAMMA)
            r->mapping.gamma = double_of(f.u);
        else if (f.tag == INDEX_OFFSET)
            r->mapping.offset = double_of(f.u);
        else if (f.tag == INTERPOLATION && f.u <= INTERPOLATION_LAST)
            r->mapping.kind = WEIR_MAPPING_LOG + (uint32_t)f.u;
        else if (f.tag == INTERPOLATION)
            at = wr_pb_fail(&r->pb, bad, WEIR_EVERSION, "an interpolation that is not known");
    }
}

static void find_first_index(struct reader *r, const uint8_t *at, const uint8_t *end,
                             int64_t *ret_first)
{
    while (at && at < end) {
        struct wr_pb_field f;
        const uint8_t *const bad = at;
        at = wr_pb_field(&r->pb, at, end, &f);
        if (at && f.tag == FIRST_INDEX)
            *ret_first = index_of(r, bad, f.u);
    }
}

static void walk(struct reader *r)
{
    const uint8_t *at = r->pb.begin;
    while (at && at < r->pb.end && !r->pb.err) {
        struct wr_pb_field f;
        at = wr_pb_field(&r->pb, at, r->pb.end, &f);
        if (!at)
            return;
        switch (f.tag) {
        case MAPPING:
            walk_mapping(r, f.ptr, at);
            break;
        case POSITIVE:
            find_first_index(r, f.ptr, at, &r->next[WR_BINS_POSITIVE]);
            break;
        case NEGATIVE:
            find_first_index(r, f.ptr, at, &r->next[WR_BINS_NEGATIVE]);
            break;
        case ZERO_COUNT:
            r->zero = double_of(f.u);
            break;
        default: /* unknown fields are skipped */
            break;
        }
    }
}

/* The second walk */

static void refuse(struct reader *r, const uint8_t *bad, int err)
{
    const char *reason = "no memory";
    if (err == WEIR_EFORMAT)
        reason = "a count that is not finite or negative, or an index past 32 bits";
    else if (err == WEIR_ERANGE)
        reason = "counts of more than 64 bits";
    wr_pb_fail(&r->pb, bad, err, reason);
}

/* n counts at `at`, one index behind the other. */
static void take_counts(struct reader *r, enum wr_bins_sign sign, const uint8_t *at, size_t n)
{
    uint64_t weights[RUN];
    while (n && !r->pb.err) {
        const size_t m = n < RUN ? n : RUN;
        int err = WEIR_OK;
        for (size_t i = 0; i < m && err == WEIR_OK; i++)
            err = wr_codec_weight(&r->bins, double_of(wr_load64le(at + 8 * i)), &weights[i]);
        if (err == WEIR_OK)
            err = wr_codec_add_run(&r->bins, sign, r->next[sign], weights, m);
        if (err != WEIR_OK)
            refuse(r, at, err);
        r->next[sign] += (int64_t)m;
        at += 8 * m;
        n -= m;
    }
}

static void take_keyed(struct reader *r, enum wr_bins_sign sign, const uint8_t *at,
                       const uint8_t *end)
{
    const uint8_t *const bad = at;
    int64_t index = 0;
    double count = 0;
    while (at && at < end) {
        struct wr_pb_field f;
        const uint8_t *const field = at;
        at = wr_pb_field(&r->pb, at, end, &f);
        if (at && f.tag == KEY)
            index = index_of(r, field, f.u);
        else if (at && f.tag == VALUE)
            count = double_of(f.u);
    }
    if (r->pb.err)
        return;
    const int err = wr_codec_add(&r->bins, sign, index, count);
    if (err != WEIR_OK)
        refuse(r, bad, err);
}

static void take_store(struct reader *r, enum wr_bins_sign sign, const uint8_t *at,
                       const uint8_t *end)
{
    while (at && at < end && !r->pb.err) {
        struct wr_pb_field f;
        const uint8_t *const bad = at;
        at = wr_pb_field(&r->pb, at, end, &f);
        if (!at)
            return;
        if (f.tag == KEYED) {
            take_keyed(r, sign, f.ptr, at);
        } else if (f.tag == COUNTS && f.u % 8) {
            wr_pb_fail(&r->pb, bad, WEIR_EFORMAT, "packed doubles of a broken length");
        } else if (f.tag == COUNTS) {
            take_counts(r, sign, f.ptr, (size_t)f.u / 8);
        } else if (f.tag == COUNT) {
            take_counts(r, sign, at - 8, 1);
        }
    }
}

static void take(struct reader *r)
{
    const uint8_t *at = r->pb.begin;
    while (at && at < r->pb.end && !r->pb.err) {
        struct wr_pb_field f;
        at = wr_pb_field(&r->pb, at, r->pb.end, &f);
        if (at && f.tag == POSITIVE)
            take_store(r, WR_BINS_POSITIVE, f.ptr, at);
        else if (at && f.tag == NEGATIVE)
            take_store(r, WR_BINS_NEGATIVE, f.ptr, at);
    }
    if (r->pb.err)
        return;
    const int err = wr_codec_add_zero(&r->bins, r->zero);
    if (err != WEIR_OK)
        refuse(r, r->pb.begin, err);
}

int wr_dd_proto_decode(const struct weir_codec_opts *opts, const uint8_t *src, size_t bytes,
                       struct weir_sketch *sk, struct weir_where *where)
{
    struct reader r = {.pb = wr_pb_init(src, bytes), .mapping.kind = WEIR_MAPPING_LOG};
    walk(&r);
    if (!r.pb.err) {
        const int err = wr_codec_begin(&r.bins, sk, opts, r.has_mapping ? &r.mapping : NULL);
        if (err != WEIR_OK)
            return wr_codec_refuse(where, 0, "no mapping, or one that is not supported", err);
        take(&r);
    }
    if (r.pb.err)
        return wr_codec_refuse(where, (size_t)(r.pb.bad - r.pb.begin), r.pb.reason, r.pb.err);
    const struct wr_bins_stats none = {.has_sum = false};
    return wr_codec_end(&r.bins, &none);
}

/* Writing */

struct store {
    const struct weir_sketch *sk;
    enum wr_bins_sign sign;
    int32_t lo;
    bool small; /* all counts are in counts */
    size_t span;
    size_t keyed_bytes; /* as keys and counts; or so far, when that is more than a run takes */
    size_t run_bytes;   /* as one run */
    size_t used_count;
    uint16_t *from;     /* the first bin's of counts, when it is small */
    uint16_t used[RUN]; /* places from there of those that are not 0 */
    uint16_t counts[RUN + PAD];
};

/* Room for an entry but for its key: two tags, two lengths that are below 128, a double. */
enum { ENTRY_BYTES = 12 };

static size_t key_bytes(int64_t index)
{
    return wr_codec_varint_bytes(wr_codec_zigzag(index));
}

#if defined(__x86_64__)
/* How many of n counts are used, n a multiple of PAD and at most RUN. */
static size_t count_used(const uint16_t *counts, size_t n)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i empty = zero; /* eight numbers of at most RUN / 8 */
    for (size_t i = 0; i < n; i += 8) {
        const __m128i eight = _mm_loadu_si128((const __m128i *)(const void *)(counts + i));
        empty = _mm_sub_epi16(empty, _mm_cmpeq_epi16(eight, zero));
    }
    const __m128i four = _mm_madd_epi16(empty, _mm_set1_epi16(1));
    const __m128i two = _mm_add_epi32(four, _mm_srli_si128(four, 8));
    return n - (size_t)_mm_cvtsi128_si32(_mm_add_epi32(two, _mm_srli_si128(two, 4)));
}
#else
static size_t count_used(const uint16_t *counts, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        used += counts[i] != 0;
    return used;
}
#endif

/* So many bins are used that a run is shorter, keys of two bytes supposed. */
static bool is_dense(const struct store *st)
{
    const size_t used = count_used(st->counts, (st->span + PAD - 1) / PAD * PAD);
    return used * (ENTRY_BYTES + 1) > st->run_bytes;
}

/* Which of the counts are used, in order. */
static void find_used(struct store *st)
{
    st->used_count = 0;
    for (size_t i = 0; i < st->span; i += 4) {
        uint64_t word;
        memcpy(&word, st->counts + i, sizeof word);
        if (WR_LIKELY(!word))
            continue;
        for (size_t k = i; k < i + 4; k++) {
            if (st->counts[k])
                st->used[st->used_count++] = (uint16_t)k;
        }
    }
}

/* Most often the keys of all have two bytes, and it is enough to ask the outermost. */
static bool keys_have_two_bytes(const struct store *st)
{
    const int64_t hi = (int64_t)st->lo + (int64_t)st->span - 1;
    return key_bytes(st->lo) == 2 && key_bytes(hi) == 2 && (st->lo < 0) == (hi < 0);
}

static size_t used_keyed_bytes(const struct store *st)
{
    if (keys_have_two_bytes(st))
        return st->used_count * (ENTRY_BYTES + 2);
    size_t bytes = 0;
    for (size_t i = 0; i < st->used_count; i++)
        bytes += ENTRY_BYTES + key_bytes((int64_t)st->lo + st->used[i]);
    return bytes;
}

static void measure_keyed(struct store *st)
{
    uint64_t weights[CHUNK];
    for (size_t done = 0; done < st->span && st->keyed_bytes <= st->run_bytes; done += CHUNK) {
        const size_t n = st->span - done < CHUNK ? st->span - done : CHUNK;
        const int64_t first = st->lo + (int64_t)done;
        wr_bins_read(st->sk, st->sign, (int32_t)first, n, weights);
        for (size_t i = 0; i < n; i++)
            if (weights[i])
                st->keyed_bytes += ENTRY_BYTES + key_bytes(first + (int64_t)i);
    }
}

_Static_assert(RUN >= WR_BINS_FEW_SPAN, "a list has its places in counts and used");

/* A list of samples; false: it is none, or empty. Only the counts of used bins are set. */
static bool find_few(struct store *st, const struct weir_sketch *sk)
{
    uint64_t bits[WR_BINS_FEW_SPAN / 64];
    int32_t base;
    if (!wr_bins_few(sk, &base, bits, st->counts))
        return false;
    size_t word = 0;
    while (!bits[word])
        word++;
    const size_t first = word * 64 + (size_t)__builtin_ctzll(bits[word]);
    st->used_count = 0;
    for (; word < WR_BINS_FEW_SPAN / 64; word++) {
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            const size_t at = word * 64 + (size_t)__builtin_ctzll(left);
            st->used[st->used_count++] = (uint16_t)(at - first);
        }
    }
    st->from = st->counts + first;
    st->lo = (int32_t)((uint32_t)base + (uint32_t)first);
    st->span = (size_t)st->used[st->used_count - 1] + 1;
    return true;
}

/* Zeros between the counts of a few. */
static void fill_few(struct store *st)
{
    for (size_t i = 1; i < st->used_count; i++) {
        const size_t from = (size_t)st->used[i - 1] + 1;
        memset(st->from + from, 0, (st->used[i] - from) * sizeof st->from[0]);
    }
}

static void measure_run(struct store *st)
{
    st->run_bytes = 1 + wr_codec_varint_bytes(8 * st->span) + 8 * st->span + 1 + key_bytes(st->lo);
}

static void measure(struct store *st, const struct weir_codec_opts *opts,
                    const struct weir_sketch *sk, enum wr_bins_sign sign)
{
    st->sk = sk;
    st->sign = sign;
    st->keyed_bytes = 0;
    st->run_bytes = 0;
    st->small = sign == WR_BINS_POSITIVE && find_few(st, sk);
    if (st->small) {
        measure_run(st);
        st->keyed_bytes = opts->flags & WEIR_CODEC_ONE_BLOCK ? SIZE_MAX : used_keyed_bytes(st);
        if (st->keyed_bytes >= st->run_bytes)
            fill_few(st);
        return;
    }
    st->from = st->counts;
    st->span = wr_codec_span(sk, sign, &st->lo);
    if (!st->span)
        return;
    st->small = st->span <= RUN && wr_bins_read_small(sk, sign, st->lo, st->span, st->counts);
    if (st->small)
        memset(st->counts + st->span, 0, PAD * sizeof st->counts[0]);
    measure_run(st);
    if (opts->flags & WEIR_CODEC_ONE_BLOCK || (st->small && is_dense(st))) {
        st->keyed_bytes = SIZE_MAX;
    } else if (!st->small) {
        measure_keyed(st);
    } else {
        find_used(st);
        st->keyed_bytes = used_keyed_bytes(st);
    }
}

static void put_double(uint8_t *at, double count)
{
    uint64_t bits;
    memcpy(&bits, &count, sizeof bits);
    wr_store64le(at, bits);
}

static void put_weights(uint8_t *at, const uint64_t *weights, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_double(at + 8 * i, (double)weights[i] * 0x1p-20);
}

void wr_dd_proto_put_counts_scalar(uint8_t *at, const uint16_t *counts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_double(at + 8 * i, counts[i]);
}

#if defined(__x86_64__)
AVX2 static void put_counts_avx2(uint8_t *at, const uint16_t *counts, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i eight = _mm_loadu_si128((const __m128i *)(const void *)(counts + i));
        const __m256i wide = _mm256_cvtepu16_epi32(eight);
        const __m256d low = _mm256_cvtepi32_pd(_mm256_castsi256_si128(wide));
        const __m256d high = _mm256_cvtepi32_pd(_mm256_extracti128_si256(wide, 1));
        _mm256_storeu_pd((double *)(void *)(at + 8 * i), low);
        _mm256_storeu_pd((double *)(void *)(at + 8 * i + 32), high);
    }
    wr_dd_proto_put_counts_scalar(at + 8 * i, counts + i, n - i);
}
#endif

void wr_dd_proto_put_counts(uint8_t *at, const uint16_t *counts, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        put_counts_avx2(at, counts, n);
        return;
    }
#endif
    wr_dd_proto_put_counts_scalar(at, counts, n);
}

static void put_keyed(struct wr_codec_out *out, int64_t first, const uint64_t *weights, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!weights[i])
            continue;
        const int64_t index = first + (int64_t)i;
        wr_codec_put_u8(out, KEYED);
        wr_codec_put_varint(out, key_bytes(index) + ENTRY_BYTES - 2);
        wr_codec_put_u8(out, KEY);
        wr_codec_put_varint(out, wr_codec_zigzag(index));
        wr_codec_put_u8(out, VALUE);
        wr_codec_put_double(out, (double)weights[i] * 0x1p-20);
    }
}

/* Entries with keys of two bytes, 14 bytes each: six and a double, as two stores. */
static uint8_t *put_used_two(uint8_t *at, const struct store *st)
{
    const uint64_t frame = KEYED | (uint64_t)ENTRY_BYTES << 8 | (uint64_t)KEY << 16 |
                           UINT64_C(0x80) << 24 | (uint64_t)VALUE << 40;
    for (size_t i = 0; i < st->used_count; i++) {
        const uint64_t key = wr_codec_zigzag((int64_t)st->lo + st->used[i]);
        wr_store64le(at, frame | (key & 0x7f) << 24 | key >> 7 << 32);
        put_double(at + 6, st->from[st->used[i]]);
        at += ENTRY_BYTES + 2;
    }
    return at;
}

/* Keys and counts of small ones, which fit: there is room for keyed_bytes. */
static uint8_t *put_used(uint8_t *at, const struct store *st)
{
    if (keys_have_two_bytes(st))
        return put_used_two(at, st);
    for (size_t i = 0; i < st->used_count; i++) {
        uint64_t key = wr_codec_zigzag((int64_t)st->lo + st->used[i]);
        at[0] = KEYED;
        at[1] = (uint8_t)(wr_codec_varint_bytes(key) + ENTRY_BYTES - 2);
        at[2] = KEY;
        for (at += 3; key >= 0x80; key >>= 7)
            *at++ = (uint8_t)(key | 0x80);
        at[0] = (uint8_t)key;
        at[1] = VALUE;
        put_double(at + 2, st->from[st->used[i]]);
        at += 10;
    }
    return at;
}

/* Any weights, a stretch at a time. */
static void put_stretches(struct wr_codec_out *out, const struct store *st, bool run)
{
    uint64_t weights[CHUNK];
    for (size_t done = 0; done < st->span && !out->full; done += CHUNK) {
        const size_t n = st->span - done < CHUNK ? st->span - done : CHUNK;
        const int64_t first = st->lo + (int64_t)done;
        wr_bins_read(st->sk, st->sign, (int32_t)first, n, weights);
        if (!run) {
            put_keyed(out, first, weights, n);
        } else if (wr_codec_room(out, 8 * n)) {
            put_weights(out->at, weights, n);
            out->at += 8 * n;
        }
    }
}

static void put_store(struct wr_codec_out *out, uint32_t tag, const struct store *st)
{
    const bool run = st->run_bytes <= st->keyed_bytes;
    wr_codec_put_u8(out, (uint8_t)tag);
    wr_codec_put_varint(out, run ? st->run_bytes : st->keyed_bytes);
    if (!st->span)
        return;
    if (run) {
        wr_codec_put_u8(out, COUNTS);
        wr_codec_put_varint(out, 8 * st->span);
    }
    if (!st->small) {
        put_stretches(out, st, run);
    } else if (wr_codec_room(out, run ? 8 * st->span : st->keyed_bytes)) {
        if (run)
            wr_dd_proto_put_counts(out->at, st->from, st->span);
        out->at = run ? out->at + 8 * st->span : put_used(out->at, st);
    }
    if (run) {
        wr_codec_put_u8(out, FIRST_INDEX);
        wr_codec_put_varint(out, wr_codec_zigzag(st->lo));
    }
}

static void put_mapping(struct wr_codec_out *out, const struct wr_codec_mapping *m)
{
    const bool has_offset = m->offset != 0;
    const bool has_kind = m->kind != WEIR_MAPPING_LOG;
    wr_codec_put_u8(out, MAPPING);
    wr_codec_put_u8(out, (uint8_t)(9 + 9 * has_offset + 2 * has_kind));
    wr_codec_put_u8(out, GAMMA);
    wr_codec_put_double(out, m->gamma);
    if (has_offset) {
        wr_codec_put_u8(out, INDEX_OFFSET);
        wr_codec_put_double(out, m->offset);
    }
    if (has_kind) {
        wr_codec_put_u8(out, INTERPOLATION);
        wr_codec_put_u8(out, (uint8_t)(m->kind - WEIR_MAPPING_LOG));
    }
}

int wr_dd_proto_encode(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                       struct wr_codec_out *out)
{
    struct wr_codec_unit unit;
    const int r = wr_codec_unit(opts, sk, &unit);
    if (r != WEIR_OK)
        return r;
    struct store st;
    put_mapping(out, &unit.mapping);
    measure(&st, opts, sk, WR_BINS_POSITIVE);
    put_store(out, POSITIVE, &st);
    measure(&st, opts, sk, WR_BINS_NEGATIVE);
    put_store(out, NEGATIVE, &st);
    if (wr_bins_zero(sk)) {
        wr_codec_put_u8(out, ZERO_COUNT);
        wr_codec_put_double(out, (double)wr_bins_zero(sk) * 0x1p-20);
    }
    return WEIR_OK;
}

size_t wr_dd_proto_bound(const struct weir_codec_opts *opts, const struct weir_sketch *sk)
{
    (void)opts;
    int32_t lo;
    const size_t bins =
        wr_codec_span(sk, WR_BINS_POSITIVE, &lo) + wr_codec_span(sk, WR_BINS_NEGATIVE, &lo);
    /* mapping 22; a store 11 and its counts 11 and first index 6; zeros 9 */
    return 22 + 2 * (11 + 11 + 6) + 9 + 8 * bins;
}
