/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp: OTLP/HTTP traces, protobuf (contracts: clients "OTLP field numbers", wire §2.10).
 *
 * Single spans may be refused for their ids while the rest counts: the answer is then 200 with
 * partial_success. A whole request is refused with a google.rpc.Status, as OTLP asks, whose
 * message is plain text.
 */
#include "receive/internal.h"

#include <stdio.h>
#include <string.h>

#define PROTOBUF "application/x-protobuf"

enum {
    TEXT_MAX = 256,
    MESSAGE_MAX = TEXT_MAX + 32, /* a text, a number, and what frames them */
    STATUS_INVALID = 3,          /* google.rpc.Code INVALID_ARGUMENT */
    STATUS_UNAVAILABLE = 14,
    STATUS_UNIMPLEMENTED = 12
};

/* Protobuf, as much as two answers need. */

static size_t put_varint(uint8_t *dst, uint64_t value)
{
    size_t n = 0;
    for (; value > 0x7f; value >>= 7)
        dst[n++] = (uint8_t)(value | 0x80);
    dst[n++] = (uint8_t)value;
    return n;
}

static size_t put_bytes(uint8_t *dst, uint8_t tag, const void *bytes, size_t len)
{
    dst[0] = tag;
    const size_t n = 1 + put_varint(dst + 1, len);
    memcpy(dst + n, bytes, len);
    return n + len;
}

/* {1: varint number, 2: string text}: both Status and ExportTracePartialSuccess look like this. */
static size_t put_number_and_text(uint8_t *dst, uint64_t number, const char *text)
{
    dst[0] = 0x08;
    const size_t n = 1 + put_varint(dst + 1, number);
    const size_t len = strlen(text);
    return n + put_bytes(dst + n, 0x12, text, len < TEXT_MAX ? len : TEXT_MAX);
}

static uint64_t code_of(int status)
{
    if (status == 503)
        return STATUS_UNAVAILABLE;
    return status == 400 ? STATUS_INVALID : STATUS_UNIMPLEMENTED;
}

static void refuse(struct receive *r, struct net_request *req, int status, const char *text,
                   const struct net_header *extra)
{
    (void)r;
    uint8_t message[MESSAGE_MAX];
    const size_t len = put_number_and_text(message, code_of(status), text);
    const bool bare = status == 204;
    net_respond(req, status, bare ? NULL : PROTOBUF, message, bare ? 0 : len, extra, extra ? 1 : 0);
}

static bool is_protobuf(struct weir_bytes media_type)
{
    return net_text_is(media_type, PROTOBUF);
}

static void answer_partial(struct net_request *req, const struct receive_payload *p)
{
    char text[TEXT_MAX];
    (void)snprintf(text, sizeof text,
                   "weir: spans refused: %llu without a valid trace_id, %llu without a valid "
                   "span_id",
                   (unsigned long long)p->rejected[WEIR_REFUSED_TRACE_ID],
                   (unsigned long long)p->rejected[WEIR_REFUSED_SPAN_ID]);
    uint8_t partial[MESSAGE_MAX];
    const size_t len = put_number_and_text(partial, p->result.refused, text);
    uint8_t message[MESSAGE_MAX + 8];
    net_respond(req, 200, PROTOBUF, message, put_bytes(message, 0x0a, partial, len), NULL, 0);
}

void receive_otlp_traces(struct receive_side *side, const struct receive_def *def,
                         struct net_request *req)
{
    struct receive_payload p = {.decode = weir_decode_otlp_traces, .loose = true};
    if (!receive_take(side, def, req, &p))
        return;
    if (p.result.refused)
        answer_partial(req, &p);
    else
        net_respond(req, 200, PROTOBUF, NULL, 0, NULL, 0);
}

static void on_traces(struct receive *r, const struct receive_def *def, struct net_request *req)
{
    receive_otlp_traces(&r->otlp, def, req);
}

static const struct receive_def defs[] = {
    {.path = "/v1/traces",
     .methods = RECEIVE_POST,
     .route = RECEIVE_OTLP_TRACES,
     .body = NET_BODY_TAKE,
     .accepts = is_protobuf,
     .handle = on_traces},
};

void receive_otlp_init(struct receive *r)
{
    r->otlp = (struct receive_side){
        .receive = r, .defs = defs, .def_count = sizeof defs / sizeof *defs, .refuse = refuse};
}
