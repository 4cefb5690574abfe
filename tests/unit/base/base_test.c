/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/bits.h"
#include "base/hash.h"
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

TEST(each_bit_of_a_key_and_its_length_and_the_seed_change_its_hash)
{
    char key[100];
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (char)(i * 7);
    for (size_t n = 0; n <= sizeof key; n++) {
        const uint64_t hash = wr_hash_key(key, n, 5);
        T_EQ_U64(wr_hash_key(key, n, 5), hash);
        T_TRUE(wr_hash_key(key, n, 6) != hash || n == 0);
        T_TRUE(n == 0 || wr_hash_key(key, n - 1, 5) != hash);
        for (size_t bit = 0; bit < n * 8; bit++) {
            key[bit / 8] ^= (char)(1 << bit % 8);
            T_TRUE(wr_hash_key(key, n, 5) != hash);
            key[bit / 8] ^= (char)(1 << bit % 8);
        }
    }
}

/* Keys that differ in a few digits, as those of a service do: of 2^16 in 2^16 places some 36.8 %
 * stay empty, and the standard deviation of that is 79 places. */
TEST(keys_that_differ_in_digits_fall_on_places_as_if_by_chance)
{
    static uint8_t taken[2][1 << 16];
    memset(taken, 0, sizeof taken);
    for (uint32_t i = 0; i < 1 << 16; i++) {
        char key[] = "service-01 GET /api/v1/items/00000/detail";
        for (uint32_t k = 0, v = i; k < 5; k++, v /= 10)
            key[33 - k] = (char)('0' + v % 10);
        const uint64_t hash = wr_hash_key(key, sizeof key - 1, 11);
        taken[0][hash & 0xffff] = 1;
        taken[1][hash >> 48] = 1;
    }
    for (int side = 0; side < 2; side++) {
        uint32_t used = 0;
        for (uint32_t i = 0; i < 1 << 16; i++)
            used += taken[side][i];
        T_TRUE(used > 41426 - 6 * 79 && used < 41426 + 6 * 79);
    }
}

/* A key cannot be made to hash alike under every seed: bytes that equal a constant are no use. */
TEST(bytes_that_equal_what_the_hash_is_made_of_are_like_any_other)
{
    const uint64_t constants[] = {UINT64_C(0x9E3779B97F4A7C15), UINT64_C(0xB7E151628AED2A6B), 0};
    for (size_t c = 0; c < 3; c++) {
        uint64_t key[8];
        for (size_t i = 0; i < 8; i++)
            key[i] = constants[c];
        const uint64_t hash = wr_hash_key(key, sizeof key, 77);
        for (size_t i = 0; i < 8; i++) {
            key[i] ^= 1;
            T_TRUE(wr_hash_key(key, sizeof key, 77) != hash);
            key[i] ^= 1;
        }
    }
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
