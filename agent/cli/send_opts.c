/* SPDX-License-Identifier: Apache-2.0 */
/* send_opts: see send_opts.h. */
#include "cli/send_opts.h"

#include "cli/flags.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum type { FLAG, COUNT, NUMBER, DURATION, TEXT, PROTOCOL, PRESET, LATENCY };

/* given, if not 0, is the place of a bool that is set when the option is. */
struct option {
    struct cli_flag flag;
    enum type type;
    size_t offset;
    size_t given;
    double min; /* of COUNT, NUMBER and, in ns, DURATION */
    double max;
};

#define AT(field) offsetof(struct send_opts, field)
#define YEAR_NS (365.0 * 86400e9)

static const struct option options[] = {
    {.flag = {"protocol", "v0.4|v0.5|otlp", "what to speak; default v0.4"},
     .type = PROTOCOL,
     .offset = AT(protocol)},
    {.flag = {"url", "URL",
              "where to send; default http://127.0.0.1:8126, for otlp http://127.0.0.1:4318"},
     .type = TEXT,
     .offset = AT(url)},
    {.flag = {"unix-socket", "PATH", "send through this socket"},
     .type = TEXT,
     .offset = AT(unix_socket)},
    {.flag = {"preset", "shop|simple", "a web shop, or N services with M resources; default shop"},
     .type = PRESET,
     .offset = AT(preset),
     .given = AT(preset_given)},
    {.flag = {"services", "N", "of preset simple, which it implies; default 1"},
     .type = COUNT,
     .offset = AT(services),
     .given = AT(services_given),
     .min = 1,
     .max = SEND_ENDPOINTS_MAX},
    {.flag = {"resources", "N", "a service, of preset simple, which it implies; default 1"},
     .type = COUNT,
     .offset = AT(resources),
     .given = AT(services_given),
     .min = 1,
     .max = SEND_ENDPOINTS_MAX},
    {.flag = {"error-ratio", "X", "errors among the spans, 0 to 1; default as the preset has it"},
     .type = NUMBER,
     .offset = AT(error_ratio),
     .max = 1},
    {.flag = {"latency", "DIST", "lognormal:MEDIAN:SIGMA, uniform:LOW:HIGH or constant:DURATION"},
     .type = LATENCY,
     .offset = AT(latency),
     .given = AT(latency_given)},
    {.flag = {"spans-per-trace", "N", "default as the preset has it"},
     .type = COUNT,
     .offset = AT(spans_per_trace),
     .min = 1,
     .max = SEND_TRACE_SPANS_MAX},
    {.flag = {"rate", "N", "spans a second, 0 for flat out; default 1000"},
     .type = NUMBER,
     .offset = AT(rate),
     .max = 1e9},
    {.flag = {"for", "DURATION", "how long; default 10s, unless --count is given"},
     .type = DURATION,
     .offset = AT(for_ns),
     .min = 1e6,
     .max = YEAR_NS},
    {.flag = {"count", "N", "how many spans"},
     .type = COUNT,
     .offset = AT(count),
     .min = 1,
     .max = 1e15},
    {.flag = {"batch", "N", "spans a request; default 1000"},
     .type = COUNT,
     .offset = AT(batch),
     .min = 1,
     .max = SEND_BATCH_SPANS_MAX},
    {.flag = {"seed", "N", "the same seed makes the same spans; default random"},
     .type = COUNT,
     .offset = AT(seed),
     .given = AT(seed_given),
     .max = 9e15},
    {.flag = {"timeout", "DURATION", "of one request; default 10s"},
     .type = DURATION,
     .offset = AT(timeout_ns),
     .min = 1e6,
     .max = 3600e9},
    {.flag = {"gzip", NULL, "compress the bodies"}, .type = FLAG, .offset = AT(gzip)},
    {.flag = {"chunked", NULL, "send bodies in chunks, without a length"},
     .type = FLAG,
     .offset = AT(chunked)},
    {.flag = {"check", NULL, "hold the agent's answers against what was sent"},
     .type = FLAG,
     .offset = AT(check)},
    {.flag = {"query-url", "URL", "where to ask; default $WEIR_URL, else http://127.0.0.1:9099"},
     .type = TEXT,
     .offset = AT(query_url)},
    {.flag = {"check-max-samples", "N",
              "durations kept for --check, 8 to 16 bytes each; default 20000000"},
     .type = COUNT,
     .offset = AT(check_max_samples),
     .min = 1,
     .max = 1e9},
    {.flag = {"check-wait", "DURATION", "ask again for that long while answers differ; default 5s"},
     .type = DURATION,
     .offset = AT(check_wait_ns),
     .max = 600e9},
    {.flag = {"json", NULL, "report in JSON"}, .type = FLAG, .offset = AT(json)},
    {.flag = {"quiet", NULL, "no progress, no table"}, .type = FLAG, .offset = AT(quiet)},
    {.flag = {"progress", NULL, "a progress line though stderr is no terminal"},
     .type = FLAG,
     .offset = AT(progress)},
    {.flag = {"keep-going", NULL, "go on after a request that was not taken"},
     .type = FLAG,
     .offset = AT(keep_going)},
    {.flag = {"help", NULL, "this text"}, .type = FLAG, .offset = AT(help)},
};
static const struct cli_flags flags = {.verb = "send",
                                       .at = options,
                                       .stride = sizeof *options,
                                       .count = sizeof options / sizeof *options};

static const struct send_opts defaults = {
    .protocol = SEND_V04,
    .preset = SEND_PRESET_SHOP,
    .services = 1,
    .resources = 1,
    .error_ratio = -1,
    .rate = 1000,
    .batch = 1000,
    .timeout_ns = INT64_C(10000000000),
    .check_max_samples = 20000000,
    .check_wait_ns = INT64_C(5000000000),
};
#define DEFAULT_FOR_NS INT64_C(10000000000)

static bool parse_count(const char *text, uint64_t *ret)
{
    uint64_t v = 0;
    if (!*text)
        return false;
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    }
    *ret = v;
    return true;
}

static bool parse_number(const char *text, double *ret)
{
    /* strtod alone would take blanks, signs, words and hexadecimal. */
    if (!*text || strspn(text, "0123456789.eE+-") != strlen(text) || *text == '+')
        return false;
    char *end = NULL;
    const double v = strtod(text, &end);
    if (*end || !isfinite(v))
        return false;
    *ret = v;
    return true;
}

/* One of words, by its number; -1: none. */
static int parse_word(const char *text, const char *const *words, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
    }
    return -1;
}

static bool in_bounds(const struct option *o, double v)
{
    return v >= o->min && v <= o->max;
}

static bool set_number(const struct option *o, const char *text, void *at)
{
    if (o->type == COUNT) {
        uint64_t v = 0;
        const bool ok = parse_count(text, &v) && in_bounds(o, (double)v);
        if (ok)
            memcpy(at, &v, sizeof v);
        return ok;
    }
    if (o->type == NUMBER) {
        double v = 0;
        const bool ok = parse_number(text, &v) && in_bounds(o, v);
        if (ok)
            memcpy(at, &v, sizeof v);
        return ok;
    }
    int64_t ns = 0;
    const bool ok = cli_send_duration_parse(text, strlen(text), &ns) && in_bounds(o, (double)ns);
    if (ok)
        memcpy(at, &ns, sizeof ns);
    return ok;
}

static bool set_word(const struct option *o, const char *text, struct send_opts *opts)
{
    static const char *const protocols[] = {"v0.4", "v0.5", "otlp"};
    static const char *const presets[] = {"shop", "simple"};
    if (o->type == PROTOCOL) {
        const int i = parse_word(text, protocols, 3);
        opts->protocol = i < 0 ? opts->protocol : (enum send_protocol)i;
        return i >= 0;
    }
    const int i = parse_word(text, presets, 2);
    opts->preset = i < 0 ? opts->preset : (enum send_preset)i;
    return i >= 0;
}

static bool set_value(const struct option *o, const char *text, struct send_opts *opts)
{
    void *const at = (char *)opts + o->offset;
    switch (o->type) {
    case FLAG: {
        const bool on = true;
        memcpy(at, &on, sizeof on);
        return true;
    }
    case COUNT:
    case NUMBER:
    case DURATION:
        return set_number(o, text, at);
    case TEXT:
        memcpy(at, &text, sizeof text);
        return *text != 0;
    case PROTOCOL:
    case PRESET:
        return set_word(o, text, opts);
    case LATENCY:
        return cli_send_latency_parse(text, &opts->latency);
    }
    return false;
}

static bool complain(FILE *err, const char *what, const char *text, int n)
{
    (void)fprintf(err, "weir send: %s: %.*s\n", what, n, text);
    return false;
}

/* One option at argv[*at], and its value behind '=' or in the next argument. */
static bool parse_option(int argc, char **argv, int *at, struct send_opts *opts, FILE *err)
{
    const char *const arg = argv[*at];
    if (strcmp(arg, "-h") == 0) {
        opts->help = true;
        return true;
    }
    if (strncmp(arg, "--", 2) != 0 || !arg[2])
        return complain(err, "unexpected argument", arg, 60);
    const char *value = NULL;
    const size_t i = cli_flags_read(&flags, argc, argv, at, &value, err);
    if (i == SIZE_MAX)
        return false;
    const struct option *const o = &options[i];
    if (!set_value(o, value ? value : "", opts))
        return cli_flags_refuse(&flags, i, value, err);
    if (o->given) {
        const bool given = true;
        memcpy((char *)opts + o->given, &given, sizeof given);
    }
    return true;
}

/* What only the whole line can tell. */
static bool settle(struct send_opts *o, FILE *err)
{
    if (o->services_given && o->preset_given && o->preset == SEND_PRESET_SHOP)
        return complain(err, "--services and --resources are of --preset simple, not of", "shop",
                        4);
    if (o->services_given)
        o->preset = SEND_PRESET_SIMPLE;
    if (o->services > SEND_ENDPOINTS_MAX / o->resources)
        return complain(err, "--services times --resources is more than", "100000", 6);
    if (o->for_ns == 0 && o->count == 0)
        o->for_ns = DEFAULT_FOR_NS;
    if (!o->url)
        o->url = o->protocol == SEND_OTLP ? "http://127.0.0.1:4318" : "http://127.0.0.1:8126";
    const uint64_t spans = cli_send_opts_spans(o);
    if (o->check && spans > o->check_max_samples) {
        (void)fprintf(err,
                      "weir send: --check would have to keep %llu durations, more than "
                      "--check-max-samples %llu: send less, or raise it (16 bytes each)\n",
                      (unsigned long long)spans, (unsigned long long)o->check_max_samples);
        return false;
    }
    return true;
}

bool cli_send_opts_parse(int argc, char **argv, struct send_opts *ret_opts, FILE *err)
{
    struct send_opts o = defaults;
    for (int at = 1; at < argc; at++) {
        if (!parse_option(argc, argv, &at, &o, err))
            return false;
    }
    if (!o.help && !settle(&o, err))
        return false;
    *ret_opts = o;
    return true;
}

void cli_send_opts_help(FILE *to)
{
    (void)fputs("usage: weir send [options]\n\n"
                "Send spans to an agent, say what was sent and, with --check, whether the agent\n"
                "counted exactly that.\n\n",
                to);
    cli_flags_help(&flags, 28, to);
    (void)fputs("\nexample: weir send --preset shop --rate 20000 --for 60s --check\n", to);
}

uint64_t cli_send_opts_spans(const struct send_opts *o)
{
    const double timed = o->for_ns ? o->rate * ((double)o->for_ns / 1e9) : 0;
    if (timed <= 0)
        return o->count;
    const uint64_t by_time = timed < 1e18 ? (uint64_t)timed : (uint64_t)1e18;
    return o->count && o->count < by_time ? o->count : by_time;
}
