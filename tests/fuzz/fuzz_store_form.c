/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_store_form: the store's bytes: label sets, the map of them, 128-bit totals.
 *
 * Input: 1 byte what to do, then the bytes: a label form to decode, or label sets to encode and
 * put in a map beside a plain list, or numbers to add.
 */
#include "fuzz.h"

#include "store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 uint128;

static int by_name(const struct weir_label *a, const struct weir_label *b)
{
    const struct weir_bytes x[2] = {a->name, a->value};
    const struct weir_bytes y[2] = {b->name, b->value};
    for (int i = 0; i < 2; i++) {
        const size_t n = x[i].len < y[i].len ? x[i].len : y[i].len;
        const int r = n ? memcmp(x[i].ptr, y[i].ptr, n) : 0;
        if (r || x[i].len != y[i].len)
            return r ? r : x[i].len < y[i].len ? -1 : 1;
    }
    return 0;
}

/* The form of labels decodes to them in order, and is a fixed point. */
static void expect_form(struct weir_label *labels, size_t count)
{
    struct store_buf form = {0};
    struct store_buf again = {0};
    FZ_CHECK(store_labels_encode(&form, labels, count) == 0);
    struct weir_label back[WEIR_LABELS_MAX];
    size_t n = SIZE_MAX;
    uint8_t *const exact = fz_copy(form.ptr, form.len);
    const struct weir_bytes bytes = {(const char *)exact, form.len};
    FZ_CHECK(store_labels_decode(bytes, back, WEIR_LABELS_MAX, &n) == 0 && n == count);
    for (size_t i = 0; i < count; i++)
        FZ_CHECK(by_name(&back[i], &labels[i]) == 0 &&
                 (i == 0 || by_name(&back[i - 1], &back[i]) <= 0));
    FZ_CHECK(store_labels_encode(&again, back, n) == 0);
    FZ_CHECK(fz_same(form.ptr, form.len, again.ptr, again.len));
    FZ_CHECK(store_labels_hash(bytes) ==
             store_labels_hash((struct weir_bytes){again.ptr, again.len}));
    if (count > 0) {
        n = SIZE_MAX;
        FZ_CHECK(store_labels_decode(bytes, back, count - 1, &n) == -EBADMSG && n == SIZE_MAX);
    }
    free(exact);
    store_buf_done(&form);
    store_buf_done(&again);
}

static void decode_form(struct fz_in *in)
{
    uint8_t *const exact = fz_copy(in->at, in->left);
    const struct weir_bytes form = {(const char *)exact, in->left};
    struct weir_label labels[WEIR_LABELS_MAX];
    size_t n = SIZE_MAX;
    const int r = store_labels_decode(form, labels, WEIR_LABELS_MAX, &n);
    FZ_CHECK(r == 0 || (r == -EBADMSG && n == SIZE_MAX));
    if (r == 0) {
        FZ_CHECK(n <= WEIR_LABELS_MAX);
        expect_form(labels, n);
    }
    free(exact);
}

static struct weir_bytes take_text(struct fz_in *in)
{
    size_t n = fz_u8(in);
    if (n > in->left)
        n = in->left;
    const struct weir_bytes text = {(const char *)in->at, n};
    in->at += n;
    in->left -= n;
    return text;
}

static size_t take_labels(struct fz_in *in, struct weir_label labels[WEIR_LABELS_MAX])
{
    const size_t count = fz_below(in, 8);
    for (size_t i = 0; i < count; i++) {
        labels[i].name = take_text(in);
        labels[i].value = take_text(in);
    }
    return count;
}

enum { SETS_MAX = 256 };

struct list {
    struct store_buf forms[SETS_MAX];
    size_t count;
};

static int64_t list_find(const struct list *l, const struct store_buf *form)
{
    for (size_t i = 0; i < l->count; i++) {
        if (fz_same(l->forms[i].ptr, l->forms[i].len, form->ptr, form->len))
            return (int64_t)i;
    }
    return -ENOENT;
}

static void add_set(struct fz_in *in, struct store_map *map, struct list *l)
{
    struct weir_label labels[WEIR_LABELS_MAX];
    const size_t count = take_labels(in, labels);
    expect_form(labels, count);
    struct store_buf form = {0};
    FZ_CHECK(store_labels_encode(&form, labels, count) == 0);
    const struct weir_bytes bytes = {form.ptr, form.len};
    const int64_t known = list_find(l, &form);
    FZ_CHECK(store_map_find(map, bytes) == known);
    FZ_CHECK(store_map_add(map, bytes) == (known < 0 ? (int64_t)l->count : known));
    FZ_CHECK(store_map_add(map, bytes) == (known < 0 ? (int64_t)l->count : known));
    if (known < 0)
        l->forms[l->count++] = form;
    else
        store_buf_done(&form);
    FZ_CHECK(store_map_count(map) == l->count);
}

static void fill_map(struct fz_in *in)
{
    struct list list = {.count = 0};
    struct store_map *map = NULL;
    FZ_CHECK(store_map_new(&map) == 0);
    while (in->left > 0 && list.count < SETS_MAX)
        add_set(in, map, &list);
    for (size_t i = 0; i < list.count; i++) {
        const struct weir_bytes form = store_map_get(map, i);
        FZ_CHECK(fz_same(form.ptr, form.len, list.forms[i].ptr, list.forms[i].len));
        FZ_CHECK(store_map_find(map, form) == (int64_t)i);
        store_buf_done(&list.forms[i]);
    }
    store_map_free(map);
}

static uint128 wide(struct weir_u128 v)
{
    return (uint128)v.hi << 64 | v.lo;
}

static void add_numbers(struct fz_in *in)
{
    struct weir_u128 sum = {0, 0};
    uint128 model = 0;
    while (in->left > 0) {
        const struct weir_u128 v = {fz_any(in), fz_any(in)};
        sum = store_u128_add(sum, v);
        if (__builtin_add_overflow(model, wide(v), &model))
            model = ~(uint128)0;
        FZ_CHECK(wide(sum) == model);
        FZ_CHECK(store_u128_clamp(sum) == (model > UINT64_MAX ? UINT64_MAX : (uint64_t)model));
        uint8_t bytes[17];
        store_u128_put(sum, bytes);
        FZ_CHECK(wide(store_u128_get(bytes, 16)) == model);
        FZ_CHECK(wide(store_u128_get(bytes, 15)) == 0 && wide(store_u128_get(bytes, 17)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size);
    switch (fz_u8(&in) % 4) {
    case 0:
    case 1:
        decode_form(&in);
        break;
    case 2:
        fill_map(&in);
        break;
    default:
        add_numbers(&in);
        break;
    }
    return 0;
}
