/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile client: which spans count, what their key is, what a sampler is told. Rows of the case
 * list of client statistics by their numbers (J: the table of the Java tracer).
 */
#include "fixture.h"

enum { SLOT_PEER = WEIR_TAG_FIXED, SLOT_BASE_PEER, SLOTS = WEIR_TAG_SLOTS_MAX };

static const char *const peers[] = {"peer.hostname", "_dd.base_service"};

struct tagged {
    struct weir_span s;
    struct weir_value slots[SLOTS];
};

static struct weir_stats_opts client_opts(struct fixture *f)
{
    struct weir_stats_opts o = f_opts(f);
    o.profile = WEIR_PROFILE_CLIENT;
    o.peer_tags = peers;
    o.peer_tag_count = 2;
    return o;
}

static void tag(struct tagged *t, size_t slot, const char *text)
{
    t->slots[slot] = (struct weir_value){
        .type = WEIR_VALUE_BYTES, .len = (uint32_t)strlen(text), .v = {.ptr = text}};
    t->s.slots = t->slots;
    t->s.present |= UINT64_C(1) << slot;
}

static void number(struct tagged *t, size_t slot, int64_t v)
{
    t->slots[slot] = (struct weir_value){.type = WEIR_VALUE_INT, .v = {.i = v}};
    t->s.slots = t->slots;
    t->s.present |= UINT64_C(1) << slot;
}

/* A child of another service's span that is not there: top level only when the parent is. */
static void child(struct fixture *f, struct tagged *t, const char *resource)
{
    *t = (struct tagged){.s = f_span("svc", resource, f->now, 100)};
    t->s.parent_id = 5;
}

/* The trace [parent of the same service, the span]: so the span is not top level. */
static void publish_below(struct fixture *f, const struct tagged *t)
{
    struct weir_span s[2] = {f_span("svc", "parent", f->now, 0), t->s};
    s[0].span_id = 5;
    f_publish(f, s, 2);
}

static struct weir_stats_health health(const struct fixture *f)
{
    struct weir_stats_health h;
    weir_stats_get_health(f->st, &h);
    return h;
}

static bool counts(const struct tagged *t, struct fixture *f)
{
    const uint64_t before = health(f).aggregated;
    publish_below(f, t);
    return health(f).aggregated != before;
}

TEST(spans_of_four_kinds_count_unmeasured_and_not_top_level_others_do_not)
{
    static const struct {
        const char *text; /* NULL: by number */
        uint8_t kind;
        bool counted;
    } cases[] = {
        {NULL, WEIR_KIND_CLIENT, true},      {NULL, WEIR_KIND_PRODUCER, true},
        {NULL, WEIR_KIND_CONSUMER, true},    {NULL, WEIR_KIND_SERVER, true},
        {NULL, WEIR_KIND_INTERNAL, false},   {NULL, WEIR_KIND_NONE, false},
        {"server", WEIR_KIND_NONE, true},    {"broker", WEIR_KIND_NONE, false},
        {"Server", WEIR_KIND_SERVER, false}, /* by case */
    };
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tagged t;
        child(&f, &t, "r");
        t.s.kind = cases[i].kind;
        if (cases[i].text)
            tag(&t, WEIR_TAG_KIND, cases[i].text);
        T_EQ_U64(counts(&t, &f), cases[i].counted);
    }
    f_close(&f);
}

TEST(a_span_counts_when_it_is_measured_or_top_level_and_its_top_level_hits_say_so)
{
    for (int i = 0; i < 4; i++) {
        struct fixture f;
        const struct weir_stats_opts o = client_opts(&f);
        f_open(&f, &o);
        struct tagged t;
        child(&f, &t, "r");
        if (i & 1)
            number(&t, WEIR_TAG_MEASURED, 1);
        if (i & 2)
            number(&t, WEIR_TAG_TOP_LEVEL, 1);
        T_EQ_U64(counts(&t, &f), i != 0);
        f_seal(&f);
        struct weir_batch_info info;
        struct weir_batch *const b = f_take(&f, &info);
        if (i) {
            struct weir_row r;
            weir_batch_get_row(b, 0, &r);
            T_EQ_U64(r.top_level, i & 2 ? WEIR_WEIGHT_ONE : 0);
        }
        weir_batch_release(b);
        f_close(&f);
    }
}

TEST(a_span_whose_parent_has_no_service_is_top_level)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    struct weir_span s[2] = {f_span("", "a", f.now, 100), f_span("", "b", f.now, 100)};
    s[0].span_id = 5;
    s[1].parent_id = 5;
    f_publish(&f, s, 2);
    T_EQ_U64(health(&f).aggregated, 2);
    T_EQ_U64(health(&f).spans_in, 2);
    f_close(&f);
}

TEST(a_span_without_duration_or_end_does_not_count)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    struct weir_span s[3] = {f_span("a", "r", f.now, 0), f_span("a", "r", f.now, 10),
                             f_span("a", "r", f.now, 1)};
    s[1].flags = WEIR_SPAN_NO_END;
    s[0].span_id = 1;
    s[1].span_id = 2;
    f_publish(&f, s, 3);
    struct weir_span negative = f_span("a", "r", f.now, 0);
    negative.duration_ns = -5;
    f_publish(&f, &negative, 1);
    T_EQ_U64(health(&f).aggregated, 1);
    T_EQ_U64(health(&f).ineligible, 3);
    f_close(&f);
}

TEST(J6_a_long_running_span_counts_once_when_it_has_finished)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    static const int64_t versions[] = {1, 2, 12345, -3};
    for (size_t i = 0; i < 4; i++) {
        struct tagged t = {.s = f_span("a", "r", f.now, 100)};
        number(&t, WEIR_TAG_PARTIAL, versions[i]);
        f_publish(&f, &t.s, 1);
    }
    T_EQ_U64(health(&f).partial, 3);
    T_EQ_U64(health(&f).aggregated, 1);
    struct tagged t = {.s = f_span("a", "r", f.now, 100)};
    number(&t, WEIR_TAG_PARTIAL, 0); /* no snapshot */
    f_publish(&f, &t.s, 1);
    T_EQ_U64(health(&f).aggregated, 2);
    f_close(&f);
}

TEST(J2_an_ignored_resource_ends_its_trace_and_an_empty_resource_is_a_row)
{
    static const char *const ignored[] = {"zz", "foo", "a long resource"};
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.ignored_resources = ignored;
    o.ignored_resource_count = 3;
    f_open(&f, &o);
    struct weir_span s[4] = {f_span("a", "", f.now, 100), f_span("a", "fo", f.now, 100),
                             f_span("a", "foo", f.now, 100), f_span("a", "behind", f.now, 100)};
    for (size_t i = 0; i < 4; i++)
        s[i].span_id = i + 1;
    s[1].flags = WEIR_SPAN_ERROR;
    f_publish(&f, s, 4);
    T_TRUE(weir_stats_must_keep(f.p));
    T_EQ_U64(health(&f).aggregated, 2);
    T_EQ_U64(health(&f).ineligible, 2);
    /* One that would not count anyway ends nothing. */
    s[2].duration_ns = 0;
    f_publish(&f, s + 2, 2);
    T_EQ_U64(health(&f).aggregated, 3);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 3);
    size_t empty = 0;
    for (size_t i = 0; i < info.rows; i++)
        empty += f_has(b, i, "span_name", NULL);
    T_EQ_U64(empty, 1);
    weir_batch_release(b);
    f_close(&f);
    static const char *const broken[] = {NULL};
    o.ignored_resources = broken;
    o.ignored_resource_count = 1;
    T_ERR(weir_stats_new(&o, &f.st), WEIR_EINVAL);
}

TEST(a_trace_must_be_kept_exactly_when_a_span_that_counts_has_an_error)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    struct tagged t;
    child(&f, &t, "r");
    t.s.flags = WEIR_SPAN_ERROR; /* in a span that does not count */
    publish_below(&f, &t);
    T_TRUE(!weir_stats_must_keep(f.p));
    t.s.kind = WEIR_KIND_CLIENT;
    publish_below(&f, &t);
    T_TRUE(weir_stats_must_keep(f.p));
    t.s.flags = 0;
    publish_below(&f, &t);
    T_TRUE(!weir_stats_must_keep(f.p));
    const struct weir_stats_health h = health(&f);
    T_EQ_U64(h.traces_in, 3);
    T_EQ_U64(h.spans_in, 2);
    T_EQ_U64(h.dropped_p0_traces, 2);
    T_EQ_U64(h.dropped_p0_spans, 4);
    f_close(&f);
}

TEST(J10_K18_a_full_inbox_counts_each_trace_once_and_keeps_its_errors)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    struct weir_producer *slow;
    T_OK(weir_producer_new(f.st, 4096, 0, &slow));
    const struct weir_source source = {.now_ns = f.now};
    struct weir_span s = f_span("a", "r", f.now, 100);
    uint64_t taken = 0;
    while (weir_stats_publish(slow, &source, &s, 1) == WEIR_OK)
        taken++;
    T_TRUE(!weir_stats_must_keep(slow));
    s.flags = WEIR_SPAN_ERROR;
    for (int i = 0; i < 2; i++)
        T_ERR(weir_stats_publish(slow, &source, &s, 1), WEIR_EFULL);
    T_TRUE(weir_stats_must_keep(slow));
    const struct weir_stats_health h = health(&f);
    T_EQ_U64(h.dropped[WEIR_DROP_INBOX_FULL], 3);
    T_EQ_U64(h.traces_in, taken + 3);
    T_EQ_U64(h.spans_in, taken);
    T_EQ_U64(h.dropped_p0_traces, taken + 1);
    f_poll(&f);
    T_EQ_U64(health(&f).dropped[WEIR_DROP_INBOX_FULL], 3);
    weir_producer_free(slow);
    f_close(&f);
}

TEST(J3_null_and_empty_are_one_key)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    struct tagged t = {.s = f_span("a", "r", f.now, 100)};
    f_publish(&f, &t.s, 1);
    tag(&t, WEIR_TAG_SERVICE_SOURCE, "");
    tag(&t, WEIR_TAG_KIND, "");
    t.s.type = (struct weir_bytes){.ptr = "web", .len = 3};
    f_publish(&f, &t.s, 1);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 1);
    T_TRUE(f_has(b, 0, "service_source", NULL));
    weir_batch_release(b);
    f_close(&f);
}

TEST(peer_tags_are_of_outgoing_kinds_and_base_service_of_internal_ones)
{
    static const struct {
        uint8_t kind;
        const char *host;
        const char *base;
    } cases[] = {{WEIR_KIND_CLIENT, "localhost", "test"},
                 {WEIR_KIND_PRODUCER, "localhost", "test"},
                 {WEIR_KIND_CONSUMER, "localhost", "test"},
                 {WEIR_KIND_INTERNAL, NULL, "test"},
                 {WEIR_KIND_SERVER, NULL, NULL},
                 {WEIR_KIND_NONE, NULL, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        const struct weir_stats_opts o = client_opts(&f);
        f_open(&f, &o);
        struct tagged t = {.s = f_span("a", "r", f.now, 100)};
        t.s.kind = cases[i].kind;
        tag(&t, SLOT_PEER, "localhost");
        tag(&t, SLOT_BASE_PEER, "test");
        tag(&t, WEIR_TAG_BASE_SERVICE, "test");
        f_publish(&f, &t.s, 1);
        f_seal(&f);
        struct weir_batch_info info;
        struct weir_batch *const b = f_take(&f, &info);
        T_TRUE(f_has(b, 0, "peer_hostname", cases[i].host));
        T_TRUE(f_has(b, 0, "_dd_base_service", cases[i].base));
        weir_batch_release(b);
        f_close(&f);
    }
}

TEST(J12_a_base_service_that_is_a_number_is_its_text)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    struct tagged t = {.s = f_span("a", "r", f.now, 100)};
    t.s.kind = WEIR_KIND_INTERNAL;
    number(&t, WEIR_TAG_BASE_SERVICE, 5);
    f_publish(&f, &t.s, 1);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_TRUE(f_has(b, 0, "_dd_base_service", "5"));
    weir_batch_release(b);
    f_close(&f);
}

TEST(grpc_codes_are_of_type_rpc_and_endpoint_labels_by_option)
{
    for (int on = 0; on < 2; on++) {
        struct fixture f;
        struct weir_stats_opts o = client_opts(&f);
        o.flags = on ? WEIR_STATS_ENDPOINTS : 0;
        f_open(&f, &o);
        static const char *const codes[] = {"0", "5"};
        for (size_t i = 0; i < 2; i++) {
            struct tagged t = {.s = f_span("a", "r", f.now, 100)};
            t.s.type = f_str("rpc");
            tag(&t, WEIR_TAG_GRPC_STATUS, codes[i]);
            f_publish(&f, &t.s, 1);
        }
        struct tagged t = {.s = f_span("a", "r", f.now, 100)};
        tag(&t, WEIR_TAG_GRPC_STATUS, "5");
        tag(&t, WEIR_TAG_HTTP_METHOD, "GET");
        tag(&t, WEIR_TAG_HTTP_ENDPOINT, "/a");
        f_publish(&f, &t.s, 1);
        f_seal(&f);
        struct weir_batch_info info;
        struct weir_batch *const b = f_take(&f, &info);
        T_EQ_U64(info.rows, 3);
        uint64_t seen[3] = {0};
        for (size_t i = 0; i < 3; i++) {
            seen[0] += f_has(b, i, "rpc_grpc_status_code", "0");
            seen[1] += f_has(b, i, "rpc_grpc_status_code", "5");
            seen[2] +=
                f_has(b, i, "http_endpoint", "/a") && f_has(b, i, "http_request_method", "GET");
        }
        T_EQ_U64(seen[0], 1);
        T_EQ_U64(seen[1], 1);
        T_EQ_U64(seen[2], on);
        weir_batch_release(b);
        f_close(&f);
    }
}

TEST(synthetic_is_the_whole_word_and_the_root_of_a_trace_is_in_the_key)
{
    static const char *const origins[] = {"synthetics", "synthetics-browser", "Synthetics"};
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    for (size_t i = 0; i < 3; i++) {
        struct tagged t = {.s = f_span("a", origins[i], f.now, 100)};
        t.s.parent_id = i; /* absent: top level all the same */
        tag(&t, WEIR_TAG_ORIGIN, origins[i]);
        f_publish(&f, &t.s, 1);
    }
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    for (size_t i = 0; i < 3; i++) {
        const bool first = f_has(b, i, "span_name", "synthetics");
        T_TRUE(f_has(b, i, "synthetic", first ? "true" : NULL));
        T_TRUE(f_has(b, i, "trace_root", first ? "true" : "false"));
    }
    weir_batch_release(b);
    f_close(&f);
}

TEST(dimensions_are_the_first_four_by_name_and_an_empty_value_says_its_name)
{
    static const char *const names[] = {"tier", "zone", "a:b", "region", "", "cell", "tier", "app"};
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.peer_tags = NULL;
    o.dimensions = names;
    o.dimension_count = sizeof names / sizeof *names;
    f_open(&f, &o);
    T_EQ_U64(health(&f).dimensions_ignored, 4);
    const struct wr_schema *const s = &f.st->schema;
    T_EQ_U64(s->dimensions, 4);
    static const char *const want[] = {"app", "cell", "region", "tier"};
    for (size_t i = 0; i < 4; i++)
        T_EQ_STR(s->tags_text[WR_FIELD_FIXED + i], want[i]);
    f_close(&f);
}

TEST(what_is_published_belongs_to_that_window_and_with_align_to_the_one_of_its_end)
{
    for (int align = 0; align < 2; align++) {
        struct fixture f;
        struct weir_stats_opts o = client_opts(&f);
        o.flags = align ? WEIR_STATS_ALIGN : 0;
        f_open(&f, &o);
        f.now += 15 * f_second;
        f_poll(&f);
        const struct weir_span s = f_span("a", "r", f_t0 + 5 * f_second, 100);
        f_publish(&f, &s, 1);
        f_seal(&f);
        struct weir_batch_info info;
        struct weir_batch *const b = f_take(&f, &info);
        T_EQ_I64(info.start_ns, f_t0 + (align ? 0 : 10) * f_second);
        T_EQ_U64(info.counts.late, 0);
        weir_batch_release(b);
        f_close(&f);
    }
}

TEST(K15_the_overflow_row_has_the_sentinel_in_every_text_and_no_flags)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.max_keys = 1;
    f_open(&f, &o);
    struct weir_span s[2] = {f_span("a", "r", f.now, 100), f_span("b", "r", f.now, 100)};
    s[1].span_id = 9;
    f_publish(&f, s, 2);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 2);
    T_EQ_U64(info.counts.overflow, 1);
    const size_t row = f_has(b, 0, "service_name", "a") ? 1 : 0;
    static const char *const texts[] = {"service_name", "operation_name", "span_name",
                                        "span_type",    "span_kind",      "service_source",
                                        "peer_hostname"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        T_TRUE(f_has(b, row, texts[i], "tracer_blocked_value"));
    T_TRUE(f_has(b, row, "trace_root", NULL) && f_has(b, row, "synthetic", NULL));
    weir_batch_release(b);
    f_close(&f);
}

static void infers(const char *url, const char *want)
{
    char text[WR_ENDPOINT_MAX];
    const size_t n = wr_endpoint_of_url(text, url, strlen(url));
    T_EQ_U64(n, strlen(want));
    T_EQ_BYTES(text, n, want, strlen(want));
}

TEST(C12_an_endpoint_is_the_path_with_its_parameters_named)
{
    infers("http://host:80/users/123?x=/1", "/users/{param:int}");
    infers("/users/7", "/users/7"); /* two digits at least */
    infers("/users/07", "/users/07");
    infers("/users/1-2", "/users/{param:int_id}");
    infers("/0123", "/{param:int_id}");
    infers("/abc123", "/{param:hex}");
    infers("/abcdef", "/abcdef"); /* no digit */
    infers("/abc-12", "/{param:hex_id}");
    infers("/abcdefghijklmnopqrst", "/{param:str}");
    infers("/abcdefghijklmnopqrs", "/abcdefghijklmnopqrs");
    infers("/a%20b", "/{param:str}");
    infers("/a/b/c/d/e/f/g/h/i/j", "/a/b/c/d/e/f/g/h");
    infers("//a///b/", "/a/b");
    infers("https://host", "/");
    infers("https://host?q", "/");
    infers("", "/");
    infers("?a=b", "/");
    infers("host/12", "/host/{param:int}");
}

TEST(C12_an_endpoint_is_inferred_only_by_option_with_a_method_and_without_a_route)
{
    static const struct {
        uint32_t flags;
        const char *method;
        const char *route;
        const char *want;
    } cases[] = {
        {WEIR_STATS_ENDPOINTS, "GET", NULL, NULL},
        {WEIR_STATS_ENDPOINTS | WEIR_STATS_INFER_ENDPOINT, NULL, NULL, NULL},
        {WEIR_STATS_ENDPOINTS | WEIR_STATS_INFER_ENDPOINT, "GET", NULL, "/users/{param:int}"},
        {WEIR_STATS_ENDPOINTS | WEIR_STATS_INFER_ENDPOINT, "GET", "*", "/users/{param:int}"},
        {WEIR_STATS_ENDPOINTS | WEIR_STATS_INFER_ENDPOINT, "GET", "*/*", "/users/{param:int}"},
        {WEIR_STATS_ENDPOINTS | WEIR_STATS_INFER_ENDPOINT, "GET", "/users/:id", NULL},
        {WEIR_STATS_ENDPOINTS | WEIR_STATS_SIMPLIFY_ENDPOINT, "GET", "/users/:id",
         "/users/{param:int}"},
        {WEIR_STATS_INFER_ENDPOINT, "GET", NULL, NULL}, /* the label is off */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int client = 0; client < 2; client++) {
            struct fixture f;
            struct weir_stats_opts o = client_opts(&f);
            o.flags = cases[i].flags;
            if (!client) {
                o.profile = WEIR_PROFILE_ALL;
                o.peer_tags = NULL;
            }
            f_open(&f, &o);
            struct tagged t = {.s = f_span("a", "GET", f.now, 100)};
            tag(&t, WEIR_TAG_HTTP_URL, "http://h/users/123");
            if (cases[i].method)
                tag(&t, WEIR_TAG_HTTP_METHOD, cases[i].method);
            if (cases[i].route)
                tag(&t, WEIR_TAG_HTTP_ROUTE, cases[i].route);
            f_publish(&f, &t.s, 1);
            f_seal(&f);
            struct weir_batch_info info;
            struct weir_batch *const b = f_take(&f, &info);
            const bool inferred = cases[i].want || (!client && i == 7);
            const char *const want = inferred ? "/users/{param:int}" : NULL;
            T_TRUE(f_has(b, 0, client ? "http_endpoint" : "http_route",
                         want || client ? want : cases[i].route));
            weir_batch_release(b);
            f_close(&f);
        }
    }
}

/* Five spans of as many services, each its own row. */
static void five_services(struct fixture *f, int from)
{
    for (int i = from; i < from + 5; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "service%d", i);
        const struct weir_span s = f_span(name, "r", f->now, 100);
        f_publish(f, &s, 1);
    }
}

TEST(after_a_report_newcomers_have_the_places_of_those_that_were_sent)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.max_keys = 5;
    f_open(&f, &o);
    for (int turn = 0; turn < 3; turn++) {
        five_services(&f, turn * 5);
        f_seal(&f);
        struct weir_batch_info info;
        struct weir_batch *const b = f_take(&f, &info);
        T_EQ_U64(info.rows, 5);
        T_EQ_U64(info.counts.overflow, 0);
        weir_batch_release(b);
    }
    T_EQ_U64(health(&f).keys, 5);
    f_close(&f);
}

TEST(J5_what_is_cleared_is_in_no_later_window)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    five_services(&f, 0);
    struct weir_signal_node clear = {.kind = WEIR_SIGNAL_CLEAR};
    weir_stats_signal(f.st, &clear);
    f_poll(&f);
    struct weir_batch_info info;
    struct weir_batch *b = f_take(&f, &info);
    T_EQ_U64(info.rows, 0);
    T_EQ_U64(info.counts.dropped[WEIR_DROP_CLEARED], 5);
    weir_batch_release(b);
    const struct weir_span marker = f_span("marker", "r", f.now, 100);
    f_publish(&f, &marker, 1);
    f_seal(&f);
    b = f_take(&f, &info);
    T_EQ_U64(info.rows, 1);
    T_TRUE(f_has(b, 0, "service_name", "marker"));
    weir_batch_release(b);
    f_close(&f);
}
