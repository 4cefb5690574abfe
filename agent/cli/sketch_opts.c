/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sketch_opts: see the header. The table below is what is parsed and what --help prints.
 *
 * Threads: one. Memory: none.
 */
#include "cli/sketch_opts.h"

#include "cli/flags.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <weir/codec.h>
#include <weir/sketch.h>

enum option_kind {
    OPTION_COLUMN,
    OPTION_WEIGHT_COLUMN,
    OPTION_DELIMITER,
    OPTION_QUANTILES,
    OPTION_ROWS,
    OPTION_SCALE,
    OPTION_ALPHA,
    OPTION_MAX_BINS,
    OPTION_TO,
    OPTION_HEX,
    OPTION_JSON,
    OPTION_HELP
};

static const struct cli_flag options[] = {
    [OPTION_COLUMN] = {"column", "N", "the column with the numbers, from 1 (default 1)"},
    [OPTION_WEIGHT_COLUMN] = {"weight-column", "N",
                              "the column with their weights (default: each counts once)"},
    [OPTION_DELIMITER] = {"delimiter", "C",
                          "what separates columns (default: blanks, commas and semicolons)"},
    [OPTION_QUANTILES] = {"quantiles", "LIST",
                          "which, 0 to 1, with commas (default 0.5,0.9,0.95,0.99,0.999)"},
    [OPTION_ROWS] = {"rows", "N", "rows of the histogram, 0 for none (default 20)"},
    [OPTION_SCALE] = {"scale", "N", "base-2 bins of that scale, -10 to 8 (default 6: 0.54 %)"},
    [OPTION_ALPHA] = {"alpha", "A",
                      "logarithmic bins of that relative accuracy, 0.00001 to 0.5, instead"},
    [OPTION_MAX_BINS] = {"max-bins", "N",
                         "past so many a sign the lowest collapse, 2 to 32768 (default 2048)"},
    [OPTION_TO] = {"to", "ENCODING", "write the sketch itself: weir, dd_proto, dd_compact, ..."},
    [OPTION_HEX] = {"hex", NULL, "with --to: as hexadecimal text"},
    [OPTION_JSON] = {"json", NULL, "print JSON"},
    [OPTION_HELP] = {"help", NULL, "print this"},
};
static const struct cli_flags flags = {.verb = "sketch",
                                       .at = options,
                                       .stride = sizeof *options,
                                       .count = sizeof options / sizeof *options};

bool cli_sketch_codec(const char *name, uint32_t *ret_codec)
{
    for (uint32_t codec = 0; weir_codec_name(codec); codec++) {
        if (strcmp(weir_codec_name(codec), name) == 0) {
            *ret_codec = codec;
            return true;
        }
    }
    return false;
}

static bool read_whole(const char *value, long min, long max, long *ret_number)
{
    char *end;
    const long number = strtol(value, &end, 10);
    if (end == value || *end || number < min || number > max)
        return false;
    *ret_number = number;
    return true;
}

static bool read_u32(const char *value, long min, long max, uint32_t *ret_number)
{
    long number;
    if (!read_whole(value, min, max, &number))
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static bool read_quantiles(const char *value, struct sketch_opts *opts)
{
    opts->quantile_count = 0;
    for (const char *at = value;; at++) {
        char *end;
        const double q = strtod(at, &end);
        if (end == at || !(q >= 0 && q <= 1) || opts->quantile_count == SKETCH_QUANTILES_MAX)
            return false;
        opts->quantiles[opts->quantile_count++] = q;
        if (!*end)
            return true;
        if (*end != ',')
            return false;
        at = end;
    }
}

static bool read_scale(const char *value, struct sketch_opts *opts)
{
    long scale;
    if (!read_whole(value, WEIR_SCALE_MIN, WEIR_SCALE_MAX, &scale))
        return false;
    opts->scale = (int32_t)scale;
    return true;
}

bool cli_sketch_alpha(const char *text, double *ret_alpha)
{
    char *end;
    *ret_alpha = strtod(text, &end);
    return end != text && !*end && *ret_alpha >= 1e-5 && *ret_alpha <= 0.5;
}

static bool read_delimiter(const char *value, struct sketch_opts *opts)
{
    opts->delimiter = strcmp(value, "\\t") == 0 ? '\t' : value[0];
    return opts->delimiter != '\0' && (opts->delimiter == '\t' || !value[1]);
}

static bool set_value(enum option_kind kind, const char *value, struct sketch_opts *opts)
{
    switch (kind) {
    case OPTION_COLUMN:
        return read_u32(value, 1, 100000, &opts->column);
    case OPTION_WEIGHT_COLUMN:
        return read_u32(value, 1, 100000, &opts->weight_column);
    case OPTION_DELIMITER:
        return read_delimiter(value, opts);
    case OPTION_QUANTILES:
        return read_quantiles(value, opts);
    case OPTION_ROWS:
        return read_u32(value, 0, SKETCH_ROWS_MAX, &opts->rows);
    case OPTION_SCALE:
        return read_scale(value, opts);
    case OPTION_ALPHA:
        return cli_sketch_alpha(value, &opts->alpha);
    case OPTION_MAX_BINS:
        return read_u32(value, 2, 32768, &opts->limit);
    case OPTION_TO:
        opts->encode = true;
        return cli_sketch_codec(value, &opts->codec) && opts->codec != WEIR_CODEC_OTLP_HISTOGRAM;
    case OPTION_HEX:
        opts->hex = true;
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

static bool parse_option(void *ctx, int argc, char **argv, int *at, FILE *err)
{
    struct sketch_opts *const opts = ctx;
    const char *value = NULL;
    const size_t kind = cli_flags_read(&flags, argc, argv, at, &value, err);
    if (kind == SIZE_MAX)
        return false;
    return set_value((enum option_kind)kind, value ? value : "", opts) ||
           cli_flags_refuse(&flags, kind, value, err);
}

static bool parse_path(void *ctx, const char *arg, FILE *err)
{
    struct sketch_opts *const opts = ctx;
    if (opts->path) {
        (void)fputs("weir sketch: more than one file\n", err);
        return false;
    }
    opts->path = arg;
    return true;
}

bool cli_sketch_opts_parse(int argc, char **argv, struct sketch_opts *ret_opts, FILE *err)
{
    *ret_opts = (struct sketch_opts){.column = 1,
                                     .quantiles = {0.5, 0.9, 0.95, 0.99, 0.999},
                                     .quantile_count = 5,
                                     .rows = 20,
                                     .scale = WEIR_SKETCH_SCALE_DEFAULT,
                                     .limit = WEIR_SKETCH_BINS_DEFAULT};
    const struct cli_line line = {
        .opts = ret_opts, .help = &ret_opts->help, .option = parse_option, .argument = parse_path};
    if (!cli_flags_line(&line, argc, argv, err))
        return false;
    if (!ret_opts->path)
        ret_opts->path = "-";
    if (ret_opts->hex && !ret_opts->encode) {
        (void)fputs("weir sketch: --hex goes with --to\n", err);
        return false;
    }
    return true;
}

void cli_sketch_opts_help(FILE *to)
{
    (void)fputs("usage: weir sketch [OPTION]... [FILE|-]\n\n"
                "Read numbers, one a line, and print how many, their sum, least, greatest and\n"
                "quantiles, with the error bound of each, and a histogram. Memory does not grow\n"
                "with the input. Empty lines and lines that begin with # are passed over, and a\n"
                "first line that is no number is a heading.\n\n",
                to);
    cli_flags_help(&flags, 19, to);
    (void)fputs("\nEncodings:", to);
    for (uint32_t codec = 0; weir_codec_name(codec); codec++) {
        if (codec != WEIR_CODEC_OTLP_HISTOGRAM) /* it is only read */
            (void)fprintf(to, " %s", weir_codec_name(codec));
    }
    (void)fputs("\n\nExit status: 0, 1 when the input cannot be read or a line of it was refused,\n"
                "2 when the line is wrong.\n",
                to);
}
