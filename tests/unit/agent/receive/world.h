/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_RECEIVE_WORLD_H
#define T_RECEIVE_WORLD_H
/*
 * world: both services of receive behind real sockets, with the real engine and decoders. Only
 * the pipeline is a double (world.c): a producer and a poll, without a store.
 */
#include "http_client.h"
#include "receive/receive.h"

#include <weir/stats.h>

struct pipeline {
    struct weir_stats *stats;
    struct weir_producer *producer;
    unsigned polls;
    bool is_short;
};

struct world {
    uv_loop_t loop;
    struct pipeline pipeline;
    struct receive *receive;
    struct net_server *datadog;
    struct net_server *otlp;
    int datadog_port;
    int otlp_port;
    unsigned stopped;
};
struct world *world_new(size_t ring_bytes); /* 0: the default */
void world_free(struct world *w);

struct http_client world_datadog(struct world *w);
struct http_client world_otlp(struct world *w);
struct receive_counts world_counts(const struct world *w);
struct weir_stats_health world_health(const struct world *w);
/* Seal everything and add up all rows of all batches since the last call; whole spans. */
struct world_rows {
    uint64_t hits;
    uint64_t errors;
    uint64_t top_level;
    size_t rows;
};
struct world_rows world_seal(struct world *w);

/* POST of a body with a Content-Length; fields are whole lines with CRLF. Waits for the answer. */
struct http_answer world_post(struct http_client *c, const char *path, const char *fields,
                              const void *body, size_t bytes);

/* MessagePack, as much as the tests write. */
struct pack {
    uint8_t *bytes;
    size_t len;
    size_t cap;
};
void pack_byte(struct pack *p, unsigned byte);
void pack_array(struct pack *p, size_t count);
void pack_text(struct pack *p, const char *text);
void pack_u64(struct pack *p, uint64_t value);
/* A v0.4 span map whose end is now; resource pads it. */
void pack_span(struct pack *p, uint64_t trace_id, uint64_t span_id, uint64_t parent_id,
               const char *service, const char *resource);
/* traces traces of spans spans each. */
struct pack pack_traces(size_t traces, size_t spans, const char *resource);
#define MSGPACK "Content-Type: application/msgpack\r\n"
#define PROTOBUF_FIELD "Content-Type: application/x-protobuf\r\n"
#endif
