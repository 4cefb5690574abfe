/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_ENCODE_H
#define AGENT_CLI_SEND_ENCODE_H
/*
 * send_encode: a batch of traces as the body of one request: Datadog v0.4 or v0.5, or OTLP/HTTP
 * protobuf; gzip if wanted.
 *
 * In the default shapes a Datadog span has 14 tags (11 meta, 3 metrics), an OTLP span 20
 * attributes; the values that differ from span to span come from the span's salt.
 *
 * Threads: one at a time. Memory: heap, bounded by SEND_BODY_MAX a buffer.
 */
#include "cli/send_workload.h"

#define SEND_BODY_MAX ((size_t)24 << 20) /* an agent takes 25 MiB */
#define SEND_BATCH_SPANS_MAX 10000       /* so that no batch can pass SEND_BODY_MAX */

enum send_protocol { SEND_V04, SEND_V05, SEND_OTLP };

struct send_encoder_opts {
    enum send_protocol protocol;
    const char *env;        /* of the run */
    const char *runtime_id; /* of this process, a UUID */
    bool gzip;
};

struct send_encoder;

/* workload and the texts of opts are borrowed until free. Errors: WEIR_ENOMEM. */
WEIR_NODISCARD int cli_send_encoder_new(const struct send_encoder_opts *opts,
                                        const struct send_workload *workload,
                                        struct send_encoder **ret_encoder);
void cli_send_encoder_free(struct send_encoder *encoder);

/* Begin a batch whose spans all end at end_ns (Unix epoch). */
void cli_send_encoder_begin(struct send_encoder *encoder, int64_t end_ns);
/* Add one trace of 1..SEND_TRACE_SPANS_MAX spans. Errors: WEIR_EFULL, WEIR_ENOMEM. */
WEIR_NODISCARD int cli_send_encoder_add(struct send_encoder *encoder, const struct send_span *spans,
                                        size_t count);
/* The body: borrowed until the next begin. Errors: WEIR_EFULL, WEIR_ENOMEM. */
WEIR_NODISCARD int cli_send_encoder_finish(struct send_encoder *encoder,
                                           struct weir_bytes *ret_body);
uint64_t cli_send_encoder_traces(const struct send_encoder *encoder);
#endif
