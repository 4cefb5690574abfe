/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_fixture.h"

#include <math.h>
#include <msgpack.h>
#include <string.h>

struct weir_trace_tag fixture_text(const char *key, const char *value)
{
    return (struct weir_trace_tag){
        .key = weir_str_c(key), .value = {.type = WEIR_TRACE_STR, .v = {.str = weir_str_c(value)}}};
}

struct weir_trace_tag fixture_int(const char *key, int64_t value)
{
    return (struct weir_trace_tag){.key = weir_str_c(key),
                                   .value = {.type = WEIR_TRACE_INT, .v = {.i = value}}};
}

void fixture_golden(struct fixture_span *f, struct weir_trace *ret_trace)
{
    memset(f, 0, sizeof *f);
    f->tags[0] = fixture_text("a", "b");
    f->span = (struct weir_trace_span){.service = weir_str_c("s"),
                                       .name = weir_str_c("n"),
                                       .resource = weir_str_c("r"),
                                       .type = weir_str_c("web"),
                                       .trace_id = (UINT64_C(1) << 63) + 1,
                                       .span_id = 2,
                                       .start_ns = INT64_C(1000000000000000000),
                                       .duration_ns = 10,
                                       .flags = WEIR_TRACE_TOP_LEVEL | WEIR_TRACE_THREAD,
                                       .thread_id = 7,
                                       .thread_name = weir_str_c("main"),
                                       .tags = f->tags,
                                       .tag_count = 1};
    *ret_trace = (struct weir_trace){
        .spans = &f->span, .span_count = 1, .priority = 1, .flags = WEIR_TRACE_PRIORITY};
}

/* Texts of all lengths that matter, shared by all spans: slices of one long string. */
static struct weir_str random_text(struct t_rng *r, size_t distinct)
{
    static char text[4096];
    if (!text[0]) {
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (char)('a' + (i * 7 + i / 26) % 26);
    }
    const size_t n = t_below(r, 10) ? t_below(r, 40) : t_below(r, 700);
    const size_t from = t_below(r, distinct);
    return weir_str_utf8(text + from, (uint32_t)n);
}

static struct weir_trace_value random_value(struct t_rng *r)
{
    switch (t_below(r, 6)) {
    case 0:
        return (struct weir_trace_value){.type = WEIR_TRACE_BOOL, .v = {.i = (int)t_below(r, 2)}};
    case 1:
        return (struct weir_trace_value){.type = WEIR_TRACE_INT,
                                         .v = {.i = (int64_t)t_next(r) >> t_below(r, 64)}};
    case 2:
        return (struct weir_trace_value){.type = WEIR_TRACE_DOUBLE,
                                         .v = {.d = (t_unit(r) - 0.5) * 1e6}};
    default:
        return (struct weir_trace_value){.type = WEIR_TRACE_STR,
                                         .v = {.str = random_text(r, 3000)}};
    }
}

void fixture_random(struct t_rng *r, struct fixture_span *f, size_t tags_max, bool repeats)
{
    memset(f, 0, sizeof *f);
    f->span.service = random_text(r, 8);
    f->span.name = random_text(r, 8);
    f->span.resource = random_text(r, 64);
    f->span.type = t_below(r, 4) ? random_text(r, 4) : (struct weir_str){.ptr = NULL};
    f->span.trace_id = t_next(r);
    f->span.span_id = t_next(r) >> t_below(r, 64);
    f->span.parent_id = t_below(r, 2) ? 0 : t_next(r);
    f->span.start_ns = (int64_t)(t_next(r) >> 2);
    f->span.duration_ns = (int64_t)t_next(r) >> t_below(r, 64);
    f->span.error = (int32_t)t_below(r, 3) - 1;
    f->span.tags = f->tags;
    f->span.tag_count = t_below(r, tags_max + 1);
    for (size_t i = 0; i < f->span.tag_count; i++) {
        f->tags[i].key = random_text(r, repeats ? 2 : 3000);
        f->tags[i].value = random_value(r);
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

int fixture_add(struct weir_trace_encoder *e, const struct weir_trace_span *spans, size_t count)
{
    const struct weir_trace t = {.spans = spans, .span_count = count};
    return weir_trace_add(e, &t);
}

const char *fixture_hex(struct weir_trace_encoder *e)
{
    static char hex[1 << 17];
    struct weir_bytes p;
    T_OK(weir_trace_payload(e, &p));
    T_TRUE(2 * p.len < sizeof hex);
    for (size_t i = 0; i < p.len; i++) {
        hex[2 * i] = "0123456789abcdef"[(unsigned char)p.ptr[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[(unsigned char)p.ptr[i] & 15];
    }
    hex[2 * p.len] = 0;
    return hex;
}

#define TABLE_MAX 4096

struct reader {
    uint32_t version;
    const msgpack_object *dict; /* array, v0.5 */
    struct {
        const char *ptr;
        uint32_t len;
    } table[TABLE_MAX]; /* v1.0: by index; 0 is "" */
    size_t table_count;
};

static bool same_key(struct weir_str a, struct weir_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static void check_streamed(struct reader *rd, const msgpack_object *o, struct weir_str want)
{
    if (o->type == MSGPACK_OBJECT_STR) {
        T_TRUE(rd->table_count < TABLE_MAX);
        for (size_t i = 0; i < rd->table_count; i++) /* only what is new comes inline */
            T_TRUE(rd->table[i].len != o->via.str.size ||
                   memcmp(rd->table[i].ptr, o->via.str.ptr, o->via.str.size) != 0);
        rd->table[rd->table_count].ptr = o->via.str.ptr;
        rd->table[rd->table_count++].len = o->via.str.size;
        T_EQ_BYTES(o->via.str.ptr, o->via.str.size, want.ptr, want.len);
        return;
    }
    T_EQ_I64(o->type, MSGPACK_OBJECT_POSITIVE_INTEGER);
    T_TRUE(o->via.u64 < rd->table_count);
    T_EQ_BYTES(rd->table[o->via.u64].ptr, rd->table[o->via.u64].len, want.ptr, want.len);
}

static void check_str(struct reader *rd, const msgpack_object *o, struct weir_str want)
{
    if (rd->version == WEIR_TRACE_V1) {
        check_streamed(rd, o, want);
        return;
    }
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

/* The next tag from *at on that no later one repeats; false: there is none. */
static bool next_kept(const struct weir_trace_span *s, size_t *at)
{
    for (; *at < s->tag_count; (*at)++) {
        size_t later = *at + 1;
        while (later < s->tag_count && !same_key(s->tags[later].key, s->tags[*at].key))
            later++;
        if (later == s->tag_count)
            return true;
    }
    return false;
}

static bool is_number(const struct weir_trace_tag *t)
{
    return t->value.type == WEIR_TRACE_INT || t->value.type == WEIR_TRACE_DOUBLE;
}

static void check_number(const msgpack_object *o, const struct weir_trace_value *v)
{
    if (v->type == WEIR_TRACE_INT) {
        check_int(o, v->v.i);
        return;
    }
    T_EQ_I64(o->type, MSGPACK_OBJECT_FLOAT64);
    T_EQ_DBL(o->via.f64, v->v.d);
}

static void check_map(struct reader *rd, const msgpack_object *o, const struct weir_trace_span *s,
                      bool numbers)
{
    T_EQ_I64(o->type, MSGPACK_OBJECT_MAP);
    size_t at = 0;
    for (size_t i = 0; next_kept(s, &i); i++) {
        const struct weir_trace_tag *const t = &s->tags[i];
        if (is_number(t) != numbers)
            continue;
        T_TRUE(at < o->via.map.size);
        check_str(rd, &o->via.map.ptr[at].key, t->key);
        const msgpack_object *const val = &o->via.map.ptr[at].val;
        if (numbers)
            check_number(val, &t->value);
        else if (t->value.type == WEIR_TRACE_BOOL)
            check_str(rd, val, weir_str_c(t->value.v.i ? "true" : "false"));
        else
            check_str(rd, val, t->value.v.str);
        at++;
    }
    T_EQ_U64(o->via.map.size, at);
}

static void check_span_v04(struct reader *rd, const msgpack_object *o,
                           const struct weir_trace_span *s)
{
    static const char *const names[] = {"service", "name",      "resource", "trace_id",
                                        "span_id", "parent_id", "start",    "duration",
                                        "type",    "error",     "metrics",  "meta"};
    T_EQ_I64(o->type, MSGPACK_OBJECT_MAP);
    T_EQ_U64(o->via.map.size, 12);
    const msgpack_object_kv *const kv = o->via.map.ptr;
    for (size_t i = 0; i < 12; i++)
        check_str(rd, &kv[i].key, weir_str_c(names[i]));
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
    check_map(rd, &kv[10].val, s, true);
    check_map(rd, &kv[11].val, s, false);
}

static void check_span_v05(struct reader *rd, const msgpack_object *o,
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
    check_map(rd, &f[9], s, false);
    check_map(rd, &f[10], s, true);
    check_str(rd, &f[11], s->type);
}

static void check_attributes_v1(struct reader *rd, const msgpack_object *o,
                                const struct weir_trace_span *s)
{
    T_EQ_I64(o->type, MSGPACK_OBJECT_ARRAY);
    size_t at = 0;
    for (size_t i = 0; next_kept(s, &i); i++, at += 3) {
        const struct weir_trace_value *const v = &s->tags[i].value;
        T_TRUE(at + 3 <= o->via.array.size);
        const msgpack_object *const triple = &o->via.array.ptr[at];
        check_str(rd, &triple[0], s->tags[i].key);
        check_int(&triple[1], v->type == WEIR_TRACE_STR ? 1 : v->type == WEIR_TRACE_BOOL ? 2 : 3);
        if (v->type == WEIR_TRACE_STR) {
            check_str(rd, &triple[2], v->v.str);
        } else if (v->type == WEIR_TRACE_BOOL) {
            T_EQ_I64(triple[2].type, MSGPACK_OBJECT_BOOLEAN);
            T_EQ_I64(triple[2].via.boolean, v->v.i);
        } else {
            T_EQ_I64(triple[2].type, MSGPACK_OBJECT_FLOAT64);
            T_EQ_DBL(triple[2].via.f64, v->type == WEIR_TRACE_INT ? (double)v->v.i : v->v.d);
        }
    }
    T_EQ_U64(o->via.array.size, at);
}

static void check_span_v1(struct reader *rd, const msgpack_object *o,
                          const struct weir_trace_span *s)
{
    T_EQ_I64(o->type, MSGPACK_OBJECT_MAP);
    T_EQ_U64(o->via.map.size, 16);
    const msgpack_object_kv *const kv = o->via.map.ptr;
    for (size_t i = 0; i < 16; i++)
        check_int(&kv[i].key, (int64_t)i + 1);
    check_str(rd, &kv[0].val, s->service);
    check_str(rd, &kv[1].val, s->name);
    check_str(rd, &kv[2].val, s->resource);
    T_EQ_U64(kv[3].val.via.u64, s->span_id);
    T_EQ_U64(kv[4].val.via.u64, s->parent_id);
    check_int(&kv[5].val, s->start_ns);
    check_int(&kv[6].val, s->duration_ns < 0 ? 0 : s->duration_ns);
    T_EQ_I64(kv[7].val.via.boolean, s->error != 0);
    check_attributes_v1(rd, &kv[8].val, s);
    check_str(rd, &kv[9].val, s->type);
    T_EQ_U64(kv[10].val.via.array.size + kv[11].val.via.array.size, 0);
    for (size_t i = 12; i < 15; i++)
        check_str(rd, &kv[i].val, weir_str_c(""));
    check_int(&kv[15].val, s->kind);
}

static void check_chunk_v1(struct reader *rd, const msgpack_object *o,
                           const struct weir_trace_span *spans, size_t count)
{
    T_EQ_I64(o->type, MSGPACK_OBJECT_MAP);
    T_EQ_U64(o->via.map.size, 6);
    const msgpack_object_kv *const kv = o->via.map.ptr;
    check_int(&kv[0].val, -128);
    check_str(rd, &kv[1].val, weir_str_c(""));
    check_str(rd, &kv[2].val.via.array.ptr[0], weir_str_c("service"));
    check_str(rd, &kv[2].val.via.array.ptr[2], spans[0].service);
    T_EQ_U64(kv[3].val.via.array.size, count);
    for (size_t i = 0; i < count; i++)
        check_span_v1(rd, &kv[3].val.via.array.ptr[i], &spans[i]);
    uint8_t id[16] = {0};
    for (size_t i = 0; i < 8; i++)
        id[8 + i] = (uint8_t)(spans[0].trace_id >> (56 - 8 * i));
    T_EQ_BYTES(kv[4].val.via.bin.ptr, kv[4].val.via.bin.size, id, 16);
    check_int(&kv[5].val, 0);
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

/* The traces of the payload, whose header, where there is one, is empty. */
static const msgpack_object *traces_of(struct reader *rd, const msgpack_object *top)
{
    if (rd->version == WEIR_TRACE_V05) {
        T_EQ_U64(top->via.array.size, 2);
        rd->dict = &top->via.array.ptr[0];
        check_dict_is_a_set(rd->dict);
        return &top->via.array.ptr[1];
    }
    if (rd->version == WEIR_TRACE_V04)
        return top;
    rd->table_count = 1;
    rd->table[0].ptr = "";
    T_EQ_I64(top->type, MSGPACK_OBJECT_MAP);
    T_EQ_U64(top->via.map.size, 10);
    for (size_t i = 0; i < 8; i++)
        check_str(rd, &top->via.map.ptr[i].val, weir_str_c(""));
    return &top->via.map.ptr[9].val;
}

void fixture_check(uint32_t version, struct weir_bytes payload, const struct weir_trace_span *spans,
                   size_t traces, size_t per_trace)
{
    msgpack_unpacked u;
    msgpack_unpacked_init(&u);
    size_t off = 0;
    T_EQ_I64(msgpack_unpack_next(&u, payload.ptr, payload.len, &off), MSGPACK_UNPACK_SUCCESS);
    T_EQ_U64(off, payload.len);
    static struct reader rd;
    rd = (struct reader){.version = version};
    const msgpack_object *const list = traces_of(&rd, &u.data);
    T_EQ_I64(list->type, MSGPACK_OBJECT_ARRAY);
    T_EQ_U64(list->via.array.size, traces);
    for (size_t i = 0; i < traces; i++) {
        const msgpack_object *const trace = &list->via.array.ptr[i];
        if (version == WEIR_TRACE_V1) {
            check_chunk_v1(&rd, trace, spans + i * per_trace, per_trace);
            continue;
        }
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
