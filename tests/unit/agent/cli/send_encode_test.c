/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent, read by other implementations: libmsgpack, protoc, zlib. */
#include "cli/send_encode.h"
#include "t.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define END_NS INT64_C(1796051777000000000)
#define ENV "send-0123456789"
#define RUNTIME "00000000-0000-4000-8000-000000000000"
#define SPANS 2000

struct made {
    struct send_workload *workload;
    struct send_encoder *encoder;
    struct send_span spans[SPANS];
    struct weir_bytes body;
};

static void make(struct made *m, enum send_protocol protocol, bool gzip)
{
    const struct send_workload_opts wo = {
        .preset = SEND_PRESET_SHOP, .error_ratio = 0.1, .seed = t_seed()};
    T_OK(cli_send_workload_new(&wo, &m->workload));
    const struct send_encoder_opts eo = {
        .protocol = protocol, .env = ENV, .runtime_id = RUNTIME, .gzip = gzip};
    T_OK(cli_send_encoder_new(&eo, m->workload, &m->encoder));
    /* A batch that is begun and dropped leaves nothing in the next one. */
    cli_send_encoder_begin(m->encoder, 1);
    size_t n = cli_send_workload_trace(m->workload, m->spans, SPANS);
    T_OK(cli_send_encoder_add(m->encoder, m->spans, n));
    cli_send_encoder_begin(m->encoder, END_NS);
    uint64_t traces = 0;
    for (n = 0; n < SPANS; traces++) {
        const size_t count = cli_send_workload_trace(m->workload, m->spans + n, SPANS - n);
        T_OK(cli_send_encoder_add(m->encoder, m->spans + n, count));
        n += count;
    }
    T_EQ_U64(cli_send_encoder_traces(m->encoder), traces);
    T_OK(cli_send_encoder_finish(m->encoder, &m->body));
}

static void done(struct made *m)
{
    cli_send_encoder_free(m->encoder);
    cli_send_workload_free(m->workload);
}

/* A value of a map by its text key; in v0.5 keys and values are indices into dict. */
static const msgpack_object *lookup(const msgpack_object *map, const msgpack_object *dict,
                                    const char *key)
{
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object *k = &map->via.map.ptr[i].key;
        if (dict)
            k = &dict->via.array.ptr[k->via.u64];
        if (k->via.str.size == strlen(key) && memcmp(k->via.str.ptr, key, strlen(key)) == 0)
            return &map->via.map.ptr[i].val;
    }
    return NULL;
}

static void check_text(const msgpack_object *o, const msgpack_object *dict, const char *want)
{
    T_TRUE(o);
    if (dict)
        o = &dict->via.array.ptr[o->via.u64];
    T_EQ_BYTES(o->via.str.ptr, o->via.str.size, want, strlen(want));
}

struct dd_fields {
    const msgpack_object *service, *name, *resource, *trace_id, *start, *duration, *error, *meta,
        *metrics, *type;
};

static struct dd_fields fields_of(const msgpack_object *o, const msgpack_object *dict)
{
    if (dict) {
        const msgpack_object *const a = o->via.array.ptr;
        return (struct dd_fields){.service = &a[0],
                                  .name = &a[1],
                                  .resource = &a[2],
                                  .trace_id = &a[3],
                                  .start = &a[6],
                                  .duration = &a[7],
                                  .error = &a[8],
                                  .meta = &a[9],
                                  .metrics = &a[10],
                                  .type = &a[11]};
    }
    return (struct dd_fields){.service = lookup(o, NULL, "service"),
                              .name = lookup(o, NULL, "name"),
                              .resource = lookup(o, NULL, "resource"),
                              .trace_id = lookup(o, NULL, "trace_id"),
                              .start = lookup(o, NULL, "start"),
                              .duration = lookup(o, NULL, "duration"),
                              .error = lookup(o, NULL, "error"),
                              .meta = lookup(o, NULL, "meta"),
                              .metrics = lookup(o, NULL, "metrics"),
                              .type = lookup(o, NULL, "type")};
}

static void check_dd_span(const struct made *m, const msgpack_object *o, const msgpack_object *dict,
                          const struct send_span *s)
{
    const struct send_endpoint *const e = cli_send_workload_endpoint(m->workload, s->endpoint);
    const struct dd_fields f = fields_of(o, dict);
    check_text(f.service, dict, e->service);
    check_text(f.name, dict, e->operation);
    check_text(f.resource, dict, e->resource);
    check_text(f.type, dict, e->type);
    T_EQ_U64(f.trace_id->via.u64, s->trace_id);
    T_EQ_I64(f.duration->via.u64, s->duration_ns);
    T_EQ_I64(f.start->via.u64 + f.duration->via.u64, END_NS);
    T_EQ_U64(f.error->via.u64, s->error ? 1 : 0);
    T_EQ_U64(f.meta->via.map.size, 11);
    T_EQ_U64(f.metrics->via.map.size, 3);
    check_text(lookup(f.meta, dict, "env"), dict, ENV);
    check_text(lookup(f.meta, dict, "runtime-id"), dict, RUNTIME);
    T_TRUE((lookup(f.metrics, dict, "_dd.top_level") != NULL) == s->top_level);
    if (e->shape == SEND_HTTP) {
        char status[8];
        (void)snprintf(status, sizeof status, "%u",
                       (unsigned)(s->error ? e->error_status : e->ok_status));
        check_text(lookup(f.meta, dict, "http.status_code"), dict, status);
        check_text(lookup(f.meta, dict, "http.route"), dict, e->route);
        check_text(lookup(f.meta, dict, "span.kind"), dict, "server");
    } else {
        T_TRUE(!lookup(f.meta, dict, "http.status_code"));
    }
}

static void check_dd(enum send_protocol protocol)
{
    struct made *const m = calloc(1, sizeof *m);
    make(m, protocol, false);
    msgpack_unpacked u;
    msgpack_unpacked_init(&u);
    size_t off = 0;
    T_EQ_I64(msgpack_unpack_next(&u, m->body.ptr, m->body.len, &off), MSGPACK_UNPACK_SUCCESS);
    T_EQ_U64(off, m->body.len);
    const msgpack_object *traces = &u.data;
    const msgpack_object *dict = NULL;
    if (protocol == SEND_V05) {
        dict = &u.data.via.array.ptr[0];
        traces = &u.data.via.array.ptr[1];
    }
    size_t n = 0;
    for (uint32_t i = 0; i < traces->via.array.size; i++) {
        const msgpack_object *const t = &traces->via.array.ptr[i];
        for (uint32_t j = 0; j < t->via.array.size; j++, n++)
            check_dd_span(m, &t->via.array.ptr[j], dict, &m->spans[n]);
    }
    T_EQ_U64(n, SPANS);
    if (protocol == SEND_V04) /* the shape of contracts: 14 tags, some 540 bytes */
        T_NEAR((double)m->body.len / SPANS, 540.0, 0.1);
    msgpack_unpacked_destroy(&u);
    done(m);
    free(m);
}

TEST(v04_batches_carry_the_spans_that_were_drawn)
{
    check_dd(SEND_V04);
}

TEST(v05_batches_carry_the_spans_that_were_drawn)
{
    check_dd(SEND_V05);
}

/* What protoc makes of the bytes; freed by the caller. */
static char *decode_raw(struct weir_bytes body)
{
    char path[] = "/tmp/weir-otlp-XXXXXX";
    const int fd = mkstemp(path);
    T_TRUE(fd >= 0 && write(fd, body.ptr, body.len) == (ssize_t)body.len);
    (void)close(fd);
    char command[96];
    (void)snprintf(command, sizeof command, "protoc --decode_raw <%s", path);
    FILE *const p = popen(command, "r");
    T_TRUE(p);
    size_t cap = 64 << 20;
    char *const text = malloc(cap);
    T_TRUE(text);
    const size_t n = fread(text, 1, cap - 1, p);
    text[n] = 0;
    T_EQ_I64(pclose(p), 0);
    (void)unlink(path);
    return text;
}

/* memmem, not strstr: a sanitizer's strstr looks for the end of the text each time. */
static size_t occurrences(const char *text, const char *what)
{
    const char *const end = text + strlen(text);
    size_t n = 0;
    for (const char *at = text; at; n++) {
        at = memmem(at, (size_t)(end - at), what, strlen(what));
        if (!at)
            break;
        at++;
    }
    return n;
}

TEST(otlp_batches_are_read_by_protoc_each_service_once)
{
    if (access("/usr/bin/protoc", X_OK) != 0)
        T_SKIP_MISSING("/usr/bin/protoc");
    struct made *const m = calloc(1, sizeof *m);
    make(m, SEND_OTLP, false);
    char *const text = decode_raw(m->body);
    /* ResourceSpans at the margin; Span at ".1.2.2" is indented by four, its attributes by six. */
    size_t services = 0;
    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += at == text ? 0 : 1;
        services += strncmp(at, "1 {", 3) == 0 ? 1 : 0;
    }
    T_EQ_U64(services, 8); /* web catalog cart payment shipping shop-db shop-cache order-worker */
    T_EQ_U64(occurrences(text, "\n    2 {"), SPANS);
    T_EQ_U64(occurrences(text, "\n      9 {"), (size_t)20 * SPANS);
    T_EQ_U64(occurrences(text, "\"deployment.environment.name\"\n"), services);
    T_EQ_U64(occurrences(text, "\"" ENV "\"\n"), services);
    char end[48];
    (void)snprintf(end, sizeof end, "\n      8: 0x%016llx\n", (unsigned long long)END_NS);
    T_EQ_U64(occurrences(text, end), SPANS);
    size_t errors = 0;
    size_t consumers = 0;
    for (size_t i = 0; i < SPANS; i++) {
        errors += m->spans[i].error ? 1 : 0;
        const struct send_endpoint *const e =
            cli_send_workload_endpoint(m->workload, m->spans[i].endpoint);
        consumers += e->kind == WEIR_KIND_CONSUMER ? 1 : 0;
    }
    T_TRUE(errors > 100 && consumers > 0);
    T_EQ_U64(occurrences(text, "\n      15 {"), errors);
    T_EQ_U64(occurrences(text, "\n        3: 2\n"), errors);
    T_EQ_U64(occurrences(text, "\n      6: 5\n"), consumers);
    T_NEAR((double)m->body.len / SPANS, 793.0, 0.1);
    free(text);
    done(m);
    free(m);
}

TEST(gzip_is_read_by_zlib_and_is_the_same_body)
{
    struct made *const plain = calloc(1, sizeof *plain);
    struct made *const packed = calloc(1, sizeof *packed);
    make(plain, SEND_V04, false);
    make(packed, SEND_V04, true);
    T_TRUE(packed->body.len < plain->body.len / 2);
    char *const text = malloc(plain->body.len + 1);
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)packed->body.ptr,
                  .avail_in = (unsigned)packed->body.len,
                  .next_out = (unsigned char *)text,
                  .avail_out = (unsigned)plain->body.len + 1};
    T_EQ_I64(inflateInit2(&z, 16 + MAX_WBITS), Z_OK);
    T_EQ_I64(inflate(&z, Z_FINISH), Z_STREAM_END);
    T_EQ_BYTES(text, z.total_out, plain->body.ptr, plain->body.len);
    (void)inflateEnd(&z);
    free(text);
    done(plain);
    done(packed);
    free(plain);
    free(packed);
}

TEST(a_batch_takes_its_maximum_and_no_more)
{
    struct made *const m = calloc(1, sizeof *m);
    make(m, SEND_OTLP, false);
    cli_send_encoder_begin(m->encoder, END_NS);
    for (size_t n = 0; n < SEND_BATCH_SPANS_MAX; n += 1000)
        T_OK(cli_send_encoder_add(m->encoder, m->spans, 1000));
    T_ERR(cli_send_encoder_add(m->encoder, m->spans, 1), WEIR_EFULL);
    T_OK(cli_send_encoder_finish(m->encoder, &m->body));
    T_TRUE(m->body.len < SEND_BODY_MAX);
    done(m);
    free(m);
}
