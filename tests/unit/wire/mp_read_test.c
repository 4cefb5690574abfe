/* SPDX-License-Identifier: Apache-2.0 */
/* mp_read: every form of the MessagePack suite, claims, depth, truncation at every byte. */
#include "t.h"
#include "wire/mp_read.h"

#include <stdlib.h>
#include <string.h>

static struct wr_mp mp_of(const char *hex, uint8_t *buf, size_t cap)
{
    return wr_mp_init(buf, t_unhex(hex, buf, cap));
}

TEST(every_integer_form_gives_the_same_value)
{
    static const char *const forms[] = {"7f",
                                        "cc7f",
                                        "cd007f",
                                        "ce0000007f",
                                        "d1007f",
                                        "d07f",
                                        "d20000007f",
                                        "cf000000000000007f",
                                        "d3000000000000007f"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        uint8_t buf[16];
        struct wr_mp m = mp_of(forms[i], buf, sizeof buf);
        uint64_t u = 0;
        int64_t s = 0;
        T_TRUE(wr_mp_u64(&m, m.begin, &u) == m.end);
        T_TRUE(wr_mp_i64(&m, m.begin, &s) == m.end);
        T_EQ_U64(u, 127);
        T_EQ_I64(s, 127);
    }
}

TEST(an_integer_that_does_not_fit_is_refused_and_a_fitting_one_is_not)
{
    uint8_t buf[16];
    uint64_t u = 0;
    int64_t s = 0;
    struct wr_mp m = mp_of("cfffffffffffffffff", buf, sizeof buf);
    T_TRUE(wr_mp_u64(&m, m.begin, &u) == m.end);
    T_EQ_U64(u, UINT64_MAX);
    T_TRUE(!wr_mp_i64(&m, m.begin, &s));
    T_ERR(m.err, WEIR_EFORMAT);
    m = mp_of("d38000000000000000", buf, sizeof buf);
    T_TRUE(wr_mp_i64(&m, m.begin, &s) == m.end);
    T_EQ_I64(s, INT64_MIN);
    T_TRUE(!wr_mp_u64(&m, m.begin, &u));
    T_EQ_STR(m.reason, "not an unsigned integer");
    m = mp_of("ff", buf, sizeof buf);
    T_TRUE(!wr_mp_u64(&m, m.begin, &u));
    m = mp_of("c0", buf, sizeof buf);
    T_TRUE(wr_mp_u64(&m, m.begin, &u) == m.end);
    T_EQ_U64(u, 0);
}

TEST(a_string_may_be_str_bin_or_nil_and_nothing_else)
{
    static const char *const good[] = {"a161", "d90161", "da000161", "db0000000161", "c40161"};
    static const char *const bad[] = {"01", "c3", "90", "80", "d40161", "cb3ff0000000000000"};
    uint8_t buf[16];
    struct weir_bytes text;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct wr_mp m = mp_of(good[i], buf, sizeof buf);
        T_TRUE(wr_mp_str(&m, m.begin, &text) == m.end);
        T_EQ_BYTES(text.ptr, text.len, "a", 1);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wr_mp m = mp_of(bad[i], buf, sizeof buf);
        T_TRUE(!wr_mp_str(&m, m.begin, &text));
        T_ERR(m.err, WEIR_EFORMAT);
        T_EQ_U64(m.bad - m.begin, 0);
    }
    struct wr_mp m = mp_of("c0", buf, sizeof buf);
    T_TRUE(wr_mp_str(&m, m.begin, &text) == m.end && !text.ptr);
    m = mp_of("a0", buf, sizeof buf);
    T_TRUE(wr_mp_str(&m, m.begin, &text) == m.end && text.ptr && text.len == 0);
}

TEST(a_container_that_claims_more_than_the_bytes_left_is_refused)
{
    static const char *const claims[] = {"ddffffffff", "dcffff00", "91",
                                         "dfffffffff", "8101",     "de00020101"};
    uint8_t buf[16];
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        struct wr_mp m = mp_of(claims[i], buf, sizeof buf);
        struct wr_mp_item item;
        T_TRUE(!wr_mp_item(&m, m.begin, &item));
        T_ERR(m.err, WEIR_ETRUNCATED);
    }
    struct wr_mp m = mp_of("dc000101", buf, sizeof buf);
    uint32_t count = 0;
    T_TRUE(wr_mp_array(&m, m.begin, &count) == m.begin + 3);
    T_EQ_U64(count, 1);
}

static size_t nested(uint8_t *buf, size_t levels)
{
    memset(buf, 0x91, levels);
    buf[levels] = 0xc0;
    return levels + 1;
}

TEST(skipping_stops_at_the_depth_limit_and_not_before)
{
    static uint8_t buf[100001];
    struct wr_mp m = wr_mp_init(buf, nested(buf, 29));
    T_TRUE(wr_mp_skip(&m, m.begin, 29) == m.end);
    m = wr_mp_init(buf, nested(buf, 30));
    T_TRUE(!wr_mp_skip(&m, m.begin, 29));
    T_ERR(m.err, WEIR_EFORMAT);
    T_EQ_U64(m.bad - m.begin, 29);
    m = wr_mp_init(buf, nested(buf, 100000));
    T_TRUE(!wr_mp_skip(&m, m.begin, 29));
    T_EQ_STR(m.reason, "nested too deep");
}

TEST(skipping_passes_over_every_kind_and_stops_behind_it)
{
    uint8_t buf[64];
    struct wr_mp m =
        mp_of("97 c0 c3 cb3ff0000000000000 82 a161 9101 a162 80 c403010203 d40100 90 05", buf,
              sizeof buf);
    const uint8_t *const at = wr_mp_skip(&m, m.begin, 8);
    T_TRUE(at && at == m.end - 1);
    T_EQ_U64(at[0], 5);
}

/* The value column of the suite is JSON: integers and floats are compared with every encoding. */
static void check_number(const struct wr_mp_item *item, const char *json, const char *hex)
{
    char *end = NULL;
    const char *const digits = json[0] == '"' ? json + 1 : json;
    if (item->type == WR_MP_FLOAT) {
        T_EQ_DBL(item->v.d, strtod(digits, &end));
    } else if (digits[0] == '-') {
        if (item->type != WR_MP_INT)
            T_FAIL("%s of %s is no negative integer", hex, json);
        T_EQ_I64(item->v.i, strtoll(digits, &end, 10));
    } else {
        if (item->type != WR_MP_UINT)
            T_FAIL("%s of %s is no integer", hex, json);
        T_EQ_U64(item->v.u, strtoull(digits, &end, 10));
    }
}

/* "00-ff" of binary and ext. */
static void check_hex(const struct wr_mp_item *item, const char *json)
{
    const char *at = strchr(json, '"') + 1;
    for (uint32_t i = 0; i < item->len; i++, at += 3) {
        unsigned byte = 0;
        T_EQ_I64(sscanf(at, "%2x", &byte), 1);
        T_EQ_U64(item->v.ptr[i], byte);
    }
    T_TRUE(item->len == 0 ? *at == '"' : at[-1] == '"');
}

static size_t commas(const char *json)
{
    size_t n = json[1] != ']' && json[1] != '}';
    for (int depth = 0; *json; json++) {
        depth += (*json == '[' || *json == '{') - (*json == ']' || *json == '}');
        n += *json == ',' && depth == 1;
    }
    return n;
}

static void check_item(const char *kind, const char *json, const char *hex,
                       const struct wr_mp_item *item)
{
    if (strcmp(kind, "number") == 0 || strcmp(kind, "bignum") == 0) {
        check_number(item, json, hex);
    } else if (strcmp(kind, "nil") == 0) {
        T_EQ_U64(item->type, WR_MP_NIL);
    } else if (strcmp(kind, "bool") == 0) {
        T_EQ_U64(item->type, WR_MP_BOOL);
        T_EQ_U64(item->v.u, strcmp(json, "true") == 0);
    } else if (strcmp(kind, "string") == 0) {
        T_EQ_U64(item->type, WR_MP_STR);
        if (!strchr(json, '\\'))
            T_EQ_BYTES(item->v.ptr, item->len, json + 1, strlen(json) - 2);
    } else if (strcmp(kind, "binary") == 0) {
        T_EQ_U64(item->type, WR_MP_BIN);
        check_hex(item, json);
    } else if (strcmp(kind, "ext") == 0) {
        T_EQ_U64(item->type, WR_MP_EXT);
        T_EQ_I64(item->ext_type, strtol(json + 1, NULL, 10));
        check_hex(item, json);
    } else if (strcmp(kind, "timestamp") == 0) {
        T_EQ_U64(item->type, WR_MP_EXT);
        T_EQ_I64(item->ext_type, -1);
    } else {
        T_EQ_U64(item->type, strcmp(kind, "map") == 0 ? WR_MP_MAP : WR_MP_ARRAY);
        T_EQ_U64(item->len, commas(json));
    }
}

static void check_encoding(const char *kind, const char *json, const char *hex)
{
    uint8_t buf[256];
    const size_t bytes = t_unhex(hex, buf, sizeof buf);
    struct t_guard g = t_guard_new(buf, bytes);
    struct wr_mp m = wr_mp_init(g.ptr, bytes);
    struct wr_mp_item item;
    const uint8_t *const at = wr_mp_item(&m, m.begin, &item);
    if (!at)
        T_FAIL("%s: %s", hex, m.reason);
    check_item(kind, json, hex, &item);
    T_TRUE(wr_mp_skip(&m, m.begin, 8) == m.end);
    for (size_t cut = 0; cut < bytes; cut++) {
        struct t_guard short_g = t_guard_new(buf, cut);
        struct wr_mp short_m = wr_mp_init(short_g.ptr, cut);
        T_TRUE(!wr_mp_skip(&short_m, short_m.begin, 8));
        T_ERR(short_m.err, WEIR_ETRUNCATED);
        t_guard_free(&short_g);
    }
    t_guard_free(&g);
}

TEST(every_encoding_of_the_public_suite_decodes_to_its_value)
{
    size_t size = 0;
    char *const text =
        (char *)t_read_file(T_SHARED_DIR "/vectors/codec/msgpack-test-suite.tsv", &size);
    if (!text)
        T_SKIP_MISSING("vectors/codec/msgpack-test-suite.tsv");
    size_t encodings = 0;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *cells = NULL;
        if (line[0] == '#')
            continue;
        (void)strtok_r(line, "\t", &cells);
        const char *const kind = strtok_r(NULL, "\t", &cells);
        const char *const json = strtok_r(NULL, "\t", &cells);
        char *hexes = strtok_r(NULL, "\t", &cells);
        char *each = NULL;
        T_TRUE(kind && json && hexes);
        for (char *hex = strtok_r(hexes, "|", &each); hex; hex = strtok_r(NULL, "|", &each)) {
            check_encoding(kind, json, hex);
            encodings++;
        }
    }
    free(text);
    T_EQ_U64(encodings, 233);
}
