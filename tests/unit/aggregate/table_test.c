/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregate/table.h"
#include "t.h"

#include <stdlib.h>

static struct wr_table table(struct t_heap *heap, size_t max)
{
    *heap = (struct t_heap){.fail_at = -1};
    const struct weir_alloc a = {t_heap_fn, heap};
    struct wr_table t;
    T_OK(wr_table_init(&t, &a, max));
    return t;
}

static struct wr_entry *insert(struct wr_table *t, uint64_t hash, const char *key)
{
    struct wr_entry *e = NULL;
    T_OK(wr_table_insert(t, hash, key, strlen(key), &e));
    return e;
}

static void touch(struct wr_table *t, struct wr_entry *e, int64_t start)
{
    e->slot.start_ns = start;
    e->last_start_ns = start;
    wr_table_slot_added(t, e);
}

static void untouch(struct wr_table *t, struct wr_entry *e)
{
    e->slot.start_ns = WR_NO_WINDOW;
    wr_table_slot_gone(t, e);
}

TEST(keys_of_one_hash_are_told_apart_by_their_bytes)
{
    struct t_heap heap;
    struct wr_table t = table(&heap, 100);
    const struct wr_entry *const a = insert(&t, 5, "a");
    const struct wr_entry *const b = insert(&t, 5, "b");
    T_TRUE(a != b);
    T_TRUE(wr_table_find(&t, 5, "a", 1) == a && wr_table_find(&t, 5, "b", 1) == b);
    T_TRUE(!wr_table_find(&t, 5, "ab", 2) && !wr_table_find(&t, 6, "a", 1));
    T_TRUE(wr_table_check(&t));
    wr_table_done(&t);
    T_EQ_I64(heap.live, 0);
}

TEST(at_the_cap_an_idle_entry_makes_room_and_a_live_one_does_not)
{
    struct t_heap heap;
    struct wr_table t = table(&heap, 2);
    struct wr_entry *const a = insert(&t, 1, "a");
    struct wr_entry *const b = insert(&t, 2, "b");
    touch(&t, b, 10);
    (void)a; /* idle: it is the one that goes */
    struct wr_entry *const c = insert(&t, 3, "c");
    T_EQ_U64(t.size, 2);
    T_TRUE(!wr_table_find(&t, 1, "a", 1) && wr_table_find(&t, 2, "b", 1) == b);
    touch(&t, c, 10);
    struct wr_entry *none = NULL;
    T_ERR(wr_table_insert(&t, 4, "d", 1, &none), WEIR_EFULL);
    T_TRUE(!none && wr_table_check(&t));
    untouch(&t, b);
    (void)insert(&t, 4, "d");
    T_TRUE(!wr_table_find(&t, 2, "b", 1) && wr_table_check(&t));
    untouch(&t, c);
    wr_table_bury(&t);
    wr_table_done(&t);
    T_EQ_I64(heap.live, 0);
}

TEST(the_longest_idle_goes_first)
{
    struct t_heap heap;
    struct wr_table t = table(&heap, 3);
    struct wr_entry *e[3];
    const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        e[i] = insert(&t, i, names[i]);
        touch(&t, e[i], 10);
    }
    untouch(&t, e[1]);
    untouch(&t, e[0]);
    untouch(&t, e[2]);
    (void)insert(&t, 9, "d");
    T_TRUE(!wr_table_find(&t, 1, "b", 1) && wr_table_find(&t, 0, "a", 1));
    wr_table_done(&t);
    T_EQ_I64(heap.live, 0);
}

TEST(only_what_is_idle_and_old_is_expunged)
{
    struct t_heap heap;
    struct wr_table t = table(&heap, 10);
    struct wr_entry *const old = insert(&t, 1, "old");
    struct wr_entry *const live = insert(&t, 2, "live");
    struct wr_entry *const fresh = insert(&t, 3, "fresh");
    touch(&t, old, 10);
    touch(&t, live, 10);
    touch(&t, fresh, 50);
    untouch(&t, old);
    untouch(&t, fresh);
    T_EQ_U64(wr_table_expunge(&t, 40), 1);
    T_TRUE(!wr_table_find(&t, 1, "old", 3) && wr_table_find(&t, 3, "fresh", 5) == fresh &&
           wr_table_find(&t, 2, "live", 4) == live);
    T_TRUE(wr_table_check(&t));
    untouch(&t, live);
    wr_table_done(&t);
    T_EQ_I64(heap.live, 0);
}

enum { MODEL_KEYS = 300 };

/* Random operations on the table and on an array of flags. Hashes collide on purpose. */
TEST(the_table_agrees_with_an_array)
{
    struct t_heap heap;
    struct wr_table t = table(&heap, 200);
    struct wr_entry *model[MODEL_KEYS] = {0};
    bool live[MODEL_KEYS] = {0};
    size_t live_count = 0;
    struct t_rng rng = t_rng(t_seed());
    for (int step = 0; step < 20000; step++) {
        const size_t k = (size_t)t_below(&rng, MODEL_KEYS);
        const uint64_t hash = k % 37;
        char key[16];
        const size_t n = (size_t)snprintf(key, sizeof key, "key-%zu", k);
        struct wr_entry *e = wr_table_find(&t, hash, key, n);
        T_TRUE(!live[k] || e == model[k]);
        switch (t_below(&rng, 4)) {
        case 0:
        case 1: {
            if (e)
                break;
            const int r = wr_table_insert(&t, hash, key, n, &e);
            T_EQ_I64(r, live_count == 200 ? WEIR_EFULL : WEIR_OK);
            wr_table_bury(&t);
            if (r == WEIR_OK && t_below(&rng, 2)) {
                touch(&t, e, step);
                live[k] = true;
                live_count++;
            }
            model[k] = e;
            break;
        }
        case 2:
            if (live[k]) {
                untouch(&t, e);
                live[k] = false;
                live_count--;
            } else if (e) {
                touch(&t, e, step);
                live[k] = true;
                live_count++;
                model[k] = e;
            }
            break;
        default:
            if (step % 50 == 0)
                (void)wr_table_expunge(&t, step - 1000);
            break;
        }
        if (step % 500 == 0)
            T_TRUE(wr_table_check(&t));
    }
    T_TRUE(wr_table_check(&t));
    for (size_t k = 0; k < MODEL_KEYS; k++) {
        if (live[k])
            untouch(&t, model[k]);
    }
    wr_table_done(&t);
    T_EQ_I64(heap.live, 0);
}

static int fill(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    struct wr_table t;
    int r = wr_table_init(&t, alloc, 5000);
    for (uint64_t i = 0; i < 700 && r == WEIR_OK; i++) {
        struct wr_entry *e;
        const size_t before = t.size;
        r = wr_table_insert(&t, i * 77, &i, sizeof i, &e);
        if (r != WEIR_OK)
            T_EQ_U64(t.size, before);
        if (i % 100 == 0)
            T_TRUE(wr_table_check(&t));
    }
    wr_table_done(&t);
    return r;
}

TEST(no_memory_leaves_the_table_as_it_was)
{
    t_each_oom(fill, NULL);
}
