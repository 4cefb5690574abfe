/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SKETCH_OPTS_H
#define AGENT_CLI_SKETCH_OPTS_H
/*
 * sketch_opts: the command line of weir sketch: one table row an option.
 *
 * Threads: one. Memory: none; texts are borrowed from argv.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SKETCH_QUANTILES_MAX 64
#define SKETCH_ROWS_MAX 200

struct sketch_opts {
    const char *path;       /* "-": standard input, the default */
    uint32_t column;        /* of the numbers, from 1 */
    uint32_t weight_column; /* from 1; 0: every weight is one */
    char delimiter;         /* '\0': blanks, commas and semicolons */
    double quantiles[SKETCH_QUANTILES_MAX];
    uint32_t quantile_count;
    uint32_t rows;  /* of the histogram; 0: none */
    int32_t scale;  /* of base 2 */
    double alpha;   /* above 0: logarithmic, of that accuracy */
    uint32_t limit; /* bins a sign */
    uint32_t codec; /* enum weir_codec, when encode */
    bool encode;    /* write the sketch itself */
    bool hex;       /* as hexadecimal text */
    bool json;
    bool help;
};

/* False: the line is wrong, and err says how in one line; an unknown option names the nearest. */
bool cli_sketch_opts_parse(int argc, char **argv, struct sketch_opts *ret_opts, FILE *err);
void cli_sketch_opts_help(FILE *to);

/* The codec of that name (weir_codec_name); false: none. Of --to, and of weir inspect --format. */
bool cli_sketch_codec(const char *name, uint32_t *ret_codec);
/* An accuracy that a logarithmic mapping can have; false: it is none. Of --alpha of both. */
bool cli_sketch_alpha(const char *text, double *ret_alpha);
#endif
