/* SPDX-License-Identifier: Apache-2.0 */
/* put: strings that are no struct weir_text: checked, mended, transcoded, looked up. */
#include "trace/put.h"

#include "base/bytes.h"
#include "trace/utf.h"

static size_t head_bytes(size_t len)
{
    char head[WR_MP_HEAD_MAX];
    return (size_t)(wr_mp_raw_str_head(head, (uint32_t)len) - head);
}

/* A string whose content stands at content, len bytes, and shall be framed from at on. */
static char *frame(char *at, const char *content, size_t len)
{
    char *const to = at + head_bytes(len);
    if (to != content)
        memmove(to, content, len);
    (void)wr_mp_raw_str_head(at, (uint32_t)len);
    return to + len;
}

/* There is more than ASCII in s, which was copied to content. */
static WR_NOINLINE char *put_not_ascii(struct weir_trace_encoder *e, char *at, char *content,
                                       struct weir_str s)
{
    if (wr_utf8_ok(s.ptr, s.len))
        return content + s.len;
    if (!e->wide) {
        e->narrow = true;
        return at;
    }
    e->counts.texts_mended++;
    content = at + WR_MP_HEAD_MAX;
    return frame(at, content, (size_t)(wr_utf8_mend(content, s.ptr, s.len) - content));
}

static char *put_utf16(struct weir_trace_encoder *e, char *at, struct weir_str s)
{
    if (!wr_trace_has_room(e, 3 * (size_t)s.len))
        return at;
    /* Right at once when all is ASCII: then there are as many bytes as units. */
    char *const content = wr_mp_raw_str_head(at, s.len);
    uint64_t mended = 0;
    char *const end = wr_utf16_to_utf8(content, s.ptr, s.len, &mended);
    if (WR_LIKELY(end == content + s.len))
        return end;
    e->counts.texts_mended += mended ? 1 : 0;
    return frame(at, content, (size_t)(end - content));
}

char *wr_trace_put_plain(struct weir_trace_encoder *e, char *at, struct weir_str s)
{
    if (WR_UNLIKELY(s.kind > WEIR_STR_UTF16)) {
        e->err = WEIR_EINVAL;
        return at;
    }
    if (WR_UNLIKELY(!s.ptr))
        s.len = 0;
    if (s.kind == WEIR_STR_UTF16)
        return put_utf16(e, at, s);
    if (!wr_trace_has_room(e, s.len))
        return at;
    char *const content = wr_mp_raw_str_head(at, s.len);
    if (WR_UNLIKELY(wr_copy_ascii(content, s.ptr, s.len)))
        return put_not_ascii(e, at, content, s);
    return content + s.len;
}

static char *scratch_for(struct weir_trace_encoder *e, size_t units)
{
    wr_out_clear(&e->scratch);
    char *const at = wr_out_reserve(&e->scratch, 3 * units);
    if (!at)
        e->err = e->scratch.err;
    return at;
}

static struct weir_bytes mended(struct weir_trace_encoder *e, struct weir_bytes s)
{
    char *const at = scratch_for(e, s.len);
    if (!at)
        return (struct weir_bytes){.ptr = NULL, .len = 0};
    e->counts.texts_mended++;
    return (struct weir_bytes){.ptr = at, .len = (size_t)(wr_utf8_mend(at, s.ptr, s.len) - at)};
}

static struct weir_bytes transcoded(struct weir_trace_encoder *e, struct weir_str s)
{
    char *const at = scratch_for(e, s.len);
    if (!at)
        return (struct weir_bytes){.ptr = NULL, .len = 0};
    uint64_t bad = 0;
    const size_t len = (size_t)(wr_utf16_to_utf8(at, s.ptr, s.len, &bad) - at);
    e->counts.texts_mended += bad ? 1 : 0;
    return (struct weir_bytes){.ptr = at, .len = len};
}

struct weir_bytes wr_trace_utf8(struct weir_trace_encoder *e, struct weir_str s)
{
    if (!s.ptr)
        return (struct weir_bytes){.ptr = "", .len = 0};
    if (s.kind == WEIR_STR_TEXT)
        return weir_text_get_bytes(s.ptr);
    if (s.kind == WEIR_STR_UTF16)
        return transcoded(e, s);
    const struct weir_bytes b = {.ptr = s.ptr, .len = s.len};
    return wr_utf8_ok(b.ptr, b.len) ? b : mended(e, b);
}

/* Add what is not in. UTF-8 is looked at only here: what is in was well-formed. */
static uint32_t add(struct weir_trace_encoder *e, struct weir_bytes b, uint32_t hash, bool checked,
                    bool *ret_fresh)
{
    uint32_t index = 0;
    if (!checked && WR_UNLIKELY(!wr_utf8_ok(b.ptr, b.len))) {
        if (e->version == WEIR_TRACE_V1 && !e->wide) {
            e->narrow = true;
            return 0;
        }
        b = mended(e, b);
        if (e->err || wr_trace_dict_find(&e->dict, b, &hash, &index))
            return index;
    }
    const int err = wr_trace_dict_add(&e->dict, b, hash, &index);
    if (err)
        e->err = err;
    *ret_fresh = !err;
    return index;
}

uint32_t wr_trace_index(struct weir_trace_encoder *e, struct weir_str s, bool *ret_fresh)
{
    *ret_fresh = false;
    if (WR_UNLIKELY(s.kind > WEIR_STR_UTF16))
        e->err = WEIR_EINVAL;
    if (WR_UNLIKELY(!s.ptr))
        s = weir_str_utf8("", 0);
    if (WR_UNLIKELY(e->err))
        return 0;
    struct weir_bytes b = {.ptr = s.ptr, .len = s.len};
    if (s.kind == WEIR_STR_TEXT)
        b = weir_text_get_bytes(s.ptr);
    else if (s.kind == WEIR_STR_UTF16)
        b = transcoded(e, s);
    if (WR_UNLIKELY(e->err))
        return 0;
    uint32_t hash;
    uint32_t index;
    if (!wr_trace_dict_find(&e->dict, b, &hash, &index))
        index = add(e, b, hash, s.kind != WEIR_STR_UTF8, ret_fresh);
    /* Of several texts with one content the one that was written last is quick. */
    if (s.kind == WEIR_STR_TEXT && !e->err && !e->narrow)
        wr_trace_dict_own(&e->dict, wr_text_of(s), index);
    return index;
}
