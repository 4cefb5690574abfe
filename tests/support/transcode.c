/* SPDX-License-Identifier: Apache-2.0 */
/* transcode: see transcode.h. */
#include "transcode.h"

#include "wire/mp_read.h"
#include "wire/mp_write.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 30, TABLE = 1 << 14 };

/* The strings of one payload, by a hash of their bytes. */
struct table {
    struct weir_bytes *texts; /* of TABLE; ptr NULL: free */
    uint32_t *numbers;
    uint32_t count;
};

struct transcoder {
    struct wr_mp m;
    struct wr_out *out;
    struct table table;
};

static bool text_is(struct weir_bytes text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static struct weir_bytes bytes_of(const char *word)
{
    return (struct weir_bytes){.ptr = word, .len = strlen(word)};
}

static size_t home_of(struct weir_bytes text)
{
    uint64_t h = 0;
    for (size_t i = 0; i < text.len; i++)
        h = h * 31 + (uint8_t)text.ptr[i];
    return (size_t)(h % TABLE);
}

/* A string of v1.0. */
static void put_text(struct transcoder *t, struct weir_bytes text)
{
    if (text.len == 0) {
        wr_mp_put_uint(t->out, 0);
        return;
    }
    size_t at = home_of(text);
    for (; t->table.texts[at].ptr; at = (at + 1) % TABLE) {
        const struct weir_bytes known = t->table.texts[at];
        if (known.len == text.len && memcmp(known.ptr, text.ptr, text.len) == 0) {
            wr_mp_put_uint(t->out, t->table.numbers[at]);
            return;
        }
    }
    WR_ASSERT(t->table.count < TABLE / 2);
    t->table.texts[at] = text;
    t->table.numbers[at] = ++t->table.count;
    wr_mp_put_str(t->out, text);
}

static void put_word(struct transcoder *t, const char *word)
{
    put_text(t, bytes_of(word));
}

/* A v0.4 span, its places noted. */
struct v04_span {
    struct weir_bytes service;
    struct weir_bytes name;
    struct weir_bytes resource;
    struct weir_bytes type;
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t parent_id;
    int64_t start;
    int64_t duration;
    int64_t error;
    const uint8_t *meta;
    const uint8_t *metrics;
};

static const uint8_t *read_field(struct transcoder *t, const uint8_t *at, struct v04_span *s)
{
    struct wr_mp *const m = &t->m;
    struct weir_bytes key;
    at = wr_mp_str(m, at, &key);
    if (!at)
        return NULL;
    struct weir_bytes *const texts[] = {&s->service, &s->name, &s->resource, &s->type};
    static const char *const text_keys[] = {"service", "name", "resource", "type"};
    for (size_t i = 0; i < 4; i++)
        if (text_is(key, text_keys[i]))
            return wr_mp_str(m, at, texts[i]);
    uint64_t *const ids[] = {&s->trace_id, &s->span_id, &s->parent_id};
    static const char *const id_keys[] = {"trace_id", "span_id", "parent_id"};
    for (size_t i = 0; i < 3; i++)
        if (text_is(key, id_keys[i]))
            return wr_mp_u64(m, at, ids[i]);
    int64_t *const numbers[] = {&s->start, &s->duration, &s->error};
    static const char *const number_keys[] = {"start", "duration", "error"};
    for (size_t i = 0; i < 3; i++)
        if (text_is(key, number_keys[i]))
            return wr_mp_i64(m, at, numbers[i]);
    if (text_is(key, "meta"))
        s->meta = at;
    if (text_is(key, "metrics"))
        s->metrics = at;
    return wr_mp_skip(m, at, DEPTH);
}

static const uint8_t *read_span(struct transcoder *t, const uint8_t *at, struct v04_span *s)
{
    uint32_t pairs;
    *s = (struct v04_span){.error = 0};
    at = wr_mp_map(&t->m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++)
        at = read_field(t, at, s);
    return at;
}

/* What v1.0 has as members. */
enum member { MEMBER_ENV, MEMBER_VERSION, MEMBER_COMPONENT, MEMBER_KIND, MEMBERS };
static const char *const member_keys[MEMBERS] = {"env", "version", "component", "span.kind"};

/* Read the meta map into pairs; how many are attributes. */
static uint32_t read_meta(struct transcoder *t, const struct v04_span *s,
                          struct weir_bytes members[MEMBERS], bool put)
{
    uint32_t pairs = 0;
    uint32_t attributes = 0;
    const uint8_t *at = s->meta ? wr_mp_map(&t->m, s->meta, &pairs) : NULL;
    for (uint32_t i = 0; at && i < pairs; i++) {
        struct weir_bytes key;
        struct weir_bytes value = {.ptr = NULL, .len = 0};
        at = wr_mp_str(&t->m, at, &key);
        at = at ? wr_mp_str(&t->m, at, &value) : NULL;
        size_t member = 0;
        while (at && member < MEMBERS && !text_is(key, member_keys[member]))
            member++;
        if (at && member < MEMBERS) {
            members[member] = value;
            continue;
        }
        attributes++;
        if (at && put) {
            put_text(t, key);
            wr_mp_put_uint(t->out, 1);
            put_text(t, value);
        }
    }
    return attributes;
}

static double number_of(const struct wr_mp_item *item)
{
    if (item->type == WR_MP_FLOAT)
        return item->v.d;
    return item->type == WR_MP_UINT ? (double)item->v.u : (double)item->v.i;
}

static uint32_t read_metrics(struct transcoder *t, const struct v04_span *s, bool put)
{
    uint32_t pairs = 0;
    const uint8_t *at = s->metrics ? wr_mp_map(&t->m, s->metrics, &pairs) : NULL;
    for (uint32_t i = 0; at && put && i < pairs; i++) {
        struct weir_bytes key;
        struct wr_mp_item item;
        at = wr_mp_str(&t->m, at, &key);
        at = at ? wr_mp_item(&t->m, at, &item) : NULL;
        if (!at)
            break;
        put_text(t, key);
        wr_mp_put_uint(t->out, 3);
        wr_mp_put_double(t->out, number_of(&item));
    }
    return pairs;
}

static uint64_t kind_of(struct weir_bytes word)
{
    static const char *const words[] = {"internal", "server", "client", "producer", "consumer"};
    for (size_t i = 0; i < 5; i++)
        if (text_is(word, words[i]))
            return i + 1;
    return 0;
}

static void put_member(struct transcoder *t, uint64_t key, struct weir_bytes text)
{
    wr_mp_put_uint(t->out, key);
    put_text(t, text);
}

static void put_number(struct transcoder *t, uint64_t key, int64_t number)
{
    wr_mp_put_uint(t->out, key);
    if (number < 0)
        wr_mp_put_int(t->out, number);
    else
        wr_mp_put_uint(t->out, (uint64_t)number);
}

static void put_id(struct transcoder *t, uint64_t key, uint64_t id)
{
    wr_mp_put_uint(t->out, key);
    wr_mp_put_uint(t->out, id);
}

/* Members of a v1.0 span in the order of its keys. */
static void put_span(struct transcoder *t, const struct v04_span *s)
{
    struct weir_bytes members[MEMBERS] = {{.ptr = NULL, .len = 0}};
    struct wr_out *const out = t->out;
    const uint32_t meta = read_meta(t, s, members, false);
    wr_mp_put_map(out, 16);
    put_member(t, 1, s->service);
    put_member(t, 2, s->name);
    put_member(t, 3, s->resource);
    put_id(t, 4, s->span_id);
    put_id(t, 5, s->parent_id);
    put_number(t, 6, s->start);
    put_number(t, 7, s->duration);
    wr_mp_put_uint(out, 8);
    wr_mp_put_bool(out, s->error != 0);
    wr_mp_put_uint(out, 9);
    wr_mp_put_array(out, 3 * (size_t)(meta + read_metrics(t, s, false)));
    (void)read_meta(t, s, members, true);
    (void)read_metrics(t, s, true);
    put_member(t, 10, s->type);
    wr_mp_put_uint(out, 11);
    wr_mp_put_array(out, 0);
    wr_mp_put_uint(out, 12);
    wr_mp_put_array(out, 0);
    put_member(t, 13, members[MEMBER_ENV]);
    put_member(t, 14, members[MEMBER_VERSION]);
    put_member(t, 15, members[MEMBER_COMPONENT]);
    put_number(t, 16, (int64_t)kind_of(members[MEMBER_KIND]));
}

static const uint8_t *put_chunk(struct transcoder *t, const uint8_t *at)
{
    uint32_t spans;
    at = wr_mp_array(&t->m, at, &spans);
    if (!at)
        return NULL;
    wr_mp_put_map(t->out, 6);
    put_number(t, 1, 1);
    put_id(t, 2, 0);
    wr_mp_put_uint(t->out, 3);
    wr_mp_put_array(t->out, 0);
    wr_mp_put_uint(t->out, 4);
    wr_mp_put_array(t->out, spans);
    struct v04_span s = {.error = 0};
    for (uint32_t i = 0; at && i < spans; i++) {
        at = read_span(t, at, &s);
        if (at)
            put_span(t, &s);
    }
    uint8_t id[16] = {0};
    wr_store64be(id + 8, s.trace_id);
    wr_mp_put_uint(t->out, 6);
    wr_mp_put_bin(t->out, (struct weir_bytes){.ptr = (const char *)id, .len = sizeof id});
    put_id(t, 7, 0);
    return at;
}

static bool put_v1(struct transcoder *t)
{
    static const char *const names[] = {"c", "test", "17", "1.0", "r"};
    uint32_t traces;
    const uint8_t *at = wr_mp_array(&t->m, t->m.begin, &traces);
    wr_mp_put_map(t->out, 7);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        wr_mp_put_uint(t->out, 2 + i);
        put_word(t, names[i]);
    }
    wr_mp_put_uint(t->out, 10);
    wr_mp_put_array(t->out, 0);
    wr_mp_put_uint(t->out, 11);
    wr_mp_put_array(t->out, traces);
    for (uint32_t i = 0; at && i < traces; i++)
        at = put_chunk(t, at);
    return at == t->m.end && t->out->err == WEIR_OK;
}

bool t_transcode_v1(struct weir_bytes v04, struct wr_out *out)
{
    struct transcoder t = {.m = wr_mp_init(v04.ptr, v04.len),
                           .out = out,
                           .table = {.texts = calloc(TABLE, sizeof *t.table.texts),
                                     .numbers = calloc(TABLE, sizeof *t.table.numbers)}};
    WR_ASSERT(t.table.texts && t.table.numbers);
    const bool ok = put_v1(&t);
    free(t.table.texts);
    free(t.table.numbers);
    return ok;
}

bool t_transcode_v07(struct weir_bytes v04, struct wr_out *out)
{
    struct wr_mp m = wr_mp_init(v04.ptr, v04.len);
    uint32_t traces;
    const uint8_t *at = wr_mp_array(&m, m.begin, &traces);
    wr_mp_put_map(out, 4);
    wr_mp_put_cstr(out, "language_name");
    wr_mp_put_cstr(out, "test");
    wr_mp_put_cstr(out, "chunks");
    wr_mp_put_array(out, at ? traces : 0);
    for (uint32_t i = 0; at && i < traces; i++) {
        wr_mp_put_map(out, 5);
        wr_mp_put_cstr(out, "priority");
        wr_mp_put_uint(out, 1);
        wr_mp_put_cstr(out, "origin");
        wr_mp_put_cstr(out, "");
        wr_mp_put_cstr(out, "spans");
        const uint8_t *const begin = at;
        at = wr_mp_skip(&m, at, DEPTH);
        if (at)
            wr_out_put(out, begin, (size_t)(at - begin));
        wr_mp_put_cstr(out, "tags");
        wr_mp_put_map(out, 0);
        wr_mp_put_cstr(out, "dropped_trace");
        wr_mp_put_bool(out, false);
    }
    wr_mp_put_cstr(out, "tags");
    wr_mp_put_map(out, 0);
    wr_mp_put_cstr(out, "env");
    wr_mp_put_cstr(out, "");
    return at == m.end && out->err == WEIR_OK;
}
