/* SPDX-License-Identifier: Apache-2.0 */
/* text: see text.h and weir/text.h. */
#include "trace/text.h"

#include "trace/utf.h"
#include "wire/mp_write.h"

#define MAX_LEN ((size_t)1 << 30)
#define LONGEST_KEY 21

static const struct weir_bytes known[WR_KNOWN_COUNT] = {
#define ROW(name, text) {.ptr = (text), .len = sizeof(text) - 1},
    WR_KNOWN_MAP(ROW)
#undef ROW
};

/* The first key of that length; others of that length follow it. */
static const uint8_t first_of_len[LONGEST_KEY + 1] = {
    [3] = WR_KNOWN_ENV,          [6] = WR_KNOWN_EVENTS,       [7] = WR_KNOWN_VERSION,
    [8] = WR_KNOWN_P_DM,         [9] = WR_KNOWN_THREAD_ID,    [10] = WR_KNOWN_ORIGIN,
    [11] = WR_KNOWN_THREAD_NAME, [12] = WR_KNOWN_MEASURED,    [13] = WR_KNOWN_TOP_LEVEL,
    [14] = WR_KNOWN_LINKS,       [16] = WR_KNOWN_HTTP_STATUS, [19] = WR_KNOWN_PARTIAL,
    [20] = WR_KNOWN_WAS_LONG,    [21] = WR_KNOWN_PRIORITY,
};

uint32_t wr_known_find(const char *key, size_t len)
{
    if (len > LONGEST_KEY)
        return WR_KNOWN_NONE;
    const uint32_t first = first_of_len[len];
    for (uint32_t i = first; first && known[i].len == len && i < WR_KNOWN_KEYS; i++) {
        if (memcmp(known[i].ptr, key, len) == 0)
            return i;
    }
    return WR_KNOWN_NONE;
}

/* Once the content stands. */
static void finish(struct weir_text *t)
{
    const char *const content = wr_text_content(t);
    t->known = wr_known_find(content, t->len);
    t->mark = wr_text_mark(content, t->len);
    t->high = wr_mark_high(t->mark);
    t->low = wr_mark_low(t->mark);
}

static size_t round_up(size_t n)
{
    return (n + WR_TEXT_STEP - 1) / WR_TEXT_STEP * WR_TEXT_STEP;
}

void wr_text_init(struct weir_text *t, char *framed, const char *content)
{
    const size_t len = strlen(content);
    memset(framed, 0, WR_TEXT_STEP);
    const char *const end = wr_mp_raw_str(framed, content, (uint32_t)len);
    WR_ASSERT(end <= framed + WR_TEXT_STEP);
    *t = (struct weir_text){.slot = UINT32_MAX,
                            .len = (uint32_t)len,
                            .framed_len = (uint32_t)(end - framed),
                            .framed = framed};
    finish(t);
}

/* A text with room for len bytes of content, whose place is *ret_content: the caller fills it. */
static int text_alloc(const struct weir_alloc *given, size_t len, struct weir_text **ret_text,
                      char **ret_content)
{
    const struct weir_alloc alloc = wr_alloc_or_default(given);
    const size_t bytes = sizeof(struct weir_text) + round_up(len + WR_MP_HEAD_MAX);
    struct weir_text *const t = wr_alloc_zero(&alloc, bytes);
    if (!t)
        return WEIR_ENOMEM;
    char *const framed = (char *)(t + 1);
    char *const content = wr_mp_raw_str_head(framed, (uint32_t)len);
    t->slot = UINT32_MAX;
    t->len = (uint32_t)len;
    t->framed_len = (uint32_t)((size_t)(content - framed) + len);
    t->framed = framed;
    t->bytes = bytes;
    t->alloc = alloc;
    *ret_text = t;
    *ret_content = content;
    return WEIR_OK;
}

int weir_text_new(const struct weir_alloc *alloc, const char *utf8, size_t len,
                  struct weir_text **ret_text)
{
    if (!ret_text || (len && !utf8))
        return WEIR_EINVAL;
    if (len > MAX_LEN)
        return WEIR_ERANGE;
    const bool ok = wr_utf8_ok(utf8, len);
    struct weir_text *t;
    char *content;
    const int err = text_alloc(alloc, ok ? len : wr_utf8_mended_len(utf8, len), &t, &content);
    if (err)
        return err;
    if (!ok)
        (void)wr_utf8_mend(content, utf8, len);
    else if (len)
        memcpy(content, utf8, len);
    finish(t);
    *ret_text = t;
    return WEIR_OK;
}

int weir_text_from_utf16(const struct weir_alloc *alloc, const uint16_t *units, size_t count,
                         struct weir_text **ret_text)
{
    if (!ret_text || (count && !units))
        return WEIR_EINVAL;
    if (count > MAX_LEN)
        return WEIR_ERANGE;
    struct weir_text *t;
    char *content;
    const int err = text_alloc(alloc, wr_utf16_len(units, count), &t, &content);
    if (err)
        return err;
    uint64_t mended = 0;
    (void)wr_utf16_to_utf8(content, units, count, &mended);
    finish(t);
    *ret_text = t;
    return WEIR_OK;
}

void weir_text_free(struct weir_text *t)
{
    if (!t)
        return;
    const struct weir_alloc alloc = t->alloc;
    wr_free(&alloc, t, t->bytes);
}

struct weir_bytes weir_text_get_bytes(const struct weir_text *t)
{
    return (struct weir_bytes){.ptr = wr_text_content(t), .len = t->len};
}
