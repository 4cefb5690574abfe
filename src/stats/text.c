/* SPDX-License-Identifier: Apache-2.0 */
/* text: see text.h. */
#include "stats/text.h"

#include "base/bits.h"

/*
 * The length of the character at p, or minus the length of the maximal part that is none
 * (Unicode 15, table 3-7: which second bytes are allowed after which first).
 */
static int char_at(const uint8_t *p, size_t n)
{
    const uint8_t b = p[0];
    if (b < 0x80)
        return 1;
    int len;
    uint8_t lo = 0x80;
    uint8_t hi = 0xbf;
    if (b >= 0xc2 && b <= 0xdf) {
        len = 2;
    } else if (b >= 0xe0 && b <= 0xef) {
        len = 3;
        lo = b == 0xe0 ? 0xa0 : 0x80;
        hi = b == 0xed ? 0x9f : 0xbf;
    } else if (b >= 0xf0 && b <= 0xf4) {
        len = 4;
        lo = b == 0xf0 ? 0x90 : 0x80;
        hi = b == 0xf4 ? 0x8f : 0xbf;
    } else {
        return -1;
    }
    for (int i = 1; i < len; i++) {
        if ((size_t)i >= n || p[i] < lo || p[i] > hi)
            return -i;
        lo = 0x80;
        hi = 0xbf;
    }
    return len;
}

size_t wr_text_repair(char *dst, const char *src, size_t len, size_t limit, bool *ret_bad,
                      bool *ret_cut)
{
    size_t out = 0;
    size_t in = 0;
    *ret_bad = false;
    *ret_cut = false;
    while (in < len) {
        const int c = char_at((const uint8_t *)src + in, len - in);
        const size_t take = (size_t)(c > 0 ? c : -c);
        const size_t give = c > 0 ? take : 3;
        if (out + give > limit) {
            *ret_cut = true;
            break;
        }
        if (c > 0) {
            memcpy(dst + out, src + in, take);
        } else {
            memcpy(dst + out, "\xef\xbf\xbd", 3);
            *ret_bad = true;
        }
        out += give;
        in += take;
    }
    return out;
}

/* Decimal digits alone, at most max; -1 otherwise. */
static int decimal(const char *text, size_t len, int max)
{
    int v = 0;
    if (len == 0 || len > 5)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        v = v * 10 + (text[i] - '0');
    }
    return v <= max ? v : -1;
}

int wr_text_http_status(const char *text, size_t len)
{
    const int v = len == 3 ? decimal(text, len, 599) : -1;
    return v >= 100 ? v : -1;
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* Equal but for case and for underscores in text. name is upper case without underscores. */
static bool same_name(const char *text, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '_')
            continue;
        if (*name == 0 || upper(text[i]) != *name)
            return false;
        name++;
    }
    return *name == 0 && len > 0;
}

int wr_text_grpc_status(const char *text, size_t len)
{
    static const struct {
        const char *name;
        int code;
    } names[] = {
        {"OK", 0},
        {"CANCELLED", 1},
        {"CANCELED", 1},
        {"UNKNOWN", 2},
        {"INVALIDARGUMENT", 3},
        {"DEADLINEEXCEEDED", 4},
        {"NOTFOUND", 5},
        {"ALREADYEXISTS", 6},
        {"PERMISSIONDENIED", 7},
        {"RESOURCEEXHAUSTED", 8},
        {"FAILEDPRECONDITION", 9},
        {"ABORTED", 10},
        {"OUTOFRANGE", 11},
        {"UNIMPLEMENTED", 12},
        {"INTERNAL", 13},
        {"UNAVAILABLE", 14},
        {"DATALOSS", 15},
        {"UNAUTHENTICATED", 16},
    };
    static const char prefix[] = "STATUSCODE.";
    const size_t prefix_len = sizeof prefix - 1;
    if (len > prefix_len) {
        size_t i = 0;
        while (i < prefix_len && upper(text[i]) == prefix[i])
            i++;
        if (i == prefix_len) {
            text += prefix_len;
            len -= prefix_len;
        }
    }
    const int number = decimal(text, len, 16);
    if (number >= 0)
        return number;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (same_name(text, len, names[i].name))
            return names[i].code;
    }
    return -1;
}

static bool is_port(const char *text, size_t len)
{
    return decimal(text, len, 65535) >= 0;
}

/* The length of the IPv4 address at the start of text, 0 if there is none. */
static size_t ipv4_length(const char *text, size_t len)
{
    size_t at = 0;
    for (int part = 0; part < 4; part++) {
        if (part > 0 && (at >= len || text[at++] != '.'))
            return 0;
        const size_t from = at;
        while (at < len && at - from < 3 && text[at] >= '0' && text[at] <= '9')
            at++;
        if (decimal(text + from, at - from, 255) < 0)
            return 0;
    }
    return at;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* RFC 4291 §2.2: groups of 1..4 hex digits, one "::" at most, an IPv4 tail allowed; a zone
 * ("%eth0", RFC 4007 §11) may follow. */
/* NOLINTNEXTLINE(readability-function-cognitive-complexity): the grammar reads best in one piece */
static bool is_ipv6(const char *text, size_t len)
{
    const char *const zone = memchr(text, '%', len);
    if (zone)
        len = (size_t)(zone - text);
    int groups = 0;
    bool gap = false;
    size_t at = 0;
    if (len < 2 || (text[0] == ':' && text[1] != ':'))
        return false;
    while (at < len) {
        if (text[at] == ':' && at + 1 < len && text[at + 1] == ':') {
            if (gap)
                return false;
            gap = true;
            at += 2;
            continue;
        }
        if (at > 0 && text[at] == ':' && text[at - 1] != ':')
            at++;
        const size_t from = at;
        while (at < len && is_hex(text[at]))
            at++;
        if (at < len && text[at] == '.')
            return ipv4_length(text + from, len - from) == len - from &&
                   (groups + 2 == 8 || (gap && groups + 2 < 8));
        if (at == from || at - from > 4 || (at < len && text[at] != ':'))
            return false;
        groups++;
    }
    return groups == 8 || (gap && groups < 8);
}

bool wr_text_is_ip(const char *text, size_t len)
{
    if (len == 0 || len > 64 || !wr_text_may_be_ip(text[0]))
        return false;
    const size_t v4 = ipv4_length(text, len);
    if (v4 > 0)
        return v4 == len || (text[v4] == ':' && is_port(text + v4 + 1, len - v4 - 1));
    if (text[0] == '[') {
        const char *const end = memchr(text, ']', len);
        if (!end || !is_ipv6(text + 1, (size_t)(end - text) - 1))
            return false;
        const size_t rest = len - (size_t)(end - text) - 1;
        return rest == 0 || (end[1] == ':' && is_port(end + 2, rest - 1));
    }
    return is_ipv6(text, len);
}
