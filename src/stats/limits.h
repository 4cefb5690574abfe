/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_LIMITS_H
#define WR_STATS_LIMITS_H
/*
 * limits: how many distinct values a field may have in a cycle (contracts: span-stats §1.6).
 *
 * Each limited field has a budget: a table of the values of this cycle and one of the cycle before.
 * A value is admitted while there is room, first come; past it the field is written as the
 * sentinel. What a cycle admitted stays as it is for exactly one more: a value that comes again is
 * taken over without an allocation, one that does not is freed.
 *
 * Threads: owner. Memory: two tables of at most 4 times the limit, 16 bytes each, made at the
 * start, and a block a value.
 */
#include "aggregate/shard.h"
#include "stats/folded.h"
#include "stats/key.h"
#include "stats/schemas.h"

struct wr_budget;

/* Of one schema. Fixed fields and dimensions have theirs from the first schema: those are the same
 * in all. */
struct wr_budgets {
    uint64_t limited;                    /* fields that have a budget */
    uint64_t own;                        /* of those, not the first's */
    struct wr_budget *at[WR_FIELDS_MAX]; /* by field */
    uint8_t by_limit[WR_FIELDS_MAX];     /* enum weir_limit of the field */
};

struct wr_limits {
    const struct wr_schemas *schemas;
    const struct weir_alloc *alloc;
    uint64_t seed;
    bool limited;                      /* any field is */
    uint32_t limits[WEIR_LIMIT_SLOTS]; /* resolved */
    struct wr_budgets *of[WR_EPOCHS];  /* by schema; but for the first, made when a key comes by */
    uint64_t collapsed[WEIR_LIMIT_SLOTS];
    struct wr_folded_values *folded[WEIR_LIMIT_COUNT]; /* NULL until there was any, or memory */
    char *key;                                         /* of WR_KEY_MAX, for a folded one */
};

/* limits are resolved: by enum weir_limit, WEIR_LIMIT_OFF or 1..WEIR_LIMIT_MAX. WEIR_ENOMEM. */
int wr_limits_init(struct wr_limits *l, const struct wr_schemas *schemas, const uint32_t *limits,
                   uint64_t seed);
void wr_limits_done(struct wr_limits *l);
/* These schemas, bits by number, are gone. */
void wr_limits_forget(struct wr_limits *l, uint32_t numbers);
/* wr_admit_fn, wr_cycle_fn; ctx is a struct wr_limits. */
int wr_limits_admit(void *ctx, const char *key, size_t key_bytes, uint64_t weight,
                    struct wr_folded *ret_folded);
void wr_limits_cycle(void *ctx);
#endif
