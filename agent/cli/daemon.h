/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_DAEMON_H
#define AGENT_CLI_DAEMON_H
/*
 * daemon: the running agent: opens the store, the pipeline and the listeners, runs the loop, and
 * takes them down again in the order that loses nothing.
 *
 *   SIGTERM or SIGINT: receivers stop listening and finish what they have; everything is sealed
 *   and written; then the web stops. A second signal ends the process at once.
 *
 * Threads: main, which is the loop's; queries run on libuv's workers.
 */
#include "config/config.h"

/* Runs until a signal. The exit status: 0, or 1 after a message on standard error. */
int daemon_run(const struct config *config);
#endif
