/* SPDX-License-Identifier: Apache-2.0 */
#include "log/log.h"
#include <stdio.h>
__attribute__((weak)) void log_write(struct log_site *site, enum log_level level, const char *at,
                                     const char *event, ...)
{
    (void)site;
    (void)level;
    (void)at;
    (void)event;
}
__attribute__((weak)) const char *log_i64(struct log_num *n, int64_t v)
{
    (void)snprintf(n->text, sizeof n->text, "%lld", (long long)v);
    return n->text;
}
__attribute__((weak)) const char *log_u64(struct log_num *n, uint64_t v)
{
    (void)snprintf(n->text, sizeof n->text, "%llu", (unsigned long long)v);
    return n->text;
}
