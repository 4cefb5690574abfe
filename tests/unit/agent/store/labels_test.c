/* SPDX-License-Identifier: Apache-2.0 */
#include "store/internal.h"
#include "t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct weir_bytes bytes_of(const char *text)
{
    return (struct weir_bytes){text, strlen(text)};
}

static struct weir_label label(const char *name, const char *value)
{
    return (struct weir_label){bytes_of(name), bytes_of(value)};
}

TEST(the_canonical_form_is_sorted_names_and_values_each_after_its_length)
{
    struct weir_label labels[] = {label("b", "xyz"), label("a", "1")};
    struct store_buf buf = {0};
    T_OK(store_labels_encode(&buf, labels, 2));
    T_EQ_BYTES(buf.ptr, buf.len,
               "\x01"
               "a\x01"
               "1\x01"
               "b\x03xyz",
               10);
    struct weir_label back[2];
    size_t count = 0;
    T_OK(store_labels_decode((struct weir_bytes){buf.ptr, buf.len}, back, 2, &count));
    T_EQ_U64(count, 2);
    T_EQ_BYTES(back[1].value.ptr, back[1].value.len, "xyz", 3);
    T_ERR(store_labels_decode((struct weir_bytes){buf.ptr, buf.len}, back, 1, &count), -EBADMSG);
    store_buf_done(&buf);
}

TEST(labels_that_look_alike_with_separators_have_different_forms)
{
    struct weir_label one[] = {label("a", "b=c;d"), label("e", "f")};
    struct weir_label two[] = {label("a", "b"), label("c", "d;e=f")};
    struct weir_label nul[] = {{{"a", 1}, {"x\0y", 3}}};
    struct weir_label cut[] = {{{"a", 1}, {"x", 1}}};
    struct store_buf a = {0};
    struct store_buf b = {0};
    T_OK(store_labels_encode(&a, one, 2));
    T_OK(store_labels_encode(&b, two, 2));
    T_TRUE(a.len != b.len || memcmp(a.ptr, b.ptr, a.len) != 0);
    T_OK(store_labels_encode(&a, nul, 1));
    T_OK(store_labels_encode(&b, cut, 1));
    T_TRUE(a.len != b.len);
    store_buf_done(&a);
    store_buf_done(&b);
}

TEST(a_long_value_takes_a_longer_length_and_one_past_the_bound_is_refused)
{
    const size_t long_len = 20000;
    char *const text = malloc(STORE_LABELS_BYTES_MAX + 1);
    T_TRUE(text);
    memset(text, 'v', STORE_LABELS_BYTES_MAX + 1);
    struct weir_label l = {{"n", 1}, {text, long_len}};
    struct store_buf buf = {0};
    T_OK(store_labels_encode(&buf, &l, 1));
    T_EQ_U64(buf.len, 2 + 3 + long_len); /* 20000 needs three groups of seven bits */
    struct weir_label back;
    size_t count = 0;
    T_OK(store_labels_decode((struct weir_bytes){buf.ptr, buf.len}, &back, 1, &count));
    T_EQ_U64(back.value.len, long_len);
    l.value.len = STORE_LABELS_BYTES_MAX + 1;
    T_ERR(store_labels_encode(&buf, &l, 1), -E2BIG);
    store_buf_done(&buf);
    free(text);
}

TEST(no_labels_are_an_empty_form)
{
    struct store_buf buf = {0};
    T_OK(store_labels_encode(&buf, NULL, 0));
    T_EQ_U64(buf.len, 0);
    size_t count = 7;
    T_OK(store_labels_decode((struct weir_bytes){buf.ptr, 0}, NULL, 0, &count));
    T_EQ_U64(count, 0);
    store_buf_done(&buf);
}

TEST(bytes_that_are_no_form_are_refused_without_reading_past_them)
{
    static const char *const bad[] = {"\x01",
                                      "\x01"
                                      "a",
                                      "\x01"
                                      "a\x05"
                                      "xy",
                                      "\x80\x80\x80\x80\x01",
                                      "\xff\xff\xff\x7f",
                                      "\x01"
                                      "a\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct t_guard g = t_guard_new(bad[i], strlen(bad[i]));
        struct weir_label l[4];
        size_t count = 0;
        T_ERR(store_labels_decode((struct weir_bytes){(const char *)g.ptr, strlen(bad[i])}, l, 4,
                                  &count),
              -EBADMSG);
        t_guard_free(&g);
    }
}

TEST(random_bytes_decode_to_what_encodes_to_them_or_are_refused)
{
    struct t_rng r = t_rng(t_seed());
    struct store_buf buf = {0};
    for (int i = 0; i < 20000; i++) {
        char bytes[24];
        const size_t n = t_below(&r, sizeof bytes + 1);
        for (size_t j = 0; j < n; j++)
            bytes[j] = (char)t_below(&r, 5);
        struct weir_label l[16];
        size_t count = 0;
        if (store_labels_decode((struct weir_bytes){bytes, n}, l, 16, &count))
            continue;
        T_OK(store_labels_encode(&buf, l, count));
        T_EQ_U64(buf.len, n); /* sorted or not, the same pieces */
    }
    store_buf_done(&buf);
}

/* A published value of XXH3_64bits: of no bytes, seed 0. It must not change: it is in files. */
TEST(the_stored_hash_is_xxh3_with_seed_0)
{
    T_EQ_U64(store_labels_hash((struct weir_bytes){"", 0}), UINT64_C(0x2d06800538d394c2));
}

TEST(a_map_numbers_forms_in_the_order_of_their_arrival)
{
    struct store_map *m = NULL;
    T_OK(store_map_new(&m));
    char text[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5000; i++) {
            (void)snprintf(text, sizeof text, "form-%d", i);
            T_EQ_I64(store_map_add(m, bytes_of(text)), i);
        }
    }
    T_EQ_U64(store_map_count(m), 5000);
    T_EQ_I64(store_map_find(m, bytes_of("form-4999")), 4999);
    T_EQ_I64(store_map_find(m, bytes_of("form-5000")), -ENOENT);
    T_EQ_I64(store_map_find(m, (struct weir_bytes){"form-12", 6}), 1); /* its length counts */
    T_EQ_I64(store_map_find(m, (struct weir_bytes){"form-12", 5}), -ENOENT);
    store_map_free(m);
}

TEST(totals_carry_into_the_upper_half_and_saturate)
{
    const struct weir_u128 a = {UINT64_MAX, 0};
    const struct weir_u128 sum = store_u128_add(a, (struct weir_u128){1, 0});
    T_EQ_U64(sum.lo, 0);
    T_EQ_U64(sum.hi, 1);
    T_EQ_U64(store_u128_clamp(sum), UINT64_MAX);
    T_EQ_U64(store_u128_clamp((struct weir_u128){5, 0}), 5);
    const struct weir_u128 most = {UINT64_MAX, UINT64_MAX};
    const struct weir_u128 over = store_u128_add(most, (struct weir_u128){1, 0});
    T_EQ_U64(over.lo, UINT64_MAX);
    T_EQ_U64(over.hi, UINT64_MAX);
    uint8_t blob[16];
    store_u128_put((struct weir_u128){0x0102, 0x03}, blob);
    T_EQ_BYTES(blob, 16, "\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", 16);
    const struct weir_u128 back = store_u128_get(blob, 16);
    T_EQ_U64(back.lo, 0x0102);
    T_EQ_U64(back.hi, 3);
    T_EQ_U64(store_u128_get(blob, 15).lo, 0);
}
