/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_QUERY_SCREEN_H
#define AGENT_CLI_QUERY_SCREEN_H
/*
 * query_screen: where the frames of weir query --watch go.
 *
 * On a terminal each frame is painted over the last one on the alternate screen, by one write, a
 * line never being blanked before it is written anew: nothing flickers. The window's size is
 * asked for at each frame, and lines past it are left out. Elsewhere frames follow each other,
 * an empty line between them.
 *
 * SIGINT, SIGTERM and SIGHUP put the terminal back and end the process with status 0, whatever
 * it waits for; a stop (Ctrl-Z) puts it back for as long as it lasts. So there is one screen a
 * process, and its state is static: the handlers need it.
 *
 * Threads: main. Memory: heap, one frame.
 */
#include "query/buf.h"

#include <stdbool.h>

struct query_screen {
    bool is_terminal;
    size_t rows; /* of the window; 0: no end */
    size_t columns;
    bool is_later; /* a frame was put already */
    struct query_buf frame;
};

enum query_wake { QUERY_WAKE_TIME = 0, QUERY_WAKE_SIZE };

/* plain: frames follow each other even on a terminal. Install the handlers, take the terminal. */
void cli_query_screen_open(struct query_screen *screen, bool plain);
void cli_query_screen_close(struct query_screen *screen);
/* Ask for the window's size: rows and columns. */
void cli_query_screen_measure(struct query_screen *screen);
/* text, whole lines. False when it could not be written. */
bool cli_query_screen_put(struct query_screen *screen, const char *text, size_t len);
/* Until that moment of the monotonic clock, or the window has another size. */
enum query_wake cli_query_screen_wait(int64_t until_mono_ns);
#endif
