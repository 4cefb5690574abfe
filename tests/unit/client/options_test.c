/* SPDX-License-Identifier: Apache-2.0 */
/* Options that are refused, and those of another size than ours. */
#include "fake.h"

#include "url.h"

static int try_opts(const struct weir_client_opts *o)
{
    struct weir_client *c = NULL;
    const int err = weir_client_new(o, &c);
    if (err)
        T_TRUE(c == NULL);
    weir_client_free(c);
    return err;
}

TEST(options_out_of_range_are_refused)
{
    static struct fake_rig r;
    fake_init(&r);
    const struct weir_client_opts good = r.opts;
    T_OK(try_opts(&good));
    struct weir_client_opts o;
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        o = good;                                                                                  \
        change;                                                                                    \
        T_ERR(try_opts(&o), WEIR_EINVAL);                                                          \
    } while (0)
    const struct weir_client_transport no_send = {0};
    const struct weir_client_header headers[17] = {{"A", "b"}, {"C", "d"}, {"E", "f"}};
    const struct weir_client_header bad_name = {"A b", "c"};
    const struct weir_client_header empty_name = {"", "c"};
    const struct weir_client_header bad_value = {"A", "b\r\nX: y"};
    REFUSED(o.struct_size = 8);
    REFUSED(o.struct_size = 5000);
    REFUSED(o.flags = 1 << 4);
    REFUSED(o.trace_version = 6);
    REFUSED(o.timeout_for_ns = -1);
    REFUSED(o.info_for_ns = -1);
    REFUSED(o.flush_for_ns = -1);
    REFUSED(o.retry_first_for_ns = -1);
    REFUSED(o.retry_max_for_ns = 1);
    REFUSED(o.drain_for_ns = -2);
    REFUSED(o.payload_bytes = 4095);
    REFUSED(o.transport = &no_send);
    REFUSED(o.header_count = 1);
    REFUSED((o.headers = headers, o.header_count = 17));
    REFUSED((o.headers = headers, o.header_count = 4)); /* the fourth has no name */
    REFUSED((o.headers = &bad_name, o.header_count = 1));
    REFUSED((o.headers = &empty_name, o.header_count = 1));
    REFUSED((o.headers = &bad_value, o.header_count = 1));
    REFUSED(o.lang = ((struct weir_bytes){"a\nb", 3}));
    REFUSED((o.transport = NULL, o.url = "ftp://x"));
#undef REFUSED
    T_EQ_I64(r.heap.live, 0);
}

TEST(options_of_an_older_and_of_a_newer_header_are_taken)
{
    static struct fake_rig r;
    fake_init(&r);
    struct {
        struct weir_client_opts o;
        char more[64];
    } newer = {.o = r.opts};
    newer.o.struct_size = sizeof newer;
    T_OK(try_opts(&newer.o));
    r.opts.struct_size = offsetof(struct weir_client_opts, clock);
    T_OK(try_opts(&r.opts));
    T_OK(try_opts(NULL));
}

TEST(urls_are_http_or_unix)
{
    struct wr_url u;
    T_TRUE(wr_url_parse("http://127.0.0.1:8126", &u));
    T_EQ_STR(u.base, "http://127.0.0.1:8126");
    T_EQ_STR(u.socket, "");
    T_TRUE(wr_url_parse("http://agent/", &u));
    T_EQ_STR(u.base, "http://agent");
    T_TRUE(wr_url_parse("http://[::1]:8126", &u));
    T_TRUE(wr_url_parse("unix:///run/a.socket", &u));
    T_EQ_STR(u.socket, "/run/a.socket");
    T_TRUE(wr_url_parse(NULL, &u));
    static const char *const bad[] = {"",           "http://",    "http:///",     "https://a",
                                      "http://a/b", "http://u@a", "unix://run/a", "unix:///",
                                      "http://a?x", "http://a b", "http://:80",   "127.0.0.1:8126"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (wr_url_parse(bad[i], &u))
            T_FAIL("taken: %s", bad[i]);
    }
    char path[200] = "unix:///";
    memset(path + 8, 'x', 180);
    T_TRUE(!wr_url_parse(path, &u));
}

TEST(reasons_have_names)
{
    T_EQ_STR(weir_client_drop_name(WEIR_CLIENT_DROP_QUEUE_FULL), "queue_full");
    T_EQ_STR(weir_client_drop_name(WEIR_CLIENT_DROP_P0), "p0");
    T_TRUE(weir_client_drop_name(WEIR_CLIENT_DROP_COUNT) == NULL);
}
