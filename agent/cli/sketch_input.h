/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SKETCH_INPUT_H
#define AGENT_CLI_SKETCH_INPUT_H
/*
 * sketch_input: lines of text into a sketch, of any number in constant memory.
 *
 * Threads: one. Memory: one buffer of 64 KiB.
 */
#include "cli/sketch_opts.h"

#include <weir/sketch.h>

/* Why a line was not taken. */
#define SKETCH_REFUSED_MAP(X)                                                                      \
    X(COLUMN, "has no such column")                                                                \
    X(NUMBER, "is not a number")                                                                   \
    X(FINITE, "is not finite")                                                                     \
    X(WEIGHT, "has no weight between 0 and 17592186044415")                                        \
    X(TOTAL, "would carry the total weight past 2^44")                                             \
    X(LONG, "is longer than 65535 bytes")

enum sketch_refused {
#define SKETCH_REFUSED_ENUM(name, text) SKETCH_REFUSED_##name,
    SKETCH_REFUSED_MAP(SKETCH_REFUSED_ENUM)
#undef SKETCH_REFUSED_ENUM
        SKETCH_REFUSED_COUNT
};
const char *cli_sketch_refused_text(enum sketch_refused reason); /* "is not a number", ... */

struct sketch_input {
    uint64_t lines; /* all of them */
    uint64_t taken;
    uint64_t passed_over; /* empty, comments, the heading, weight 0 */
    uint64_t refused[SKETCH_REFUSED_COUNT];
    uint64_t first_refused[SKETCH_REFUSED_COUNT]; /* number of the line, from 1 */
};

/* Until the end of from. progress, if not NULL, is told about once a second how far it is.
 * WEIR_OK; WEIR_ENOMEM; -1: from could not be read, errno says why. */
int cli_sketch_read(FILE *from, const struct sketch_opts *opts, struct weir_sketch *sk,
                    struct sketch_input *ret_input, FILE *progress);
#endif
