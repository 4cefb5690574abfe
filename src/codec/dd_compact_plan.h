/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CODEC_DD_COMPACT_PLAN_H
#define WR_CODEC_DD_COMPACT_PLAN_H
/*
 * dd_compact_plan: which blocks the bins of one sign go into, in DDSketch's compact encoding; see
 * dd_compact_write.c, which writes them.
 *
 * Threads: any. Memory: none; a plan is some 40 KiB of its user's stack.
 */
#include "codec/dd_compact.h"
#include "codec/varfloats.h"

enum {
    SMALL_MAX = 2048, /* bins that are read once, for good: the default limit of a sketch */
    CHUNK = 256,      /* else so many at a time */
    RUNS_MAX = 64,
    LIST_MAX = 256
};

/* Bins [first, end) of the sign that is written. */
struct segment {
    int64_t first;
    int64_t end;
};

/* A bin that is used. */
struct bin {
    int64_t index;
    uint64_t weight;
};

/* The same with a count below FEW_END. */
struct few {
    uint16_t at; /* above lo */
    uint16_t count;
};

struct plan {
    const struct weir_sketch *sk;
    enum wr_bins_sign sign;
    int64_t lo;
    int64_t end;
    bool small;     /* all counts are in counts, and bits say what they are */
    uint64_t ones;  /* outside of runs: deltas of the block of ones */
    uint64_t pairs; /* and bins of the block of pairs */
    bool listed;    /* what is outside of runs is in list */
    bool gathers;   /* small counts outside of runs go to fews */
    bool few;       /* what is outside of runs is there */
    size_t list_n;  /* how many are there */
    size_t n;
    struct segment runs[RUNS_MAX];
    struct bin list[LIST_MAX];
    uint64_t weights[CHUNK]; /* of the stretch that is worked on */
    int64_t read_at;         /* of which bin the first one is, and how many there are */
    size_t read_n;
    uint64_t used[SMALL_MAX / 64];    /* of the small: a bit for each that is not 0 */
    uint64_t several[SMALL_MAX / 64]; /* and for each above 1 */
    uint16_t counts[SMALL_MAX];
    struct few fews[SMALL_MAX];
};

/* Which bins outside of runs are pairs. */
enum split { ALL_ONES, ALL_PAIRS, SPLIT };

enum { FEW_END = WR_VARFLOAT_TABLED, PAIR_LEAST = 3 };
_Static_assert(SMALL_MAX >= WR_BINS_FEW_SPAN, "the bins of a list are more");

/* Most are of one byte. */
WR_INLINE bool is_near(int64_t delta)
{
    return delta >= -64 && delta < 64;
}

WR_INLINE size_t varint_bytes(int64_t v)
{
    return is_near(v) ? 1 : wr_uvarint9_bytes(wr_codec_zigzag(v));
}

static inline size_t count_bytes(uint64_t weight)
{
    if (is_whole(weight) && weight >> 20 < WR_VARFLOAT_SHORT)
        return wr_varfloat_short((uint32_t)(weight >> 20)) >> 24;
    return wr_varfloat_bytes((double)weight * 0x1p-20);
}

/* A bin that a pair says in fewer bytes than ones do, or that ones cannot say. */
static inline bool suits_pair(uint64_t weight)
{
    return weight >= PAIR_LEAST * WEIR_WEIGHT_ONE || !is_whole(weight);
}

/* The bins outside of runs, one after the other. Begin with zero. */
struct outside {
    size_t run;   /* before which it is */
    bool is_open; /* at and end are set */
    int64_t at;
    int64_t end;
    size_t next; /* of the list */
};

/* The bins of one sign of sk; way says whether small counts are gathered. false: there is none. The
 * arrays are set as far as they are used. */
bool wr_compact_plan_bins(struct plan *p, const struct weir_sketch *sk, enum wr_bins_sign sign,
                          enum wr_compact_way way);
/* The same of a sketch that is a list of samples, where none of them is worth a run, and without a
 * look at what lies between them. false: it is no such sketch. */
bool wr_compact_plan_list(struct plan *p, const struct weir_sketch *sk);
/* Runs, and what goes where outside of them. */
enum split wr_compact_plan_blocks(struct plan *p);

/* The first bin of [at, end) that is not empty, end when all are, and its weight. */
int64_t wr_compact_next_used(struct plan *p, int64_t at, int64_t end, uint64_t *ret_weight);
/* false: there is no more. */
bool wr_compact_next_outside(struct plan *p, struct outside *o, struct bin *ret_bin);
#endif
