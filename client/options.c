/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: defaults and bounds of the options, and the headers that go with every request. Values
 * of headers come from the host and must not end a line.
 */
#include "client.h"

#include <string.h>

enum { OPTS_MAX_BYTES = 4096 };

static const struct {
    const char *name;
    size_t offset;
} own_headers[] = {
    {"Datadog-Meta-Lang", offsetof(struct weir_client_opts, lang)},
    {"Datadog-Meta-Lang-Version", offsetof(struct weir_client_opts, lang_version)},
    {"Datadog-Meta-Lang-Interpreter", offsetof(struct weir_client_opts, lang_interpreter)},
    {"Datadog-Meta-Lang-Interpreter-Vendor", offsetof(struct weir_client_opts, lang_vendor)},
    {"Datadog-Meta-Tracer-Version", offsetof(struct weir_client_opts, tracer_version)},
    {"Datadog-Container-ID", offsetof(struct weir_client_opts, container_id)},
    {"Datadog-Entity-ID", offsetof(struct weir_client_opts, entity_id)},
};

static bool is_value(struct weir_bytes b)
{
    for (size_t i = 0; i < b.len; i++) {
        const unsigned char c = (unsigned char)b.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool is_name(const char *name)
{
    /* RFC 9110 §5.6.2 */
    static const char token[] = "!#$%&'*+-.^_`|~0123456789"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return name && name[0] && name[strspn(name, token)] == 0;
}

/* name and value are copied. */
static int add_header(struct weir_client *c, struct weir_bytes name, struct weir_bytes value)
{
    if (!is_value(value))
        return WEIR_EINVAL;
    char *const name_copy = wr_client_copy(&c->alloc, name);
    char *const value_copy = wr_client_copy(&c->alloc, value);
    if (!name_copy || !value_copy) {
        wr_client_free(&c->alloc, name_copy, name.len + 1);
        wr_client_free(&c->alloc, value_copy, value.len + 1);
        return WEIR_ENOMEM;
    }
    c->headers[c->header_count++] =
        (struct weir_client_header){.name = name_copy, .value = value_copy};
    return WEIR_OK;
}

static struct weir_bytes bytes_of(const char *text)
{
    return (struct weir_bytes){.ptr = text, .len = strlen(text)};
}

static int take_headers(struct weir_client *c, const struct weir_client_opts *o)
{
    for (size_t i = 0; i < sizeof own_headers / sizeof *own_headers; i++) {
        struct weir_bytes value;
        memcpy(&value, (const char *)o + own_headers[i].offset, sizeof value);
        const int err = value.len ? add_header(c, bytes_of(own_headers[i].name), value) : WEIR_OK;
        if (err)
            return err;
    }
    if (o->header_count > WR_HOST_HEADERS || (o->header_count && !o->headers))
        return WEIR_EINVAL;
    for (size_t i = 0; i < o->header_count; i++) {
        const struct weir_client_header *const h = &o->headers[i];
        if (!is_name(h->name) || !h->value)
            return WEIR_EINVAL;
        const int err = add_header(c, bytes_of(h->name), bytes_of(h->value));
        if (err)
            return err;
    }
    return WEIR_OK;
}

#define DEFAULT(field, value) o->field = o->field ? o->field : (value)

static void fill_defaults(struct weir_client_opts *o)
{
    DEFAULT(trace_version, WEIR_TRACE_V04);
    DEFAULT(timeout_for_ns, 10 * WR_S_NS);
    DEFAULT(info_for_ns, 60 * WR_S_NS);
    DEFAULT(flush_for_ns, WR_S_NS);
    DEFAULT(retry_first_for_ns, WR_S_NS / 2);
    DEFAULT(retry_max_for_ns, 10 * WR_S_NS);
    DEFAULT(drain_for_ns, 2 * WR_S_NS);
    DEFAULT(max_attempts, 20);
    DEFAULT(max_stats_payloads, 256);
    DEFAULT(max_trace_payloads, 256);
    DEFAULT(max_stats_bytes, (size_t)16 << 20);
    DEFAULT(max_trace_bytes, (size_t)32 << 20);
    DEFAULT(payload_bytes, (size_t)5 << 20);
    DEFAULT(max_spool_bytes, (uint64_t)64 << 20);
    DEFAULT(clock, wr_client_clock);
    if (o->seed == 0)
        o->seed = wr_client_random();
}

static bool are_in_range(const struct weir_client_opts *o)
{
    const bool times = o->timeout_for_ns > 0 && o->info_for_ns > 0 && o->flush_for_ns > 0 &&
                       o->retry_first_for_ns > 0 && o->retry_max_for_ns >= o->retry_first_for_ns &&
                       o->drain_for_ns >= -1;
    const bool version = o->trace_version == WEIR_TRACE_V04 || o->trace_version == WEIR_TRACE_V05 ||
                         o->trace_version == WEIR_TRACE_V1;
    const bool transport = !o->transport || o->transport->send;
    return times && version && transport && o->payload_bytes >= 4096 && (o->flags >> 4) == 0;
}

int wr_client_take_options(struct weir_client *c, const struct weir_client_opts *opts)
{
    struct weir_client_opts *const o = &c->opts;
    if (opts) {
        /* One of an older header is shorter; its end is not read. */
        if (opts->struct_size < offsetof(struct weir_client_opts, url) ||
            opts->struct_size > OPTS_MAX_BYTES)
            return WEIR_EINVAL;
        memcpy(o, opts, opts->struct_size < sizeof *o ? opts->struct_size : sizeof *o);
    }
    fill_defaults(o);
    if (!are_in_range(o))
        return WEIR_EINVAL;
    int err = take_headers(c, o);
    if (err)
        return err;
    if (o->spool) {
        c->spool_path = wr_client_copy(&c->alloc, bytes_of(o->spool));
        if (!c->spool_path)
            return WEIR_ENOMEM;
    }
    return WEIR_OK;
}

void wr_client_free_options(struct weir_client *c)
{
    for (size_t i = 0; i < c->header_count; i++) {
        /* add_header made them */
        char *const name = (char *)(uintptr_t)c->headers[i].name;
        char *const value = (char *)(uintptr_t)c->headers[i].value;
        wr_client_free(&c->alloc, name, strlen(name) + 1);
        wr_client_free(&c->alloc, value, strlen(value) + 1);
    }
    c->header_count = 0;
    if (c->spool_path)
        wr_client_free(&c->alloc, c->spool_path, strlen(c->spool_path) + 1);
    c->spool_path = NULL;
}
