/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_QUERY_OPTS_H
#define AGENT_CLI_QUERY_OPTS_H
/*
 * query_opts: the command line of weir query: one table row an option.
 *
 * Threads: one. Memory: none; texts are borrowed from argv.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum query_sort {
    QUERY_SORT_RATE = 0,
    QUERY_SORT_ERRORS,
    QUERY_SORT_P50,
    QUERY_SORT_P95,
    QUERY_SORT_P99,
    QUERY_SORT_MAX,
    QUERY_SORT_SERVICE,
    QUERY_SORT_OPERATION,
    QUERY_SORT_RESOURCE
};

struct query_opts {
    const char *url;     /* NULL: WEIR_URL, else the default */
    const char *expr;    /* NULL: the table */
    const char *last;    /* a PromQL duration */
    const char *env;     /* NULL: all */
    const char *service; /* NULL: all */
    enum query_sort sort;
    uint64_t limit;   /* rows; 0: all */
    int64_t watch_ns; /* ask again so often; 0: once */
    size_t columns;   /* of the window the table goes to; 0: any width */
    bool json;
    bool help;
};

/* False: the line is wrong, and err says how in one line; an unknown option names the nearest. */
bool cli_query_opts_parse(int argc, char **argv, struct query_opts *ret_opts, FILE *err);
void cli_query_opts_help(FILE *to);
#endif
