/* SPDX-License-Identifier: Apache-2.0 */
/* send_opts: see send_opts.h. */
#include "cli/send_opts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum type { FLAG, COUNT, NUMBER, DURATION, TEXT, PROTOCOL, PRESET, LATENCY };

/* given, if not 0, is the place of a bool that is set when the option is. */
struct option {
    const char *name;
    const char *argument; /* for the help; NULL: a flag */
    const char *help;
    enum type type;
    size_t offset;
    size_t given;
    double min; /* of COUNT, NUMBER and, in ns, DURATION */
    double max;
};

#define AT(field) offsetof(struct send_opts, field)
#define YEAR_NS (365.0 * 86400e9)

static const struct option options[] = {
    {.name = "protocol",
     .argument = "v0.4|v0.5|otlp",
     .help = "what to speak; default v0.4",
     .type = PROTOCOL,
     .offset = AT(protocol)},
    {.name = "url",
     .argument = "URL",
     .help = "where to send; default http://127.0.0.1:8126, for otlp http://127.0.0.1:4318",
     .type = TEXT,
     .offset = AT(url)},
    {.name = "unix-socket",
     .argument = "PATH",
     .help = "send through this socket",
     .type = TEXT,
     .offset = AT(unix_socket)},
    {.name = "preset",
     .argument = "shop|simple",
     .help = "a web shop, or N services with M resources; default shop",
     .type = PRESET,
     .offset = AT(preset),
     .given = AT(preset_given)},
    {.name = "services",
     .argument = "N",
     .help = "of preset simple, which it implies; default 1",
     .type = COUNT,
     .offset = AT(services),
     .given = AT(services_given),
     .min = 1,
     .max = SEND_ENDPOINTS_MAX},
    {.name = "resources",
     .argument = "N",
     .help = "a service, of preset simple, which it implies; default 1",
     .type = COUNT,
     .offset = AT(resources),
     .given = AT(services_given),
     .min = 1,
     .max = SEND_ENDPOINTS_MAX},
    {.name = "error-ratio",
     .argument = "X",
     .help = "errors among the spans, 0 to 1; default as the preset has it",
     .type = NUMBER,
     .offset = AT(error_ratio),
     .max = 1},
    {.name = "latency",
     .argument = "DIST",
     .help = "lognormal:MEDIAN:SIGMA, uniform:LOW:HIGH or constant:DURATION",
     .type = LATENCY,
     .offset = AT(latency),
     .given = AT(latency_given)},
    {.name = "spans-per-trace",
     .argument = "N",
     .help = "default as the preset has it",
     .type = COUNT,
     .offset = AT(spans_per_trace),
     .min = 1,
     .max = SEND_TRACE_SPANS_MAX},
    {.name = "rate",
     .argument = "N",
     .help = "spans a second, 0 for flat out; default 1000",
     .type = NUMBER,
     .offset = AT(rate),
     .max = 1e9},
    {.name = "for",
     .argument = "DURATION",
     .help = "how long; default 10s, unless --count is given",
     .type = DURATION,
     .offset = AT(for_ns),
     .min = 1e6,
     .max = YEAR_NS},
    {.name = "count",
     .argument = "N",
     .help = "how many spans",
     .type = COUNT,
     .offset = AT(count),
     .min = 1,
     .max = 1e15},
    {.name = "batch",
     .argument = "N",
     .help = "spans a request; default 1000",
     .type = COUNT,
     .offset = AT(batch),
     .min = 1,
     .max = SEND_BATCH_SPANS_MAX},
    {.name = "seed",
     .argument = "N",
     .help = "the same seed makes the same spans; default random",
     .type = COUNT,
     .offset = AT(seed),
     .given = AT(seed_given),
     .max = 9e15},
    {.name = "timeout",
     .argument = "DURATION",
     .help = "of one request; default 10s",
     .type = DURATION,
     .offset = AT(timeout_ns),
     .min = 1e6,
     .max = 3600e9},
    {.name = "gzip", .help = "compress the bodies", .type = FLAG, .offset = AT(gzip)},
    {.name = "chunked",
     .help = "send bodies in chunks, without a length",
     .type = FLAG,
     .offset = AT(chunked)},
    {.name = "check",
     .help = "hold the agent's answers against what was sent",
     .type = FLAG,
     .offset = AT(check)},
    {.name = "query-url",
     .argument = "URL",
     .help = "where to ask; default $WEIR_URL, else http://127.0.0.1:9099",
     .type = TEXT,
     .offset = AT(query_url)},
    {.name = "check-max-samples",
     .argument = "N",
     .help = "durations kept for --check, 8 to 16 bytes each; default 20000000",
     .type = COUNT,
     .offset = AT(check_max_samples),
     .min = 1,
     .max = 1e9},
    {.name = "check-wait",
     .argument = "DURATION",
     .help = "ask again for that long while answers differ; default 5s",
     .type = DURATION,
     .offset = AT(check_wait_ns),
     .max = 600e9},
    {.name = "json", .help = "report in JSON", .type = FLAG, .offset = AT(json)},
    {.name = "quiet", .help = "no progress, no table", .type = FLAG, .offset = AT(quiet)},
    {.name = "progress",
     .help = "a progress line though stderr is no terminal",
     .type = FLAG,
     .offset = AT(progress)},
    {.name = "keep-going",
     .help = "go on after a request that was not taken",
     .type = FLAG,
     .offset = AT(keep_going)},
    {.name = "help", .help = "this text", .type = FLAG, .offset = AT(help)},
};
#define OPTION_COUNT (sizeof options / sizeof *options)

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

/* Levenshtein's distance of the first n bytes of a and b; both shorter than 32. */
static size_t distance(const char *a, size_t n, const char *b)
{
    size_t row[33];
    const size_t m = strlen(b);
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t up = row[j];
            size_t best = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
            best = up + 1 < best ? up + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = best;
            corner = up;
        }
    }
    return row[m];
}

static const char *nearest(const char *name, size_t n)
{
    const char *best = options[0].name;
    size_t best_distance = SIZE_MAX;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const size_t d = distance(name, n < 32 ? n : 32, options[i].name);
        if (d < best_distance) {
            best_distance = d;
            best = options[i].name;
        }
    }
    return best;
}

static const struct option *find(const char *name, size_t n)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (strlen(options[i].name) == n && memcmp(options[i].name, name, n) == 0)
            return &options[i];
    }
    return NULL;
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
    const char *const name = arg + 2;
    const size_t n = strcspn(name, "=");
    const struct option *const o = find(name, n);
    if (!o) {
        (void)fprintf(err, "weir send: unknown option --%.*s; did you mean --%s?\n",
                      n < 60 ? (int)n : 60, name, nearest(name, n));
        return false;
    }
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    if (o->type == FLAG && value)
        return complain(err, "takes no value", arg, 60);
    if (o->type != FLAG && !value) {
        if (*at + 1 >= argc)
            return complain(err, "needs a value", arg, 60);
        value = argv[++*at];
    }
    if (!set_value(o, value ? value : "", opts)) {
        (void)fprintf(err, "weir send: --%s %s: not one of %s, or out of range (%s)\n", o->name,
                      value ? value : "", o->argument ? o->argument : "", o->help);
        return false;
    }
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
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char left[64];
        (void)snprintf(left, sizeof left, "--%s%s%s", options[i].name,
                       options[i].argument ? " " : "",
                       options[i].argument ? options[i].argument : "");
        (void)fprintf(to, "  %-28s %s\n", left, options[i].help);
    }
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
