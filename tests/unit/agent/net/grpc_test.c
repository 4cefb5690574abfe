/* SPDX-License-Identifier: Apache-2.0 */
/* grpc: frames, timeouts and messages; values of the gRPC protocol over HTTP/2. */
#include "net/grpc.h"
#include "t.h"

#include <string.h>

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){s, strlen(s)};
}

TEST(a_timeout_is_up_to_eight_digits_and_a_unit)
{
    static const struct {
        const char *value;
        int64_t ns;
    } good[] = {{"9982m", INT64_C(9982000000)},      {"1H", INT64_C(3600000000000)},
                {"2M", INT64_C(120000000000)},       {"10S", INT64_C(10000000000)},
                {"99999999u", INT64_C(99999999000)}, {"0n", 0},
                {"99999999H", INT64_MAX / 2}};
    static const char *const bad[] = {"",   "5",          "S",    "-1S", "1 S",
                                      "1s", "999999999m", "1.5S", "1Sm"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t ns = -1;
        T_TRUE(net_grpc_timeout(text(good[i].value), &ns));
        T_EQ_I64(ns, good[i].ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t ns;
        T_TRUE(!net_grpc_timeout(text(bad[i]), &ns));
    }
}

TEST(a_body_is_exactly_one_message)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {{"", 0},           {"\0\0\0\0", 4},    {"\2\0\0\0\0", 5},
               {"\0\0\0\0\1", 5}, {"\0\0\0\0\0x", 6}, {"\0\xff\xff\xff\xff", 5}};
    bool compressed = true;
    struct weir_bytes message;
    T_TRUE(net_grpc_unframe((struct weir_bytes){"\0\0\0\0\3abc", 8}, &compressed, &message));
    T_TRUE(!compressed);
    T_EQ_U64(message.len, 3);
    T_TRUE(memcmp(message.ptr, "abc", 3) == 0);
    T_TRUE(net_grpc_unframe((struct weir_bytes){"\1\0\0\0\0", 5}, &compressed, &message));
    T_TRUE(compressed && message.len == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        T_TRUE(!net_grpc_unframe((struct weir_bytes){bad[i].bytes, bad[i].len}, &compressed,
                                 &message));
    char frame[NET_GRPC_FRAME_BYTES];
    net_grpc_frame(frame, 0x01020304);
    T_TRUE(memcmp(frame, "\0\1\2\3\4", sizeof frame) == 0);
}

TEST(a_message_is_percent_encoded_and_cut_whole)
{
    char dst[64];
    char small[8];
    T_EQ_U64(net_grpc_message(text("no such route\n"), dst, sizeof dst), 13);
    T_EQ_STR(dst, "no such route");
    (void)net_grpc_message(text("50 % of \xc3\xa4\n\r\n"), dst, sizeof dst);
    T_EQ_STR(dst, "50 %25 of %C3%A4");
    T_EQ_U64(net_grpc_message(text("abc\001\002"), small, sizeof small), 6);
    T_EQ_STR(small, "abc%01");
}

TEST(statuses_of_http_have_one_of_grpc)
{
    static const int pairs[][2] = {{200, 0},  {400, 3},  {403, 7},  {404, 12}, {405, 12},
                                   {408, 4},  {410, 5},  {413, 8},  {415, 12}, {431, 8},
                                   {500, 13}, {501, 12}, {503, 14}, {418, 2}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        T_EQ_I64(net_grpc_code_of(pairs[i][0]), pairs[i][1]);
    T_TRUE(net_grpc_is(text("application/grpc")) && net_grpc_is(text("application/grpc+proto")));
    T_TRUE(!net_grpc_is(text("application/grpc-web")) && !net_grpc_is(text("application/json")));
}
