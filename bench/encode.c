/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode: traces to payload bytes, one thread. The work is that of the reference's own benchmark: a
 * list of 1,000 spans, top level, of four short names, in twelve forms: three versions, plain or
 * with a text and a number as tags (enriched), with an origin or without. Names, keys and the text
 * are held as struct weir_text, as a tracer holds its constants. The same list over and over, a
 * payload each.
 *   memcpy      the bytes of the payload copied: what no encoder can pass
 *   libdatadog  the same spans through its encoder
 *   java        the same spans through the reference tracer's mappers, in a warm process
 *   utf16_*     the same from UTF-16, and the transcoder alone
 *   decode_*    a list, enriched and with an origin, through our decoders and libdatadog's
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/decode.h>
#include <weir/trace.h>

#include "trace/utf.h"

enum { SPANS = 1000, REPEAT = 100, WARM = 20, TAGS = 2 };

static void need(bool ok)
{
    if (!ok)
        abort();
}

enum strings { AS_TEXTS, AS_UTF8, AS_UTF16 };

/* Every string of the work, in one of three shapes; the storage lives as long as the program. */
static struct weir_str str(enum strings as, const char *s)
{
    const uint32_t n = (uint32_t)strlen(s);
    if (as == AS_TEXTS) {
        struct weir_text *text;
        need(weir_text_new(NULL, s, n, &text) == WEIR_OK);
        return weir_str_text(text);
    }
    if (as == AS_UTF8)
        return weir_str_utf8(s, n);
    uint16_t *const units = malloc(n * sizeof *units + 1);
    need(units != NULL);
    for (uint32_t i = 0; i < n; i++)
        units[i] = (unsigned char)s[i];
    return weir_str_utf16(units, n);
}

struct form {
    const char *name; /* "" or "_enriched" ... */
    bool enriched;
    bool origin;
};

static const struct form forms[] = {
    {"", false, false},
    {"_enriched", true, false},
    {"_origin", false, true},
    {"_enriched_origin", true, true},
};

struct list {
    struct weir_trace trace;
    struct weir_trace_span spans[SPANS];
    struct weir_trace_tag tags[SPANS][TAGS];
};

static struct list *list_new(const struct form *f, enum strings as)
{
    struct list *const l = calloc(1, sizeof *l);
    need(l != NULL);
    const struct weir_trace_tag text = {.key = str(as, "some-tag-key"),
                                        .value = {.v = {.str = str(as, "some-tag-value")}}};
    const struct weir_trace_tag number = {.key = str(as, "some-metric-key"),
                                          .value = {.type = WEIR_TRACE_DOUBLE, .v = {.d = 1}}};
    const struct weir_trace_span span = {
        .service = str(as, "service"),
        .name = str(as, "operation"),
        .resource = str(as, "resource"),
        .type = str(as, "type"),
        .start_ns = INT64_C(1800000000) * 1000000000,
        .flags = WEIR_TRACE_TOP_LEVEL | WEIR_TRACE_THREAD,
        .thread_id = 1,
        .thread_name = str(as, "main"),
        .tag_count = f->enriched ? TAGS : 0,
    };
    for (uint64_t i = 0; i < SPANS; i++) {
        l->tags[i][0] = text;
        l->tags[i][1] = number;
        l->spans[i] = span;
        l->spans[i].trace_id = i + 1;
        l->spans[i].span_id = 1001 + i;
        l->spans[i].duration_ns = (int64_t)(1000000 + i * 977);
        l->spans[i].tags = l->tags[i];
    }
    l->trace = (struct weir_trace){.spans = l->spans,
                                   .span_count = SPANS,
                                   .priority = 1,
                                   .flags = WEIR_TRACE_PRIORITY,
                                   .origin = f->origin ? str(as, "some-origin")
                                                       : (struct weir_str){.ptr = NULL}};
    return l;
}

struct version {
    const char *name; /* also the peer's */
    uint32_t number;
};

static const struct version versions[] = {
    {"v04", WEIR_TRACE_V04},
    {"v05", WEIR_TRACE_V05},
    {"v1", WEIR_TRACE_V1},
};

/* Spans a second over REPEAT lists; a few before that bring back what a peer took from the caches.
 */
static double encode(struct weir_trace_encoder *e, const struct list *l)
{
    int64_t from = 0;
    for (int i = 0; i < WARM + REPEAT; i++) {
        if (i == WARM)
            from = bench_now_ns();
        weir_trace_clear(e);
        need(weir_trace_add(e, &l->trace) == WEIR_OK);
    }
    return REPEAT * (double)SPANS * 1e9 / (double)(bench_now_ns() - from);
}

static double copy(struct weir_bytes payload, char *to, double spans)
{
    const int64_t from = bench_now_ns();
    for (int i = 0; i < REPEAT; i++) {
        memcpy(to, payload.ptr, payload.len);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    return REPEAT * spans * 1e9 / (double)(bench_now_ns() - from);
}

static struct weir_trace_encoder *encoder_new(struct bench_heap *heap, uint32_t version)
{
    const struct weir_trace_opts o = {
        .struct_size = sizeof o, .alloc = bench_alloc(heap), .version = version};
    struct weir_trace_encoder *e;
    need(weir_trace_encoder_new(&o, &e) == WEIR_OK);
    return e;
}

static void bench_case(const struct bench *b, const struct version *v, const struct form *f)
{
    static double values[1000];
    static struct bench_peer copies;
    static struct bench_peer peer;
    char name[64];
    (void)snprintf(name, sizeof name, "%s%s", v->name, f->name);
    copies = (struct bench_peer){.name = "memcpy"};
    bench_peer_init(&peer, "libdatadog", "libdatadog");
    peer.note = "its tags are unique beforehand, its marks given as tags";
    static struct bench_peer java;
    java = (struct bench_peer){.name = "java", .note = "does not repair or check text"};
    char verb[] = "encode";
    char version[8];
    char form[32];
    (void)snprintf(version, sizeof version, "%s", v->name);
    (void)snprintf(form, sizeof form, "%s", f->name[0] ? f->name + 1 : "plain");
    char peer_times[] = "100"; /* a fifth as fast as ours: as long */
    char *argv[] = {NULL, verb, version, form, peer_times, NULL};
    /* One process a case, as the reference's own benchmark: its mappers share compiled code. */
    struct bench_answerer jvm;
    char *java_argv[] = {NULL, version, form, NULL};
    bench_answerer_start(&jvm, "java_trace", java_argv);
    bench_peer_ask(&java, &jvm, "", "spans_per_s"); /* warms up before it answers */
    java.count = 0;
    struct list *const l = list_new(f, AS_TEXTS);
    struct bench_heap heap = {0};
    struct weir_trace_encoder *const e = encoder_new(&heap, v->number);
    (void)encode(e, l);
    struct weir_bytes payload;
    need(weir_trace_payload(e, &payload) == WEIR_OK);
    /* At the place in a line that the payload has: memcpy is many times slower between others. */
    char *const room = malloc(payload.len + 64);
    need(room != NULL);
    char *const to = room + (((uintptr_t)payload.ptr - (uintptr_t)room) & 63);
    const uint64_t before = heap.allocations;
    for (int i = 0; i < b->rounds; i++) {
        values[i] = encode(e, l);
        need(weir_trace_payload(e, &payload) == WEIR_OK);
        copies.values[copies.count++] = copy(payload, to, (double)SPANS);
        bench_peer_run(&peer, argv, "spans_per_s");
        bench_peer_ask(&java, &jvm, "", "spans_per_s");
    }
    bench_answerer_stop(&jvm);
    const size_t n = (size_t)b->rounds;
    bench_report_peer(b, name, "spans_per_s", "1/s", BENCH_HIGHER, values, n, &copies);
    bench_report_peer(b, name, "spans_per_s", "1/s", BENCH_HIGHER, values, n, &peer);
    bench_report_peer(b, name, "spans_per_s", "1/s", BENCH_HIGHER, values, n, &java);
    bench_report_one(b, name, "allocations", "count", (double)(heap.allocations - before));
    bench_report_one(b, name, "bytes_per_span", "B", (double)payload.len / SPANS);
    weir_trace_encoder_free(e);
    free(room);
    free(l);
}

/* The same list from plain UTF-8 and from UTF-16, beside each other. */
static void bench_plain(const struct bench *b, const struct version *v)
{
    static double utf8[1000];
    static double utf16[1000];
    struct list *const from8 = list_new(&forms[1], AS_UTF8);
    struct list *const from16 = list_new(&forms[1], AS_UTF16);
    struct bench_heap heap = {0};
    struct weir_trace_encoder *const e = encoder_new(&heap, v->number);
    (void)encode(e, from8);
    (void)encode(e, from16);
    const uint64_t before = heap.allocations;
    for (int i = 0; i < b->rounds; i++) {
        utf8[i] = encode(e, from8);
        utf16[i] = encode(e, from16);
    }
    char name[64];
    (void)snprintf(name, sizeof name, "%s_enriched_utf8", v->name);
    bench_report(b, name, "spans_per_s", "1/s", BENCH_HIGHER, utf8, (size_t)b->rounds);
    (void)snprintf(name, sizeof name, "%s_enriched_utf16", v->name);
    bench_report(b, name, "spans_per_s", "1/s", BENCH_HIGHER, utf16, (size_t)b->rounds);
    bench_report_one(b, name, "allocations", "count", (double)(heap.allocations - before));
    weir_trace_encoder_free(e);
    free(from8);
    free(from16);
}

typedef int decode_fn(struct weir_decoder *, const void *, size_t, const struct weir_span_sink *,
                      struct weir_decode_result *, struct weir_where *);

static int look(void *ctx, const struct weir_span *span)
{
    *(uint64_t *)ctx += span->span_id;
    return WEIR_OK;
}

static int no_end(void *ctx)
{
    (void)ctx;
    return WEIR_OK;
}

static double decode(decode_fn *fn, struct weir_decoder *d, struct weir_bytes payload)
{
    uint64_t seen = 0;
    const struct weir_span_sink sink = {.ctx = &seen, .span = look, .trace_end = no_end};
    const int64_t from = bench_now_ns();
    for (int i = 0; i < REPEAT; i++)
        need(fn(d, payload.ptr, payload.len, &sink, NULL, NULL) == WEIR_OK);
    need(seen != 0);
    return REPEAT * (double)SPANS * 1e9 / (double)(bench_now_ns() - from);
}

/* For the peer, which reads every file of a folder. */
static void file_write(struct weir_bytes payload, const char *path)
{
    FILE *const out = fopen(path, "we");
    need(out && fwrite(payload.ptr, 1, payload.len, out) == payload.len && fclose(out) == 0);
}

/* One list, enriched and with an origin, as our encoder writes it. */
static void bench_decode(const struct bench *b, const struct version *v, decode_fn *fn)
{
    static double values[1000];
    static struct bench_peer peer;
    bench_peer_init(&peer, "libdatadog", "libdatadog");
    struct list *const l = list_new(&forms[3], AS_TEXTS);
    struct bench_heap heap = {0};
    struct weir_trace_encoder *const e = encoder_new(&heap, v->number);
    struct weir_bytes payload;
    need(weir_trace_add(e, &l->trace) == WEIR_OK);
    need(weir_trace_payload(e, &payload) == WEIR_OK);
    char dir[] = "/tmp/weir-bench-XXXXXX";
    char path[64];
    need(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof path, "%s/payload", dir);
    file_write(payload, path);
    char verb[] = "decode";
    char version[8];
    char times[] = "40";
    char spans[] = "1000";
    (void)snprintf(version, sizeof version, "%s", v->name);
    char *argv[] = {NULL, verb, version, dir, times, spans, NULL};
    struct weir_tags *tags;
    struct weir_decoder *d;
    need(weir_tags_new(NULL, NULL, 0, &tags) == WEIR_OK);
    need(weir_decoder_new(NULL, tags, &d) == WEIR_OK);
    (void)decode(fn, d, payload);
    for (int i = 0; i < b->rounds; i++) {
        values[i] = decode(fn, d, payload);
        bench_peer_run(&peer, argv, "ns_per_span");
    }
    for (size_t i = 0; i < peer.count; i++)
        peer.values[i] = 1e9 / peer.values[i];
    char name[64];
    (void)snprintf(name, sizeof name, "decode_%s", v->name);
    bench_report_peer(b, name, "spans_per_s", "1/s", BENCH_HIGHER, values, (size_t)b->rounds,
                      &peer);
    (void)unlink(path);
    (void)rmdir(dir);
    weir_decoder_free(d);
    weir_tags_free(tags);
    weir_trace_encoder_free(e);
    free(l);
}

/* Bytes of input a second; units of text that is transcoded again and again. */
static double transcode(const uint16_t *units, size_t count, char *to, size_t bytes)
{
    uint64_t mended = 0;
    const size_t times = bytes / (count * sizeof *units);
    const int64_t from = bench_now_ns();
    for (size_t i = 0; i < times; i++) {
        (void)wr_utf16_to_utf8(to, units, count, &mended);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    const double took = (double)(bench_now_ns() - from);
    need(mended == 0);
    return (double)times * (double)count * sizeof *units * 1e9 / took;
}

static void bench_utf16(const struct bench *b)
{
    enum { UNITS = 4096, SHORT = 17 };
    static uint16_t ascii[UNITS];
    static uint16_t mixed[UNITS];
    static char to[3 * UNITS];
    static double values[3][1000];
    for (size_t i = 0; i < UNITS; i++) {
        ascii[i] = (uint16_t)('a' + i % 26);
        /* Words of a dozen letters, of Latin, Cyrillic and Han in turn. */
        mixed[i] = (uint16_t)(i / 12 % 3 == 0   ? 'a' + i % 26
                              : i / 12 % 3 == 1 ? 0x430 + i % 32
                                                : 0x4e00 + i % 2000);
    }
    for (int i = 0; i < b->rounds; i++) {
        values[0][i] = transcode(ascii, UNITS, to, (size_t)64 << 20);
        values[1][i] = transcode(mixed, UNITS, to, (size_t)4 << 20);
        values[2][i] = SHORT * sizeof(uint16_t) * 1e9 /
                       transcode(ascii, SHORT, to, (size_t)4 << 20); /* ns a string */
    }
    const size_t n = (size_t)b->rounds;
    bench_report(b, "utf16_ascii", "bytes_per_s", "B/s", BENCH_HIGHER, values[0], n);
    bench_report(b, "utf16_mixed", "bytes_per_s", "B/s", BENCH_HIGHER, values[1], n);
    bench_report(b, "utf16_17_units", "ns_per_string", "ns", BENCH_LOWER, values[2], n);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "encode", "Traces to payload bytes, one thread.", argc, argv);
    bench_pin(0);
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
            bench_case(&b, &versions[v], &forms[f]);
        bench_plain(&b, &versions[v]);
    }
    static decode_fn *const decoders[] = {weir_decode_dd_v04, weir_decode_dd_v05,
                                          weir_decode_dd_v1};
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
        bench_decode(&b, &versions[v], decoders[v]);
    bench_utf16(&b);
    return 0;
}
