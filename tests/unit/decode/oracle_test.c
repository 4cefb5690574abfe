/* SPDX-License-Identifier: Apache-2.0 */
/* oracle: the same Datadog payloads read by libmsgpack into an object tree, span for span. */
#include "support.h"

#include <msgpack.h>

#include <stdlib.h>
#include <string.h>

/* One span of the oracle: objects, NULL where absent. */
struct oracle_span {
    const msgpack_object *field[12];
};
enum { SERVICE, NAME, RESOURCE, TRACE, SPAN, PARENT, START, DURATION, ERROR_, META, METRICS, TYPE };

struct oracle {
    const msgpack_object *dict; /* v0.5; NULL in v0.4 */
};

static const char *const field_names[12] = {"service", "name",      "resource", "trace_id",
                                            "span_id", "parent_id", "start",    "duration",
                                            "error",   "meta",      "metrics",  "type"};

static bool str_is(const msgpack_object *o, const char *text, size_t len)
{
    return o->type == MSGPACK_OBJECT_STR && o->via.str.size == len &&
           memcmp(o->via.str.ptr, text, len) == 0;
}

static struct oracle_span oracle_span(const struct oracle *o, const msgpack_object *span)
{
    struct oracle_span s = {.field = {NULL}};
    for (unsigned f = 0; f < 12; f++) {
        if (o->dict) {
            T_EQ_U64(span->type, MSGPACK_OBJECT_ARRAY);
            s.field[f] = &span->via.array.ptr[f];
            continue;
        }
        for (uint32_t i = 0; i < span->via.map.size; i++)
            if (str_is(&span->via.map.ptr[i].key, field_names[f], strlen(field_names[f])))
                s.field[f] = &span->via.map.ptr[i].val;
    }
    return s;
}

/* A string, through the dictionary in v0.5. */
static const msgpack_object *text_of(const struct oracle *o, const msgpack_object *v)
{
    return o->dict && v->type == MSGPACK_OBJECT_POSITIVE_INTEGER
               ? &o->dict->via.array.ptr[v->via.u64]
               : v;
}

static void check_text(const struct oracle *o, const msgpack_object *v, struct weir_bytes got)
{
    if (!v || v->type == MSGPACK_OBJECT_NIL) {
        T_EQ_U64(got.len, 0);
        return;
    }
    const msgpack_object *const t = text_of(o, v);
    T_EQ_BYTES(got.ptr, got.len, t->via.str.ptr, t->via.str.size);
}

static uint64_t number_of(const msgpack_object *v)
{
    if (!v || v->type == MSGPACK_OBJECT_NIL)
        return 0;
    return v->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ? (uint64_t)v->via.i64 : v->via.u64;
}

/* The value of the last pair of a map with this key. */
static const msgpack_object *tag(const struct oracle *o, const msgpack_object *map, const char *key)
{
    const msgpack_object *found = NULL;
    if (!map || map->type != MSGPACK_OBJECT_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->via.map.size; i++)
        if (str_is(text_of(o, &map->via.map.ptr[i].key), key, strlen(key)))
            found = &map->via.map.ptr[i].val;
    return found;
}

static const struct {
    unsigned slot;
    bool metric;
    const char *names[4];
} wanted[] = {
    {WEIR_TAG_ENV, false, {"env"}},
    {WEIR_TAG_KIND, false, {"span.kind"}},
    {WEIR_TAG_HTTP_METHOD, false, {"http.method", "http.request.method"}},
    {WEIR_TAG_HTTP_ROUTE, false, {"http.route", "http.endpoint"}},
    {WEIR_TAG_ORIGIN, false, {"_dd.origin"}},
    {WEIR_TAG_BASE_SERVICE, false, {"_dd.base_service"}},
    {SLOT_PEER, false, {"peer.service", "out.host"}},
    {WEIR_TAG_TOP_LEVEL, true, {"_dd.top_level", "_top_level"}},
    {WEIR_TAG_MEASURED, true, {"_dd.measured"}},
    {WEIR_TAG_PARTIAL, true, {"_dd.partial_version"}},
};

static double double_of(const msgpack_object *v)
{
    if (v->type == MSGPACK_OBJECT_FLOAT64 || v->type == MSGPACK_OBJECT_FLOAT32)
        return v->via.f64;
    return v->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ? (double)v->via.i64 : (double)v->via.u64;
}

static void check_slot(const struct oracle *o, const struct oracle_span *s, const struct t_kept *k,
                       size_t row)
{
    const msgpack_object *v = NULL;
    for (unsigned i = 0; i < 4 && wanted[row].names[i] && !v; i++)
        v = tag(o, s->field[wanted[row].metric ? METRICS : META], wanted[row].names[i]);
    const bool present = k->span.present >> wanted[row].slot & 1;
    if (present != (v != NULL))
        T_FAIL("%s: present %d", wanted[row].names[0], present);
    if (!v)
        return;
    const struct weir_value *const got = &k->values[wanted[row].slot];
    if (wanted[row].metric) {
        T_EQ_DBL(got->type == WEIR_VALUE_DOUBLE ? got->v.d : (double)got->v.i, double_of(v));
    } else {
        const msgpack_object *const t = text_of(o, v);
        T_EQ_BYTES(got->v.ptr, got->len, t->via.str.ptr, t->via.str.size);
    }
}

static void check_span(const struct oracle *o, const msgpack_object *object, const struct t_kept *k)
{
    const struct oracle_span s = oracle_span(o, object);
    const struct weir_span *const got = &k->span;
    check_text(o, s.field[SERVICE], got->service);
    check_text(o, s.field[NAME], got->name);
    check_text(o, s.field[RESOURCE], got->resource);
    check_text(o, s.field[TYPE], got->type);
    T_EQ_U64(got->trace_id, number_of(s.field[TRACE]));
    T_EQ_U64(got->span_id, number_of(s.field[SPAN]));
    T_EQ_U64(got->parent_id, number_of(s.field[PARENT]));
    T_EQ_U64(got->start_ns, number_of(s.field[START]));
    T_EQ_U64(got->duration_ns, number_of(s.field[DURATION]));
    T_EQ_U64((got->flags & WEIR_SPAN_ERROR) != 0, number_of(s.field[ERROR_]) != 0);
    for (size_t row = 0; row < sizeof wanted / sizeof *wanted; row++)
        check_slot(o, &s, k, row);
}

/* Compare one payload; returns how many spans it has. */
static size_t check_payload(const struct t_buf *b, bool v05)
{
    struct t_spans spans = {.kept = NULL};
    T_OK(
        t_decode(v05 ? weir_decode_dd_v05 : weir_decode_dd_v04, b->at, b->len, &spans, NULL, NULL));
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    size_t at = 0;
    T_EQ_U64(msgpack_unpack_next(&unpacked, (const char *)b->at, b->len, &at),
             MSGPACK_UNPACK_SUCCESS);
    const msgpack_object *const top = &unpacked.data;
    const struct oracle o = {.dict = v05 ? &top->via.array.ptr[0] : NULL};
    const msgpack_object *const traces = v05 ? &top->via.array.ptr[1] : top;
    size_t seen = 0;
    for (uint32_t t = 0; t < traces->via.array.size; t++) {
        const msgpack_object *const trace = &traces->via.array.ptr[t];
        for (uint32_t i = 0; i < trace->via.array.size; i++, seen++) {
            T_TRUE(seen < spans.count);
            check_span(&o, &trace->via.array.ptr[i], &spans.kept[seen]);
        }
    }
    T_EQ_U64(seen, spans.count);
    T_EQ_U64(traces->via.array.size, spans.traces);
    msgpack_unpacked_destroy(&unpacked);
    t_spans_free(&spans);
    return seen;
}

TEST(libmsgpack_sees_the_same_spans_in_the_golden_bodies)
{
    static const struct {
        const char *name;
        size_t spans; /* 0: whatever the oracle says */
    } rows[] = {{"py-v04-12.v04.hex", 0},        {"py-stats-20.v05.hex", 0},
                {"dd-v05-04.v05.hex", 0},        {"webflux.v04.hex", 2},
                {"greeting.v05.hex", 2},         {"v04-java-one-span.v04.hex", 1},
                {"v05-java-one-span.v05.hex", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct t_buf b = t_golden(rows[i].name);
        const size_t spans = check_payload(&b, strstr(rows[i].name, ".v05") != NULL);
        T_TRUE(spans > 0);
        if (rows[i].spans)
            T_EQ_U64(spans, rows[i].spans);
        t_buf_free(&b);
    }
}

TEST(libmsgpack_sees_the_same_spans_in_every_recorded_datadog_body)
{
    size_t size = 0;
    char *const text = (char *)t_read_file(T_SHARED_DIR "/vectors/clients/requests.tsv", &size);
    if (!text)
        T_SKIP_MISSING("vectors/clients/requests.tsv");
    size_t bodies = 0;
    size_t spans = 0;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *const folder = t_cell(&line);
        const char *const file = t_cell(&line);
        const char *const request = t_cell(&line);
        const bool v05 = request && strstr(request, " /v0.5/traces ");
        if (!request || (!v05 && !strstr(request, " /v0.4/traces ")))
            continue;
        char name[512];
        (void)snprintf(name, sizeof name, "file:%s/%s", folder, file);
        struct t_buf b = t_body(name, T_SHARED_DIR "/vectors/clients");
        spans += check_payload(&b, v05);
        bodies++;
        t_buf_free(&b);
    }
    free(text);
    T_EQ_U64(bodies, 51);
    T_EQ_U64(spans, 402 + 402 + 1800 + 1800);
}
