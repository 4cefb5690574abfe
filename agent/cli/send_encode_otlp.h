/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_ENCODE_OTLP_H
#define AGENT_CLI_SEND_ENCODE_OTLP_H
/* send_encode_otlp: resources and spans of opentelemetry.proto.trace.v1, appended to an output. */
#include "cli/send_encode.h"
#include "wire/pb_write.h"

/* Resource and scope of a service, as the fields of an open ResourceSpans and its ScopeSpans. */
void cli_send_otlp_resource(struct wr_out *out, const struct send_encoder_opts *opts,
                            const char *service);
void cli_send_otlp_scope(struct wr_out *out);
/* One Span, a field of an open ScopeSpans. */
void cli_send_otlp_span(struct wr_out *out, const struct send_endpoint *endpoint,
                        const struct send_span *span, int64_t end_ns);

/* Fields that whoever nests them needs: ExportTraceServiceRequest, ResourceSpans. */
enum { SEND_OTLP_RESOURCE_SPANS = 1, SEND_OTLP_SCOPE_SPANS = 2 };
#endif
