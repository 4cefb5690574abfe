/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_REGISTRY_H
#define WR_STATS_REGISTRY_H
/*
 * registry: what an instance has handed out and must be able to free: a list that any thread may
 * push to and mark in, and that only the owner takes from. No lock: a process that forks in the
 * middle of any of it leaves its child a list that is whole.
 *
 * Threads: push and mark any; sweep owner.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wr_listed {
    struct wr_listed *next; /* older */
    atomic_bool dead;
};

struct wr_registry {
    _Atomic(struct wr_listed *) first;
    _Atomic uint32_t count; /* in the list, dead or not */
    _Atomic uint32_t dead;
};

/* WEIR_EFULL: count is max. Count one in, before it is made; wr_registry_unclaim takes that back.
 */
int wr_registry_claim(struct wr_registry *r, uint32_t max);
void wr_registry_unclaim(struct wr_registry *r);
void wr_registry_push(struct wr_registry *r, struct wr_listed *item);
/* The item is not used again by who had it. */
void wr_registry_mark(struct wr_registry *r, struct wr_listed *item);
/* Is a sweep worth its walk? A quarter is dead, or nothing more can be claimed. */
bool wr_registry_is_due(const struct wr_registry *r, uint32_t max);
/* Take the dead out of the list and return them, linked by next. */
struct wr_listed *wr_registry_sweep(struct wr_registry *r);
#endif
