/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_FLAGS_H
#define AGENT_CLI_FLAGS_H
/*
 * flags: the options of a verb, as one table: what is read from the line and what --help prints.
 * --name, --name=value or --name value; an unknown name is answered with the nearest.
 * (weir agent's own come from config/options.def.)
 *
 * Threads: one. Memory: none.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cli_flag {
    const char *name;
    const char
        *argument; /* NULL: takes none; "[...]": may do without, and takes it behind '=' only */
    const char *help;
};

/* A table of structs whose first member is a struct cli_flag. */
struct cli_flags {
    const char *verb;
    const void *at;
    size_t stride;
    size_t count;
};

/*
 * Read argv[*at], which begins with "--", and its value, if it takes one, moving *at to the last
 * argument used. *ret_value is NULL where there is none. Returns the flag's place in the table, or
 * SIZE_MAX: err was told why.
 */
size_t cli_flags_read(const struct cli_flags *flags, int argc, char **argv, int *at,
                      const char **ret_value, FILE *err);

/*
 * A whole line: option for what begins with "--", which may move *at on; argument for the rest, and
 * for all behind "--". -h sets *help. Both return false, err told why, where the line is wrong, and
 * so does this.
 */
struct cli_line {
    void *opts;
    bool *help;
    bool (*option)(void *opts, int argc, char **argv, int *at, FILE *err);
    bool (*argument)(void *opts, const char *arg, FILE *err);
};
bool cli_flags_line(const struct cli_line *line, int argc, char **argv, FILE *err);

/* "weir VERB: --name value: wanted: help"; returns false. */
bool cli_flags_refuse(const struct cli_flags *flags, size_t flag, const char *value, FILE *err);

/* A line each, the names in a column of that width. */
void cli_flags_help(const struct cli_flags *flags, int width, FILE *to);
#endif
