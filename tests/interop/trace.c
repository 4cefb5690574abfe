/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace VERSION: what the encoder writes, as version 4, 5 or 10, of the traces that standard input
 * tells; standard output is the payload. For trace_test.py, which has the input's form.
 *
 * A text that is msgpack str goes in as UTF-8, one that is bin as UTF-16 in this machine's order;
 * keys of tags go through a table of texts. So each kind of string is written.
 *
 * Memory: an arena, for as long as the program runs.
 */
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/trace.h>

enum { INPUT_MAX = 16 << 20, ARENA_MAX = 64 << 20 };

static struct {
    char *at;
    size_t left;
    struct weir_texts *texts;
} arena;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "trace: %s\n", what);
    exit(1);
}

static void *room(size_t count, size_t bytes)
{
    const size_t whole = (count * bytes + 15) / 16 * 16;
    if (whole > arena.left)
        fail("the arena is full");
    void *const p = arena.at;
    arena.at += whole;
    arena.left -= whole;
    memset(p, 0, whole);
    return p;
}

static const msgpack_object *item(const msgpack_object *o, uint32_t i)
{
    if (o->type != MSGPACK_OBJECT_ARRAY || i >= o->via.array.size)
        fail("an array is short");
    return &o->via.array.ptr[i];
}

static uint32_t count_of(const msgpack_object *o)
{
    if (o->type != MSGPACK_OBJECT_ARRAY)
        fail("no array");
    return o->via.array.size;
}

static uint64_t number(const msgpack_object *o)
{
    if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        return (uint64_t)o->via.i64;
    if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        fail("no integer");
    return o->via.u64;
}

static struct weir_str string(const msgpack_object *o)
{
    if (o->type == MSGPACK_OBJECT_STR)
        return weir_str_utf8(o->via.str.ptr, o->via.str.size);
    if (o->type != MSGPACK_OBJECT_BIN)
        return (struct weir_str){.ptr = NULL};
    uint16_t *const units = room(o->via.bin.size + 1u, 1);
    memcpy(units, o->via.bin.ptr, o->via.bin.size);
    return weir_str_utf16(units, o->via.bin.size / 2);
}

static struct weir_trace_value value(const msgpack_object *o)
{
    switch (o->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        return (struct weir_trace_value){.type = WEIR_TRACE_BOOL, .v.i = o->via.boolean};
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return (struct weir_trace_value){.type = WEIR_TRACE_INT, .v.i = (int64_t)number(o)};
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        return (struct weir_trace_value){.type = WEIR_TRACE_DOUBLE, .v.d = o->via.f64};
    case MSGPACK_OBJECT_ARRAY: {
        struct weir_trace_value *const items = room(count_of(o) + 1u, sizeof *items);
        for (uint32_t i = 0; i < count_of(o); i++)
            items[i] = value(item(o, i));
        return (struct weir_trace_value){
            .type = WEIR_TRACE_ARRAY, .count = count_of(o), .v.items = items};
    }
    case MSGPACK_OBJECT_STR:
    case MSGPACK_OBJECT_BIN:
        return (struct weir_trace_value){.type = WEIR_TRACE_STR, .v.str = string(o)};
    case MSGPACK_OBJECT_NIL:
    case MSGPACK_OBJECT_MAP:
    case MSGPACK_OBJECT_EXT:
        break;
    }
    fail("no value");
}

/* [[key, value], ...] */
static const struct weir_trace_tag *tags(const msgpack_object *o, size_t *ret_count)
{
    *ret_count = count_of(o);
    struct weir_trace_tag *const made = room(*ret_count + 1, sizeof *made);
    for (uint32_t i = 0; i < *ret_count; i++) {
        made[i].key = weir_texts_intern(arena.texts, string(item(item(o, i), 0)));
        made[i].value = value(item(item(o, i), 1));
    }
    return made;
}

/* Links [hi, lo, span id, tracestate, flags, tags], events [time, name, tags], blobs [key, bin]. */
static const struct weir_trace_extra *extra(const msgpack_object *links,
                                            const msgpack_object *events,
                                            const msgpack_object *blobs)
{
    struct weir_trace_extra *const x = room(1, sizeof *x);
    struct weir_trace_link *const l = room(count_of(links) + 1u, sizeof *l);
    struct weir_trace_event *const e = room(count_of(events) + 1u, sizeof *e);
    struct weir_trace_blob *const b = room(count_of(blobs) + 1u, sizeof *b);
    for (uint32_t i = 0; i < count_of(links); i++) {
        const msgpack_object *const o = item(links, i);
        size_t count;
        l[i] = (struct weir_trace_link){.trace_id_hi = number(item(o, 0)),
                                        .trace_id = number(item(o, 1)),
                                        .span_id = number(item(o, 2)),
                                        .tracestate = string(item(o, 3)),
                                        .flags = (uint32_t)number(item(o, 4)),
                                        .attributes = tags(item(o, 5), &count)};
        l[i].attribute_count = (uint32_t)count;
    }
    for (uint32_t i = 0; i < count_of(events); i++) {
        const msgpack_object *const o = item(events, i);
        e[i].time_ns = (int64_t)number(item(o, 0));
        e[i].name = string(item(o, 1));
        e[i].attributes = tags(item(o, 2), &e[i].attribute_count);
    }
    for (uint32_t i = 0; i < count_of(blobs); i++) {
        const msgpack_object *const o = item(blobs, i);
        b[i].key = string(item(o, 0));
        b[i].value =
            (struct weir_bytes){.ptr = item(o, 1)->via.bin.ptr, .len = item(o, 1)->via.bin.size};
    }
    *x = (struct weir_trace_extra){.links = l,
                                   .link_count = count_of(links),
                                   .events = e,
                                   .event_count = count_of(events),
                                   .blobs = b,
                                   .blob_count = count_of(blobs)};
    return x;
}

/* The fields of struct weir_trace_span in their order, tags, links, events, blobs. */
static struct weir_trace_span span(const msgpack_object *o)
{
    struct weir_trace_span s = {.service = string(item(o, 0)),
                                .name = string(item(o, 1)),
                                .resource = string(item(o, 2)),
                                .type = string(item(o, 3)),
                                .trace_id = number(item(o, 4)),
                                .span_id = number(item(o, 5)),
                                .parent_id = number(item(o, 6)),
                                .start_ns = (int64_t)number(item(o, 7)),
                                .duration_ns = (int64_t)number(item(o, 8)),
                                .error = (int32_t)number(item(o, 9)),
                                .flags = (uint32_t)number(item(o, 10)),
                                .long_running_version = (int32_t)(int64_t)number(item(o, 11)),
                                .http_status = (uint16_t)number(item(o, 12)),
                                .kind = (uint8_t)number(item(o, 13)),
                                .thread_id = (int64_t)number(item(o, 14)),
                                .thread_name = string(item(o, 15))};
    s.tags = tags(item(o, 16), &s.tag_count);
    if (count_of(item(o, 17)) || count_of(item(o, 18)) || count_of(item(o, 19)))
        s.extra = extra(item(o, 17), item(o, 18), item(o, 19));
    return s;
}

/* [spans, high half of the id, priority or nil, origin, service, tags] */
static struct weir_trace trace(const msgpack_object *o)
{
    const msgpack_object *const list = item(o, 0);
    struct weir_trace_span *const spans = room(count_of(list) + 1u, sizeof *spans);
    for (uint32_t i = 0; i < count_of(list); i++)
        spans[i] = span(item(list, i));
    struct weir_trace t = {.spans = spans,
                           .span_count = count_of(list),
                           .trace_id_hi = number(item(o, 1)),
                           .origin = string(item(o, 3)),
                           .service = string(item(o, 4))};
    if (item(o, 2)->type != MSGPACK_OBJECT_NIL) {
        t.flags = WEIR_TRACE_PRIORITY;
        t.priority = (int32_t)(int64_t)number(item(o, 2));
    }
    t.tags = tags(item(o, 5), &t.tag_count);
    return t;
}

/* The eight texts of struct weir_trace_header, and its tags. */
static struct weir_trace_header header(const msgpack_object *o)
{
    struct weir_trace_header h = {.container_id = string(item(o, 0)),
                                  .language = string(item(o, 1)),
                                  .language_version = string(item(o, 2)),
                                  .tracer_version = string(item(o, 3)),
                                  .runtime_id = string(item(o, 4)),
                                  .env = string(item(o, 5)),
                                  .hostname = string(item(o, 6)),
                                  .app_version = string(item(o, 7))};
    h.tags = tags(item(o, 8), &h.tag_count);
    return h;
}

/* [header, traces] */
static int encode(const msgpack_object *o, uint32_t version)
{
    const struct weir_trace_header h = header(item(o, 0));
    const struct weir_trace_opts opts = {
        .struct_size = sizeof opts, .version = version, .header = &h};
    struct weir_trace_encoder *e;
    int r = weir_trace_encoder_new(&opts, &e);
    if (r != WEIR_OK)
        return r;
    const msgpack_object *const list = item(o, 1);
    for (uint32_t i = 0; i < count_of(list) && r == WEIR_OK; i++) {
        const struct weir_trace t = trace(item(list, i));
        r = weir_trace_add(e, &t);
    }
    struct weir_bytes body;
    if (r == WEIR_OK)
        r = weir_trace_payload(e, &body);
    if (r == WEIR_OK && fwrite(body.ptr, 1, body.len, stdout) != body.len)
        r = WEIR_EFULL;
    weir_trace_encoder_free(e);
    return r;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        fail("usage: trace VERSION < traces");
    char *const input = malloc(INPUT_MAX);
    char *const base = malloc(ARENA_MAX);
    if (!input || !base || weir_texts_new(NULL, &arena.texts) != WEIR_OK)
        fail("no memory");
    arena.at = base;
    arena.left = ARENA_MAX;
    const size_t bytes = fread(input, 1, INPUT_MAX, stdin);
    msgpack_unpacked whole;
    msgpack_unpacked_init(&whole);
    size_t at = 0;
    if (msgpack_unpack_next(&whole, input, bytes, &at) != MSGPACK_UNPACK_SUCCESS)
        fail("the input is not one message");
    const int r = encode(&whole.data, (uint32_t)strtoul(argv[1], NULL, 10));
    if (r != WEIR_OK)
        fprintf(stderr, "trace: %s\n", weir_strerror(r));
    msgpack_unpacked_destroy(&whole);
    weir_texts_free(arena.texts);
    free(base);
    free(input);
    return r == WEIR_OK ? 0 : 1;
}
