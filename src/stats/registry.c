/* SPDX-License-Identifier: Apache-2.0 */
/* registry: see registry.h. */
#include "stats/registry.h"

#include <stddef.h>
#include <weir/base.h>

int wr_registry_claim(struct wr_registry *r, uint32_t max)
{
    uint32_t count = atomic_load_explicit(&r->count, memory_order_relaxed);
    do {
        if (count >= max)
            return WEIR_EFULL;
    } while (!atomic_compare_exchange_weak_explicit(&r->count, &count, count + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    return WEIR_OK;
}

void wr_registry_unclaim(struct wr_registry *r)
{
    atomic_fetch_sub_explicit(&r->count, 1, memory_order_relaxed);
}

void wr_registry_push(struct wr_registry *r, struct wr_listed *item)
{
    item->next = atomic_load_explicit(&r->first, memory_order_relaxed);
    /* release: the item is whole. */
    while (!atomic_compare_exchange_weak_explicit(&r->first, &item->next, item,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

void wr_registry_mark(struct wr_registry *r, struct wr_listed *item)
{
    /* release: whatever its holders did with it, or committed by it, was done before. */
    atomic_store_explicit(&item->dead, true, memory_order_release);
    atomic_fetch_add_explicit(&r->dead, 1, memory_order_relaxed);
}

bool wr_registry_is_due(const struct wr_registry *r, uint32_t max)
{
    const uint32_t dead = atomic_load_explicit(&r->dead, memory_order_relaxed);
    if (dead == 0)
        return false;
    const uint32_t count = atomic_load_explicit(&r->count, memory_order_relaxed);
    return dead >= count / 4 || count >= max;
}

/* acquire: pairs with the mark. */
static bool is_dead(const struct wr_listed *item)
{
    return atomic_load_explicit(&item->dead, memory_order_acquire);
}

/* The newest, if it is dead. Only here is anything taken from the head, so the exchange fails for a
 * push alone. */
static struct wr_listed *take_first(struct wr_registry *r)
{
    /* acquire: pairs with the push. */
    struct wr_listed *first = atomic_load_explicit(&r->first, memory_order_acquire);
    while (first && is_dead(first)) {
        if (atomic_compare_exchange_weak_explicit(&r->first, &first, first->next,
                                                  memory_order_acquire, memory_order_acquire))
            return first;
    }
    return NULL;
}

struct wr_listed *wr_registry_sweep(struct wr_registry *r)
{
    struct wr_listed *taken = NULL;
    uint32_t count = 0;
    for (struct wr_listed *item; (item = take_first(r)) != NULL; count++) {
        item->next = taken;
        taken = item;
    }
    /* Behind the newest the list is the owner's alone. */
    struct wr_listed *before = atomic_load_explicit(&r->first, memory_order_acquire);
    while (before && before->next) {
        struct wr_listed *const item = before->next;
        if (!is_dead(item)) {
            before = item;
            continue;
        }
        before->next = item->next;
        item->next = taken;
        taken = item;
        count++;
    }
    atomic_fetch_sub_explicit(&r->dead, count, memory_order_relaxed);
    atomic_fetch_sub_explicit(&r->count, count, memory_order_relaxed);
    return taken;
}
