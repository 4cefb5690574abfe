/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_INSPECT_OPTS_H
#define AGENT_CLI_INSPECT_OPTS_H
/*
 * inspect_opts: the command line of weir inspect: one table row an option. Settings of the agent
 * that decide what it makes of a payload are taken by the agent's own flags, which are only
 * gathered here for config_load.
 *
 * Threads: one. Memory: none; texts are borrowed from argv.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum inspect_format {
    INSPECT_AUTO = 0,
    INSPECT_V03, /* the same bytes as v0.4; another route, another answer */
    INSPECT_V04,
    INSPECT_V05,
    INSPECT_V07,
    INSPECT_V1,
    INSPECT_OTLP,
    INSPECT_SKETCH /* one sketch, in the encoding opts->codec */
};
const char *cli_inspect_format_name(enum inspect_format format);

/* When the payload is taken to arrive. */
enum inspect_at {
    INSPECT_AT_END = 0, /* when its latest span ends, but not after now */
    INSPECT_AT_NOW,
    INSPECT_AT_TIME /* at_ns */
};

#define INSPECT_SETTINGS_MAX 32

struct inspect_opts {
    enum inspect_format format;
    uint32_t codec; /* enum weir_codec, of INSPECT_SKETCH */
    double alpha;   /* above 0: the mapping of a sketch that leaves it out */
    bool ceil;      /* the sketch's maker rounds up: WEIR_CODEC_CEIL */
    bool bins;
    const char *lang; /* Datadog-Meta-Lang; NULL: none */
    bool computed_top_level;
    enum inspect_at at;
    int64_t at_ns;
    uint64_t limit; /* rows of a window, and spans; 0: all */
    bool hex;
    bool spans;
    bool json;
    bool help;
    const char *path; /* "-": standard input */
    /* Flags of the agent, for config_load. profile is what --profile became. */
    char *settings[INSPECT_SETTINGS_MAX + 1];
    int setting_count;
    char profile[64];
};

/* False: the line is wrong, and err says how in one line; an unknown option names the nearest.
 * ret_opts->settings may point into *ret_opts: it must not be copied. */
bool cli_inspect_opts_parse(int argc, char **argv, struct inspect_opts *ret_opts, FILE *err);
void cli_inspect_opts_help(FILE *to);
#endif
