/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_body: see inspect_body.h. */
#include "cli/inspect_body.h"

#include "plat/plat.h"
#include "wire/mp_read.h"
#include "wire/pb_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/decode.h>

enum {
    FIRST_BYTES = 64 * 1024,
    HEX_TEXT_MAX = 4,  /* bytes of hex text a byte, blanks included */
    LOOKS_LIKE_MIN = 8 /* characters that must be hex digits before it is called hex text */
};

/* Reading. */

static int say(char why[INSPECT_WHY_BYTES], const char *path, const char *what)
{
    (void)snprintf(why, INSPECT_WHY_BYTES, "%.150s: %.100s", path, what);
    return -1;
}

/* All of f, at most max bytes; one more is read to see that there is more. */
static int read_all(FILE *f, const char *path, size_t max, char **ret_file, size_t *ret_len,
                    char why[INSPECT_WHY_BYTES])
{
    char *bytes = NULL;
    size_t len = 0;
    size_t cap = 0;
    for (;;) {
        if (len == cap) {
            cap = cap ? 2 * cap : FIRST_BYTES;
            char *const grown = realloc(bytes, cap);
            if (!grown) {
                free(bytes);
                return say(why, path, "no memory");
            }
            bytes = grown;
        }
        const size_t n = fread(bytes + len, 1, cap - len, f);
        len += n;
        if (n == 0 || len > max)
            break;
    }
    if (ferror(f) || len > max) {
        free(bytes);
        return say(why, path,
                   len > max ? "larger than http.max-body-size: an agent answers 413"
                             : plat_strerror(errno));
    }
    *ret_file = bytes;
    *ret_len = len;
    return 0;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* In place: two digits are never shorter than their byte. */
static int unhex(char *text, size_t *len, char why[INSPECT_WHY_BYTES])
{
    size_t digits = 0;
    int high = 0;
    for (size_t i = 0; i < *len; i++) {
        const int digit = digit_of(text[i]);
        if (digit < 0 && is_blank(text[i]))
            continue;
        if (digit < 0) {
            (void)snprintf(why, INSPECT_WHY_BYTES, "character %zu is no hexadecimal digit", i);
            return -1;
        }
        if (digits % 2)
            text[digits / 2] = (char)(high << 4 | digit);
        high = digit;
        digits++;
    }
    *len = digits / 2;
    if (digits % 2)
        (void)snprintf(why, INSPECT_WHY_BYTES, "an odd number of hexadecimal digits");
    return digits % 2 ? -1 : 0;
}

/* RFC 1952 §2.3.1; RFC 1950 §2.2 with a window of 32 KiB, which all writers use. No trace payload
 * begins like either. */
static enum net_coding coding_of(const char *file, size_t len)
{
    const unsigned char *const b = (const unsigned char *)file;
    if (len >= 2 && b[0] == 0x1F && b[1] == 0x8B)
        return NET_CODING_GZIP;
    if (len >= 2 && b[0] == 0x78 && (b[0] << 8 | b[1]) % 31 == 0)
        return NET_CODING_DEFLATE;
    return NET_CODING_IDENTITY;
}

static const char *refusal_text(int refusal)
{
    switch (refusal) {
    case NET_REFUSED_TOO_LARGE:
        return "larger than http.max-body-size: an agent answers 413";
    case NET_REFUSED_BAD_ENCODING:
        return "the compressed bytes are broken or cut: an agent answers 400";
    default: /* a collector gives no other reason */
        return "no memory";
    }
}

int cli_inspect_body_take(char *file, size_t len, bool hex, size_t max_bytes,
                          struct inspect_body *body, char why[INSPECT_WHY_BYTES])
{
    *body = (struct inspect_body){.file = file};
    if (hex && unhex(file, &len, why) != 0)
        return -1;
    body->sent_bytes = len;
    body->coding = coding_of(file, len);
    /* What was sent, its decompressed form, and that while it doubles. */
    body->pool.max_bytes = 4 * max_bytes + (size_t)1024 * 1024;
    net_collector_init(&body->collector, &body->pool, body->coding, len, max_bytes);
    int r = NET_BODY_OK;
    if (len)
        r = net_collector_add(&body->collector, (struct weir_bytes){.ptr = file, .len = len});
    if (r == NET_BODY_OK)
        r = net_collector_finish(&body->collector, &body->bytes);
    if (r == NET_BODY_OK)
        return 0;
    (void)snprintf(why, INSPECT_WHY_BYTES, "%s", refusal_text(r));
    return -1;
}

int cli_inspect_body_read(const char *path, bool hex, size_t max_bytes, struct inspect_body *body,
                          char why[INSPECT_WHY_BYTES])
{
    *body = (struct inspect_body){.file = NULL};
    const bool is_stdin = strcmp(path, "-") == 0;
    const char *const name = is_stdin ? "standard input" : path;
    FILE *const f = is_stdin ? stdin : fopen(path, "rbe");
    if (!f)
        return say(why, name, plat_strerror(errno));
    char *file = NULL;
    size_t len = 0;
    const size_t max = hex ? HEX_TEXT_MAX * max_bytes : max_bytes;
    int r = read_all(f, name, max, &file, &len, why);
    if (!is_stdin)
        (void)fclose(f);
    if (r != 0)
        return r;
    char what[INSPECT_WHY_BYTES] = "";
    r = cli_inspect_body_take(file, len, hex, max_bytes, body, what);
    return r == 0 ? 0 : say(why, name, what);
}

void cli_inspect_body_done(struct inspect_body *body)
{
    if (body->collector.pool)
        net_collector_done(&body->collector);
    net_body_pool_done(&body->pool);
    free(body->file);
    *body = (struct inspect_body){.file = NULL};
}

/* Guessing. */

/* The type of the item at `at`, and of the first one in it where it is an array. */
static bool peek(struct wr_mp *m, const uint8_t *at, uint8_t *ret_type, uint32_t *ret_len,
                 uint8_t *ret_inner)
{
    struct wr_mp_item item;
    const uint8_t *const in = wr_mp_item(m, at, &item);
    if (!in)
        return false;
    *ret_type = item.type;
    *ret_len = item.len;
    *ret_inner = WR_MP_BAD;
    if (item.type != WR_MP_ARRAY || item.len == 0)
        return true;
    if (!wr_mp_item(m, in, &item))
        return false;
    *ret_inner = item.type;
    return true;
}

/* [strings, traces] is v0.5; [trace, trace] may begin alike. */
static struct inspect_guess guess_pair(struct wr_mp *m, const uint8_t *at)
{
    static const struct inspect_guess v04 = {
        INSPECT_V04, "a MessagePack array, of traces; v0.3 is the same bytes"};
    static const struct inspect_guess v05 = {
        INSPECT_V05, "a MessagePack array of two, the first of strings, the second of traces"};
    uint8_t type;
    uint8_t inner;
    uint32_t len;
    if (!peek(m, at, &type, &len, &inner) || type != WR_MP_ARRAY)
        return v04;
    if (inner == WR_MP_STR || inner == WR_MP_BIN)
        return v05;
    if (len > 0 && inner != WR_MP_NIL)
        return v04;
    /* An empty first array, or one of nil: of v0.5's second element the elements are traces,
     * arrays themselves; of v0.4's they are spans, maps. */
    const uint8_t *const second = wr_mp_skip(m, at, WEIR_DECODE_DEPTH_MAX);
    if (second && peek(m, second, &type, &len, &inner) && inner == WR_MP_ARRAY)
        return v05;
    return v04;
}

static struct inspect_guess guess_array(struct weir_bytes body)
{
    struct wr_mp m = wr_mp_init(body.ptr, body.len);
    uint32_t count = 0;
    const uint8_t *const at = wr_mp_array(&m, m.begin, &count);
    if (at && count == 2)
        return guess_pair(&m, at);
    return (struct inspect_guess){
        INSPECT_V04, count == 0 && at ? "an empty MessagePack array; v0.3 is the same bytes"
                                      : "a MessagePack array, of traces; v0.3 is the same bytes"};
}

/* A v0.7 payload names its members, a v1.0 payload numbers them; a map of anything else is none. */
static struct inspect_guess guess_map(struct weir_bytes body)
{
    static const char *const names[] = {"container_id",   "language_name", "language_version",
                                        "tracer_version", "runtime_id",    "chunks",
                                        "tags",           "env",           "hostname",
                                        "app_version"};
    enum { LAST_KEY = 11 }; /* of v1.0: the chunks */
    struct wr_mp m = wr_mp_init(body.ptr, body.len);
    uint32_t pairs = 0;
    const uint8_t *const at = wr_mp_map(&m, m.begin, &pairs);
    struct wr_mp_item key;
    if (at && pairs > 0 && wr_mp_item(&m, at, &key)) {
        if (key.type == WR_MP_UINT && key.v.u > 0 && key.v.u <= LAST_KEY)
            return (struct inspect_guess){
                INSPECT_V1, "a MessagePack map whose first key is a number of v1.0's"};
        for (size_t i = 0; key.type == WR_MP_STR && i < sizeof names / sizeof *names; i++)
            if (key.len == strlen(names[i]) && memcmp(key.v.ptr, names[i], key.len) == 0)
                return (struct inspect_guess){
                    INSPECT_V07, "a MessagePack map whose first key is a name of v0.7's"};
    }
    return (struct inspect_guess){INSPECT_AUTO,
                                  "a MessagePack map, but of no format of traces that is served"};
}

static bool looks_hex(struct weir_bytes body)
{
    size_t digits = 0;
    for (size_t i = 0; i < body.len && i < 64; i++) {
        if (digit_of(body.ptr[i]) >= 0)
            digits++;
        else if (!is_blank(body.ptr[i]))
            return false;
    }
    return digits >= LOOKS_LIKE_MIN;
}

static bool begins(struct weir_bytes body, const char *text)
{
    const size_t n = strlen(text);
    return body.len >= n && memcmp(body.ptr, text, n) == 0;
}

static const char *look_of(struct weir_bytes body)
{
    static const char *const requests[] = {"GET ", "POST ", "PUT ", "HTTP/1."};
    const unsigned char first = (unsigned char)body.ptr[0];
    if (looks_hex(body))
        return "it looks like hexadecimal text: --hex reads that";
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (begins(body, requests[i]))
            return "it begins like a whole HTTP message: only the body is read";
    }
    if (first == '{' || first == '[')
        return "it begins like JSON, which is not taken on a route of traces";
    return "it begins neither as a MessagePack array or map nor as an OTLP request";
}

struct inspect_guess cli_inspect_guess(struct weir_bytes body)
{
    if (body.len == 0)
        return (struct inspect_guess){INSPECT_OTLP, "empty: only an OTLP request may be"};
    const unsigned char first = (unsigned char)body.ptr[0];
    if ((first >= 0x90 && first <= 0x9F) || first == 0xDC || first == 0xDD)
        return guess_array(body);
    if ((first >= 0x80 && first <= 0x8F) || first == 0xDE || first == 0xDF)
        return guess_map(body);
    if (first == WR_PB_TAG(1, WR_PB_LEN))
        return (struct inspect_guess){INSPECT_OTLP, "it begins with protobuf's field 1, of bytes"};
    return (struct inspect_guess){INSPECT_AUTO, look_of(body)};
}
