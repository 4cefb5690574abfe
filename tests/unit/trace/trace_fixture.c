/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_fixture.h"

#include <math.h>
#include <msgpack.h>
#include <string.h>

struct weir_bytes fixture_bytes(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

void fixture_golden(struct fixture_span *f)
{
    memset(f, 0, sizeof *f);
    f->meta[0] = (struct weir_trace_meta){.key = fixture_bytes("thread.name"),
                                          .value = fixture_bytes("main")};
    f->meta[1] = (struct weir_trace_meta){.key = fixture_bytes("a"), .value = fixture_bytes("b")};
    f->metrics[0] = (struct weir_trace_metric){
        .key = fixture_bytes("_sampling_priority_v1"), .value = 1, .integral = 1};
    f->metrics[1] = (struct weir_trace_metric){
        .key = fixture_bytes("_dd.top_level"), .value = 1, .integral = 1};
    f->metrics[2] =
        (struct weir_trace_metric){.key = fixture_bytes("thread.id"), .value = 7, .integral = 1};
    f->span = (struct weir_trace_span){.service = fixture_bytes("s"),
                                       .name = fixture_bytes("n"),
                                       .resource = fixture_bytes("r"),
                                       .type = fixture_bytes("web"),
                                       .trace_id = (UINT64_C(1) << 63) + 1,
                                       .span_id = 2,
                                       .start_ns = INT64_C(1000000000000000000),
                                       .duration_ns = 10,
                                       .meta = f->meta,
                                       .meta_count = 2,
                                       .metrics = f->metrics,
                                       .metric_count = 3};
}

/* Texts of all lengths that matter, shared by all spans: slices of one long string. */
static struct weir_bytes random_text(struct t_rng *r, size_t distinct)
{
    static char text[4096];
    if (!text[0]) {
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (char)('a' + (i * 7 + i / 26) % 26);
    }
    const size_t n = t_below(r, 10) ? t_below(r, 40) : t_below(r, 700);
    const size_t from = t_below(r, distinct);
    return (struct weir_bytes){.ptr = text + from, .len = n};
}

static double random_value(struct t_rng *r, int *ret_integral)
{
    *ret_integral = (int)t_below(r, 2);
    if (!*ret_integral)
        return (t_unit(r) - 0.5) * 1e6;
    const double v = trunc(ldexp(t_unit(r), (int)t_below(r, 64)));
    return t_below(r, 2) ? v : -v / 2 == trunc(-v / 2) ? -v / 2 : v;
}

void fixture_random(struct t_rng *r, struct fixture_span *f, size_t tags_max, bool repeats)
{
    memset(f, 0, sizeof *f);
    f->span.service = random_text(r, 8);
    f->span.name = random_text(r, 8);
    f->span.resource = random_text(r, 64);
    f->span.type = t_below(r, 4) ? random_text(r, 4) : (struct weir_bytes){.ptr = NULL, .len = 0};
    f->span.trace_id = t_next(r);
    f->span.span_id = t_next(r) >> t_below(r, 64);
    f->span.parent_id = t_below(r, 2) ? 0 : t_next(r);
    f->span.start_ns = (int64_t)(t_next(r) >> 2);
    f->span.duration_ns = (int64_t)t_next(r) >> t_below(r, 64);
    f->span.error = (int32_t)t_below(r, 3) - 1;
    f->span.meta = f->meta;
    f->span.metrics = f->metrics;
    f->span.meta_count = t_below(r, tags_max + 1);
    f->span.metric_count = t_below(r, tags_max + 1);
    for (size_t i = 0; i < f->span.meta_count; i++) {
        f->meta[i].key = random_text(r, repeats ? 2 : 3000);
        f->meta[i].value = random_text(r, 3000);
    }
    for (size_t i = 0; i < f->span.metric_count; i++) {
        f->metrics[i].key = random_text(r, repeats ? 2 : 3000);
        f->metrics[i].value = random_value(r, &f->metrics[i].integral);
    }
}

struct weir_trace_encoder *fixture_encoder(uint32_t version, size_t max_bytes)
{
    const struct weir_trace_opts o = {
        .struct_size = sizeof o, .version = version, .max_bytes = max_bytes};
    struct weir_trace_encoder *e = NULL;
    T_OK(weir_trace_encoder_new(&o, &e));
    return e;
}

struct reader {
    uint32_t version;
    const msgpack_object *dict; /* array, v0.5 */
};

static bool same_key(struct weir_bytes a, struct weir_bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static void check_str(const struct reader *rd, const msgpack_object *o, struct weir_bytes want)
{
    if (rd->version == WEIR_TRACE_V05) {
        T_EQ_I64(o->type, MSGPACK_OBJECT_POSITIVE_INTEGER);
        T_TRUE(o->via.u64 < rd->dict->via.array.size);
        o = &rd->dict->via.array.ptr[o->via.u64];
    }
    T_EQ_I64(o->type, MSGPACK_OBJECT_STR);
    T_EQ_BYTES(o->via.str.ptr, o->via.str.size, want.ptr, want.len);
}

static void check_int(const msgpack_object *o, int64_t want)
{
    T_EQ_I64(o->type, want < 0 ? MSGPACK_OBJECT_NEGATIVE_INTEGER : MSGPACK_OBJECT_POSITIVE_INTEGER);
    T_EQ_I64(want < 0 ? o->via.i64 : (int64_t)o->via.u64, want);
}

static void check_meta(const struct reader *rd, const msgpack_object *o,
                       const struct weir_trace_span *s)
{
    T_EQ_I64(o->type, MSGPACK_OBJECT_MAP);
    size_t at = 0;
    for (size_t i = 0; i < s->meta_count; i++) {
        size_t later = i + 1;
        while (later < s->meta_count && !same_key(s->meta[later].key, s->meta[i].key))
            later++;
        if (later < s->meta_count)
            continue;
        T_TRUE(at < o->via.map.size);
        check_str(rd, &o->via.map.ptr[at].key, s->meta[i].key);
        check_str(rd, &o->via.map.ptr[at].val, s->meta[i].value);
        at++;
    }
    T_EQ_U64(o->via.map.size, at);
}

static void check_metric(const msgpack_object *o, const struct weir_trace_metric *m)
{
    if (!m->integral) {
        T_EQ_I64(o->type, MSGPACK_OBJECT_FLOAT64);
        T_EQ_DBL(o->via.f64, m->value);
    } else if (m->value < 0) {
        T_EQ_I64(o->type, MSGPACK_OBJECT_NEGATIVE_INTEGER);
        T_EQ_DBL((double)o->via.i64, m->value);
    } else {
        T_EQ_I64(o->type, MSGPACK_OBJECT_POSITIVE_INTEGER);
        T_EQ_DBL((double)o->via.u64, m->value);
    }
}

static void check_metrics(const struct reader *rd, const msgpack_object *o,
                          const struct weir_trace_span *s)
{
    T_EQ_I64(o->type, MSGPACK_OBJECT_MAP);
    size_t at = 0;
    for (size_t i = 0; i < s->metric_count; i++) {
        size_t later = i + 1;
        while (later < s->metric_count && !same_key(s->metrics[later].key, s->metrics[i].key))
            later++;
        if (later < s->metric_count)
            continue;
        T_TRUE(at < o->via.map.size);
        check_str(rd, &o->via.map.ptr[at].key, s->metrics[i].key);
        check_metric(&o->via.map.ptr[at].val, &s->metrics[i]);
        at++;
    }
    T_EQ_U64(o->via.map.size, at);
}

static void check_span_v04(const struct reader *rd, const msgpack_object *o,
                           const struct weir_trace_span *s)
{
    static const char *const names[] = {"service", "name",      "resource", "trace_id",
                                        "span_id", "parent_id", "start",    "duration",
                                        "type",    "error",     "metrics",  "meta"};
    T_EQ_I64(o->type, MSGPACK_OBJECT_MAP);
    T_EQ_U64(o->via.map.size, 12);
    const msgpack_object_kv *const kv = o->via.map.ptr;
    for (size_t i = 0; i < 12; i++)
        check_str(rd, &kv[i].key, fixture_bytes(names[i]));
    check_str(rd, &kv[0].val, s->service);
    check_str(rd, &kv[1].val, s->name);
    check_str(rd, &kv[2].val, s->resource);
    T_EQ_U64(kv[3].val.via.u64, s->trace_id);
    T_EQ_U64(kv[4].val.via.u64, s->span_id);
    T_EQ_U64(kv[5].val.via.u64, s->parent_id);
    check_int(&kv[6].val, s->start_ns);
    check_int(&kv[7].val, s->duration_ns);
    if (s->type.ptr)
        check_str(rd, &kv[8].val, s->type);
    else
        T_EQ_I64(kv[8].val.type, MSGPACK_OBJECT_NIL);
    check_int(&kv[9].val, s->error);
    check_metrics(rd, &kv[10].val, s);
    check_meta(rd, &kv[11].val, s);
}

static void check_span_v05(const struct reader *rd, const msgpack_object *o,
                           const struct weir_trace_span *s)
{
    T_EQ_I64(o->type, MSGPACK_OBJECT_ARRAY);
    T_EQ_U64(o->via.array.size, 12);
    const msgpack_object *const f = o->via.array.ptr;
    check_str(rd, &f[0], s->service);
    check_str(rd, &f[1], s->name);
    check_str(rd, &f[2], s->resource);
    T_EQ_U64(f[3].via.u64, s->trace_id);
    T_EQ_U64(f[4].via.u64, s->span_id);
    T_EQ_U64(f[5].via.u64, s->parent_id);
    check_int(&f[6], s->start_ns);
    check_int(&f[7], s->duration_ns);
    check_int(&f[8], s->error);
    check_meta(rd, &f[9], s);
    check_metrics(rd, &f[10], s);
    check_str(rd, &f[11], s->type);
}

static void check_dict_is_a_set(const msgpack_object *d)
{
    T_EQ_I64(d->type, MSGPACK_OBJECT_ARRAY);
    for (size_t i = 0; i < d->via.array.size; i++) {
        const msgpack_object_str a = d->via.array.ptr[i].via.str;
        for (size_t j = 0; j < i; j++) {
            const msgpack_object_str b = d->via.array.ptr[j].via.str;
            T_TRUE(a.size != b.size || memcmp(a.ptr, b.ptr, a.size) != 0);
        }
    }
}

void fixture_check(uint32_t version, struct weir_bytes payload, const struct weir_trace_span *spans,
                   size_t traces, size_t per_trace)
{
    msgpack_unpacked u;
    msgpack_unpacked_init(&u);
    size_t off = 0;
    T_EQ_I64(msgpack_unpack_next(&u, payload.ptr, payload.len, &off), MSGPACK_UNPACK_SUCCESS);
    T_EQ_U64(off, payload.len);
    struct reader rd = {.version = version};
    const msgpack_object *list = &u.data;
    T_EQ_I64(list->type, MSGPACK_OBJECT_ARRAY);
    if (version == WEIR_TRACE_V05) {
        T_EQ_U64(list->via.array.size, 2);
        rd.dict = &list->via.array.ptr[0];
        check_dict_is_a_set(rd.dict);
        list = &list->via.array.ptr[1];
    }
    T_EQ_U64(list->via.array.size, traces);
    for (size_t i = 0; i < traces; i++) {
        const msgpack_object *const trace = &list->via.array.ptr[i];
        T_EQ_I64(trace->type, MSGPACK_OBJECT_ARRAY);
        T_EQ_U64(trace->via.array.size, per_trace);
        for (size_t j = 0; j < per_trace; j++) {
            const msgpack_object *const o = &trace->via.array.ptr[j];
            if (version == WEIR_TRACE_V05)
                check_span_v05(&rd, o, &spans[i * per_trace + j]);
            else
                check_span_v04(&rd, o, &spans[i * per_trace + j]);
        }
    }
    msgpack_unpacked_destroy(&u);
}
