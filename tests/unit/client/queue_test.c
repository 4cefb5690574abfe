/* SPDX-License-Identifier: Apache-2.0 */
/* The queue, and the waits between two tries. */
#include "fake.h"

#include "queue.h"
#include "retry.h"

static struct wr_item *item_of(const struct weir_alloc *a, const char *body, bool low)
{
    struct wr_item *const item = wr_item_new(a, (struct weir_bytes){body, strlen(body)});
    T_TRUE(item != NULL);
    item->low = low;
    return item;
}

static void pop_is(struct wr_queue *q, const char *want)
{
    struct wr_item *const item = wr_queue_pop(q);
    T_TRUE(item != NULL);
    T_EQ_STR(item->body, want);
    wr_item_free(q->alloc, item);
}

TEST(a_queue_keeps_order_and_gives_up_the_oldest_of_low_priority_first)
{
    struct t_heap heap = {.fail_at = -1};
    const struct weir_alloc a = {t_heap_fn, &heap};
    struct wr_queue q = {.alloc = &a, .max_count = 3, .max_bytes = 100};
    T_TRUE(wr_queue_pop_victim(&q) == NULL);
    wr_queue_push(&q, item_of(&a, "a", false));
    wr_queue_push(&q, item_of(&a, "b", true));
    wr_queue_push(&q, item_of(&a, "c", false));
    wr_queue_push(&q, item_of(&a, "d", true));
    T_TRUE(wr_queue_is_over(&q));
    struct wr_item *victim = wr_queue_pop_victim(&q);
    T_EQ_STR(victim->body, "b");
    wr_item_free(&a, victim);
    T_TRUE(!wr_queue_is_over(&q));
    wr_queue_push_back(&q, item_of(&a, "first", false));
    victim = wr_queue_pop_victim(&q);
    T_EQ_STR(victim->body, "d");
    wr_item_free(&a, victim);
    T_TRUE(wr_queue_oldest_in_memory(&q) == q.first);
    wr_queue_drop_body(&q, q.first);
    T_EQ_U64(q.stored, 1);
    T_EQ_U64(q.bytes, 2);
    victim = wr_queue_pop_victim(&q); /* not the one without a body */
    T_EQ_STR(victim->body, "a");
    wr_item_free(&a, victim);
    struct wr_item *const stored = wr_queue_pop(&q);
    T_TRUE(stored->body == NULL);
    wr_item_free(&a, stored);
    pop_is(&q, "c");
    T_TRUE(wr_queue_pop(&q) == NULL);
    T_EQ_U64(q.count + q.stored + q.bytes, 0);
    wr_queue_push(&q, item_of(&a, "again", false));
    pop_is(&q, "again");
    T_EQ_I64(heap.live, 0);
}

TEST(waits_double_to_the_maximum_with_half_of_it_at_random)
{
    struct wr_retry r = {.first_for_ns = 1000, .max_for_ns = 8000, .random = 9};
    static const int64_t most[] = {1000, 2000, 4000, 8000, 8000, 8000};
    T_TRUE(wr_retry_is_due(&r, 0));
    bool differ = false;
    for (size_t i = 0; i < 6; i++) {
        wr_retry_failed(&r, 5000, 0);
        const int64_t wait = r.next_ns - 5000;
        T_TRUE(wait >= most[i] / 2 && wait <= most[i]);
        differ = differ || wait != most[i];
        T_TRUE(!wr_retry_is_due(&r, r.next_ns - 1));
        T_TRUE(wr_retry_is_due(&r, r.next_ns));
    }
    T_TRUE(differ);
    wr_retry_succeeded(&r);
    T_TRUE(wr_retry_is_due(&r, 0));
    wr_retry_failed(&r, INT64_MAX - 10, 0);
    T_EQ_I64(r.next_ns, INT64_MAX);
}
