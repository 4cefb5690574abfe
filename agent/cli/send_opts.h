/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_OPTS_H
#define AGENT_CLI_SEND_OPTS_H
/*
 * send_opts: the command line of weir send: one table row an option, which parses it, bounds it
 * and prints its help. Threads: one.
 */
#include <stdio.h>

#include "cli/send_encode.h"

struct send_opts {
    enum send_protocol protocol;
    const char *url;         /* NULL: by protocol */
    const char *unix_socket; /* NULL: by TCP */
    const char *query_url;   /* NULL: WEIR_URL, else the default */
    enum send_preset preset;
    bool preset_given;
    uint64_t services;
    bool services_given; /* or resources */
    uint64_t resources;
    double error_ratio; /* < 0: as the preset has it */
    struct send_latency latency;
    bool latency_given;
    uint64_t spans_per_trace; /* 0: as the preset has it */
    double rate;              /* spans a second; 0: flat out */
    int64_t for_ns;           /* 0: until count */
    uint64_t count;           /* spans; 0: until for_ns */
    uint64_t batch;
    uint64_t seed;
    bool seed_given;
    int64_t timeout_ns;
    uint64_t check_max_samples;
    int64_t check_wait_ns;
    bool gzip;
    bool chunked;
    bool check;
    bool json;
    bool quiet;
    bool progress;
    bool keep_going;
    bool help;
};

/*
 * Texts are borrowed from argv. false: the line is wrong, and err says how, in lines that begin
 * with "weir send: "; an unknown option is answered with the nearest one.
 */
bool cli_send_opts_parse(int argc, char **argv, struct send_opts *ret_opts, FILE *err);
void cli_send_opts_help(FILE *to);

/* How many spans the run may take at most; 0: no one can say (flat out for a time). */
uint64_t cli_send_opts_spans(const struct send_opts *opts);
#endif
