/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: see log.h.
 *
 * A line is built on the stack and leaves in one write(2), so lines of several threads never mix.
 * The settings and the sites are under one mutex: logging is rare, and a site that is held back
 * costs an uncontended lock and no more.
 *
 * Threads: any. Memory: the stack.
 */
#include "log/log.h"

#include "log/line.h"
#include "plat/plat.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex;
    enum log_level level;
    enum log_format format;
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER, .level = LOG_INFO_LEVEL, .format = LOG_LOGFMT};

void log_setup(enum log_level level, enum log_format format)
{
    (void)pthread_mutex_lock(&state.mutex);
    state.level = level;
    state.format = format;
    (void)pthread_mutex_unlock(&state.mutex);
}

static void write_all(const char *line, size_t n)
{
    /* More than one write only where a pipe took part of it. */
    while (n > 0) {
        const ssize_t wrote = write(STDERR_FILENO, line, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return; /* standard error is gone: there is no one left to tell */
        line += wrote;
        n -= (size_t)wrote;
    }
}

void log_write(struct log_site *site, enum log_level level, const char *at, const char *event, ...)
{
    struct log_event e = {.level = level, .at = at, .event = event};
    const int kept_errno = errno;
    (void)pthread_mutex_lock(&state.mutex);
    e.format = state.format;
    const bool speak =
        level >= state.level && log_site_admit(site, plat_mono_ns() / 1000000000, &e.suppressed);
    (void)pthread_mutex_unlock(&state.mutex);
    if (!speak)
        return;
    char line[LOG_LINE_BYTES];
    va_list pairs;
    e.wall_ns = plat_wall_ns();
    va_start(pairs, event);
    const size_t n = log_line_build(line, &e, pairs);
    va_end(pairs);
    write_all(line, n);
    errno = kept_errno;
}

const char *log_i64(struct log_num *n, int64_t v)
{
    (void)snprintf(n->text, sizeof n->text, "%" PRId64, v);
    return n->text;
}

const char *log_u64(struct log_num *n, uint64_t v)
{
    (void)snprintf(n->text, sizeof n->text, "%" PRIu64, v);
    return n->text;
}
