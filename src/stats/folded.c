/* SPDX-License-Identifier: Apache-2.0 */
/* folded: see folded.h. */
#include "stats/folded.h"

#include "base/hll.h"

#include <string.h>

static size_t home_of(uint64_t hash)
{
    return (size_t)(hash >> 8) & (WR_FOLDED_INDEX - 1);
}

static size_t next_of(size_t i)
{
    return (i + 1) & (WR_FOLDED_INDEX - 1);
}

/* Where the hash is in the index, or the free place where it would go. At most a quarter of the
 * places are taken. */
static size_t place_of(const struct wr_folded_values *v, uint64_t hash)
{
    size_t i = home_of(hash);
    while (v->index[i] && v->at[v->index[i] - 1].hash != hash)
        i = next_of(i);
    return i;
}

/* Take a place out; those behind it that stood further on because of it move up. */
static void index_remove(struct wr_folded_values *v, size_t hole)
{
    for (size_t i = next_of(hole); v->index[i]; i = next_of(i)) {
        const size_t home = home_of(v->at[v->index[i] - 1].hash);
        const size_t from_home = (i - home) & (WR_FOLDED_INDEX - 1);
        const size_t from_hole = (i - hole) & (WR_FOLDED_INDEX - 1);
        if (from_home < from_hole)
            continue;
        v->index[hole] = v->index[i];
        hole = i;
    }
    v->index[hole] = 0;
}

static void find_least(struct wr_folded_values *v)
{
    v->least = UINT64_MAX;
    for (size_t i = 0; i < WR_FOLDED_SLOTS; i++) {
        if (v->counts[i] < v->least)
            v->least = v->counts[i];
    }
    v->cursor = 0;
}

/* A counter of the least count. */
static size_t least_of(struct wr_folded_values *v)
{
    for (;;) {
        for (; v->cursor < WR_FOLDED_SLOTS; v->cursor++) {
            if (v->counts[v->cursor] == v->least)
                return v->cursor;
        }
        find_least(v);
    }
}

static void raise(struct wr_folded_values *v, size_t which, uint64_t weight)
{
    uint64_t count;
    if (__builtin_add_overflow(v->at[which].count, weight, &count))
        count = UINT64_MAX;
    v->at[which].count = count;
    v->counts[which] = count;
}

static size_t take(struct wr_folded_values *v, uint64_t hash)
{
    size_t which;
    if (v->used < WR_FOLDED_SLOTS) {
        which = v->used++;
        v->at[which].count = 0;
        if (v->used == WR_FOLDED_SLOTS)
            v->cursor = WR_FOLDED_SLOTS; /* the least is not known yet */
    } else {
        which = least_of(v);
        index_remove(v, place_of(v, v->at[which].hash));
    }
    v->at[which].over = v->at[which].count;
    v->at[which].hash = hash;
    v->index[place_of(v, hash)] = (uint8_t)(which + 1);
    return which;
}

void wr_folded_add(struct wr_folded_values *v, uint64_t hash, unsigned epoch, size_t field,
                   const char *text, size_t len, uint64_t weight)
{
    if (v->ended) {
        memset(v, 0, sizeof *v);
    }
    wr_hll_add(v->registers, WR_FOLDED_BITS, hash);
    const size_t place = place_of(v, hash);
    if (v->index[place]) {
        raise(v, v->index[place] - 1u, weight);
        return;
    }
    const size_t which = take(v, hash);
    struct wr_folded_value *const f = &v->at[which];
    f->field = (uint8_t)field;
    f->epoch = (uint8_t)epoch;
    f->bytes = (uint16_t)(len < WR_FOLDED_TEXT_MAX ? len : WR_FOLDED_TEXT_MAX);
    while (f->bytes < len && f->bytes > 0 && ((unsigned char)text[f->bytes] & 0xc0) == 0x80)
        f->bytes--; /* between characters */
    memcpy(f->text, text, f->bytes);
    raise(v, which, weight);
}

void wr_folded_cycle(struct wr_folded_values *v)
{
    v->ended = 1;
}

uint64_t wr_folded_distinct(const struct wr_folded_values *v)
{
    return wr_hll_estimate(v->registers, WR_FOLDED_BITS);
}

const struct wr_folded_value *wr_folded_top(const struct wr_folded_values *v, size_t rank)
{
    for (size_t i = 0; i < v->used; i++) {
        const uint64_t sure = v->at[i].count - v->at[i].over;
        size_t above = 0; /* surer, or as sure and earlier */
        for (size_t k = 0; k < v->used; k++) {
            const uint64_t other = v->at[k].count - v->at[k].over;
            above += other > sure || (k < i && other == sure);
        }
        if (above == rank)
            return &v->at[i];
    }
    return NULL;
}
