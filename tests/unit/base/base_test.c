/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/bits.h"
#include "t.h"

#include <math.h>

TEST(every_error_has_its_own_number_and_text)
{
    const int codes[] = {
#define CODE(name, num, text) num,
        WEIR_ERR_MAP(CODE)
#undef CODE
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        T_TRUE(codes[i] <= -1001);
        for (size_t j = 0; j < i; j++)
            T_TRUE(codes[i] != codes[j]);
    }
    T_EQ_STR(weir_strerror(WEIR_ETRUNCATED), "the bytes end before the message does");
    T_EQ_STR(weir_strerror(-1), "unknown error");
    T_EQ_STR(weir_strerror(0), "success");
}

TEST(a_double_out_of_range_becomes_the_nearest_integer)
{
    T_EQ_I64(wr_i64_from_double(1e300), INT64_MAX);
    T_EQ_I64(wr_i64_from_double(-1e300), INT64_MIN);
    T_EQ_I64(wr_i64_from_double((double)NAN), 0);
    T_EQ_I64(wr_i64_from_double(-2.9), -2);
}

TEST(aligned_memory_is_aligned_and_freed_whole)
{
    struct t_heap h = {.fail_at = -1};
    const struct weir_alloc a = {t_heap_fn, &h};
    void *block;
    size_t block_size;
    char *const p = wr_alloc_aligned64(&a, 100, &block, &block_size);
    T_TRUE(p && ((uintptr_t)p & 63u) == 0);
    p[99] = 1;
    wr_free(&a, block, block_size);
    T_EQ_I64(h.live, 0);
    T_TRUE(!wr_alloc_aligned64(&a, SIZE_MAX - 8, &block, &block_size));
}

TEST(wire_integers_are_read_and_written_by_byte_order)
{
    uint8_t b[8];
    wr_store32be(b, 0x01020304u);
    T_EQ_U64(b[0], 1);
    T_EQ_U64(wr_load32be(b), 0x01020304u);
    T_EQ_U64(wr_load32le(b), 0x04030201u);
    wr_store64le(b, 0x1122334455667788u);
    T_EQ_U64(b[0], 0x88);
    T_EQ_U64(wr_load64be(b), 0x8877665544332211u);
}
