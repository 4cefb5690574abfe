/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_INSPECT_BODY_H
#define AGENT_CLI_INSPECT_BODY_H
/*
 * inspect_body: from a file to the decoded body of a request, and which format it is in.
 *
 * Compression is known by its magic number and undone by the agent's own reader of bodies, under
 * the agent's limit. A format is guessed from the first bytes, of a map from its first key, and,
 * where v0.4 and v0.5 begin alike, from the first element of the first element; what is not surely
 * a trace payload is not guessed at, and the guess says what it looks like instead.
 *
 * Threads: one. Memory: heap, in proportion to what was read and at most a few times max_bytes.
 */
#include "cli/inspect_opts.h"
#include "net/body.h"

struct inspect_body {
    size_t sent_bytes; /* as a client would send them: after hex, before decompression */
    enum net_coding coding;
    struct weir_bytes bytes; /* decoded; borrowed from the rest */
    char *file;
    struct net_body_pool pool;
    struct net_collector collector;
};

#define INSPECT_WHY_BYTES 256

/* 0, or -1 with one line in why. Free with _done in either case. */
int cli_inspect_body_read(const char *path, bool hex, size_t max_bytes,
                          struct inspect_body *ret_body, char why[INSPECT_WHY_BYTES]);
/* The same of bytes that are in memory already: takes file, which free() frees. */
int cli_inspect_body_take(char *file, size_t len, bool hex, size_t max_bytes,
                          struct inspect_body *ret_body, char why[INSPECT_WHY_BYTES]);
void cli_inspect_body_done(struct inspect_body *body);

struct inspect_guess {
    enum inspect_format format; /* INSPECT_AUTO: none */
    const char *how;            /* what the guess stands on, or what the body looks like; static */
};
struct inspect_guess cli_inspect_guess(struct weir_bytes body);
#endif
