/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir inspect: recorded bodies give the spans and rows that other readers count in them, broken
 * ones the byte and the reason, and what is mended, dropped or not eligible is said.
 */
#include "t.h"

#include "cli/inspect.h"
#include "cli/inspect_body.h"
#include "cli/inspect_print.h"
#include "cli/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/trace.h>

static char *no_env[] = {NULL};

struct run {
    int status;
    char *out; /* with a NUL behind it */
    size_t out_bytes;
    char err[512];
};

static void run_args(struct run *r, int argc, char **argv)
{
    struct inspect_opts opts;
    struct query_buf out;
    query_buf_init(&out, (size_t)64 * 1024 * 1024);
    *r = (struct run){.status = 2};
    FILE *const err = fmemopen(r->err, sizeof r->err, "w");
    T_TRUE(err != NULL);
    if (cli_inspect_opts_parse(argc, argv, &opts, err))
        r->status = cli_inspect_run(&opts, no_env, &out, err);
    (void)fclose(err);
    query_buf_put_char(&out, '\0');
    T_OK(out.err);
    r->out = out.ptr;
    r->out_bytes = out.len - 1;
}

#define ARGS_MAX 12
/* Arguments behind the verb. */
#define RUN(r, ...) run_list((r), (const char *const[]){__VA_ARGS__, NULL})
static void run_list(struct run *r, const char *const *args)
{
    char *argv[ARGS_MAX + 1] = {strdup("inspect")};
    int argc = 1;
    for (; args[argc - 1] && argc < ARGS_MAX; argc++)
        argv[argc] = strdup(args[argc - 1]);
    run_args(r, argc, argv);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
}

static void run_done(struct run *r)
{
    free(r->out);
    r->out = NULL;
}

#define T_SAYS(r, part)                                                                            \
    do {                                                                                           \
        if (!strstr((r)->out, (part)))                                                             \
            T_FAIL("\"%s\" is not in: %s%s", (part), (r)->out, (r)->err);                          \
    } while (0)

/* A file of these bytes, for one run. */
static char *file_of(const void *bytes, size_t n)
{
    static char path[32];
    (void)snprintf(path, sizeof path, "/tmp/weir-inspect-XXXXXX");
    const int fd = mkstemp(path);
    T_TRUE(fd >= 0);
    T_TRUE(n == 0 || write(fd, bytes, n) == (ssize_t)n);
    (void)close(fd);
    return path;
}

/* Run on bytes; the last argument is the file. */
#define RUN_ON(r, bytes, n, ...)                                                                   \
    do {                                                                                           \
        char *const path_ = file_of((bytes), (n));                                                 \
        RUN((r), __VA_ARGS__, path_);                                                              \
        (void)unlink(path_);                                                                       \
    } while (0)

static size_t golden(const char *name, uint8_t *dst, size_t cap)
{
    char path[512];
    size_t n = 0;
    (void)snprintf(path, sizeof path, "%s/tests/golden/clients/%s", T_SOURCE_DIR, name);
    char *const text = (char *)t_read_file(path, &n);
    T_TRUE(text != NULL);
    char *const hex = realloc(text, n + 1);
    T_TRUE(hex != NULL);
    hex[n] = '\0';
    const size_t got = t_unhex(hex, dst, cap);
    free(hex);
    return got;
}

static double number(const struct cli_json_value *object, const char *name)
{
    double value = -1;
    T_TRUE(cli_json_number(cli_json_get(object, name), &value));
    return value;
}

static struct cli_json *parse(const struct run *r)
{
    struct cli_json *json = NULL;
    struct weir_where where = {.reason = "?"};
    if (cli_json_parse(r->out, r->out_bytes, &json, &where) != WEIR_OK)
        T_FAIL("not JSON at %zu: %s: %s %s", where.offset, where.reason, r->out, r->err);
    return json;
}

/* Recorded bodies. */

/* Spans, errors and rows as tests/support/weirtest/spans.py reads them; those that the MANIFEST
 * counts agree with it. */
static const struct {
    const char *file;
    const char *format;
    int traces;
    int spans;
    int errors;
    int rows;
} recorded[] = {
    {"dd-v05-04.v05.hex", "v0.5", 30, 31, 0, 4},
    {"greeting.v05.hex", "v0.5", 1, 2, 0, 2},
    {"dd-go-01.v1.hex", "v1.0", 10, 30, 1, 4},
    {"otel223-expo-delta-gzip-02.otlp.gz.hex", "otlp", 0, 48, 2, 4},
    {"py-stats-20.v05.hex", "v0.5", 3, 27, 1, 12},
    {"py-v04-12.v04.hex", "v0.4", 3, 27, 0, 9},
    {"py-v04-12.v07.hex", "v0.7", 3, 27, 0, 9},
    {"py-v04-12.v1.hex", "v1.0", 3, 27, 0, 9},
    {"pyotel-proto-08.otlp.hex", "otlp", 0, 24, 2, 2},
    {"sample.v1.hex", "v1.0", 1, 2, 0, 2},
    {"trace.otlp.hex", "otlp", 0, 1, 0, 1},
    {"v04-java-one-span.v04.hex", "v0.4", 1, 1, 0, 1},
    {"v05-java-one-span.v05.hex", "v0.5", 1, 1, 0, 1},
    {"webflux.v04.hex", "v0.4", 1, 2, 0, 2},
};
#define RECORDED_COUNT (sizeof recorded / sizeof *recorded)

static void check_recorded(const struct run *r, size_t i)
{
    struct cli_json *const json = parse(r);
    const struct cli_json_value *const root = cli_json_root(json);
    double calls = 0;
    double errors = 0;
    double rows = 0;
    const struct cli_json_value *const windows = cli_json_get(root, "windows");
    for (const struct cli_json_value *w = cli_json_first(windows); w;
         w = cli_json_next(windows, w)) {
        const struct cli_json_value *const list = cli_json_get(w, "rows");
        rows += number(w, "row_count");
        for (const struct cli_json_value *row = cli_json_first(list); row;
             row = cli_json_next(list, row)) {
            calls += number(row, "calls");
            errors += number(row, "errors");
            T_TRUE(number(row, "p50") <= number(row, "p99"));
            T_TRUE(number(row, "p99") <= number(row, "max"));
        }
    }
    T_TRUE(cli_json_text_is(cli_json_get(root, "format"), recorded[i].format));
    T_EQ_DBL(number(root, "traces"), recorded[i].traces);
    T_EQ_DBL(number(root, "spans"), recorded[i].spans);
    T_EQ_DBL(number(root, "span_errors"), recorded[i].errors);
    T_EQ_DBL(calls, recorded[i].spans);
    T_EQ_DBL(errors, recorded[i].errors);
    /* One body reaches over three windows, in which rows recur. */
    T_TRUE(rows >= recorded[i].rows && rows <= 3 * recorded[i].rows);
    if (windows->v.count == 1)
        T_EQ_DBL(rows, recorded[i].rows);
    const struct cli_json_value *const counts = cli_json_get(root, "counts");
    T_EQ_DBL(number(counts, "received"), recorded[i].spans);
    T_EQ_DBL(number(counts, "aggregated"), recorded[i].spans);
    T_EQ_U64(cli_json_get(root, "span_list")->v.count, (uint64_t)recorded[i].spans);
    cli_json_free(json);
}

TEST(recorded_bodies_give_the_spans_errors_and_rows_that_other_readers_count)
{
    for (size_t i = 0; i < RECORDED_COUNT; i++) {
        char path[512];
        struct run r;
        (void)snprintf(path, sizeof path, "%s/tests/golden/clients/%s", T_SOURCE_DIR,
                       recorded[i].file);
        RUN(&r, "--hex", "--json", "--spans", path);
        T_EQ_I64(r.status, 0);
        check_recorded(&r, i);
        run_done(&r);
    }
}

TEST(the_format_is_found_in_raw_bytes_as_in_hexadecimal_text)
{
    static uint8_t body[64 * 1024];
    for (size_t i = 0; i < RECORDED_COUNT; i++) {
        const size_t n = golden(recorded[i].file, body, sizeof body);
        struct run r;
        RUN_ON(&r, body, n, "--json", "--spans");
        T_EQ_I64(r.status, 0);
        check_recorded(&r, i);
        run_done(&r);
    }
}

TEST(text_tells_of_size_compression_format_spans_rows_and_counts)
{
    char path[512];
    struct run r;
    (void)snprintf(path, sizeof path, "%s/tests/golden/clients/%s", T_SOURCE_DIR,
                   "otel223-expo-delta-gzip-02.otlp.gz.hex");
    RUN(&r, "--hex", "--spans", "--limit", "2", path);
    T_EQ_I64(r.status, 0);
    T_SAYS(&r, ": 2457 bytes of gzip, 17547 bytes decompressed\n");
    T_SAYS(&r, "\nformat    otlp (it begins with protobuf's field 1, of bytes)\n");
    T_SAYS(&r, "\nread      48 spans, 2 with an error\n");
    T_SAYS(&r, "  and 46 more\n");
    T_SAYS(&r, "service_name=\"unknown_service:node\"");
    T_SAYS(&r, "counted   48 spans = 48 in rows + 0 ineligible + 0 partial + 0 dropped\n");
    run_done(&r);
}

/* What is refused. */

TEST(a_broken_payload_is_refused_with_its_offset_reason_and_bytes)
{
    static const struct {
        const char *format;
        const char *hex;
        const char *want;
    } rows[] = {
        {"v0.4", "91 91 c0",
         "REFUSED at byte 2: a span that is nil (bytes that are not of the expected format)\n"},
        {"v0.4", "91 91 82 a4", "REFUSED at byte 2: a container claims more"},
        {"v0.5", "92 91 a0 91 91 9c c0", "REFUSED at byte 5: a container claims more"},
        {"v0.5", "92 91 a0 91 91 9c c0 00000000 00000000 8080 00",
         "REFUSED at byte 6: a dictionary index that is nil"},
        {"v0.5", "92 91 a0", "REFUSED at byte 3: "},
        {"v0.7", "81 a3 656e76 01", "REFUSED at byte 5: not a string"},
        {"v1.0", "81 07 05", "REFUSED at byte 2: string number out of range"},
        {"otlp", "0a 05 12", "REFUSED at byte 0: "},
        {"otlp", "0a 02 12 05", "REFUSED at byte 2: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run r;
        RUN_ON(&r, rows[i].hex, strlen(rows[i].hex), "--hex", "--format", rows[i].format);
        if (r.status != 1 || !strstr(r.out, rows[i].want))
            T_FAIL("%s: %d: %s%s", rows[i].hex, r.status, r.out, r.err);
        T_SAYS(&r, "An agent counts nothing of this payload and answers 400.\n\n00000000  ");
        run_done(&r);
    }
}

TEST(a_payload_cut_anywhere_is_refused_there_or_before)
{
    static uint8_t body[4096];
    static const char *const files[] = {"webflux.v04.hex", "greeting.v05.hex"};
    for (size_t f = 0; f < 2; f++) {
        const size_t n = golden(files[f], body, sizeof body);
        for (size_t cut = 1; cut < n; cut += 37) {
            struct run r;
            RUN_ON(&r, body, cut, "--json", "--spans", "--format", f ? "v0.5" : "v0.4");
            T_EQ_I64(r.status, 1);
            struct cli_json *const json = parse(&r);
            const struct cli_json_value *const error = cli_json_get(cli_json_root(json), "error");
            T_TRUE(number(error, "offset") <= (double)cut);
            T_TRUE(cli_json_text(cli_json_get(error, "reason")).len > 0);
            T_TRUE(cli_json_get(cli_json_root(json), "windows") == NULL);
            cli_json_free(json);
            run_done(&r);
        }
    }
}

static void check_dump(size_t body_bytes, size_t offset, const char *want)
{
    static const char body[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ\x01\xff";
    struct query_buf out;
    query_buf_init(&out, 4096);
    cli_inspect_print_dump((struct weir_bytes){.ptr = body, .len = body_bytes}, offset, &out);
    query_buf_put_char(&out, '\0');
    T_OK(out.err);
    T_EQ_STR(out.ptr, want);
    query_buf_done(&out);
}

TEST(the_caret_stands_under_the_byte_even_past_the_last)
{
    check_dump(3, 1,
               "00000000  30 31 32                                         |012|\n"
               "             ^\n");
    check_dump(3, 3,
               "00000000  30 31 32                                         |012|\n"
               "                   ^\n");
    check_dump(32, 32,
               "00000010  67 68 69 6a 6b 6c 6d 6e 6f 70 71 72 73 74 75 76  |ghijklmnopqrstuv|\n"
               "00000020                                                   ||\n"
               "          ^\n");
    check_dump(64, 63,
               "00000020  77 78 79 7a 41 42 43 44 45 46 47 48 49 4a 4b 4c  |wxyzABCDEFGHIJKL|\n"
               "00000030  4d 4e 4f 50 51 52 53 54 55 56 57 58 59 5a 01 ff  |MNOPQRSTUVWXYZ..|\n"
               "                                                       ^\n");
    check_dump(0, 0,
               "00000000                                                   ||\n          ^\n");
}

TEST(a_refused_otlp_span_is_named_by_its_own_place_while_the_rest_counts)
{
    /* Two ResourceSpans; of three spans the second has a trace id of one byte, the third span id 0.
     * Offsets are those of the span messages. */
    static const char hex[] = "0a 23 12 21"
                              "12 1c 0a 10 00000000000000000000000000000001 12 08 0000000000000001"
                              "12 01 00"; /* field number 0: refused as a whole */
    struct run r;
    RUN_ON(&r, hex, strlen(hex), "--hex");
    T_EQ_I64(r.status, 1);
    T_SAYS(&r, "REFUSED at byte 36: ");
    run_done(&r);

    static const char bad_ids[] =
        "0a 25 12 23"
        "12 1c 0a 10 00000000000000000000000000000001 12 08 0000000000000001"
        "12 03 0a 01 07"
        "0a 20 12 1e"
        "12 1c 0a 10 00000000000000000000000000000001 12 08 0000000000000000";
    RUN_ON(&r, bad_ids, strlen(bad_ids), "--hex");
    T_EQ_I64(r.status, 0);
    T_SAYS(&r, "read      1 span, 0 with an error\n");
    T_SAYS(&r, "refused   the span at byte 36, 3 bytes: trace_id\n");
    T_SAYS(&r, "refused   the span at byte 45, 28 bytes: span_id\n");
    T_SAYS(&r, "counted   1 span = 1 in rows");
    run_done(&r);
    RUN_ON(&r, bad_ids, strlen(bad_ids), "--hex", "--json");
    struct cli_json *const json = parse(&r);
    const struct cli_json_value *const root = cli_json_root(json);
    T_EQ_DBL(number(root, "refused"), 2);
    T_EQ_DBL(number(cli_json_at(cli_json_get(root, "refusals"), 1), "offset"), 45);
    cli_json_free(json);
    run_done(&r);
}

/* Guesses. */

TEST(a_format_is_guessed_only_from_what_can_be_nothing_else)
{
    static const struct {
        const char *hex;
        enum inspect_format want;
    } rows[] = {
        {"90", INSPECT_V04},
        {"91 90", INSPECT_V04},
        {"dd 00000001 90", INSPECT_V04},
        {"92 91 a1 61 90", INSPECT_V05},
        {"92 91 81", INSPECT_V04},               /* two traces */
        {"92 90 91 81", INSPECT_V04},            /* the first is empty */
        {"92 90 90", INSPECT_V04},               /* either reads nothing */
        {"92 90 91 90", INSPECT_V05},            /* no strings, one empty trace */
        {"92 91 c0 91 91 9c", INSPECT_V05},      /* a string that is nil */
        {"dc 0002 91 c4 01 61 90", INSPECT_V05}, /* a string of bytes */
        {"92", INSPECT_V04},                     /* cut */
        {"93 91 a1 61 90 90", INSPECT_V04},      /* v0.5 has two elements */
        {"0a 00", INSPECT_OTLP},
        {"", INSPECT_OTLP},
        {"81 0b 90", INSPECT_V1},
        {"de 0001 02 00", INSPECT_V1},
        {"82 01 90 0b 90", INSPECT_V1},
        {"81 0c 90", INSPECT_AUTO}, /* a number that v1.0 has not */
        {"81 00 90", INSPECT_AUTO},
        {"81 a6 6368756e6b73 90", INSPECT_V07},
        {"81 a3 656e76 a0", INSPECT_V07},
        {"81 a4 53746174 90", INSPECT_AUTO}, /* client stats begin so */
        {"81 c0 90", INSPECT_AUTO},
        {"81", INSPECT_AUTO}, /* cut */
        {"80", INSPECT_AUTO},
        {"c0", INSPECT_AUTO},
        {"7b 7d", INSPECT_AUTO},
        {"12 00", INSPECT_AUTO},
        {"ff", INSPECT_AUTO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t body[32];
        const size_t n = t_unhex(rows[i].hex, body, sizeof body);
        struct t_guard g = t_guard_new(body, n);
        const struct inspect_guess got =
            cli_inspect_guess((struct weir_bytes){.ptr = (const char *)g.ptr, .len = n});
        t_guard_free(&g);
        if (got.format != rows[i].want)
            T_FAIL("%s: %s (%s)", rows[i].hex, cli_inspect_format_name(got.format), got.how);
    }
}

TEST(what_is_no_payload_of_traces_is_said_to_be_what_it_looks_like)
{
    static const struct {
        const char *bytes;
        const char *want;
    } rows[] = {
        {"{\"resourceSpans\":[]}", "like JSON"},
        {"PUT /v0.4/traces HTTP/1.1\r\n", "a whole HTTP message"},
        {"919185a4\n6e616d65", "--hex"},
        {"\x84\xa8Hostname", "a MessagePack map"},
        {"\x01\x02", "neither"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run r;
        RUN_ON(&r, rows[i].bytes, strlen(rows[i].bytes), "--format=auto");
        if (r.status != 1 || !strstr(r.err, rows[i].want) || r.out[0] != '\0')
            T_FAIL("%s: %d: %s%s", rows[i].bytes, r.status, r.out, r.err);
        run_done(&r);
    }
}

TEST(a_file_that_cannot_be_read_or_decompressed_or_is_too_large_says_so)
{
    struct run r;
    static uint8_t body[4096];
    RUN(&r, "/nowhere/at/all");
    T_EQ_I64(r.status, 1);
    T_TRUE(strstr(r.err, "/nowhere/at/all: No such file"));
    run_done(&r);
    RUN_ON(&r, "91 9", 4, "--hex");
    T_EQ_I64(r.status, 1);
    T_TRUE(strstr(r.err, "an odd number"));
    run_done(&r);
    RUN_ON(&r, "91 9x", 5, "--hex");
    T_TRUE(strstr(r.err, "character 4 is no hexadecimal digit"));
    run_done(&r);
    const size_t n = golden("otel223-expo-delta-gzip-02.otlp.gz.hex", body, sizeof body);
    RUN_ON(&r, body, n - 9, "--format=auto");
    T_EQ_I64(r.status, 1);
    T_TRUE(strstr(r.err, "compressed bytes are broken or cut"));
    run_done(&r);
    /* 2,457 bytes that become 17,547. */
    RUN_ON(&r, body, n, "--http.max-body-size=17546");
    T_EQ_I64(r.status, 1);
    T_TRUE(strstr(r.err, "larger than http.max-body-size"));
    run_done(&r);
    RUN_ON(&r, body, n, "--http.max-body-size=17547");
    T_EQ_I64(r.status, 0);
    run_done(&r);
    RUN_ON(&r, body, n, "--http.max-body-size=2456");
    T_EQ_I64(r.status, 1);
    run_done(&r);
}

/* What is mended, dropped, not eligible. */

static struct weir_trace_tag text_tag(const char *key, const char *value)
{
    return (struct weir_trace_tag){.key = weir_str_c(key),
                                   .value = {.v = {.str = weir_str_c(value)}}};
}

static int add(struct weir_trace_encoder *e, const struct weir_trace_span *spans, size_t count)
{
    const struct weir_trace t = {.spans = spans, .span_count = count};
    return weir_trace_add(e, &t);
}

static const struct weir_trace_span plain = {
    .trace_id = 7, .span_id = 1, .start_ns = INT64_C(1700000000000000000), .duration_ns = 1000000};

static size_t encode(const struct weir_trace_span *spans, size_t count, uint8_t *dst, size_t cap)
{
    struct weir_trace_encoder *e;
    struct weir_bytes payload;
    T_OK(weir_trace_encoder_new(NULL, &e));
    T_OK(add(e, spans, count));
    T_OK(weir_trace_payload(e, &payload));
    T_TRUE(payload.len <= cap);
    memcpy(dst, payload.ptr, payload.len);
    const size_t n = payload.len;
    weir_trace_encoder_free(e);
    return n;
}

static struct weir_trace_span span_of(const char *name)
{
    struct weir_trace_span s = plain;
    s.service = weir_str_c("shop");
    s.name = weir_str_c(name);
    s.resource = weir_str_c(name);
    return s;
}

TEST(what_is_mended_is_counted_by_kind)
{
    static uint8_t body[32 * 1024];
    static char long_name[6000];
    memset(long_name, 'n', sizeof long_name - 1);
    struct weir_trace_span spans[5];
    const struct weir_trace_tag status = text_tag("http.status_code", "999");
    for (size_t i = 0; i < 5; i++)
        spans[i] = span_of("op");
    spans[0].duration_ns = -5;
    spans[1].name = weir_str_c("bad?\x1b[2J");
    spans[2].resource = weir_str_c(long_name);
    spans[3].start_ns = 1;
    spans[4].tags = &status;
    spans[4].tag_count = 1;
    const size_t n = encode(spans, 5, body, sizeof body);
    uint8_t *const bad = memchr(body, '?', n); /* the encoder would have mended it */
    T_TRUE(bad != NULL);
    *bad = 0xff;
    struct run r;
    RUN_ON(&r, body, n, "--spans");
    T_EQ_I64(r.status, 0);
    T_SAYS(&r, "mended    1 negative_duration: ");
    T_SAYS(&r, "mended    1 before_2000: ");
    T_SAYS(&r, "mended    1 utf8_repaired: ");
    T_SAYS(&r, "mended    1 truncated: ");
    T_SAYS(&r, "mended    1 bad_status: ");
    /* Shown as it was sent, but not to the terminal. */
    T_SAYS(&r, "name \"bad\\xff\\u001b[2J\"");
    T_SAYS(&r, "duration -5.00ns");
    T_TRUE(strchr(r.out, 0x1B) == NULL);
    run_done(&r);
}

TEST(a_trace_whose_ids_are_wrong_is_dropped_whole_and_said_to_be)
{
    static uint8_t body[4096];
    struct weir_trace_span spans[2] = {span_of("a"), span_of("b")};
    struct run r;
    spans[1].span_id = 0;
    RUN_ON(&r, body, encode(spans, 2, body, sizeof body), "--format=v0.3");
    T_EQ_I64(r.status, 0);
    T_SAYS(&r, "format    v0.3 (as --format says)\n");
    T_SAYS(&r, "counted   2 spans = 0 in rows + 0 ineligible + 0 partial + 2 dropped\n");
    T_SAYS(&r, "dropped   2 id_zero\n");
    run_done(&r);
    spans[1].span_id = 2;
    spans[1].trace_id = 8;
    RUN_ON(&r, body, encode(spans, 2, body, sizeof body), "--format=v0.4");
    T_SAYS(&r, "dropped   2 foreign_trace\n");
    run_done(&r);
}

TEST(the_profile_and_the_settings_of_the_agent_decide_as_in_the_agent)
{
    static uint8_t body[4096];
    struct weir_trace_span spans[2] = {span_of("a"), span_of("b")};
    const struct weir_trace_tag version = text_tag("version", "1.2");
    struct run r;
    spans[1].span_id = 2;
    spans[1].parent_id = 1; /* a child in the same service: neither top level nor eligible */
    spans[0].tags = &version;
    spans[0].tag_count = 1;
    const size_t n = encode(spans, 2, body, sizeof body);
    RUN_ON(&r, body, n, "--profile", "all");
    T_SAYS(&r, "counted   2 spans = 2 in rows + 0 ineligible");
    T_TRUE(strstr(r.out, "version=") == NULL);
    run_done(&r);
    RUN_ON(&r, body, n, "--profile", "datadog");
    T_SAYS(&r, "counted   2 spans = 1 in rows + 1 ineligible");
    run_done(&r);
    RUN_ON(&r, body, n, "--aggregation.dimensions", "version", "--aggregation.window=1m");
    T_SAYS(&r, "version=\"1.2\"");
    T_SAYS(&r, "window 2023-11-14T22:13:00Z, 60.0s: 2 spans in 2 rows\n");
    run_done(&r);
    RUN_ON(&r, body, n, "--lang=go", "--at=1700000100", "--aggregation.late=drop");
    T_SAYS(&r, "arrival   2023-11-14T22:15:00Z\n");
    T_SAYS(&r, "dropped   2 late\n");
    run_done(&r);
    spans[0].service = weir_str_c("");
    RUN_ON(&r, body, encode(spans, 1, body, sizeof body), "--lang=go");
    T_SAYS(&r, "service_name=\"unnamed-go-service\"");
    run_done(&r);
}

TEST(a_payload_larger_than_the_ring_of_an_agent_counts_whole)
{
    enum { SPANS = 3000 };
    static uint8_t body[1024 * 1024];
    struct weir_trace_encoder *e;
    struct weir_bytes payload;
    T_OK(weir_trace_encoder_new(NULL, &e));
    for (uint64_t i = 1; i <= SPANS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "op%u", (unsigned)(i % 10));
        struct weir_trace_span s = span_of(name);
        s.trace_id = s.span_id = i;
        T_OK(add(e, &s, 1));
    }
    T_OK(weir_trace_payload(e, &payload));
    T_TRUE(payload.len > 256u * 1024 && payload.len <= sizeof body);
    struct run r;
    RUN_ON(&r, payload.ptr, payload.len, "--format=auto");
    weir_trace_encoder_free(e);
    T_EQ_I64(r.status, 0);
    T_SAYS(&r, "read      3000 traces, 3000 spans, 0 with an error\n");
    T_SAYS(&r, ": 3000 spans in 10 rows\n");
    T_SAYS(&r, "counted   3000 spans = 3000 in rows + 0 ineligible + 0 partial + 0 dropped\n");
    run_done(&r);
}

TEST(a_trace_larger_than_the_ring_is_dropped_whole_and_the_ones_around_it_count)
{
    enum { SPANS = 4000 };
    static struct weir_trace_span spans[SPANS];
    struct weir_trace_encoder *e;
    struct weir_bytes payload;
    T_OK(weir_trace_encoder_new(NULL, &e));
    for (uint64_t i = 0; i < SPANS; i++) {
        spans[i] = span_of("a name that takes some room in the ring of a producer");
        spans[i].span_id = i + 1;
    }
    T_OK(add(e, spans, 2));
    T_OK(add(e, spans, SPANS));
    T_OK(add(e, spans, 3));
    T_OK(weir_trace_payload(e, &payload));
    struct run r;
    RUN_ON(&r, payload.ptr, payload.len, "--format=auto");
    weir_trace_encoder_free(e);
    T_EQ_I64(r.status, 0);
    T_SAYS(&r, "read      3 traces, 4005 spans, 0 with an error\n");
    T_SAYS(&r, "counted   4005 spans = 5 in rows + 0 ineligible + 0 partial + 4000 dropped\n");
    T_SAYS(&r, "dropped   4000 inbox_full\n");
    run_done(&r);
}

/* The line. */

TEST(a_wrong_line_ends_with_2_and_says_what_was_meant)
{
    static const struct {
        const char *args[4];
        const char *want;
    } rows[] = {
        {{NULL}, "no file is named"},
        {{"a", "b"}, "more than one file"},
        {{"--fromat=otlp", "a"}, "did you mean --format?"},
        {{"--format=v0.6", "a"}, "wanted: auto, v0.3"},
        {{"--format"}, "--format needs a value"},
        {{"--json=1", "a"}, "--json takes no value"},
        {{"--at=soon", "a"}, "wanted: when it arrives"},
        {{"--limit=-1", "a"}, "wanted: print at most"},
        {{"--profile=most", "a"}, "wanted: all or datadog"},
        {{"--aggregation.windo=1s", "a"}, "aggregation.window"},
        {{"--aggregation.window=1ms", "a"}, "aggregation.window"},
        {{"--profile=all", "--aggregation.profile=all", "a"}, "aggregation.profile"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run r;
        run_list(&r, rows[i].args);
        if (r.status != 2 || !strstr(r.err, rows[i].want))
            T_FAIL("row %zu: %d: %s", i, r.status, r.err);
        run_done(&r);
    }
}

static void check_config_env(const char *value, const char *want)
{
    char setting[64];
    char *env[] = {setting, NULL};
    char verb[] = "inspect";
    char file[] = "/nowhere";
    char *argv[] = {verb, file, NULL};
    char err[256] = "";
    struct inspect_opts opts;
    struct query_buf out;
    (void)snprintf(setting, sizeof setting, "WEIR_AGGREGATION_PROFILE=%s", value);
    query_buf_init(&out, 4096);
    FILE *const to = fmemopen(err, sizeof err, "w");
    T_TRUE(to != NULL);
    T_TRUE(cli_inspect_opts_parse(2, argv, &opts, to));
    (void)cli_inspect_run(&opts, env, &out, to);
    (void)fclose(to);
    query_buf_done(&out);
    if (!strstr(err, want))
        T_FAIL("%s: %s", value, err);
}

TEST(the_environment_counts_as_for_the_agent)
{
    check_config_env("datadog", "No such file");
    check_config_env("most", "WEIR_AGGREGATION_PROFILE");
}
