/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_CODEC_H
#define WEIR_CODEC_H
/*
 * codec: sketches from and to the encodings of others.
 *
 * An encoding carries bins, mostly with the mapping they are of, some with count, sum, minimum and
 * maximum beside them. Reading takes all of it: what did not come is derived from the bins, and
 * weir_sketch_is_exact says so. Counts become weights in units of 2^-20; what a count has below
 * that is carried to the next, so that the total is right to half a unit. Writing into an encoding
 * of whole counts rounds the same way.
 *
 * Bytes come from strangers: every length is checked against what is there, memory is never taken
 * by a claimed size, and the sketch's own limit of bins holds however far apart indices are.
 *
 * Threads: any; one thread may use a sketch at a time. Memory: only that of the sketch, and of a
 * mapping that it did not have.
 */
#include <weir/sketch.h>

WEIR_BEGIN_DECLS

enum weir_codec {
    WEIR_CODEC_WEIR = 0,           /* weir_sketch_encode's form */
    WEIR_CODEC_DD_PROTO = 1,       /* DDSketch protobuf: sketches-go, -java, -py, -js, libdatadog */
    WEIR_CODEC_DD_COMPACT = 2,     /* the compact encoding of sketches-go and sketches-java */
    WEIR_CODEC_DOGSKETCH = 3,      /* one Dogsketch message of a Datadog agent's SketchPayload */
    WEIR_CODEC_OTLP_EXP = 4,       /* OpenTelemetry's ExponentialHistogramDataPoint */
    WEIR_CODEC_OTLP_HISTOGRAM = 5, /* OpenTelemetry's HistogramDataPoint, only read */
    WEIR_CODEC_PROMETHEUS = 6,     /* io.prometheus.client.Histogram, native */
    WEIR_CODEC_SKETCHLIB = 7,      /* a DDSketch in sketchlib.v1's SketchEnvelope */
    WEIR_CODEC_SKETCHLIB_DELTA = 8, /* sketchlib.v1's DDSketchDelta; needs a mapping */
    WEIR_CODEC_ASAPV1 = 9,          /* a DDSketch in an ASAPv1 envelope */
    WEIR_CODEC_COUNT
};

/* read: the producer's bins are (g^(k-1), g^k], as those of the Python and JavaScript libraries, of
 * Rust's before 0.4 and of PostgreSQL's; nothing in the bytes says so. Only of LOG mappings: the
 * interpolated ones of those libraries are no one else's, and are refused. */
#define WEIR_CODEC_CEIL ((uint32_t)1 << 0)
/* write DD_COMPACT: without the mapping */
#define WEIR_CODEC_NO_MAPPING ((uint32_t)1 << 1)
/* write DD_COMPACT: bins only, without count, sum, minimum and maximum */
#define WEIR_CODEC_NO_STATS ((uint32_t)1 << 2)
/* write a WEIR_GRID_NS sketch in nanoseconds, not in seconds */
#define WEIR_CODEC_NANOSECONDS ((uint32_t)1 << 3)
/* write DD_COMPACT and DD_PROTO: one block a sign, as the dense stores of sketches-go and -java do;
 * else the bins are cut into the blocks that take the fewest bytes, or DD_PROTO's into keys and
 * counts where that is shorter */
#define WEIR_CODEC_ONE_BLOCK ((uint32_t)1 << 4)

/* Zero in any field means its default. Fields are only ever appended. */
struct weir_codec_opts {
    size_t struct_size; /* sizeof(struct weir_codec_opts) */
    const struct weir_mapping
        *mapping;   /* what the bytes leave out: DD_COMPACT without its block,
                       SKETCHLIB_DELTA, OTLP_HISTOGRAM (else the sketch's own) */
    uint32_t flags; /* WEIR_CODEC_... */
};

/*
 * Replace the contents of sk by those encoded, and its mapping by theirs; where the two are equal
 * sk keeps its own and only bins are allocated. Bins of a logarithm of base 2^(2^-s) with a whole
 * offset go into a sketch of WEIR_MAPPING_BASE2 of that scale bin for bin: it keeps being one. The
 * two cut at the same bounds, but what lies on a bound is in the bin below it for BASE2.
 *
 * sk is of WEIR_GRID_VALUE, but for WEIR_CODEC_WEIR, which keeps to weir_sketch_decode.
 *
 *   opts       may be NULL
 *   ret_where  may be NULL; filled on a refusal
 *
 * Counts that are not finite, or are negative, are refused. Statistics that contradict the bins,
 * or are not finite, are left out: the sketch is then not exact. Values of a histogram with bounds
 * of its own are placed so that count, sum, minimum and maximum hold, and weir_sketch_error_bound
 * tells how far in its bucket a value can be. What a producer counted as zero by a threshold of its
 * own is a zero. Cost: O(bytes), one pass or more.
 * On failure sk is cleared and has the mapping that it had.
 * Errors: WEIR_EINVAL (no such codec, or the grid), WEIR_EFORMAT, WEIR_ETRUNCATED, WEIR_EVERSION (a
 * mapping that is not supported here, or a sketch of another kind, which ret_where names),
 * WEIR_ERANGE (counts of more than 64 bits), WEIR_EEMPTY (a point of OpenTelemetry that says it has
 * no value, or a count alone), WEIR_ENOMEM.
 */
WEIR_API WEIR_NODISCARD int weir_codec_decode(uint32_t codec, const struct weir_codec_opts *opts,
                                              const void *src, size_t bytes, struct weir_sketch *sk,
                                              struct weir_where *ret_where);
/*
 * Fill at most cap bytes of dst. opts may be NULL. Never allocates.
 *
 * A sketch of BASE2 is written to DD_PROTO and DD_COMPACT as a logarithm of its base; one of
 * WEIR_GRID_NS in seconds, or with WEIR_CODEC_NANOSECONDS in nanoseconds, which is another offset.
 * Statistics that are derived from bins are not written where an encoding can do without them.
 * OTLP_EXP and PROMETHEUS say BASE2 and logarithms of base 2^(2^-s) alone, the one at scales
 * WEIR_SCALE_MIN..12, the other at -4..8 (a finer one is written at 8); SKETCHLIB and ASAPV1
 * logarithms with a whole offset and BASE2, SKETCHLIB without zeros and negative values. These four
 * count in whole numbers, and have no offset that another unit could be: durations in nanoseconds
 * by bins of seconds are WEIR_EVERSION, and the other way about.
 *
 * Errors: WEIR_EFULL (cap too small, nothing is promised about dst), WEIR_EINVAL (no such codec, or
 * one that is only read), WEIR_EVERSION (the encoding cannot say the mapping), WEIR_ERANGE (or not
 * the counts or indices).
 */
WEIR_API WEIR_NODISCARD int weir_codec_encode(uint32_t codec, const struct weir_codec_opts *opts,
                                              const struct weir_sketch *sk, void *dst, size_t cap,
                                              size_t *ret_bytes);
/* Bytes that are enough for weir_codec_encode with the same arguments; 0 for an unknown codec. */
WEIR_API size_t weir_codec_encode_bound(uint32_t codec, const struct weir_codec_opts *opts,
                                        const struct weir_sketch *sk);
/* "weir", "dd_proto", "dd_compact", "dogsketch", "otlp_exp", "otlp_histogram", "prometheus",
 * "sketchlib", "sketchlib_delta", "asapv1"; NULL for another. Static. */
WEIR_API const char *weir_codec_name(uint32_t codec);

WEIR_END_DECLS
#endif
