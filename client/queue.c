/* SPDX-License-Identifier: Apache-2.0 */
/* queue: see queue.h. A list, for what waits is few and large. */
#include "queue.h"

struct wr_item *wr_item_new(const struct weir_alloc *alloc, struct weir_bytes body)
{
    struct wr_item *const item = wr_client_alloc(alloc, sizeof *item);
    if (!item)
        return NULL;
    item->body = wr_client_copy(alloc, body);
    item->len = body.len;
    if (!item->body) {
        wr_client_free(alloc, item, sizeof *item);
        return NULL;
    }
    return item;
}

void wr_item_drop_body(const struct weir_alloc *alloc, struct wr_item *item)
{
    wr_client_free(alloc, item->body, item->len + 1);
    item->body = NULL;
}

void wr_item_free(const struct weir_alloc *alloc, struct wr_item *item)
{
    if (!item)
        return;
    wr_item_drop_body(alloc, item);
    wr_client_free(alloc, item, sizeof *item);
}

bool wr_queue_is_empty(const struct wr_queue *q)
{
    return q->first == NULL;
}

bool wr_queue_is_over(const struct wr_queue *q)
{
    return q->count > q->max_count || q->bytes > q->max_bytes;
}

static void count_in(struct wr_queue *q, const struct wr_item *item)
{
    if (item->body) {
        q->count++;
        q->bytes += item->len;
    } else {
        q->stored++;
    }
}

static void count_out(struct wr_queue *q, const struct wr_item *item)
{
    if (item->body) {
        q->count--;
        q->bytes -= item->len;
    } else {
        q->stored--;
    }
}

void wr_queue_push(struct wr_queue *q, struct wr_item *item)
{
    item->next = NULL;
    if (q->last)
        q->last->next = item;
    else
        q->first = item;
    q->last = item;
    count_in(q, item);
}

void wr_queue_push_back(struct wr_queue *q, struct wr_item *item)
{
    item->next = q->first;
    q->first = item;
    if (!q->last)
        q->last = item;
    count_in(q, item);
}

static struct wr_item *take_out(struct wr_queue *q, struct wr_item *before)
{
    struct wr_item *const item = before ? before->next : q->first;
    if (!item)
        return NULL;
    if (before)
        before->next = item->next;
    else
        q->first = item->next;
    if (q->last == item)
        q->last = before;
    item->next = NULL;
    count_out(q, item);
    return item;
}

struct wr_item *wr_queue_pop(struct wr_queue *q)
{
    return take_out(q, NULL);
}

struct wr_item *wr_queue_pop_victim(struct wr_queue *q)
{
    struct wr_item *before = NULL;
    struct wr_item *before_oldest = NULL;
    bool found = false;
    for (struct wr_item *item = q->first; item; before = item, item = item->next) {
        if (!item->body)
            continue;
        if (item->low)
            return take_out(q, before);
        if (!found)
            before_oldest = before;
        found = true;
    }
    return found ? take_out(q, before_oldest) : NULL;
}

struct wr_item *wr_queue_oldest_in_memory(const struct wr_queue *q)
{
    struct wr_item *item = q->first;
    while (item && !item->body)
        item = item->next;
    return item;
}

void wr_queue_drop_body(struct wr_queue *q, struct wr_item *item)
{
    count_out(q, item);
    wr_item_drop_body(q->alloc, item);
    count_in(q, item);
}
