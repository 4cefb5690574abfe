/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/banner.h"
#include "t.h"

#include <stdlib.h>
#include <string.h>

static char *written(const struct banner *b)
{
    char *text = NULL;
    size_t n = 0;
    FILE *const f = open_memstream(&text, &n);
    T_TRUE(f);
    banner_write(b, "./weir", f);
    T_TRUE(fclose(f) == 0);
    return text;
}

static struct banner banner_at(int datadog, int otlp, int web)
{
    struct banner b;
    memset(&b, 0, sizeof b);
    banner_set_address(&b, BANNER_DATADOG, "127.0.0.1", datadog);
    banner_set_address(&b, BANNER_OTLP, "127.0.0.1", otlp);
    banner_set_address(&b, BANNER_WEB, "127.0.0.1", web);
    banner_set_store(&b, "/var/lib/weir");
    return b;
}

TEST(the_line_to_try_names_no_address_where_all_are_the_defaults)
{
    struct banner b = banner_at(8126, 4318, 9099);
    char *text = written(&b);
    T_EQ_STR(text, "weir agent listens:\n"
                   "  Datadog tracers  http://127.0.0.1:8126\n"
                   "  Datadog socket   off (--receivers.datadog.socket=PATH turns it on)\n"
                   "  OTLP over HTTP   http://127.0.0.1:4318\n"
                   "  OTLP over gRPC   off\n"
                   "  queries, metrics http://127.0.0.1:9099\n"
                   "  store            /var/lib/weir\n"
                   "\n"
                   "Try it: ./weir send --preset shop --rate 1000 --for 5s && ./weir query\n");
    free(text);
    banner_set_address(&b, BANNER_DATADOG, "0.0.0.0", 8126);
    banner_set_address(&b, BANNER_GRPC, "127.0.0.1", 4317);
    text = written(&b);
    T_TRUE(strstr(text, "  OTLP over gRPC   127.0.0.1:4317\n"));
    T_TRUE(strstr(text, "http://0.0.0.0:8126\n"));
    T_TRUE(strstr(text, "--for 5s && ./weir query\n"));
    free(text);
}

TEST(the_line_to_try_names_the_addresses_that_are_not_the_defaults)
{
    struct banner b = banner_at(1001, 1002, 1003);
    banner_set_socket(&b, "/tmp/apm.socket");
    T_EQ_STR(banner_socket(&b), "/tmp/apm.socket");
    char *text = written(&b);
    T_TRUE(strstr(text, "Datadog socket   /tmp/apm.socket\n"));
    T_TRUE(strstr(text, "--for 5s --url http://127.0.0.1:1001 && ./weir query --url "
                        "http://127.0.0.1:1003\n"));
    free(text);
    /* An address that only listens is turned into one that can be called. */
    banner_set_address(&b, BANNER_DATADOG, "::", 1001);
    banner_set_address(&b, BANNER_WEB, "0.0.0.0", 1003);
    text = written(&b);
    T_TRUE(strstr(text, "Datadog tracers  http://[::]:1001\n"));
    T_TRUE(strstr(text, "--url http://[::1]:1001 && ./weir query --url http://127.0.0.1:1003\n"));
    free(text);
}

TEST(what_is_off_is_said_and_not_tried)
{
    struct banner b = banner_at(8126, 4318, 9099);
    b.addresses[BANNER_DATADOG].host[0] = 0;
    banner_set_socket(&b, "");
    T_TRUE(!banner_socket(&b));
    char *const text = written(&b);
    T_TRUE(strstr(text, "Datadog tracers  off\n"));
    T_TRUE(!strstr(text, "Try it"));
    free(text);
}
