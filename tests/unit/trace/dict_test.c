/* SPDX-License-Identifier: Apache-2.0 */
#include "t.h"
#include "trace/dict.h"

#include <stdlib.h>
#include <string.h>

#define POOL 3000

/* The naive model: a list of numbers in order of first use. */
struct model {
    uint32_t ids[POOL];
    size_t count;
};

static uint32_t model_index(struct model *m, uint32_t id)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->ids[i] == id)
            return (uint32_t)i;
    }
    m->ids[m->count] = id;
    return (uint32_t)m->count++;
}

/* As the encoder does: look, then add. */
static int index_of(struct wr_trace_dict *d, struct weir_bytes s, uint32_t *ret_index)
{
    uint32_t hash;
    return wr_trace_dict_find(d, s, &hash, ret_index) ? WEIR_OK
                                                      : wr_trace_dict_add(d, s, hash, ret_index);
}

TEST(indices_follow_the_order_of_first_use_through_growth_and_rewinds)
{
    struct t_rng r = t_rng(t_seed());
    const struct weir_alloc a = wr_alloc_or_default(NULL);
    struct wr_trace_dict d;
    wr_trace_dict_init(&d, &a, 1 << 20, t_next(&r));
    struct model *const m = calloc(1, sizeof *m);
    for (int step = 0; step < 20000; step++) {
        if (t_below(&r, 400) == 0) {
            const size_t to = t_below(&r, m->count + 1);
            wr_trace_dict_rewind(&d, to);
            m->count = to;
        }
        const uint32_t id = (uint32_t)t_below(&r, POOL);
        char text[16];
        const int n = snprintf(text, sizeof text, "%u", id);
        uint32_t index = 0;
        T_OK(index_of(&d, (struct weir_bytes){.ptr = text, .len = (size_t)n}, &index));
        T_EQ_U64(index, model_index(m, id));
        T_EQ_U64(d.count, m->count);
    }
    T_EQ_U64(d.text.len, wr_trace_dict_text_end(&d));
    free(m);
    wr_trace_dict_done(&d);
}

TEST(a_string_past_the_bound_is_refused_and_the_next_one_that_fits_is_taken)
{
    const struct weir_alloc a = wr_alloc_or_default(NULL);
    struct wr_trace_dict d;
    wr_trace_dict_init(&d, &a, WR_TRACE_DICT_GAP + 8, 1);
    uint32_t index = 99;
    T_ERR(index_of(&d, (struct weir_bytes){.ptr = "12345678", .len = 8}, &index), WEIR_EFULL);
    T_EQ_U64(index, 99);
    T_EQ_U64(d.count, 0);
    T_OK(index_of(&d, (struct weir_bytes){.ptr = "1234567", .len = 7}, &index));
    T_EQ_U64(index, 0);
    wr_trace_dict_done(&d);
}
