/* SPDX-License-Identifier: Apache-2.0 */
/* pb_read: the forms of the wire format, what is refused, truncation at every byte. */
#include "t.h"
#include "wire/pb_read.h"

/* Read the first field of hex; what was refused is in *ret_err. */
static struct wr_pb_field first_field(const char *hex, int *ret_err, size_t *ret_used)
{
    uint8_t buf[64];
    const size_t bytes = t_unhex(hex, buf, sizeof buf);
    struct t_guard g = t_guard_new(buf, bytes);
    struct wr_pb pb = wr_pb_init(g.ptr, bytes);
    struct wr_pb_field f = {.tag = 0};
    const uint8_t *const at = wr_pb_field(&pb, pb.begin, pb.end, &f);
    T_TRUE((at == NULL) == (pb.err != WEIR_OK));
    *ret_err = pb.err;
    *ret_used = at ? (size_t)(at - pb.begin) : 0;
    f.ptr = NULL; /* the guard goes */
    t_guard_free(&g);
    return f;
}

TEST(each_wire_type_is_read_whole)
{
    static const struct {
        const char *hex;
        uint32_t tag;
        uint64_t u;
        size_t used;
    } rows[] = {
        {"0801", WR_PB_TAG(1, 0), 1, 2},
        {"08ac02", WR_PB_TAG(1, 0), 300, 3},
        {"78ffffffffffffffffff01", WR_PB_TAG(15, 0), UINT64_MAX, 11},
        {"390102030405060708", WR_PB_TAG(7, 1), UINT64_C(0x0807060504030201), 9},
        {"0a0361626300", WR_PB_TAG(1, 2), 3, 5},
        {"0a00", WR_PB_TAG(1, 2), 0, 2},
        {"850101020304", WR_PB_TAG(16, 5), UINT64_C(0x04030201), 6},
        {"8a808080808080808000830000616263", WR_PB_TAG(1, 2), 3, 15},
        {"f8ffffff0f01", WR_PB_TAG((1u << 29) - 1, 0), 1, 6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int err = 0;
        size_t used = 0;
        const struct wr_pb_field f = first_field(rows[i].hex, &err, &used);
        T_OK(err);
        T_EQ_U64(f.tag, rows[i].tag);
        T_EQ_U64(f.u, rows[i].u);
        T_EQ_U64(used, rows[i].used);
    }
}

TEST(malformed_fields_are_refused_with_their_reason)
{
    static const struct {
        const char *hex;
        int err;
    } rows[] = {
        {"0001", WEIR_EFORMAT},                      /* field 0 */
        {"010000000000000000", WEIR_EFORMAT},        /* field 0, fixed64 */
        {"0200", WEIR_EFORMAT},                      /* field 0, length */
        {"808080801001", WEIR_EFORMAT},              /* field 2^29 */
        {"0b0c", WEIR_EFORMAT},                      /* group */
        {"7c", WEIR_EFORMAT},                        /* end of group */
        {"7e00", WEIR_EFORMAT},                      /* wire type 6 */
        {"7f00", WEIR_EFORMAT},                      /* wire type 7 */
        {"788080808080808080808001", WEIR_EFORMAT},  /* 11 bytes */
        {"78ffffffffffffffffff7f", WEIR_EFORMAT},    /* more than 64 bits */
        {"0affffffffffffffffff01", WEIR_ETRUNCATED}, /* length 2^64 - 1 */
        {"0a80808080808080808001", WEIR_ETRUNCATED}, /* length 2^63 */
        {"0a0161"
         "0a",
         WEIR_OK}, /* the first field stands */
        {"0a0261", WEIR_ETRUNCATED},
        {"80", WEIR_ETRUNCATED},
        {"3901020304050607", WEIR_ETRUNCATED},
        {"8501010203", WEIR_ETRUNCATED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int err = 0;
        size_t used = 0;
        (void)first_field(rows[i].hex, &err, &used);
        if (err != rows[i].err)
            T_FAIL("%s gave %s", rows[i].hex, weir_strerror(err));
    }
}

TEST(a_length_past_the_parent_is_malformed_even_when_the_bytes_are_there)
{
    const uint8_t bytes[] = {0x0a, 0x02, 0x12, 0x02, 'a', 'b'};
    struct wr_pb pb = wr_pb_init(bytes, sizeof bytes);
    struct wr_pb_field f;
    const uint8_t *const at = wr_pb_field(&pb, pb.begin, pb.end, &f);
    T_TRUE(at == bytes + 4);
    T_TRUE(!wr_pb_field(&pb, f.ptr, at, &f));
    T_ERR(pb.err, WEIR_EFORMAT);
    T_EQ_U64(pb.bad - pb.begin, 2);
}
