/* SPDX-License-Identifier: Apache-2.0 */
/* The narrowest form, stated as bytes, and read back by libmsgpack. */
#include "t.h"
#include "wire/mp_write.h"

#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

static void expect(struct wr_out *o, const char *hex)
{
    uint8_t want[64];
    const size_t n = t_unhex(hex, want, sizeof want);
    T_OK(o->err);
    T_EQ_BYTES(o->ptr, o->len, want, n);
    wr_out_clear(o);
}

TEST(positive_integers_take_the_narrowest_unsigned_form)
{
    static const struct {
        uint64_t v;
        const char *hex;
    } rows[] = {
        {.v = 0, .hex = "00"},
        {.v = 127, .hex = "7f"},
        {.v = 128, .hex = "cc80"},
        {.v = 255, .hex = "ccff"},
        {.v = 256, .hex = "cd0100"},
        {.v = 65535, .hex = "cdffff"},
        {.v = 65536, .hex = "ce00010000"},
        {.v = 4294967295u, .hex = "ceffffffff"},
        {.v = UINT64_C(4294967296), .hex = "cf0000000100000000"},
        {.v = INT64_MAX, .hex = "cf7fffffffffffffff"},
        {.v = UINT64_MAX, .hex = "cfffffffffffffffff"},
    };
    struct wr_out o;
    wr_out_init(&o, NULL, 64);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wr_mp_put_uint(&o, rows[i].v);
        expect(&o, rows[i].hex);
        if (rows[i].v <= INT64_MAX) {
            wr_mp_put_int(&o, (int64_t)rows[i].v);
            expect(&o, rows[i].hex);
        }
    }
    wr_out_done(&o);
}

TEST(negative_integers_take_the_narrowest_signed_form)
{
    static const struct {
        int64_t v;
        const char *hex;
    } rows[] = {
        {.v = -1, .hex = "ff"},
        {.v = -32, .hex = "e0"},
        {.v = -33, .hex = "d0df"},
        {.v = -128, .hex = "d080"},
        {.v = -129, .hex = "d1ff7f"},
        {.v = -32768, .hex = "d18000"},
        {.v = -32769, .hex = "d2ffff7fff"},
        {.v = INT32_MIN, .hex = "d280000000"},
        {.v = INT64_C(-2147483649), .hex = "d3ffffffff7fffffff"},
        {.v = INT64_MIN, .hex = "d38000000000000000"},
    };
    struct wr_out o;
    wr_out_init(&o, NULL, 64);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wr_mp_put_int(&o, rows[i].v);
        expect(&o, rows[i].hex);
    }
    wr_out_done(&o);
}

TEST(floats_are_always_eight_bytes)
{
    struct wr_out o;
    wr_out_init(&o, NULL, 64);
    wr_mp_put_double(&o, 1.0);
    expect(&o, "cb3ff0000000000000");
    wr_mp_put_double(&o, -0.0);
    expect(&o, "cb8000000000000000");
    wr_mp_put_nil(&o);
    wr_mp_put_bool(&o, true);
    wr_mp_put_bool(&o, false);
    expect(&o, "c0c3c2");
    wr_out_done(&o);
}

TEST(headers_change_form_where_the_specification_says)
{
    struct wr_out o;
    wr_out_init(&o, NULL, 64);
    wr_mp_put_array(&o, 15);
    wr_mp_put_array(&o, 16);
    wr_mp_put_array(&o, 65535);
    wr_mp_put_array(&o, 65536);
    expect(&o, "9f dc0010 dcffff dd00010000");
    wr_mp_put_map(&o, 15);
    wr_mp_put_map(&o, 16);
    wr_mp_put_map(&o, 65536);
    expect(&o, "8f de0010 df00010000");
    wr_mp_put_cstr(&o, "");
    wr_mp_put_str(&o, (struct weir_bytes){.ptr = NULL, .len = 0});
    wr_mp_put_bin(&o, (struct weir_bytes){.ptr = "\x01", .len = 1});
    expect(&o, "a0 a0 c40101");
    wr_mp_put_array(&o, (size_t)UINT32_MAX);
    expect(&o, "ddffffffff");
    wr_out_done(&o);
}

TEST(what_no_header_can_say_is_out_of_range)
{
    struct wr_out o;
    wr_out_init(&o, NULL, 64);
    wr_mp_put_array(&o, (size_t)UINT32_MAX + 1);
    T_ERR(o.err, WEIR_ERANGE);
    T_EQ_U64(o.len, 0);
    wr_out_clear(&o);
    wr_mp_put_map(&o, (size_t)UINT32_MAX + 1);
    T_ERR(o.err, WEIR_ERANGE);
    wr_out_clear(&o);
    wr_mp_put_str(&o, (struct weir_bytes){.ptr = "x", .len = (size_t)UINT32_MAX + 1});
    T_ERR(o.err, WEIR_ERANGE);
    wr_mp_put_nil(&o);
    T_EQ_U64(o.len, 0);
    wr_out_done(&o);
}

/* Read one object back and compare it with what was written. */
static void check_string(struct wr_out *o, const char *text, size_t len, bool bin)
{
    const struct weir_bytes b = {.ptr = text, .len = len};
    if (bin)
        wr_mp_put_bin(o, b);
    else
        wr_mp_put_str(o, b);
    T_OK(o->err);
    msgpack_unpacked u;
    msgpack_unpacked_init(&u);
    size_t off = 0;
    T_EQ_I64(msgpack_unpack_next(&u, o->ptr, o->len, &off), MSGPACK_UNPACK_SUCCESS);
    T_EQ_U64(off, o->len);
    if (bin) {
        T_EQ_I64(u.data.type, MSGPACK_OBJECT_BIN);
        T_EQ_BYTES(u.data.via.bin.ptr, u.data.via.bin.size, text, len);
    } else {
        T_EQ_I64(u.data.type, MSGPACK_OBJECT_STR);
        T_EQ_BYTES(u.data.via.str.ptr, u.data.via.str.size, text, len);
    }
    msgpack_unpacked_destroy(&u);
    wr_out_clear(o);
}

TEST(strings_of_every_width_are_read_back_by_libmsgpack_and_are_its_bytes_but_for_str8)
{
    static const size_t lens[] = {0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536, 70000};
    char *const text = malloc(70000);
    T_TRUE(text);
    memset(text, 'q', 70000);
    struct wr_out o;
    wr_out_init(&o, NULL, 100000);
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        check_string(&o, text, lens[i], false);
        check_string(&o, text, lens[i], true);
        wr_mp_put_str(&o, (struct weir_bytes){.ptr = text, .len = lens[i]});
        msgpack_sbuffer s;
        msgpack_sbuffer_init(&s);
        msgpack_packer p;
        msgpack_packer_init(&p, &s, msgpack_sbuffer_write);
        (void)msgpack_pack_str(&p, lens[i]);
        (void)msgpack_pack_str_body(&p, text, lens[i]);
        if (lens[i] >= 16 && lens[i] < 32) { /* the reference's str8 */
            const char head[] = {(char)0xd9, (char)lens[i]};
            T_EQ_BYTES(o.ptr, 2, head, 2);
            T_EQ_BYTES(o.ptr + 2, o.len - 2, s.data + 1, s.size - 1);
        } else {
            T_EQ_BYTES(o.ptr, o.len, s.data, s.size);
        }
        msgpack_sbuffer_destroy(&s);
        wr_out_clear(&o);
    }
    wr_out_done(&o);
    free(text);
}

TEST(random_numbers_come_out_as_the_bytes_libmsgpack_writes)
{
    struct t_rng r = t_rng(t_seed());
    struct wr_out o;
    wr_out_init(&o, NULL, 64);
    msgpack_sbuffer s;
    msgpack_sbuffer_init(&s);
    msgpack_packer p;
    msgpack_packer_init(&p, &s, msgpack_sbuffer_write);
    for (int i = 0; i < 20000; i++) {
        const uint64_t v = t_next(&r) >> t_below(&r, 64);
        s.size = 0;
        wr_out_clear(&o);
        switch (t_below(&r, 3)) {
        case 0:
            wr_mp_put_uint(&o, v);
            (void)msgpack_pack_uint64(&p, v);
            break;
        case 1:
            wr_mp_put_int(&o, -(int64_t)(v >> 1));
            (void)msgpack_pack_int64(&p, -(int64_t)(v >> 1));
            break;
        default:
            wr_mp_put_double(&o, t_unit(&r) * 1e9);
            r.s -= UINT64_C(0x9E3779B97F4A7C15); /* the same number once more */
            (void)msgpack_pack_double(&p, t_unit(&r) * 1e9);
            break;
        }
        T_OK(o.err);
        T_EQ_BYTES(o.ptr, o.len, s.data, s.size);
    }
    msgpack_sbuffer_destroy(&s);
    wr_out_done(&o);
}
