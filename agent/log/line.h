/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_LOG_LINE_H
#define AGENT_LOG_LINE_H
/*
 * line: the pure half of log: one event as text, and whether a call site may speak. Inside log/.
 *
 * A line is built in the caller's buffer and always ends in a newline; what does not fit is left
 * out pair by pair and the line says truncated=true.
 * Threads: none inside; a buffer belongs to one thread.
 */
#include "log/log.h"

#include <stdarg.h>

#define LOG_LINE_BYTES 4096
#define LOG_SITE_BURST 10

struct log_event {
    enum log_format format;
    enum log_level level;
    int64_t wall_ns;
    uint32_t suppressed; /* 0: not said */
    const char *at;
    const char *event;
};

/* Fill buf (LOG_LINE_BYTES) with one line; pairs end with NULL. Returns its length. */
size_t log_line_build(char *buf, const struct log_event *event, va_list pairs);

/* May this site speak at second now? Then *ret_suppressed is how many were kept back before. */
bool log_site_admit(struct log_site *site, int64_t now, uint32_t *ret_suppressed);
#endif
