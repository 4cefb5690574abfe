/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats [--java] [--peers NAMES] [--body v04|v05|v1] NOW_NS: the spans of a body of traces on
 * standard input, as the library's profile client counts them; standard output is the body of
 * /v0.6/stats.
 * --java: in the mapping of the Java tracer. --peers: these peer tags, and no added dimension. It
 * ends with 3 where nothing counted. For stats_test.py and trace_test.py.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/decode.h>
#include <weir/payload.h>

enum { BODY_MAX = 16 << 20, PEERS_MAX = 40 };

typedef int decode_fn(struct weir_decoder *decoder, const void *payload, size_t bytes,
                      const struct weir_span_sink *sink, struct weir_decode_result *ret_result,
                      struct weir_where *ret_where);

struct settings {
    bool java;
    const char *peers[PEERS_MAX];
    size_t peer_count; /* 0: those of stats_test.py, and its dimension */
    decode_fn *decode;
    int64_t now_ns;
};

static int on_span(void *ctx, const struct weir_span *span)
{
    struct weir_span s = *span;
    s.flags &= (uint8_t)~WEIR_SPAN_DD; /* a host's own spans, not ones that an agent received */
    return weir_stats_add(ctx, &s);
}

static int on_trace_end(void *ctx)
{
    return weir_stats_trace_end(ctx);
}

static struct weir_stats *open_stats(const struct settings *set)
{
    static const char *const peers[] = {"peer.hostname", "peer.service"};
    static const char *const dimensions[] = {"region"};
    struct weir_stats_opts o = {.struct_size = sizeof o,
                                .profile = WEIR_PROFILE_CLIENT,
                                .flags = WEIR_STATS_ENDPOINTS,
                                .peer_tags = set->peer_count ? set->peers : peers,
                                .peer_tag_count = set->peer_count ? set->peer_count : 2,
                                .dimensions = dimensions,
                                .dimension_count = set->peer_count ? 0 : 1,
                                .max_keys = 100000};
    for (size_t i = 0; i < WEIR_LIMIT_COUNT; i++)
        o.limits[i] = WEIR_LIMIT_OFF;
    struct weir_mapping *linear = NULL;
    if (set->java) {
        o.max_bins = 1024;
        if (weir_mapping_new(NULL, WEIR_MAPPING_LINEAR, exp2(1.0 / 64), 0, &linear) != WEIR_OK)
            return NULL;
        o.mapping = linear;
    }
    struct weir_stats *st = NULL;
    if (weir_stats_new(&o, &st) != WEIR_OK)
        st = NULL;
    weir_mapping_unref(linear);
    return st;
}

/* All or nothing: a ring for all of it. */
static int publish(struct weir_stats *st, const struct settings *set, const void *body,
                   size_t bytes)
{
    const struct weir_source source = {.now_ns = set->now_ns,
                                       .flags = WEIR_SOURCE_TOP_LEVEL_COMPUTED};
    struct weir_producer *p;
    struct weir_decoder *d = NULL;
    int r = weir_producer_new(st, BODY_MAX, WEIR_PRODUCER_OWNER, &p);
    if (r != WEIR_OK)
        return r;
    const struct weir_span_sink sink = {.ctx = p, .span = on_span, .trace_end = on_trace_end};
    r = weir_decoder_new(NULL, weir_stats_tags(st), &d);
    weir_stats_begin(p, &source);
    if (r == WEIR_OK)
        r = set->decode(d, body, bytes, &sink, NULL, NULL);
    if (r == WEIR_OK)
        weir_stats_commit(p);
    else
        weir_stats_abandon(p);
    weir_stats_seal_all(st, set->now_ns, 0);
    weir_decoder_free(d);
    weir_producer_free(p);
    return r;
}

static int write_body(struct weir_stats *st, int64_t now_ns)
{
    const struct weir_payload_opts o = {.struct_size = sizeof o,
                                        .runtime_id = {.ptr = "runtime", .len = 7},
                                        .hostname = {.ptr = "host", .len = 4},
                                        .service = {.ptr = "svc", .len = 3},
                                        .env = {.ptr = "test", .len = 4},
                                        .version = {.ptr = "1.2.3", .len = 5},
                                        .process_tags = {.ptr = "a:b", .len = 3},
                                        .git_commit_sha = {.ptr = "0123abcd", .len = 8}};
    struct weir_payload *p;
    int r = weir_payload_new(st, &o, &p);
    if (r != WEIR_OK)
        return r;
    struct weir_batch *const b = weir_stats_take_batch(st);
    struct weir_bytes body;
    r = b ? weir_payload_encode(p, b, now_ns, &body) : WEIR_EEMPTY;
    if (r == WEIR_OK && fwrite(body.ptr, 1, body.len, stdout) != body.len)
        r = WEIR_EFULL;
    weir_batch_release(b);
    weir_payload_free(p);
    return r;
}

static bool read_peers(struct settings *set, char *names)
{
    for (char *at = names; *at && set->peer_count < PEERS_MAX;) {
        char *const comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        set->peers[set->peer_count++] = at;
        at = comma ? comma + 1 : at + strlen(at);
    }
    return set->peer_count > 0;
}

static decode_fn *decoder_of(const char *version)
{
    if (strcmp(version, "v05") == 0)
        return weir_decode_dd_v05;
    if (strcmp(version, "v1") == 0)
        return weir_decode_dd_v1;
    return strcmp(version, "v04") == 0 ? weir_decode_dd_v04 : NULL;
}

static bool read_settings(struct settings *set, int argc, char **argv)
{
    *set = (struct settings){.decode = weir_decode_dd_v04};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--java") == 0) {
            set->java = true;
        } else if (strcmp(argv[i], "--peers") == 0 && i + 1 < argc) {
            if (!read_peers(set, argv[++i]))
                return false;
        } else if (strcmp(argv[i], "--body") == 0 && i + 1 < argc) {
            set->decode = decoder_of(argv[++i]);
        } else {
            return false;
        }
    }
    if (i != argc - 1)
        return false;
    set->now_ns = strtoll(argv[i], NULL, 10);
    return set->decode != NULL;
}

int main(int argc, char **argv)
{
    struct settings set;
    if (!read_settings(&set, argc, argv)) {
        fputs("usage: stats [--java] [--peers NAMES] [--body v04|v05|v1] NOW_NS < body\n", stderr);
        return 2;
    }
    char *const body = malloc(BODY_MAX);
    struct weir_stats *const st = open_stats(&set);
    if (!body || !st)
        return 1;
    const size_t bytes = fread(body, 1, BODY_MAX, stdin);
    (void)weir_stats_poll(st, set.now_ns, 0);
    int r = publish(st, &set, body, bytes);
    if (r == WEIR_OK)
        r = write_body(st, set.now_ns);
    if (r != WEIR_OK)
        fprintf(stderr, "stats: %s\n", weir_strerror(r));
    weir_stats_free(st);
    free(body);
    return r == WEIR_EEMPTY ? 3 : r != WEIR_OK;
}
