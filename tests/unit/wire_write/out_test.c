/* SPDX-License-Identifier: Apache-2.0 */
#include "t.h"
#include "wire/out.h"

#include <string.h>

TEST(an_output_takes_exactly_its_maximum)
{
    struct t_heap h = {.fail_at = -1};
    const struct weir_alloc a = {t_heap_fn, &h};
    struct wr_out o;
    wr_out_init(&o, &a, 1000);
    char bytes[1000];
    memset(bytes, 'x', sizeof bytes);
    wr_out_put(&o, bytes, 999);
    wr_out_put(&o, bytes, 1);
    T_OK(o.err);
    T_EQ_U64(o.len, 1000);
    T_TRUE(o.cap <= 1000);
    wr_out_put(&o, bytes, 1);
    T_ERR(o.err, WEIR_EFULL);
    T_EQ_U64(o.len, 1000);
    wr_out_done(&o);
    T_EQ_I64(h.live, 0);
}

TEST(after_an_error_nothing_is_appended_until_rewind)
{
    struct wr_out o;
    wr_out_init(&o, NULL, 4);
    wr_out_put(&o, "abc", 3);
    wr_out_put(&o, "defgh", 5);
    T_ERR(o.err, WEIR_EFULL);
    wr_out_put(&o, "d", 1); /* would fit: but the message is broken by now */
    T_EQ_U64(o.len, 3);
    T_TRUE(!wr_out_reserve(&o, 0));
    wr_out_rewind(&o, 1);
    T_OK(o.err);
    wr_out_put(&o, "zz", 2);
    T_EQ_BYTES(o.ptr, o.len, "azz", 3);
    wr_out_done(&o);
}

TEST(an_output_without_room_refuses_the_first_byte_and_accepts_none)
{
    struct wr_out o;
    wr_out_init(&o, NULL, 0);
    wr_out_put(&o, NULL, 0);
    T_OK(o.err);
    wr_out_put(&o, "a", 1);
    T_ERR(o.err, WEIR_EFULL);
    wr_out_done(&o);
}

TEST(a_size_past_what_exists_is_refused_not_wrapped)
{
    struct wr_out o;
    wr_out_init(&o, NULL, SIZE_MAX);
    wr_out_put(&o, "a", 1);
    T_TRUE(!wr_out_reserve(&o, SIZE_MAX));
    T_ERR(o.err, WEIR_EFULL);
    T_EQ_U64(o.len, 1);
    wr_out_done(&o);
}

static int fill(const struct weir_alloc *a, void *ctx)
{
    (void)ctx;
    struct wr_out o;
    wr_out_init(&o, a, 1 << 20);
    for (int i = 0; i < 5000 && !o.err; i++)
        wr_out_put(&o, "0123456789", 10);
    const int err = o.err;
    T_EQ_U64(o.len % 10, 0);
    wr_out_done(&o);
    return err;
}

TEST(each_refused_allocation_is_an_error_and_no_leak)
{
    t_each_oom(fill, NULL);
}
