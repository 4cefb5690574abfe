/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload: see weir/payload.h and contracts: span-stats §1.13. A row is written in one piece, into
 * room that is reserved for its longest form beforehand.
 *
 * Rounding. Weights are units of 2^-20, the wire's numbers whole. Each stream of numbers (rows'
 * hits without error, errors, top levels, nanoseconds) rounds to the nearest and hands the rest, at
 * most half, to the next row. Hits are written as the sum of two streams, so no row has more errors
 * than hits.
 */
#include <weir/payload.h>

#include "stats/stats.h"
#include "stats/text.h"
#include "wire/mp_write.h"

#include <weir/codec.h>

/* Sums of signed units: rests are of either sign. */
__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 wide_bits;

enum {
    MAX_DEFAULT = 64 << 20,
    TEXT_MAX = WR_TAG_MAX,
    PROCESS_TAGS_MAX = WR_RESOURCE_MAX,
    EMPTY_MAX = 64,      /* of an empty sketch */
    ROW_FIXED_MAX = 512, /* names, numbers and heads of a row, without its tags */
    SKETCH_ROOM = 4096,
    AHEAD = 8 /* rows */
};

struct carry {
    int64_t ok;
    int64_t errors;
    int64_t top_level;
    int64_t duration;
};

struct weir_payload {
    struct weir_alloc alloc;
    const struct weir_stats *stats;
    uint32_t flags;
    uint64_t sequence;
    struct carry carry;
    struct wr_out out;
    uint8_t empty[EMPTY_MAX]; /* an empty sketch of the rows' mapping */
    size_t empty_bytes;
    struct weir_bytes head; /* the body up to the value of Sequence */
    struct weir_bytes tail; /* and on to that of Start */
    char text[8 * (TEXT_MAX + 32) + PROCESS_TAGS_MAX];
};

static const struct weir_codec_opts codec_dense = {
    .struct_size = sizeof codec_dense, .flags = WEIR_CODEC_NANOSECONDS | WEIR_CODEC_ONE_BLOCK};
static const struct weir_codec_opts codec_short = {.struct_size = sizeof codec_short,
                                                   .flags = WEIR_CODEC_NANOSECONDS};

/* The reference's mapping has the reference's bytes; ours are read as well when they are fewer. */
static const struct weir_codec_opts *codec_of(const struct weir_payload *p)
{
    return p->stats->mapping ? &codec_dense : &codec_short;
}

/* A name known when this is compiled: one store of its head, one of its bytes. */
#define PUT_NAME(at, name) wr_mp_raw_str(at, "" name, (uint32_t)(sizeof(name) - 1))

static char *put_text(char *at, struct weir_bytes text, size_t limit)
{
    char copy[PROCESS_TAGS_MAX];
    bool bad;
    bool cut;
    const size_t n = text.len ? wr_text_repair(copy, text.ptr, text.len, limit, &bad, &cut) : 0;
    return wr_mp_raw_str(at, copy, (uint32_t)n);
}

/* What is the same in every body. */
static void make_head(struct weir_payload *p, const struct weir_payload_opts *o)
{
    const unsigned optional =
        (o->process_tags.len > 0 ? 1u : 0u) + (o->git_commit_sha.len > 0 ? 1u : 0u);
    char *at = p->text;
    at = wr_mp_raw_map(at, 7 + optional);
    at = PUT_NAME(at, "RuntimeID");
    at = put_text(at, o->runtime_id, TEXT_MAX);
    at = PUT_NAME(at, "Sequence");
    p->head = (struct weir_bytes){.ptr = p->text, .len = (size_t)(at - p->text)};
    char *const tail = at;
    at = PUT_NAME(at, "Hostname");
    at = put_text(at, o->hostname, TEXT_MAX);
    at = PUT_NAME(at, "Service");
    at = put_text(at, o->service, WR_SHORT_MAX);
    at = PUT_NAME(at, "Env");
    at = put_text(at, o->env, TEXT_MAX);
    at = PUT_NAME(at, "Version");
    at = put_text(at, o->version, TEXT_MAX);
    if (o->process_tags.len) {
        at = PUT_NAME(at, "ProcessTags");
        at = put_text(at, o->process_tags, PROCESS_TAGS_MAX);
    }
    if (o->git_commit_sha.len) {
        at = PUT_NAME(at, "GitCommitSha");
        at = put_text(at, o->git_commit_sha, TEXT_MAX);
    }
    at = PUT_NAME(at, "Stats");
    at = wr_mp_raw_array(at, 1);
    at = wr_mp_raw_map(at, 3);
    at = PUT_NAME(at, "Start");
    p->tail = (struct weir_bytes){.ptr = tail, .len = (size_t)(at - tail)};
    WR_ASSERT(at <= p->text + sizeof p->text);
}

static int make_empty(struct weir_payload *p)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o,
                                       .alloc = p->alloc,
                                       .grid = WEIR_GRID_NS,
                                       .mapping = p->stats->mapping};
    struct weir_sketch *sk;
    int r = weir_sketch_new(&o, &sk);
    if (r != WEIR_OK)
        return r;
    r = weir_codec_encode(WEIR_CODEC_DD_PROTO, codec_of(p), sk, p->empty, sizeof p->empty,
                          &p->empty_bytes);
    weir_sketch_free(sk);
    return r == WEIR_EVERSION ? WEIR_EINVAL : r;
}

int weir_payload_new(const struct weir_stats *stats, const struct weir_payload_opts *opts,
                     struct weir_payload **ret_payload)
{
    struct weir_payload_opts o = {0};
    if (opts) {
        if (opts->struct_size < sizeof opts->struct_size || opts->struct_size > 4096)
            return WEIR_EINVAL;
        memcpy(&o, opts, opts->struct_size < sizeof o ? opts->struct_size : sizeof o);
    }
    if (o.flags > WEIR_PAYLOAD_ALIGN)
        return WEIR_EINVAL;
    struct weir_payload *const p = wr_alloc_zero(&stats->alloc, sizeof *p);
    if (!p)
        return WEIR_ENOMEM;
    p->alloc = stats->alloc;
    p->stats = stats;
    p->flags = o.flags;
    p->sequence = o.sequence;
    wr_out_init(&p->out, &p->alloc, o.max_bytes ? o.max_bytes : MAX_DEFAULT);
    make_head(p, &o);
    const int r = make_empty(p);
    if (r != WEIR_OK) {
        weir_payload_free(p);
        return r;
    }
    *ret_payload = p;
    return WEIR_OK;
}

void weir_payload_free(struct weir_payload *payload)
{
    if (!payload)
        return;
    wr_out_done(&payload->out);
    const struct weir_alloc alloc = payload->alloc;
    wr_free(&alloc, payload, sizeof *payload);
}

/* The nearest whole number to units and what was carried; the rest is carried on. */
static uint64_t whole(wide units, int64_t *carry)
{
    const wide all = units + *carry;
    wide n = (all + (1 << 19)) >> 20;
    if (n < 0)
        n = 0;
    if (n > UINT64_MAX)
        n = UINT64_MAX;
    const wide rest = all - (n << 20);
    *carry = rest > INT64_MAX ? INT64_MAX : (int64_t)rest;
    return (uint64_t)n;
}

static wide sum_units(const struct weir_sketch *sk)
{
    if (!sk)
        return 0;
    const struct weir_u128 sum = weir_sketch_sum_ns(sk);
    const wide v = (wide)((wide_bits)sum.hi << 64 | sum.lo);
    const wide most = (wide)1 << 100; /* 2^80 ns: no sum of two passes */
    return v < 0 || v > most ? most : v;
}

/* NULL: it is longer than room. */
static char *put_sketch(const struct weir_payload *p, char *at, const struct weir_sketch *sk,
                        size_t room)
{
    if (!sk)
        return wr_mp_raw_bin(
            at, (struct weir_bytes){.ptr = (const char *)p->empty, .len = p->empty_bytes});
    /* Behind the longest head, then moved to where it ends. */
    size_t bytes = 0;
    char *const body = at + WR_MP_HEAD_MAX;
    if (weir_codec_encode(WEIR_CODEC_DD_PROTO, codec_of(p), sk, body, room, &bytes) != WEIR_OK)
        return NULL; /* for nothing else: the empty one was written in this mapping */
    at = wr_mp_raw_bin_head(at, (uint32_t)bytes);
    memmove(at, body, bytes);
    return at + bytes;
}

static char *put_field(char *at, struct weir_bytes field)
{
    return wr_mp_raw_str(at, field.len ? field.ptr : "", (uint32_t)field.len);
}

/* "name:value" */
static char *put_tag(char *at, const char *name, size_t name_bytes, struct weir_bytes value)
{
    at = wr_mp_raw_str_head(at, (uint32_t)(name_bytes + 1 + value.len));
    memcpy(at, name, name_bytes);
    at += name_bytes;
    *at++ = ':';
    if (value.len)
        memcpy(at, value.ptr, value.len);
    return at + value.len;
}

/* The fields [from, to) that are there. */
static char *put_tags(const struct wr_schema *schema, char *at, const struct weir_bytes *fields,
                      size_t from, size_t to, struct weir_bytes base_service)
{
    static const char base[] = "_dd.base_service";
    uint32_t count = base_service.ptr != NULL;
    for (size_t i = from; i < to; i++)
        count += fields[i].ptr != NULL;
    at = wr_mp_raw_array(at, count);
    if (base_service.ptr)
        at = put_tag(at, base, sizeof base - 1, base_service);
    for (size_t i = from; i < to; i++) {
        if (fields[i].ptr)
            at = put_tag(at, schema->tags_text[i], schema->name_bytes[i], fields[i]);
    }
    return at;
}

static uint64_t status_of(struct weir_bytes text)
{
    uint64_t v = 0;
    for (size_t i = 0; i < text.len; i++)
        v = v * 10 + (uint64_t)(text.ptr[i] - '0');
    return v;
}

static uint64_t trace_root_of(struct weir_bytes text)
{
    return text.len == 0 ? 0 : text.len == 4 ? 1 : 2;
}

static struct weir_bytes endpoint_of(const struct wr_schema *schema,
                                     const struct weir_bytes *fields)
{
    return fields[schema->client ? WR_FIELD_HTTP_ENDPOINT : WR_FIELD_HTTP_ROUTE];
}

static struct weir_bytes kind_of(const struct wr_schema *schema, const struct weir_bytes *fields)
{
    return schema->client ? fields[WR_FIELD_KIND]
                          : wr_kind_text(wr_schema_kind(schema, fields[WR_FIELD_KIND]));
}

static char *put_labels(const struct wr_schema *schema, char *at, const struct weir_bytes *fields)
{
    const size_t peers = WR_FIELD_FIXED + schema->peers;
    const struct weir_bytes endpoint = endpoint_of(schema, fields);
    const bool synthetic = fields[WR_FIELD_SYNTHETIC].len > 0;
    at = wr_mp_raw_map(at, (uint32_t)(15 + (schema->dimensions > 0) +
                                      (fields[WR_FIELD_SERVICE_SOURCE].len > 0) +
                                      (fields[WR_FIELD_HTTP_METHOD].len > 0) + (endpoint.len > 0) +
                                      (fields[WR_FIELD_GRPC_STATUS].len > 0)));
    at = PUT_NAME(at, "Name");
    at = put_field(at, fields[WR_FIELD_OPERATION]);
    at = PUT_NAME(at, "Service");
    at = put_field(at, fields[WR_FIELD_SERVICE]);
    at = PUT_NAME(at, "Resource");
    at = put_field(at, fields[WR_FIELD_RESOURCE]);
    at = PUT_NAME(at, "Type");
    at = put_field(at, fields[WR_FIELD_TYPE]);
    at = PUT_NAME(at, "HTTPStatusCode");
    at = wr_mp_raw_uint(at, status_of(fields[WR_FIELD_HTTP_STATUS]));
    at = PUT_NAME(at, "Synthetics");
    at = wr_mp_raw_byte(at, synthetic ? 0xc3 : 0xc2);
    at = PUT_NAME(at, "IsTraceRoot");
    at = wr_mp_raw_uint(at, trace_root_of(fields[WR_FIELD_TRACE_ROOT]));
    at = PUT_NAME(at, "SpanKind");
    at = put_field(at, kind_of(schema, fields));
    at = PUT_NAME(at, "PeerTags");
    at = put_tags(schema, at, fields, WR_FIELD_FIXED, peers, fields[WR_FIELD_BASE_SERVICE]);
    if (schema->dimensions > 0) {
        at = PUT_NAME(at, "AdditionalMetricTags");
        at = put_tags(schema, at, fields, peers, schema->fields, (struct weir_bytes){0});
    }
    if (fields[WR_FIELD_SERVICE_SOURCE].len) {
        at = PUT_NAME(at, "srv_src");
        at = put_field(at, fields[WR_FIELD_SERVICE_SOURCE]);
    }
    if (fields[WR_FIELD_HTTP_METHOD].len) {
        at = PUT_NAME(at, "HTTPMethod");
        at = put_field(at, fields[WR_FIELD_HTTP_METHOD]);
    }
    if (endpoint.len) {
        at = PUT_NAME(at, "HTTPEndpoint");
        at = put_field(at, endpoint);
    }
    if (fields[WR_FIELD_GRPC_STATUS].len) {
        at = PUT_NAME(at, "GRPCStatusCode");
        at = put_field(at, fields[WR_FIELD_GRPC_STATUS]);
    }
    return at;
}

static char *put_numbers(char *at, const struct wr_row *row, struct carry *carry)
{
    const uint64_t ok = whole((wide)row->hits - row->errors, &carry->ok);
    const uint64_t errors = whole(row->errors, &carry->errors);
    const uint64_t hits = ok + errors;
    uint64_t top = whole(row->top_level, &carry->top_level);
    if (top > hits) { /* what is too much waits for a row that has it */
        carry->top_level += (int64_t)((top - hits) << 20);
        top = hits;
    }
    at = PUT_NAME(at, "Hits");
    at = wr_mp_raw_uint(at, hits);
    at = PUT_NAME(at, "Errors");
    at = wr_mp_raw_uint(at, errors);
    at = PUT_NAME(at, "TopLevelHits");
    at = wr_mp_raw_uint(at, top);
    at = PUT_NAME(at, "Duration");
    return wr_mp_raw_uint(at, whole(sum_units(row->ok) + sum_units(row->error), &carry->duration));
}

static size_t sketch_bound(const struct weir_payload *p, const struct weir_sketch *sk)
{
    return sk ? weir_codec_encode_bound(WEIR_CODEC_DD_PROTO, codec_of(p), sk) : p->empty_bytes;
}

/* The row, with so much room for each sketch; false: one of them needs more. */
static bool try_row(struct weir_payload *p, const struct wr_schema *schema,
                    const struct wr_row *row, const struct weir_bytes *fields, size_t ok_room,
                    size_t error_room, struct carry *carry)
{
    char *at = wr_out_reserve(&p->out, ROW_FIXED_MAX + row->key_bytes + schema->tags_bound +
                                           ok_room + error_room + 2 * WR_MP_HEAD_MAX);
    if (!at)
        return true; /* the error is in p->out */
    at = put_labels(schema, at, fields);
    at = put_numbers(at, row, carry);
    at = PUT_NAME(at, "OkSummary");
    at = put_sketch(p, at, row->ok, ok_room);
    if (!at)
        return false;
    at = PUT_NAME(at, "ErrorSummary");
    at = put_sketch(p, at, row->error, error_room);
    if (!at)
        return false;
    wr_out_commit(&p->out, at);
    return true;
}

/* Nearly all sketches fit in less than a bound that costs a look at all of their bins. */
static void put_row(struct weir_payload *p, const struct weir_batch *batch,
                    const struct wr_row *row, struct carry *carry)
{
    struct weir_bytes fields[WR_FIELDS_MAX];
    const struct carry before = *carry;
    const char *const key = batch->keys + row->key_at;
    const struct wr_schema *const schema = wr_schema_of(&p->stats->schemas, key, row->key_bytes);
    wr_schema_fields(schema, key, row->key_bytes, fields);
    if (try_row(p, schema, row, fields, SKETCH_ROOM, SKETCH_ROOM, carry))
        return;
    *carry = before;
    const bool fits = try_row(p, schema, row, fields, sketch_bound(p, row->ok),
                              sketch_bound(p, row->error), carry);
    WR_ASSERT(fits);
    (void)fits;
}

/* Rows lie wherever their entries were made. */
static void prefetch_row(const struct weir_batch *batch, const struct wr_row *row)
{
    const char *const key = batch->keys + row->key_at;
    WR_PREFETCH(key);
    WR_PREFETCH(key + 64);
    if (row->ok)
        WR_PREFETCH(row->ok);
    if (row->error)
        WR_PREFETCH(row->error);
}

static void put_body(struct weir_payload *p, const struct weir_batch *batch, int64_t start_ns,
                     struct carry *carry)
{
    wr_out_put(&p->out, p->head.ptr, p->head.len);
    wr_mp_put_uint(&p->out, p->sequence);
    wr_out_put(&p->out, p->tail.ptr, p->tail.len);
    wr_mp_put_int(&p->out, start_ns);
    wr_mp_put_cstr(&p->out, "Duration");
    wr_mp_put_int(&p->out, batch->info.for_ns);
    wr_mp_put_cstr(&p->out, "Stats");
    wr_mp_put_array(&p->out, batch->info.rows);
    for (size_t i = 0; i < batch->info.rows && !p->out.err; i++) {
        if (i + AHEAD < batch->info.rows)
            prefetch_row(batch, &batch->rows[i + AHEAD]);
        put_row(p, batch, &batch->rows[i], carry);
    }
}

int weir_payload_encode(struct weir_payload *payload, const struct weir_batch *batch,
                        int64_t now_ns, struct weir_bytes *ret_body)
{
    struct weir_payload *const p = payload;
    if (batch->shard != &p->stats->shard)
        return WEIR_EINVAL;
    if (batch->info.rows == 0)
        return WEIR_EEMPTY;
    struct carry carry = p->carry;
    wr_out_clear(&p->out);
    put_body(p, batch, p->flags & WEIR_PAYLOAD_ALIGN ? batch->info.start_ns : now_ns, &carry);
    if (p->out.err)
        return p->out.err;
    p->carry = carry;
    p->sequence++;
    *ret_body = (struct weir_bytes){.ptr = p->out.ptr, .len = p->out.len};
    return WEIR_OK;
}
