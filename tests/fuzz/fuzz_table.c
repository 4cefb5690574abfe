/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_table: inserts, lookups, slots that come and go, expunging and failing allocations, beside
 * an array by key with the order in which keys became idle.
 *
 * Input: 1 byte the cap, 1 byte how many hashes there are, then operations.
 */
#include "fuzz.h"

#include "aggregate/table.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS = 1200, INPUT_MAX_BYTES = 768 };

struct key {
    struct wr_entry *entry; /* NULL: not in the table */
    bool live;
    uint64_t idle_since; /* in operations */
    int64_t last_start;
};

/* A key that became idle; stale when it is not idle, or since another time. */
struct mark {
    uint32_t number;
    uint64_t idle_since;
};

struct world {
    struct wr_table table;
    struct mark *marks; /* in order */
    size_t mark_first;
    size_t mark_count;
    size_t mark_cap;
    struct key keys[KEYS];
    size_t size;
    uint32_t hashes;
    uint64_t clock;
    size_t refuse_after; /* allocations; SIZE_MAX: none is refused */
    size_t live_bytes;
};

static void *heap_fn(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    struct world *const w = ctx;
    if (new_size > 0 && w->refuse_after != SIZE_MAX) {
        if (w->refuse_after == 0)
            return NULL;
        w->refuse_after--;
    }
    w->live_bytes += new_size;
    w->live_bytes -= ptr ? old_size : 0;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

/* Of 0 to 15 bytes, different for each number. */
static size_t key_bytes(uint32_t number, char dst[16])
{
    memset(dst, (int)(number & 0x7f), 16);
    memcpy(dst, &number, sizeof number);
    return number ? 4 + number % 12 : 0;
}

static uint64_t hash_of(const struct world *w, uint32_t number)
{
    /* Few hashes make long runs of equal ones; their low bits make runs cross the edge. */
    return (uint64_t)(number % w->hashes) * UINT64_C(0x9E3779B97F4A7C15) - 3;
}

static struct wr_entry *find(const struct world *w, uint32_t number)
{
    char bytes[16];
    const size_t n = key_bytes(number, bytes);
    return wr_table_find(&w->table, hash_of(w, number), bytes, n);
}

static void became_idle(struct world *w, uint32_t number)
{
    if (w->mark_count == w->mark_cap) {
        w->mark_cap = w->mark_cap ? 2 * w->mark_cap : 256;
        struct mark *const grown = realloc(w->marks, w->mark_cap * sizeof *grown);
        FZ_CHECK(grown != NULL);
        w->marks = grown;
    }
    w->keys[number].idle_since = ++w->clock;
    w->marks[w->mark_count++] = (struct mark){number, w->clock};
}

/* KEYS when none is. */
static uint32_t longest_idle(struct world *w)
{
    for (; w->mark_first < w->mark_count; w->mark_first++) {
        const struct mark *const m = &w->marks[w->mark_first];
        const struct key *const k = &w->keys[m->number];
        if (k->entry && !k->live && k->idle_since == m->idle_since)
            return m->number;
    }
    return KEYS;
}

static void op_insert(struct world *w, uint32_t number)
{
    struct key *const k = &w->keys[number];
    if (k->entry)
        return;
    char bytes[16];
    const size_t n = key_bytes(number, bytes);
    const uint32_t victim = w->size >= w->table.max ? longest_idle(w) : KEYS;
    struct wr_entry *e = NULL;
    const int r = wr_table_insert(&w->table, hash_of(w, number), bytes, n, &e);
    if (w->size >= w->table.max && victim == KEYS) {
        FZ_CHECK(r == WEIR_EFULL && !e);
        return;
    }
    if (r != WEIR_OK) {
        FZ_CHECK(r == WEIR_ENOMEM && !e && w->refuse_after == 0);
        return;
    }
    if (victim != KEYS) {
        w->keys[victim].entry = NULL;
        w->size--;
        FZ_CHECK(!find(w, victim));
    }
    *k = (struct key){.entry = e, .last_start = WR_NO_WINDOW};
    became_idle(w, number);
    w->size++;
}

static void op_touch(struct world *w, uint32_t number, int64_t start)
{
    struct key *const k = &w->keys[number];
    if (!k->entry || k->live)
        return;
    k->entry->slot.start_ns = start;
    k->entry->last_start_ns = start;
    wr_table_slot_added(&w->table, k->entry);
    k->live = true;
    k->last_start = start;
}

static void op_untouch(struct world *w, uint32_t number)
{
    struct key *const k = &w->keys[number];
    if (!k->entry || !k->live)
        return;
    k->entry->slot.start_ns = WR_NO_WINDOW;
    wr_table_slot_gone(&w->table, k->entry);
    k->live = false;
    became_idle(w, number);
}

/* From the longest idle on, up to the first whose window is not old enough. */
static void op_expunge(struct world *w, int64_t before)
{
    size_t count = 0;
    for (;;) {
        const uint32_t i = longest_idle(w);
        if (i == KEYS || w->keys[i].last_start >= before)
            break;
        w->keys[i].entry = NULL;
        w->size--;
        count++;
    }
    FZ_CHECK(wr_table_expunge(&w->table, before) == count);
}

static void expect(const struct world *w)
{
    FZ_CHECK(wr_table_check(&w->table) && w->table.size == w->size);
    for (uint32_t i = 0; i < KEYS; i++) {
        FZ_CHECK(find(w, i) == w->keys[i].entry);
        FZ_CHECK(!w->keys[i].entry || w->keys[i].entry->live == w->keys[i].live);
    }
}

static void op_insert_run(struct world *w, uint32_t number, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        op_insert(w, (number + i) % KEYS);
}

static void op(struct world *w, struct fz_in *in)
{
    const uint8_t code = fz_u8(in);
    const uint32_t number = (code & 0x10 ? fz_below(in, KEYS) : fz_u8(in)) % KEYS;
    switch (code & 15) {
    case 0:
        op_expunge(w, fz_u8(in));
        break;
    case 1:
        wr_table_bury(&w->table);
        break;
    case 2:
        w->refuse_after = fz_u8(in) % 8;
        break;
    case 3:
        w->refuse_after = SIZE_MAX;
        break;
    case 4:
        op_insert_run(w, number, fz_u8(in));
        break;
    case 5:
    case 6:
    case 7:
        op_untouch(w, number);
        break;
    case 8:
    case 9:
    case 10:
        op_touch(w, number, fz_u8(in));
        break;
    default:
        op_insert(w, number);
        break;
    }
    FZ_CHECK(find(w, number) == w->keys[number].entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size < INPUT_MAX_BYTES ? size : INPUT_MAX_BYTES);
    struct world *const w = calloc(1, sizeof *w);
    FZ_CHECK(w != NULL);
    w->refuse_after = SIZE_MAX;
    const struct weir_alloc alloc = {heap_fn, w};
    const uint8_t cap = fz_u8(&in);
    w->hashes = 1 + (uint32_t)fz_u8(&in) * 8;
    FZ_CHECK(wr_table_init(&w->table, &alloc, cap ? cap : KEYS) == WEIR_OK);
    while (in.left > 0)
        op(w, &in);
    expect(w);
    for (uint32_t i = 0; i < KEYS; i++)
        op_untouch(w, i);
    expect(w);
    wr_table_done(&w->table);
    FZ_CHECK(w->live_bytes == 0);
    free(w->marks);
    free(w);
    return 0;
}
