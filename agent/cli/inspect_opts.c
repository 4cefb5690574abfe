/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_opts: see the header. The table below is what is parsed and what --help prints.
 *
 * Threads: one. Memory: none.
 */
#include "cli/inspect_opts.h"

#include "cli/flags.h"
#include "cli/sketch_opts.h"

#include <stdlib.h>
#include <string.h>
#include <weir/codec.h>

enum option_kind {
    OPTION_FORMAT,
    OPTION_HEX,
    OPTION_PROFILE,
    OPTION_LANG,
    OPTION_TOP_LEVEL,
    OPTION_AT,
    OPTION_SPANS,
    OPTION_LIMIT,
    OPTION_ALPHA,
    OPTION_CEIL,
    OPTION_BINS,
    OPTION_JSON,
    OPTION_HELP
};

static const struct cli_flag options[] = {
    [OPTION_FORMAT] =
        {"format", "FORMAT",
         "auto, v0.3 to v0.5, v0.7, v1.0, otlp, or a sketch's encoding (default auto)"},
    [OPTION_HEX] = {"hex", NULL, "the file is hexadecimal text, blanks allowed"},
    [OPTION_PROFILE] = {"profile", "PROFILE", "all or datadog: --aggregation.profile"},
    [OPTION_LANG] = {"lang", "LANG", "what the header Datadog-Meta-Lang says"},
    [OPTION_TOP_LEVEL] = {"computed-top-level", NULL,
                          "as if Datadog-Client-Computed-Top-Level were sent"},
    [OPTION_AT] =
        {"at", "WHEN",
         "when it arrives: end (of its last span; the default), now, or seconds since 1970"},
    [OPTION_SPANS] = {"spans", NULL, "print each span"},
    [OPTION_LIMIT] = {"limit", "N",
                      "print at most so many spans and rows a window, 0 for all (default 0)"},
    [OPTION_ALPHA] = {"alpha", "A", "the accuracy of a sketch that leaves its mapping out"},
    [OPTION_CEIL] = {"ceil", NULL,
                     "the sketch is of Python, JavaScript or PostgreSQL: bins round up"},
    [OPTION_BINS] = {"bins", NULL, "print each bin of a sketch"},
    [OPTION_JSON] = {"json", NULL, "print JSON"},
    [OPTION_HELP] = {"help", NULL, "print this"},
};
static const struct cli_flags flags = {.verb = "inspect",
                                       .at = options,
                                       .stride = sizeof *options,
                                       .count = sizeof options / sizeof *options};

static const char *const formats[] = {
    [INSPECT_AUTO] = "auto", [INSPECT_V03] = "v0.3",      [INSPECT_V04] = "v0.4",
    [INSPECT_V05] = "v0.5",  [INSPECT_V07] = "v0.7",      [INSPECT_V1] = "v1.0",
    [INSPECT_OTLP] = "otlp", [INSPECT_SKETCH] = "sketch",
};

const char *cli_inspect_format_name(enum inspect_format format)
{
    return formats[format];
}

static bool set_format(const char *value, struct inspect_opts *opts)
{
    for (size_t i = 0; i < INSPECT_SKETCH; i++) {
        if (strcmp(formats[i], value) == 0) {
            opts->format = (enum inspect_format)i;
            return true;
        }
    }
    opts->format = INSPECT_SKETCH;
    return cli_sketch_codec(value, &opts->codec);
}

static bool read_number(const char *value, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (const char *p = value; *p; p++) {
        if (*p < '0' || *p > '9')
            return false;
        number = number * 10 + (uint64_t)(*p - '0');
        if (number > max)
            return false;
    }
    *ret_number = number;
    return *value != '\0';
}

static bool set_at(const char *value, struct inspect_opts *opts)
{
    uint64_t seconds = 0;
    if (strcmp(value, "end") == 0)
        opts->at = INSPECT_AT_END;
    else if (strcmp(value, "now") == 0)
        opts->at = INSPECT_AT_NOW;
    else if (read_number(value, INT64_MAX / 1000000000 - 1, &seconds))
        opts->at = INSPECT_AT_TIME;
    else
        return false;
    opts->at_ns = (int64_t)seconds * 1000000000;
    return true;
}

static bool add_setting(struct inspect_opts *opts, char *text)
{
    if (opts->setting_count == INSPECT_SETTINGS_MAX)
        return false;
    opts->settings[opts->setting_count++] = text;
    return true;
}

static bool set_profile(const char *value, struct inspect_opts *opts)
{
    if (strcmp(value, "all") != 0 && strcmp(value, "datadog") != 0)
        return false;
    const bool is_first = opts->profile[0] == '\0';
    (void)snprintf(opts->profile, sizeof opts->profile, "--aggregation.profile=%s", value);
    return !is_first || add_setting(opts, opts->profile);
}

static bool set_value(enum option_kind kind, const char *value, struct inspect_opts *opts)
{
    switch (kind) {
    case OPTION_FORMAT:
        return set_format(value, opts);
    case OPTION_HEX:
        opts->hex = true;
        return true;
    case OPTION_PROFILE:
        return set_profile(value, opts);
    case OPTION_LANG:
        opts->lang = value;
        return true;
    case OPTION_TOP_LEVEL:
        opts->computed_top_level = true;
        return true;
    case OPTION_AT:
        return set_at(value, opts);
    case OPTION_SPANS:
        opts->spans = true;
        return true;
    case OPTION_LIMIT:
        return read_number(value, UINT32_MAX, &opts->limit);
    case OPTION_ALPHA:
        return cli_sketch_alpha(value, &opts->alpha);
    case OPTION_CEIL:
        opts->ceil = true;
        return true;
    case OPTION_BINS:
        opts->bins = true;
        return true;
    case OPTION_JSON:
        opts->json = true;
        return true;
    case OPTION_HELP:
        opts->help = true;
        return true;
    }
    return false;
}

/* Flags of the agent that change what it makes of a payload. */
static bool is_setting(const char *name)
{
    static const char *const begins[] = {"aggregation.", "config.file", "http.max-body-size"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    }
    return false;
}

static bool take_setting(int argc, char **argv, int *at, struct inspect_opts *opts, FILE *err)
{
    bool ok = add_setting(opts, argv[*at]);
    if (ok && !strchr(argv[*at], '=') && *at + 1 < argc)
        ok = add_setting(opts, argv[++*at]);
    if (!ok)
        (void)fprintf(err, "weir inspect: more than %d settings\n", INSPECT_SETTINGS_MAX);
    return ok;
}

static bool parse_option(void *ctx, int argc, char **argv, int *at, FILE *err)
{
    struct inspect_opts *const opts = ctx;
    if (is_setting(argv[*at] + 2))
        return take_setting(argc, argv, at, opts, err);
    const char *value = NULL;
    const size_t kind = cli_flags_read(&flags, argc, argv, at, &value, err);
    if (kind == SIZE_MAX)
        return false;
    return set_value((enum option_kind)kind, value ? value : "", opts) ||
           cli_flags_refuse(&flags, kind, value, err);
}

static bool parse_path(void *ctx, const char *arg, FILE *err)
{
    struct inspect_opts *const opts = ctx;
    if (opts->path) {
        (void)fputs("weir inspect: more than one file\n", err);
        return false;
    }
    opts->path = arg;
    return true;
}

bool cli_inspect_opts_parse(int argc, char **argv, struct inspect_opts *opts, FILE *err)
{
    *opts = (struct inspect_opts){.format = INSPECT_AUTO};
    const struct cli_line line = {
        .opts = opts, .help = &opts->help, .option = parse_option, .argument = parse_path};
    if (!cli_flags_line(&line, argc, argv, err))
        return false;
    if (!opts->path && !opts->help)
        (void)fputs("weir inspect: no file is named; - is standard input\n", err);
    return opts->path || opts->help;
}

void cli_inspect_opts_help(FILE *to)
{
    (void)fputs(
        "usage: weir inspect [OPTION]... FILE|-\n\n"
        "Read the body of a request with traces, gzip too, and print what an agent would\n"
        "make of it: spans, rows, what is refused, dropped and mended. Nothing is sent.\n"
        "With the encoding of a sketch as --format: its mapping, bins, quantiles, bounds.\n\n",
        to);
    cli_flags_help(&flags, 21, to);
    (void)fputs("\nEncodings of sketches:", to);
    for (uint32_t codec = 0; weir_codec_name(codec); codec++)
        (void)fprintf(to, " %s", weir_codec_name(codec));
    (void)fputs("\n\n", to);
    (void)fputs("  --aggregation.NAME=VALUE, --config.file=PATH, --http.max-body-size=SIZE\n"
                "                        settings of the agent: weir agent --help\n"
                "\nExit status: 0, 1 when the body is refused or cannot be read, 2 when the line\n"
                "is wrong.\n",
                to);
}
