/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of /v0.6/stats: the bytes of the Java tracer, what each field comes from, and weights that
 * are rounded to whole numbers without a loss in the long run.
 */
#include "fixture.h"

#include "wire/mp_read.h"

#include <math.h>
#include <stdlib.h>
#include <weir/codec.h>
#include <weir/payload.h>

enum { SLOT_PEER = WEIR_TAG_FIXED };

static const char *const peers[] = {"peer.hostname"};

static struct weir_stats_opts client_opts(struct fixture *f)
{
    struct weir_stats_opts o = f_opts(f);
    o.profile = WEIR_PROFILE_CLIENT;
    o.peer_tags = peers;
    o.peer_tag_count = 1;
    return o;
}

static struct weir_payload_opts who(void)
{
    return (struct weir_payload_opts){.struct_size = sizeof(struct weir_payload_opts),
                                      .runtime_id = f_str("r"),
                                      .service = f_str("svc"),
                                      .env = f_str("e"),
                                      .version = f_str("v")};
}

static void set(struct weir_value *slots, struct weir_span *s, size_t slot, const char *text)
{
    slots[slot] = (struct weir_value){
        .type = WEIR_VALUE_BYTES, .len = (uint32_t)strlen(text), .v = {.ptr = text}};
    s->slots = slots;
    s->present |= UINT64_C(1) << slot;
}

static struct weir_batch *seal_one(struct fixture *f)
{
    struct weir_batch_info info;
    f_seal(f);
    struct weir_batch *const b = f_take(f, &info);
    T_TRUE(b != NULL);
    return b;
}

/* ---- a body, read back ---- */

struct row {
    struct weir_bytes name, service, resource, type, kind, source, method, endpoint, grpc, ok,
        error;
    struct weir_bytes tags[8];
    size_t tag_count;
    struct weir_bytes more[8];
    size_t more_count;
    bool has_more;
    uint64_t status, synthetic, root, hits, errors, top, duration;
};
struct body {
    struct weir_bytes runtime, hostname, service, env, version, process, sha;
    uint64_t sequence, start, duration;
    size_t keys;
    struct row rows[8];
    size_t count;
};

static bool is(struct weir_bytes b, const char *text)
{
    return b.len == strlen(text) && (!b.len || memcmp(b.ptr, text, b.len) == 0);
}

static const uint8_t *take_texts(struct wr_mp *m, const uint8_t *at, struct weir_bytes *texts,
                                 size_t *ret_count)
{
    uint32_t n;
    at = wr_mp_array(m, at, &n);
    T_TRUE(at && n <= 8);
    *ret_count = n;
    for (size_t i = 0; i < n && at; i++)
        at = wr_mp_str(m, at, &texts[i]);
    return at;
}

static const uint8_t *take_row(struct wr_mp *m, const uint8_t *at, struct row *r)
{
    const struct {
        const char *name;
        struct weir_bytes *text;
        uint64_t *number;
    } fields[] = {
        {"Name", &r->name, NULL},
        {"Service", &r->service, NULL},
        {"Resource", &r->resource, NULL},
        {"Type", &r->type, NULL},
        {"HTTPStatusCode", NULL, &r->status},
        {"IsTraceRoot", NULL, &r->root},
        {"SpanKind", &r->kind, NULL},
        {"srv_src", &r->source, NULL},
        {"HTTPMethod", &r->method, NULL},
        {"HTTPEndpoint", &r->endpoint, NULL},
        {"GRPCStatusCode", &r->grpc, NULL},
        {"Hits", NULL, &r->hits},
        {"Errors", NULL, &r->errors},
        {"TopLevelHits", NULL, &r->top},
        {"Duration", NULL, &r->duration},
        {"OkSummary", &r->ok, NULL},
        {"ErrorSummary", &r->error, NULL},
    };
    uint32_t pairs;
    *r = (struct row){0};
    at = wr_mp_map(m, at, &pairs);
    for (uint32_t i = 0; i < pairs && at; i++) {
        struct weir_bytes key;
        at = wr_mp_str(m, at, &key);
        if (is(key, "PeerTags")) {
            at = take_texts(m, at, r->tags, &r->tag_count);
            continue;
        }
        if (is(key, "AdditionalMetricTags")) {
            r->has_more = true;
            at = take_texts(m, at, r->more, &r->more_count);
            continue;
        }
        if (is(key, "Synthetics")) {
            struct wr_mp_item item;
            at = wr_mp_item(m, at, &item);
            T_EQ_U64(item.type, WR_MP_BOOL);
            r->synthetic = item.v.u;
            continue;
        }
        size_t k = 0;
        while (k < sizeof fields / sizeof *fields && !is(key, fields[k].name))
            k++;
        T_TRUE(k < sizeof fields / sizeof *fields);
        at = fields[k].text ? wr_mp_str(m, at, fields[k].text) : wr_mp_u64(m, at, fields[k].number);
    }
    return at;
}

static const uint8_t *take_buckets(struct wr_mp *m, const uint8_t *at, struct body *b)
{
    uint32_t n;
    uint32_t pairs;
    struct weir_bytes key;
    at = wr_mp_array(m, at, &n);
    T_EQ_U64(n, 1);
    at = wr_mp_map(m, at, &pairs);
    T_EQ_U64(pairs, 3);
    at = wr_mp_str(m, at, &key);
    T_TRUE(is(key, "Start"));
    at = wr_mp_u64(m, at, &b->start);
    at = wr_mp_str(m, at, &key);
    T_TRUE(is(key, "Duration"));
    at = wr_mp_u64(m, at, &b->duration);
    at = wr_mp_str(m, at, &key);
    T_TRUE(is(key, "Stats"));
    at = wr_mp_array(m, at, &n);
    T_TRUE(at != NULL);
    b->count = n;
    for (size_t i = 0; i < n; i++) {
        struct row r;
        at = take_row(m, at, &r);
        T_TRUE(at != NULL);
        if (i < 8)
            b->rows[i] = r;
    }
    return at;
}

static struct body read_body(struct weir_bytes bytes)
{
    struct body b = {0};
    const struct {
        const char *name;
        struct weir_bytes *text;
    } fields[] = {{"RuntimeID", &b.runtime},   {"Sequence", NULL},       {"Hostname", &b.hostname},
                  {"Service", &b.service},     {"Env", &b.env},          {"Version", &b.version},
                  {"ProcessTags", &b.process}, {"GitCommitSha", &b.sha}, {"Stats", NULL}};
    struct wr_mp m = wr_mp_init(bytes.ptr, bytes.len);
    uint32_t pairs;
    const uint8_t *at = wr_mp_map(&m, m.begin, &pairs);
    size_t k = 0;
    b.keys = pairs;
    for (uint32_t i = 0; i < pairs && at; i++, k++) {
        struct weir_bytes key;
        at = wr_mp_str(&m, at, &key);
        while (k < 9 && !is(key, fields[k].name))
            k++; /* in their order */
        T_TRUE(k < 9);
        if (fields[k].text)
            at = wr_mp_str(&m, at, fields[k].text);
        else
            at = k == 1 ? wr_mp_u64(&m, at, &b.sequence) : take_buckets(&m, at, &b);
    }
    T_TRUE(at == m.end && m.err == WEIR_OK);
    return b;
}

/* A sketch of ours must be readable; its count and sum of what it says. */
static struct weir_sketch *read_sketch(struct weir_bytes bytes)
{
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(NULL, &sk));
    T_OK(weir_codec_decode(WEIR_CODEC_DD_PROTO, NULL, bytes.ptr, bytes.len, sk, NULL));
    return sk;
}

/* ---- the golden bytes ---- */

static struct weir_mapping *linear(void)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_new(NULL, WEIR_MAPPING_LINEAR, exp2(1.0 / 64), 0, &m));
    return m;
}

static size_t golden(uint8_t *bytes, size_t cap)
{
    size_t n;
    uint8_t *const hex =
        t_read_file(T_SOURCE_DIR "/tests/golden/stats_payload/stats-java-one-group.hex", &n);
    T_TRUE(hex != NULL);
    char *const text = calloc(1, n + 1);
    T_TRUE(text != NULL);
    memcpy(text, hex, n);
    const size_t count = t_unhex(text, bytes, cap);
    free(text);
    free(hex);
    return count;
}

/* The two spans of the golden group: 100 ns without error and top level, 1 ns with one and not. */
static void publish_golden(struct fixture *f)
{
    struct weir_value slots[SLOT_PEER + 1];
    for (int i = 0; i < 2; i++) {
        struct weir_span s = f_span("svc", "res", f->now, i ? 1 : 100);
        s.kind = WEIR_KIND_CLIENT;
        s.flags = i ? WEIR_SPAN_ERROR : 0;
        set(slots, &s, WEIR_TAG_HTTP_STATUS, "200");
        set(slots, &s, SLOT_PEER, "h");
        slots[WEIR_TAG_TOP_LEVEL] = (struct weir_value){.type = WEIR_VALUE_INT, .v = {.i = 1}};
        if (!i)
            s.present |= UINT64_C(1) << WEIR_TAG_TOP_LEVEL;
        const struct weir_source source = {.now_ns = f->now,
                                           .flags = WEIR_SOURCE_TOP_LEVEL_COMPUTED};
        T_OK(weir_stats_publish(f->p, &source, &s, 1));
        f_poll(f);
    }
}

TEST(the_golden_body_of_the_java_tracer_to_the_byte)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    struct weir_mapping *const m = linear();
    o.mapping = m;
    o.max_bins = 1024;
    f_open(&f, &o);
    weir_mapping_unref(m); /* the instance holds it */
    publish_golden(&f);
    struct weir_batch *const b = seal_one(&f);
    const struct weir_payload_opts po = who();
    struct weir_payload *p;
    T_OK(weir_payload_new(f.st, &po, &p));
    struct weir_bytes body;
    T_OK(weir_payload_encode(p, b, INT64_C(1000000000000000000), &body));
    uint8_t want[512];
    T_EQ_BYTES(body.ptr, body.len, want, golden(want, sizeof want));
    weir_payload_free(p);
    weir_batch_release(b);
    f_close(&f);
}

TEST(the_reference_counts_a_sparse_sketch_in_one_run_too)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    struct weir_mapping *const m = linear();
    o.mapping = m;
    f_open(&f, &o);
    weir_mapping_unref(m);
    const struct weir_span s[2] = {f_span("a", "r", f.now, 1), f_span("a", "r", f.now, 1000000000)};
    f_publish(&f, s, 1);
    f_publish(&f, s + 1, 1);
    struct weir_batch *const b = seal_one(&f);
    struct weir_payload *p;
    T_OK(weir_payload_new(f.st, NULL, &p));
    struct weir_bytes bytes;
    T_OK(weir_payload_encode(p, b, f.now, &bytes));
    const struct body body = read_body(bytes);
    /* 1,912 doubles from bin 0 to that of 10^9 ns, 1911 */
    T_TRUE(body.rows[0].ok.len > 1912 * 8 && body.rows[0].ok.len < 1912 * 8 + 40);
    weir_payload_free(p);
    weir_batch_release(b);
    f_close(&f);
}

/* ---- our own ---- */

TEST(by_default_sketches_are_read_as_nanoseconds_within_our_accuracy)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    publish_golden(&f);
    struct weir_batch *const b = seal_one(&f);
    const struct weir_payload_opts po = who();
    struct weir_payload *p;
    T_OK(weir_payload_new(f.st, &po, &p));
    struct weir_bytes bytes;
    T_OK(weir_payload_encode(p, b, f.now, &bytes));
    const struct body body = read_body(bytes);
    T_EQ_U64(body.count, 1);
    const struct row *const r = &body.rows[0];
    T_TRUE(is(r->name, "op") && is(r->service, "svc") && is(r->resource, "res") &&
           is(r->type, "web") && is(r->kind, "client"));
    T_EQ_U64(r->status, 200);
    T_EQ_U64(r->root, 1);
    T_EQ_U64(r->hits, 2);
    T_EQ_U64(r->errors, 1);
    T_EQ_U64(r->top, 1);
    T_EQ_U64(r->duration, 101);
    T_EQ_U64(r->tag_count, 1);
    T_TRUE(is(r->tags[0], "peer.hostname:h"));
    T_TRUE(!r->has_more);
    double value;
    struct weir_sketch *const ok = read_sketch(r->ok);
    struct weir_sketch *const error = read_sketch(r->error);
    T_EQ_U64(weir_sketch_weight(ok), WEIR_WEIGHT_ONE);
    T_OK(weir_sketch_quantile(ok, 0.5, &value));
    T_NEAR(value, 100.0, 0.00542);
    T_OK(weir_sketch_quantile(error, 0.5, &value));
    T_NEAR(value, 1.0, 0.00542);
    weir_sketch_free(ok);
    weir_sketch_free(error);
    weir_payload_free(p);
    weir_batch_release(b);
    f_close(&f);
}

TEST(J1_the_head_has_its_keys_in_order_and_the_sequence_counts_bodies)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    struct weir_payload_opts po = who();
    po.process_tags = f_str("a:b,c:d");
    po.git_commit_sha = f_str("abc");
    struct weir_payload *p;
    T_OK(weir_payload_new(f.st, &po, &p));
    for (uint64_t i = 0; i < 3; i++) {
        const struct weir_span s = f_span("a", "r", f.now, 100);
        f_publish(&f, &s, 1);
        struct weir_batch *const b = seal_one(&f);
        struct weir_bytes bytes;
        T_OK(weir_payload_encode(p, b, f.now + 7, &bytes));
        const struct body body = read_body(bytes);
        T_EQ_U64(body.keys, 9);
        T_EQ_U64(body.sequence, i);
        T_EQ_U64(body.start, f.now + 7);
        T_EQ_U64(body.duration, 10 * f_second);
        T_TRUE(is(body.process, "a:b,c:d") && is(body.sha, "abc") && is(body.hostname, ""));
        weir_batch_release(b);
    }
    weir_payload_free(p);
    f_close(&f);
}

TEST(align_writes_the_start_of_the_window)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.flags = WEIR_STATS_ALIGN;
    f_open(&f, &o);
    f.now += 3 * f_second;
    f_poll(&f);
    const struct weir_span s = f_span("a", "r", f.now, 100);
    f_publish(&f, &s, 1);
    struct weir_batch *const b = seal_one(&f);
    struct weir_payload_opts po = who();
    po.flags = WEIR_PAYLOAD_ALIGN;
    struct weir_payload *p;
    T_OK(weir_payload_new(f.st, &po, &p));
    struct weir_bytes bytes;
    T_OK(weir_payload_encode(p, b, f.now, &bytes));
    T_EQ_U64(read_body(bytes).start, f_t0);
    weir_payload_free(p);
    weir_batch_release(b);
    f_close(&f);
}

TEST(no_activity_sends_nothing_and_counts_nothing)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    struct weir_payload *p;
    T_OK(weir_payload_new(f.st, NULL, &p));
    f_seal(&f);
    T_TRUE(!weir_stats_take_batch(f.st));
    struct weir_span s = f_span("a", "r", f.now, 0); /* does not count: a batch without rows */
    f_publish(&f, &s, 1);
    struct weir_batch *b = seal_one(&f);
    struct weir_bytes bytes;
    T_ERR(weir_payload_encode(p, b, f.now, &bytes), WEIR_EEMPTY);
    weir_batch_release(b);
    s = f_span("a", "r", f.now, 1);
    f_publish(&f, &s, 1);
    b = seal_one(&f);
    T_OK(weir_payload_encode(p, b, f.now, &bytes));
    T_EQ_U64(read_body(bytes).sequence, 0);
    weir_batch_release(b);
    weir_payload_free(p);
    f_close(&f);
}

TEST(optional_fields_are_there_when_they_are_not_empty_and_tags_are_packed)
{
    static const char *const dimensions[] = {"region", "app"};
    for (int full = 0; full < 2; full++) {
        struct fixture f;
        struct weir_stats_opts o = client_opts(&f);
        o.dimensions = dimensions;
        o.dimension_count = 2;
        o.flags = WEIR_STATS_ENDPOINTS;
        f_open(&f, &o);
        struct weir_value slots[WEIR_TAG_FIXED + 3];
        struct weir_span s = f_span("a", "r", f.now, 100);
        s.type = f_str("rpc");
        s.kind = WEIR_KIND_INTERNAL;
        s.parent_id = 3;
        if (full) {
            set(slots, &s, WEIR_TAG_SERVICE_SOURCE, "kafka");
            set(slots, &s, WEIR_TAG_HTTP_METHOD, "GET");
            set(slots, &s, WEIR_TAG_HTTP_ENDPOINT, "/a");
            set(slots, &s, WEIR_TAG_GRPC_STATUS, "5");
            set(slots, &s, WEIR_TAG_BASE_SERVICE, "base");
            set(slots, &s, WEIR_TAG_ORIGIN, "synthetics");
            set(slots, &s, WEIR_TAG_FIXED + 2, ""); /* region */
        }
        f_publish(&f, &s, 1);
        struct weir_batch *const b = seal_one(&f);
        struct weir_payload *p;
        T_OK(weir_payload_new(f.st, NULL, &p));
        struct weir_bytes bytes;
        T_OK(weir_payload_encode(p, b, f.now, &bytes));
        const struct body body = read_body(bytes);
        const struct row *const r = &body.rows[0];
        T_TRUE(is(r->source, full ? "kafka" : "") && is(r->method, full ? "GET" : "") &&
               is(r->endpoint, full ? "/a" : "") && is(r->grpc, full ? "5" : ""));
        T_EQ_U64(r->source.ptr != NULL, full);
        T_EQ_U64(r->synthetic, full);
        T_EQ_U64(r->root, 2);
        T_TRUE(r->has_more); /* whenever dimensions are configured */
        T_EQ_U64(r->more_count, full);
        T_EQ_U64(r->tag_count, full);
        if (full) {
            T_TRUE(is(r->tags[0], "_dd.base_service:base"));
            T_TRUE(is(r->more[0], "region:"));
        }
        weir_payload_free(p);
        weir_batch_release(b);
        f_close(&f);
    }
}

TEST(blocked_tags_keep_their_name_and_the_overflow_row_has_no_flags)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.limits[WEIR_LIMIT_PEER_TAGS] = 1;
    o.max_keys = 2;
    f_open(&f, &o);
    static const char *const hosts[] = {"a", "b", "c"};
    for (size_t i = 0; i < 4; i++) {
        struct weir_value slots[SLOT_PEER + 1];
        struct weir_span s = f_span("a", i < 3 ? "r" : "other", f.now, 100);
        s.kind = WEIR_KIND_CLIENT;
        if (i < 3)
            set(slots, &s, SLOT_PEER, hosts[i]);
        f_publish(&f, &s, 1);
    }
    struct weir_batch *const b = seal_one(&f);
    struct weir_payload *p;
    T_OK(weir_payload_new(f.st, NULL, &p));
    struct weir_bytes bytes;
    T_OK(weir_payload_encode(p, b, f.now, &bytes));
    const struct body body = read_body(bytes);
    T_EQ_U64(body.count, 3);
    size_t seen = 0;
    for (size_t i = 0; i < 3; i++) {
        const struct row *const r = &body.rows[i];
        T_EQ_U64(r->tag_count, 1);
        if (is(r->resource, "tracer_blocked_value")) {
            T_EQ_U64(r->root, 0);
            T_TRUE(is(r->kind, "tracer_blocked_value"));
            seen |= 1;
        } else if (is(r->tags[0], "peer.hostname:tracer_blocked_value")) {
            T_EQ_U64(r->hits, 2);
            seen |= 2;
        }
    }
    T_EQ_U64(seen, 3);
    weir_payload_free(p);
    weir_batch_release(b);
    f_close(&f);
}

TEST(texts_of_the_head_are_cut_between_characters)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    char text[301];
    for (size_t i = 0; i < 300; i += 3)
        memcpy(text + i, "\xe6\x97\xa5", 3);
    text[300] = 0;
    struct weir_payload_opts po = who();
    po.service = f_str(text);
    po.env = f_str(text);
    po.runtime_id = f_str("a\xff");
    struct weir_payload *p;
    T_OK(weir_payload_new(f.st, &po, &p));
    const struct weir_span s = f_span("a", text, f.now, 100);
    f_publish(&f, &s, 1);
    struct weir_batch *const b = seal_one(&f);
    struct weir_bytes bytes;
    T_OK(weir_payload_encode(p, b, f.now, &bytes));
    const struct body body = read_body(bytes);
    T_EQ_U64(body.service.len, 99);
    T_EQ_U64(body.env.len, 198);
    T_TRUE(is(body.runtime, "a\xef\xbf\xbd"));
    T_TRUE(is(body.rows[0].resource, text));
    weir_payload_free(p);
    weir_batch_release(b);
    f_close(&f);
}

TEST(a_body_past_its_limit_and_a_foreign_batch_are_refused_and_change_nothing)
{
    struct fixture f;
    struct fixture g;
    const struct weir_stats_opts o = client_opts(&f);
    const struct weir_stats_opts og = client_opts(&g);
    f_open(&f, &o);
    f_open(&g, &og);
    struct weir_payload_opts po = who();
    po.max_bytes = 100;
    struct weir_payload *small;
    struct weir_payload *p;
    struct weir_payload *other;
    T_OK(weir_payload_new(f.st, &po, &small));
    T_OK(weir_payload_new(f.st, NULL, &p));
    T_OK(weir_payload_new(g.st, NULL, &other));
    const struct weir_span s = f_span("a", "r", f.now, 100);
    f_publish(&f, &s, 1);
    struct weir_batch *const b = seal_one(&f);
    struct weir_bytes bytes;
    T_ERR(weir_payload_encode(small, b, f.now, &bytes), WEIR_EFULL);
    T_ERR(weir_payload_encode(other, b, f.now, &bytes), WEIR_EINVAL);
    T_OK(weir_payload_encode(p, b, f.now, &bytes));
    T_EQ_U64(read_body(bytes).sequence, 0);
    weir_payload_free(small);
    weir_payload_free(p);
    weir_payload_free(other);
    weir_batch_release(b);
    f_close(&f);
    f_close(&g);
    po.flags = WEIR_PAYLOAD_ALIGN << 1;
    T_ERR(weir_payload_new(NULL, &po, &p), WEIR_EINVAL);
    po.struct_size = 1;
    T_ERR(weir_payload_new(NULL, &po, &p), WEIR_EINVAL);
}

TEST(rows_of_an_agent_can_be_written_too)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    struct weir_value slots[WEIR_TAG_FIXED];
    struct weir_span s = f_span("a", "r", f.now, 100);
    s.kind = WEIR_KIND_SERVER;
    set(slots, &s, WEIR_TAG_HTTP_ROUTE, "/users/:id");
    f_publish(&f, &s, 1);
    struct weir_batch *const b = seal_one(&f);
    struct weir_payload *p;
    T_OK(weir_payload_new(f.st, NULL, &p));
    struct weir_bytes bytes;
    T_OK(weir_payload_encode(p, b, f.now, &bytes));
    const struct body body = read_body(bytes);
    T_TRUE(is(body.rows[0].kind, "server") && is(body.rows[0].endpoint, "/users/:id"));
    T_EQ_U64(body.rows[0].root, 0);
    weir_payload_free(p);
    weir_batch_release(b);
    f_close(&f);
}

/* ---- weights ---- */

TEST(weights_that_are_no_whole_numbers_lose_nothing_in_the_long_run)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    struct weir_payload *p;
    T_OK(weir_payload_new(f.st, NULL, &p));
    struct t_rng rng = t_rng(t_seed());
    uint64_t hits = 0;
    uint64_t errors = 0;
    uint64_t top = 0;
    uint64_t duration = 0;
    double want[3] = {0};
    double want_duration = 0;
    for (int i = 0; i < 400; i++) {
        for (int k = 0; k < 3; k++) {
            struct weir_span s = f_span("a", k ? "r" : "q", f.now, 1 + (int64_t)t_below(&rng, 5));
            const double weight = 1.0 + t_unit(&rng) * 2;
            s.weight = (uint64_t)(weight * WEIR_WEIGHT_ONE);
            s.flags = t_below(&rng, 3) ? 0 : WEIR_SPAN_ERROR;
            const double w = (double)s.weight / WEIR_WEIGHT_ONE;
            want[0] += w;
            want[1] += s.flags ? w : 0;
            want[2] += w; /* each is a root */
            want_duration += w * (double)s.duration_ns;
            f_publish(&f, &s, 1);
        }
        struct weir_batch *const b = seal_one(&f);
        struct weir_bytes bytes;
        T_OK(weir_payload_encode(p, b, f.now, &bytes));
        const struct body body = read_body(bytes);
        for (size_t k = 0; k < body.count; k++) {
            T_TRUE(body.rows[k].errors <= body.rows[k].hits);
            T_TRUE(body.rows[k].top <= body.rows[k].hits);
            hits += body.rows[k].hits;
            errors += body.rows[k].errors;
            top += body.rows[k].top;
            duration += body.rows[k].duration;
        }
        weir_batch_release(b);
        T_TRUE(fabs((double)hits - want[0]) <= 1.001);
        T_TRUE(fabs((double)errors - want[1]) <= 0.501);
        T_TRUE(fabs((double)top - want[2]) <= 2.001);
        T_TRUE(fabs((double)duration - want_duration) <= 0.501);
    }
    weir_payload_free(p);
    f_close(&f);
}

TEST(T19_a_rate_of_a_quarter_is_four_hits_and_four_in_the_sketch_or_one_as_in_the_reference)
{
    for (int once = 0; once < 2; once++) {
        struct fixture f;
        struct weir_stats_opts o = client_opts(&f);
        o.flags = once ? WEIR_STATS_UNWEIGHTED_SKETCHES : 0;
        f_open(&f, &o);
        for (uint64_t i = 0; i < 4; i++) {
            struct weir_span s = f_span("a", "r", f.now, 100);
            s.weight = 4 * WEIR_WEIGHT_ONE;
            const struct weir_source source = {.now_ns = f.now};
            T_OK(weir_stats_publish(f.p, &source, &s, 1));
        }
        f_poll(&f);
        weir_stats_seal_all(f.st, f.now, f.now - f.wall_minus_mono);
        struct weir_batch *const b = weir_stats_take_batch(f.st);
        struct weir_batch_info info;
        weir_batch_get_info(b, &info);
        T_EQ_U64(info.counts.rows_weight, 16 * WEIR_WEIGHT_ONE);
        T_EQ_U64(info.counts.admitted_weight, 16 * WEIR_WEIGHT_ONE);
        T_EQ_U64(info.counts.sketch_weight, (once ? 4 : 16) * WEIR_WEIGHT_ONE);
        struct weir_payload *p;
        T_OK(weir_payload_new(f.st, NULL, &p));
        struct weir_bytes bytes;
        T_OK(weir_payload_encode(p, b, f.now, &bytes));
        const struct body body = read_body(bytes);
        T_EQ_U64(body.rows[0].hits, 16);
        T_EQ_U64(body.rows[0].duration, 1600);
        struct weir_sketch *const sk = read_sketch(body.rows[0].ok);
        T_EQ_U64(weir_sketch_weight(sk), (once ? 4 : 16) * WEIR_WEIGHT_ONE);
        weir_sketch_free(sk);
        weir_payload_free(p);
        weir_batch_release(b);
        f_close(&f);
    }
}

TEST(T19_a_rate_that_is_none_is_one_hit_counted)
{
    static const double bad[] = {0, -1, 2, NAN, INFINITY};
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    T_EQ_U64(weir_weight_of_rate(0.25), 4 * WEIR_WEIGHT_ONE);
    T_EQ_U64(weir_weight_of_rate(1), WEIR_WEIGHT_ONE);
    T_EQ_U64(weir_weight_of_rate(1.0 / 3), 3 * WEIR_WEIGHT_ONE);
    T_EQ_U64(weir_weight_of_rate(1e-300), UINT64_C(1) << 62); /* capped when it counts */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct weir_span s = f_span("a", "r", f.now, 100);
        s.weight = weir_weight_of_rate(bad[i]);
        f_publish(&f, &s, 1);
    }
    struct weir_span s = f_span("a", "r", f.now, 100);
    s.weight = weir_weight_of_rate(1e-300);
    f_publish(&f, &s, 1);
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.bad_rate, 5);
    T_EQ_U64(h.weight_capped, 1);
    struct weir_batch *const b = seal_one(&f);
    struct weir_row r;
    weir_batch_get_row(b, 0, &r);
    T_EQ_U64(r.hits, (5 + (UINT64_C(1) << 20)) * WEIR_WEIGHT_ONE);
    weir_batch_release(b);
    f_close(&f);
}

/* ---- memory ---- */

static int encode_all(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    struct weir_stats_opts o = {.struct_size = sizeof o,
                                .alloc = *alloc,
                                .profile = WEIR_PROFILE_CLIENT,
                                .peer_tags = peers,
                                .peer_tag_count = 1,
                                .dimensions = peers + 0,
                                .dimension_count = 0};
    static const char *const ignored[] = {"x"};
    o.ignored_resources = ignored;
    o.ignored_resource_count = 1;
    struct weir_stats *st;
    int r = weir_stats_new(&o, &st);
    if (r != WEIR_OK)
        return r;
    struct weir_producer *producer = NULL;
    struct weir_payload *p = NULL;
    struct weir_batch *b = NULL;
    r = weir_producer_new(st, 4096, 0, &producer);
    if (r == WEIR_OK)
        r = weir_payload_new(st, NULL, &p);
    if (r == WEIR_OK) {
        const struct weir_span s = f_span("a", "r", f_t0, 100);
        const struct weir_source source = {.now_ns = f_t0};
        if (weir_stats_publish(producer, &source, &s, 1) != WEIR_OK)
            r = WEIR_ENOMEM;
        weir_stats_seal_all(st, f_t0, 0);
        b = weir_stats_take_batch(st);
        struct weir_bytes bytes;
        if (r == WEIR_OK)
            r = b ? weir_payload_encode(p, b, f_t0, &bytes) : WEIR_ENOMEM;
        if (r == WEIR_EEMPTY)
            r = WEIR_ENOMEM; /* the span was dropped for want of memory */
    }
    weir_batch_release(b);
    weir_payload_free(p);
    weir_producer_free(producer);
    weir_stats_free(st);
    return r;
}

TEST(no_refused_allocation_leaks_on_the_way_to_a_body)
{
    t_each_oom(encode_all, NULL);
}

TEST(a_second_body_of_the_same_size_asks_for_no_memory)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    struct weir_payload *p;
    T_OK(weir_payload_new(f.st, NULL, &p));
    struct weir_bytes bytes;
    long before = 0;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 300; k++) {
            char name[24];
            (void)snprintf(name, sizeof name, "r%d", k);
            const struct weir_span s = f_span("a", name, f.now, 100);
            f_publish(&f, &s, 1);
        }
        struct weir_batch *const b = seal_one(&f);
        before = f.heap.seen;
        T_OK(weir_payload_encode(p, b, f.now, &bytes));
        if (i > 0)
            T_EQ_I64(f.heap.seen, before);
        T_EQ_U64(read_body(bytes).count, 300);
        weir_batch_release(b);
    }
    weir_payload_free(p);
    f_close(&f);
}
