/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H
/*
 * trace: encode traces for a Datadog agent, v0.4 (span maps) and v0.5 (dictionary).
 *
 * First cut: an encoder over one growable buffer with a maximum. A payload is any number of
 * complete traces; a trace that does not fit leaves the encoder, dictionary included, as it was
 * before the call, so that the caller takes the payload and tries once more.
 *
 * Source of the formats: contracts trace-encoding §2.1-2.3. Numbers are of minimal width, ids
 * unsigned, metric values always float64 unless integral by the reference's rule stated there.
 *
 * Threads: one thread may use an encoder at a time.
 */
#include <weir/base.h>

WEIR_BEGIN_DECLS

enum weir_trace_version { WEIR_TRACE_V04 = 4, WEIR_TRACE_V05 = 5 };

struct weir_trace_meta {
    struct weir_bytes key;
    struct weir_bytes value;
};
/* integral: written as a MessagePack integer (value must be one that fits in int64 or uint64), else
 * as float64. */
struct weir_trace_metric {
    struct weir_bytes key;
    double value;
    int integral;
};

/*
 * Borrowed for the call. Strings must be UTF-8 (sent as they are). Meta and metrics are written in
 * the given order; of entries with equal keys only the last one is (cases K16).
 */
struct weir_trace_span {
    struct weir_bytes service;
    struct weir_bytes name;
    struct weir_bytes resource;
    struct weir_bytes type; /* ptr NULL: nil in v0.4, "" in v0.5 */
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t parent_id;
    int64_t start_ns;
    int64_t duration_ns;
    int32_t error;
    const struct weir_trace_meta *meta;
    size_t meta_count;
    const struct weir_trace_metric *metrics;
    size_t metric_count;
};

struct weir_trace_encoder;

struct weir_trace_opts {
    size_t struct_size;
    struct weir_alloc alloc;
    uint32_t version; /* enum weir_trace_version; default v0.4 */
    size_t max_bytes; /* of a payload; default 8 MiB */
};

/* opts NULL means all defaults. Errors: WEIR_EINVAL, WEIR_ENOMEM. */
WEIR_API WEIR_NODISCARD int weir_trace_encoder_new(const struct weir_trace_opts *opts,
                                                   struct weir_trace_encoder **ret_encoder);
WEIR_API void weir_trace_encoder_free(struct weir_trace_encoder *encoder); /* NULL is allowed */

/*
 * Add one trace of count spans. After an error the encoder is as it was before the call.
 * Cost: O(bytes). Errors: WEIR_EFULL (would pass max_bytes), WEIR_ENOMEM, WEIR_ERANGE (more than
 * 2^32 - 1 of something), WEIR_EINVAL (a NULL with a length, or integral with a value that is not).
 */
WEIR_API WEIR_NODISCARD int weir_trace_add(struct weir_trace_encoder *encoder,
                                           const struct weir_trace_span *spans, size_t count);

/* Traces and spans added since the last clear. */
WEIR_API uint64_t weir_trace_count(const struct weir_trace_encoder *encoder);
WEIR_API uint64_t weir_trace_span_count(const struct weir_trace_encoder *encoder);

/*
 * The payload so far: borrowed until the next call on the encoder. An encoder without traces gives
 * the empty payload of its version. Errors: WEIR_ENOMEM.
 */
WEIR_API WEIR_NODISCARD int weir_trace_payload(struct weir_trace_encoder *encoder,
                                               struct weir_bytes *ret_payload);
/* Begin the next payload; capacity kept, dictionary emptied. */
WEIR_API void weir_trace_clear(struct weir_trace_encoder *encoder);

WEIR_END_DECLS
#endif
