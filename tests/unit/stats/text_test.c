/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/text.h"

#include "base/bytes.h"
#include "t.h"

#include <string.h>

static void repairs(const char *in, size_t limit, const char *want, bool want_bad, bool want_cut)
{
    char out[256];
    bool bad;
    bool cut;
    const size_t n = wr_text_repair(out, in, strlen(in), limit, &bad, &cut);
    T_TRUE(n <= wr_text_bound(strlen(in), limit));
    T_EQ_BYTES(out, n, want, strlen(want));
    T_EQ_U64(bad, want_bad);
    T_EQ_U64(cut, want_cut);
}

TEST(invalid_utf8_becomes_one_replacement_for_each_maximal_part)
{
    /* Unicode 15 §3.9, table 3-8 to 3-11: our reading of its examples. */
    repairs("GET \xff", 100, "GET \xef\xbf\xbd", true, false);
    repairs("a\xf1\x80\x80z", 100, "a\xef\xbf\xbdz", true, false);
    repairs("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
            "A",
            100,
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
            "A",
            true, false);
    repairs("\xed\xa0\x80", 100, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", true, false);
    repairs("\xc0\xaf", 100, "\xef\xbf\xbd\xef\xbf\xbd", true, false);
    repairs("\xf4\x90\x80\x80", 100, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", true,
            false);
    repairs("\xe6\x97\xa5\xf0\x9f\x98\x90", 100, "\xe6\x97\xa5\xf0\x9f\x98\x90", false, false);
}

TEST(a_cut_falls_between_characters)
{
    repairs("\xc3\xa9\xc3\xa9\xc3\xa9", 5, "\xc3\xa9\xc3\xa9", false, true);
    repairs("abc", 3, "abc", false, false);
    repairs("abcd", 3, "abc", false, true);
    repairs("ab\xff", 4, "ab", false, true); /* the replacement does not fit */
}

TEST(copying_says_whether_a_high_bit_was_there)
{
    char src[64];
    char dst[64];
    for (size_t len = 0; len < 64; len++) {
        memset(src, 'x', sizeof src);
        T_EQ_U64(wr_copy_ascii(dst, src, len), 0);
        T_EQ_BYTES(dst, len, src, len);
        for (size_t at = 0; at < len; at++) {
            src[at] = (char)0x80;
            T_TRUE(wr_copy_ascii(dst, src, len) != 0);
            T_EQ_BYTES(dst, len, src, len);
            src[at] = 'x';
        }
    }
}

static int http(const char *s)
{
    return wr_text_http_status(s, strlen(s));
}

TEST(an_http_status_is_100_to_599)
{
    T_EQ_I64(http("200"), 200);
    T_EQ_I64(http("599"), 599);
    T_EQ_I64(http("600"), -1);
    T_EQ_I64(http("099"), -1);
    T_EQ_I64(http("20"), -1);
    T_EQ_I64(http("2000"), -1);
    T_EQ_I64(http("2x0"), -1);
    T_EQ_I64(http(""), -1);
}

static int grpc(const char *s)
{
    return wr_text_grpc_status(s, strlen(s));
}

TEST(a_grpc_status_is_read_by_number_and_by_name)
{
    T_EQ_I64(grpc("0"), 0);
    T_EQ_I64(grpc("16"), 16);
    T_EQ_I64(grpc("17"), -1);
    T_EQ_I64(grpc("StatusCode.OK"), 0);
    T_EQ_I64(grpc("statuscode.deadline_exceeded"), 4);
    T_EQ_I64(grpc("DeadlineExceeded"), 4);
    T_EQ_I64(grpc("Canceled"), 1);
    T_EQ_I64(grpc("CANCELLED"), 1);
    T_EQ_I64(grpc("NOT_FOUND"), 5);
    T_EQ_I64(grpc("NOT FOUND"), -1);
    T_EQ_I64(grpc(""), -1);
    T_EQ_I64(grpc("StatusCode."), -1);
    T_EQ_I64(grpc("OKAY"), -1);
}

static bool ip(const char *s)
{
    return wr_text_is_ip(s, strlen(s));
}

TEST(addresses_are_recognised_and_host_names_are_not)
{
    static const char *const yes[] = {"10.0.0.1",
                                      "255.255.255.255",
                                      "10.0.0.1:8080",
                                      "::1",
                                      "2001:db8::1",
                                      "[::1]",
                                      "[::1]:443",
                                      "fe80::1%eth0",
                                      "::ffff:10.0.0.1",
                                      "1:2:3:4:5:6:7:8",
                                      "::"};
    static const char *const no[] = {
        "",          "db",     "10.0.0", "10.0.0.256", "10.0.0.1x", "1.2.3.4.5",
        "10.0.0.1:", "::1::2", "1:2:3",  "[::1",       "12345::1",  "10.0.0.1:99999",
        "dead.beef", "[::1]x", ":1",     "1:",         "beef"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (!ip(yes[i]))
            T_FAIL("not an address: %s", yes[i]);
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        if (ip(no[i]))
            T_FAIL("an address: %s", no[i]);
    }
}
