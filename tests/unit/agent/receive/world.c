/* SPDX-License-Identifier: Apache-2.0 */
/* world: see world.h. */
#include "world.h"

#include "pipeline/pipeline.h"
#include "plat/plat.h"

#include <stdlib.h>
#include <string.h>

/* The double. */

struct weir_stats *pipeline_stats(struct pipeline *p)
{
    return p->stats;
}

struct weir_producer *pipeline_producer(struct pipeline *p)
{
    return p->producer;
}

bool pipeline_is_short(const struct pipeline *p)
{
    return p->is_short;
}

void pipeline_poll(struct pipeline *p)
{
    p->polls++;
    (void)weir_stats_poll(p->stats, plat_wall_ns(), plat_mono_ns());
}

/* The world. */

struct world *world_new(size_t ring_bytes)
{
    struct world *const w = calloc(1, sizeof *w);
    T_OK(uv_loop_init(&w->loop));
    const struct weir_stats_opts opts = {.struct_size = sizeof opts};
    T_OK(weir_stats_new(&opts, &w->pipeline.stats));
    T_OK(weir_producer_new(w->pipeline.stats, ring_bytes, WEIR_PRODUCER_OWNER,
                           &w->pipeline.producer));
    const struct receive_opts receive = {
        .pipeline = &w->pipeline, .datadog_port = 8126, .socket_path = "/run/a \"b\".socket"};
    T_OK(receive_new(&receive, &w->receive));
    const struct net_service datadog = receive_datadog_service(w->receive);
    const struct net_service otlp = receive_otlp_service(w->receive);
    T_OK(net_server_new(&w->loop, &datadog, NULL, &w->datadog));
    T_OK(net_server_new(&w->loop, &otlp, NULL, &w->otlp));
    T_OK(net_server_listen_tcp(w->datadog, "127.0.0.1", 0, &w->datadog_port));
    T_OK(net_server_listen_tcp(w->otlp, "127.0.0.1", 0, &w->otlp_port));
    return w;
}

static void on_stopped(void *ctx)
{
    ((struct world *)ctx)->stopped++;
}

void world_free(struct world *w)
{
    net_server_stop(w->datadog, 0, on_stopped, w);
    net_server_stop(w->otlp, 0, on_stopped, w);
    T_OK(uv_run(&w->loop, UV_RUN_DEFAULT));
    T_EQ_U64(w->stopped, 2);
    net_server_free(w->datadog);
    net_server_free(w->otlp);
    T_OK(uv_loop_close(&w->loop));
    receive_free(w->receive);
    (void)world_seal(w);
    weir_producer_free(w->pipeline.producer);
    weir_stats_free(w->pipeline.stats);
    free(w);
}

struct http_client world_datadog(struct world *w)
{
    return http_tcp(&w->loop, w->datadog_port);
}

struct http_client world_otlp(struct world *w)
{
    return http_tcp(&w->loop, w->otlp_port);
}

struct receive_counts world_counts(const struct world *w)
{
    struct receive_counts counts;
    receive_get_counts(w->receive, &counts);
    return counts;
}

struct weir_stats_health world_health(const struct world *w)
{
    struct weir_stats_health health;
    weir_stats_get_health(w->pipeline.stats, &health);
    return health;
}

static void add_rows(struct world_rows *sum, const struct weir_batch *batch)
{
    struct weir_batch_info info;
    weir_batch_get_info(batch, &info);
    for (size_t i = 0; i < info.rows; i++) {
        struct weir_row row;
        weir_batch_get_row(batch, i, &row);
        sum->hits += row.hits / WEIR_WEIGHT_ONE;
        sum->errors += row.errors / WEIR_WEIGHT_ONE;
        sum->top_level += row.top_level / WEIR_WEIGHT_ONE;
    }
    sum->rows += info.rows;
    T_EQ_U64(info.counts.rows_weight, info.counts.admitted_weight);
    T_EQ_U64(info.counts.sketch_weight, info.counts.admitted_weight);
}

struct world_rows world_seal(struct world *w)
{
    struct world_rows sum = {0};
    weir_stats_seal_all(w->pipeline.stats, plat_wall_ns(), plat_mono_ns());
    for (struct weir_batch *b; (b = weir_stats_take_batch(w->pipeline.stats));) {
        add_rows(&sum, b);
        weir_batch_release(b);
    }
    return sum;
}

struct http_answer world_post(struct http_client *c, const char *path, const char *fields,
                              const void *body, size_t bytes)
{
    char head[4096];
    (void)snprintf(head, sizeof head,
                   "POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n", path,
                   fields, bytes);
    http_send_text(c, head);
    http_send(c, body, bytes);
    return http_read(c, false);
}

/* MessagePack. */

void pack_byte(struct pack *p, unsigned byte)
{
    if (p->len == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 1024;
        p->bytes = realloc(p->bytes, p->cap);
    }
    p->bytes[p->len++] = (uint8_t)byte;
}

static void pack_be(struct pack *p, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        pack_byte(p, (unsigned)(value >> (8 * i)) & 0xff);
}

void pack_array(struct pack *p, size_t count)
{
    pack_byte(p, 0xdd);
    pack_be(p, count, 4);
}

void pack_text(struct pack *p, const char *text)
{
    pack_byte(p, 0xdb);
    pack_be(p, strlen(text), 4);
    for (; *text; text++)
        pack_byte(p, (unsigned char)*text);
}

void pack_u64(struct pack *p, uint64_t value)
{
    pack_byte(p, 0xcf);
    pack_be(p, value, 8);
}

static void pack_field(struct pack *p, const char *name, uint64_t value)
{
    pack_text(p, name);
    pack_u64(p, value);
}

void pack_span(struct pack *p, uint64_t trace_id, uint64_t span_id, uint64_t parent_id,
               const char *service, const char *resource)
{
    pack_byte(p, 0x88);
    pack_text(p, "service");
    pack_text(p, service);
    pack_text(p, "name");
    pack_text(p, "op");
    pack_text(p, "resource");
    pack_text(p, resource);
    pack_field(p, "trace_id", trace_id);
    pack_field(p, "span_id", span_id);
    pack_field(p, "parent_id", parent_id);
    pack_field(p, "start", (uint64_t)plat_wall_ns() - 1000000);
    pack_field(p, "duration", 1000000);
}

struct pack pack_traces(size_t traces, size_t spans, const char *resource)
{
    struct pack p = {0};
    pack_array(&p, traces);
    for (size_t t = 1; t <= traces; t++) {
        pack_array(&p, spans);
        for (size_t s = 1; s <= spans; s++)
            pack_span(&p, t, t * 100000 + s, s == 1 ? 0 : t * 100000 + 1, "shop", resource);
    }
    return p;
}
