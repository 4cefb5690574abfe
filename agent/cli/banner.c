/* SPDX-License-Identifier: Apache-2.0 */
/* banner: see banner.h. */
#include "cli/banner.h"

#include "log/log.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const int default_ports[BANNER_ADDRESS_COUNT] = {8126, 4318, 4317, 9099};

void banner_set_address(struct banner *b, enum banner_address which, const char *host, int port)
{
    (void)snprintf(b->addresses[which].host, sizeof b->addresses[which].host, "%s", host);
    b->addresses[which].port = port;
}

void banner_set_socket(struct banner *b, const char *path)
{
    (void)snprintf(b->socket, sizeof b->socket, "%s", path);
}

void banner_set_store(struct banner *b, const char *path)
{
    (void)snprintf(b->store, sizeof b->store, "%s", path);
}

const char *banner_socket(const struct banner *b)
{
    return b->socket[0] ? b->socket : NULL;
}

/* host:port, or with connect an address that reaches a listener of every network. */
static const char *address_of(const struct banner *b, enum banner_address which, bool connect,
                              char buf[96])
{
    const char *host = b->addresses[which].host;
    if (!*host) {
        buf[0] = 0;
        return buf;
    }
    if (connect && strcmp(host, "0.0.0.0") == 0)
        host = "127.0.0.1";
    else if (connect && strcmp(host, "::") == 0)
        host = "::1";
    (void)snprintf(buf, 96, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host,
                   b->addresses[which].port);
    return buf;
}

static void write_address(const struct banner *b, enum banner_address which, const char *what,
                          FILE *out)
{
    char buf[96];
    const char *const address = address_of(b, which, false, buf);
    const char *const scheme = which == BANNER_GRPC ? "" : "http://"; /* as its clients want it */
    if (*address)
        (void)fprintf(out, "  %-16s %s%s\n", what, scheme, address);
    else
        (void)fprintf(out, "  %-16s off\n", what);
}

/* Reached without saying where? */
static bool is_default(const struct banner *b, enum banner_address which)
{
    const char *const host = b->addresses[which].host;
    return b->addresses[which].port == default_ports[which] &&
           (strcmp(host, "127.0.0.1") == 0 || strcmp(host, "localhost") == 0 ||
            strcmp(host, "0.0.0.0") == 0);
}

static void write_try(const struct banner *b, const char *program, FILE *out)
{
    char buf[96];
    if (!b->addresses[BANNER_DATADOG].host[0] || !b->addresses[BANNER_WEB].host[0])
        return;
    (void)fprintf(out, "\nTry it: %s send --preset shop --rate 1000 --for 5s", program);
    if (!is_default(b, BANNER_DATADOG))
        (void)fprintf(out, " --url http://%s", address_of(b, BANNER_DATADOG, true, buf));
    (void)fprintf(out, " && %s query", program);
    if (!is_default(b, BANNER_WEB))
        (void)fprintf(out, " --url http://%s", address_of(b, BANNER_WEB, true, buf));
    (void)fputc('\n', out);
}

void banner_write(const struct banner *b, const char *program, FILE *out)
{
    (void)fputs("weir agent listens:\n", out);
    write_address(b, BANNER_DATADOG, "Datadog tracers", out);
    (void)fprintf(out, "  %-16s %s\n", "Datadog socket",
                  b->socket[0] ? b->socket : "off (--receivers.datadog.socket=PATH turns it on)");
    write_address(b, BANNER_OTLP, "OTLP over HTTP", out);
    write_address(b, BANNER_GRPC, "OTLP over gRPC", out);
    write_address(b, BANNER_WEB, "queries, metrics", out);
    (void)fprintf(out, "  %-16s %s\n", "store", b->store);
    write_try(b, program, out);
}

/*
 * As it was called, if that works from here; a path with a blank in it is not for pasting.
 */
static void program_name(char *buf, size_t bytes)
{
    char self[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *const called = program_invocation_name;
    if (called && strchr(called, '/'))
        (void)snprintf(buf, bytes, "%s", called);
    else if (called && strcmp(called, "weir") == 0)
        (void)snprintf(buf, bytes, "weir"); /* found by PATH */
    else
        (void)snprintf(buf, bytes, "%.*s", n > 0 ? (int)n : 4, n > 0 ? self : "weir");
}

void banner_print(const struct banner *b)
{
    char program[4096];
    program_name(program, sizeof program);
    banner_write(b, program, stdout);
    (void)fflush(stdout);
}

void banner_log(const struct banner *b)
{
    char datadog[96];
    char otlp[96];
    char grpc[96];
    char web[96];
    LOG_INFO("agent", "ready", "datadog", address_of(b, BANNER_DATADOG, false, datadog), "socket",
             b->socket, "otlp_http", address_of(b, BANNER_OTLP, false, otlp), "otlp_grpc",
             address_of(b, BANNER_GRPC, false, grpc), "web", address_of(b, BANNER_WEB, false, web),
             "store", b->store);
}
