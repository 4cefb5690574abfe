/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DECODE_H
#define WEIR_DECODE_H
/*
 * decode: payload bytes to spans, by callback. Pure: no I/O, no table, no clock.
 *
 * One walk from the payload to borrowed struct weir_span; strings point into the payload, or are
 * static words where v1.0 has a number or a boolean for them. Nothing is ever allocated by a
 * claimed size: the only memory is the table of a v0.5 or v1.0 payload's strings, of at most one
 * entry for each byte that is really there, kept in the decoder and reused.
 *
 * A payload is refused as a whole: a decoder that returns an error may already have called back,
 * so a receiver keeps what it was given invisible until the decoder has returned WEIR_OK.
 * Single OTLP spans may be refused (bad ids) while the rest stands; they are reported by refused.
 *
 * Threads: a decoder belongs to one thread at a time. weir_tags is shared.
 */
#include <weir/base.h>
#include <weir/span.h>

WEIR_BEGIN_DECLS

/* Nesting of arrays, maps or messages deeper than this is refused in every format. */
#define WEIR_DECODE_DEPTH_MAX 32

enum weir_refusal {
    WEIR_REFUSED_TRACE_ID = 0, /* OTLP: not 16 bytes, or zero */
    WEIR_REFUSED_SPAN_ID,      /* OTLP: not 8 bytes, or zero */
    WEIR_REFUSAL_COUNT
};

/* A callback that returns other than WEIR_OK ends the walk with that result. */
struct weir_span_sink {
    void *ctx;
    int (*span)(void *ctx, const struct weir_span *span);
    /* After the last span of a trace; for OTLP once, after the last span of the payload. */
    int (*trace_end)(void *ctx);
    /* NULL is allowed: then refusals are only counted in the result. */
    void (*refused)(void *ctx, enum weir_refusal reason);
};

struct weir_decode_result {
    uint64_t traces;  /* Datadog; OTLP spans are not grouped: 0 */
    uint64_t spans;   /* handed to the sink */
    uint64_t refused; /* OTLP spans not handed over */
};

struct weir_decoder;

/* tags is borrowed and must outlive the decoder. Errors: WEIR_ENOMEM. */
WEIR_API WEIR_NODISCARD int weir_decoder_new(const struct weir_alloc *alloc,
                                             const struct weir_tags *tags,
                                             struct weir_decoder **ret_decoder);
WEIR_API void weir_decoder_free(struct weir_decoder *decoder); /* NULL is allowed */

/*
 * Walk one payload of bytes bytes. sink NULL validates only. ret_result and ret_where may be NULL;
 * ret_result is filled on success, ret_where on a refusal of the payload.
 *
 *   dd_v04   Datadog v0.3 and v0.4: MessagePack array of traces of span maps
 *   dd_v05   Datadog v0.5: MessagePack [strings, traces of 12-element arrays]
 *   dd_v07   Datadog v0.7: MessagePack map of a tracer's names and chunks of v0.4 spans
 *   dd_v1    Datadog v1.0: MessagePack maps with numbers for keys, strings numbered as they come
 *   otlp_traces  ExportTraceServiceRequest, protobuf
 *
 * What stands beside the spans of v0.7 and v1.0 (env of the payload, origin of a chunk) is in the
 * slots of every span that has none of its own.
 *
 * Cost: one pass; v0.7 one more that skips, and v1.0 one more over the spans of a chunk behind its
 * 32nd. Allocates only the table of strings of v0.5 and v1.0, reused from call to call.
 * Errors: WEIR_EFORMAT, WEIR_ETRUNCATED (both fill ret_where), WEIR_ENOMEM, or what the sink
 * returned.
 */
WEIR_API WEIR_NODISCARD int weir_decode_dd_v04(struct weir_decoder *decoder, const void *payload,
                                               size_t bytes, const struct weir_span_sink *sink,
                                               struct weir_decode_result *ret_result,
                                               struct weir_where *ret_where);
WEIR_API WEIR_NODISCARD int weir_decode_dd_v05(struct weir_decoder *decoder, const void *payload,
                                               size_t bytes, const struct weir_span_sink *sink,
                                               struct weir_decode_result *ret_result,
                                               struct weir_where *ret_where);
WEIR_API WEIR_NODISCARD int weir_decode_dd_v07(struct weir_decoder *decoder, const void *payload,
                                               size_t bytes, const struct weir_span_sink *sink,
                                               struct weir_decode_result *ret_result,
                                               struct weir_where *ret_where);
WEIR_API WEIR_NODISCARD int weir_decode_dd_v1(struct weir_decoder *decoder, const void *payload,
                                              size_t bytes, const struct weir_span_sink *sink,
                                              struct weir_decode_result *ret_result,
                                              struct weir_where *ret_where);
WEIR_API WEIR_NODISCARD int weir_decode_otlp_traces(struct weir_decoder *decoder,
                                                    const void *payload, size_t bytes,
                                                    const struct weir_span_sink *sink,
                                                    struct weir_decode_result *ret_result,
                                                    struct weir_where *ret_where);

WEIR_END_DECLS
#endif
