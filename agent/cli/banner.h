/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_BANNER_H
#define AGENT_CLI_BANNER_H
/*
 * banner: where the agent listens, said at its start: to people on standard output, with a line to
 * try it by, and to programs as event=ready in the log.
 * Threads: main.
 */
#include <stdio.h>

enum banner_address {
    BANNER_DATADOG = 0,
    BANNER_OTLP,
    BANNER_GRPC,
    BANNER_WEB,
    BANNER_ADDRESS_COUNT
};

struct banner {
    struct {
        char host[64]; /* empty: off */
        int port;
    } addresses[BANNER_ADDRESS_COUNT];
    char socket[256]; /* empty: off */
    char store[4096];
};

void banner_set_address(struct banner *b, enum banner_address which, const char *host, int port);
void banner_set_socket(struct banner *b, const char *path); /* empty: off */
void banner_set_store(struct banner *b, const char *path);
const char *banner_socket(const struct banner *b); /* NULL: off */

/* program is how the reader may call it. */
void banner_write(const struct banner *b, const char *program, FILE *out);
void banner_print(const struct banner *b); /* on standard output, with the program's own name */
void banner_log(const struct banner *b);
#endif
