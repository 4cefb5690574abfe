/* SPDX-License-Identifier: Apache-2.0 */
/* mp_write: see mp_write.h. */
#include "wire/mp_write.h"

/* What does not fit a 32-bit header is no allocation failure: it can never be written. */
static bool in_range(struct wr_out *out, size_t n)
{
    if (out->err)
        return false;
    if (n <= UINT32_MAX)
        return true;
    out->err = WEIR_ERANGE;
    return false;
}

static void put_byte(struct wr_out *out, unsigned byte)
{
    char *const at = wr_out_reserve(out, 1);
    if (at)
        wr_out_commit(out, wr_mp_raw_byte(at, byte));
}

void wr_mp_put_nil(struct wr_out *out)
{
    put_byte(out, WR_MP_NIL);
}

void wr_mp_put_bool(struct wr_out *out, bool v)
{
    put_byte(out, v ? 0xc3 : 0xc2);
}

/*
 * Numbers and headers are built aside and appended: the bound then holds for the bytes written,
 * not for the widest form.
 */
void wr_mp_put_uint(struct wr_out *out, uint64_t v)
{
    char b[WR_MP_INT_MAX];
    wr_out_put(out, b, (size_t)(wr_mp_raw_uint(b, v) - b));
}

void wr_mp_put_int(struct wr_out *out, int64_t v)
{
    char b[WR_MP_INT_MAX];
    wr_out_put(out, b, (size_t)(wr_mp_raw_int(b, v) - b));
}

void wr_mp_put_double(struct wr_out *out, double v)
{
    char b[WR_MP_INT_MAX];
    wr_out_put(out, b, (size_t)(wr_mp_raw_double(b, v) - b));
}

void wr_mp_put_array(struct wr_out *out, size_t count)
{
    if (!in_range(out, count))
        return;
    char b[WR_MP_HEAD_MAX];
    wr_out_put(out, b, (size_t)(wr_mp_raw_array(b, (uint32_t)count) - b));
}

void wr_mp_put_map(struct wr_out *out, size_t pairs)
{
    if (!in_range(out, pairs))
        return;
    char b[WR_MP_HEAD_MAX];
    wr_out_put(out, b, (size_t)(wr_mp_raw_map(b, (uint32_t)pairs) - b));
}

void wr_mp_put_str(struct wr_out *out, struct weir_bytes s)
{
    if (!in_range(out, s.len))
        return;
    char b[WR_MP_HEAD_MAX];
    wr_out_put(out, b, (size_t)(wr_mp_raw_str_head(b, (uint32_t)s.len) - b));
    wr_out_put(out, s.ptr, s.len);
}

void wr_mp_put_cstr(struct wr_out *out, const char *s)
{
    wr_mp_put_str(out, (struct weir_bytes){.ptr = s, .len = strlen(s)});
}

void wr_mp_put_bin(struct wr_out *out, struct weir_bytes b)
{
    if (!in_range(out, b.len))
        return;
    char head[WR_MP_HEAD_MAX];
    wr_out_put(out, head, (size_t)(wr_mp_raw_bin_head(head, (uint32_t)b.len) - head));
    wr_out_put(out, b.ptr, b.len);
}
