/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_LOG_LOG_H
#define AGENT_LOG_LOG_H
/*
 * log: one event, one logfmt (or JSON) line on standard error:
 *   ts=2026-11-30T10:00:00.000Z level=warn at=store event=write_failed err="disk full" attempt=3
 *
 * Pairs come as alternating key and text, ended by NULL; log_u64 and friends make texts of numbers.
 * Values are quoted and escaped when they need it. Never give it payload content. Each call site is
 * limited to one line a second beyond a burst of 10, and says how many were suppressed.
 * Threads: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG_LEVEL = 0, LOG_INFO_LEVEL, LOG_WARN_LEVEL, LOG_ERROR_LEVEL };
enum log_format { LOG_LOGFMT = 0, LOG_JSON };

void log_setup(enum log_level level, enum log_format format);

struct log_site {
    int64_t second;
    uint32_t count;
    uint32_t suppressed;
};
struct log_num {
    char text[24];
};
/* event at a module, then pairs; use the macros. */
void log_write(struct log_site *site, enum log_level level, const char *at, const char *event, ...)
    __attribute__((sentinel));
const char *log_i64(struct log_num *n, int64_t v);
const char *log_u64(struct log_num *n, uint64_t v);

/* LOG_U64(v) is a text that lives to the end of the enclosing block. */
#define LOG_U64(v) log_u64(&(struct log_num){{0}}, (uint64_t)(v))
#define LOG_I64(v) log_i64(&(struct log_num){{0}}, (int64_t)(v))

#define LOG_AT(level, at, event, ...)                                                              \
    do {                                                                                           \
        static struct log_site log_site_;                                                          \
        log_write(&log_site_, (level), (at), (event), __VA_ARGS__);                                \
    } while (0)
#define LOG_DEBUG(at, ...) LOG_AT(LOG_DEBUG_LEVEL, at, __VA_ARGS__, (const char *)NULL)
#define LOG_INFO(at, ...) LOG_AT(LOG_INFO_LEVEL, at, __VA_ARGS__, (const char *)NULL)
#define LOG_WARN(at, ...) LOG_AT(LOG_WARN_LEVEL, at, __VA_ARGS__, (const char *)NULL)
#define LOG_ERROR(at, ...) LOG_AT(LOG_ERROR_LEVEL, at, __VA_ARGS__, (const char *)NULL)
#endif
