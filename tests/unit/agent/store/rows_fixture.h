/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROWS_FIXTURE_H
#define ROWS_FIXTURE_H
/* rows_fixture: batches made by hand, folders that go away, and a visitor that adds up. */
#include "store/internal.h"
#include "t.h"

#define FX_SECOND INT64_C(1000000000)
#define FX_T0 (INT64_C(1800000000) * FX_SECOND)

struct fx_row {
    char labels[256]; /* "name=value name=value", sorted */
    struct weir_row row;
    struct weir_sketch *ok;
    struct weir_sketch *error;
};
struct fx_batch {
    struct weir_batch_info info;
    struct fx_row *rows;
};
/* A window of 10 s that starts at T0 + 10 s * window. */
struct fx_batch *fx_batch_new(int64_t window);
void fx_batch_free(struct fx_batch *b);
/* ok spans and error spans, each of the duration. */
void fx_add(struct fx_batch *b, const char *labels, unsigned ok, unsigned error,
            int64_t duration_ns);
struct store_rows fx_rows(const struct fx_batch *b);

/* A folder under the temporary one, removed by fx_folder_free with what is in it. */
struct fx_folder {
    char path[128];
};
struct fx_folder fx_folder_new(void);
void fx_folder_free(const struct fx_folder *f);
bool fx_exists(const struct fx_folder *f, const char *name);
/* How many names begin with prefix and do not end in -wal or -shm; ret_name gets one. */
unsigned fx_count(const struct fx_folder *f, const char *prefix, char *ret_name, size_t cap);

/* Opens with the defaults; fails the test when it cannot. */
struct store *fx_open(const struct fx_folder *f);
void fx_write(struct store *s, const struct fx_batch *b, uint64_t number);

/* What a scan showed of one series. */
struct fx_seen {
    uint64_t id;
    char labels[256];
    uint64_t hits; /* of its windows */
    uint64_t errors;
    uint64_t top_level;
    unsigned windows;
    int64_t last_start_ns;
    int64_t last_end_ns;
    unsigned bases;
    int64_t created_ns;
    struct weir_u128 base_hits;
    struct weir_u128 base_errors;
    struct weir_sketch *ok; /* base and windows merged */
    struct weir_sketch *error;
};
struct fx_view {
    struct fx_seen *seen;
    size_t count;
    unsigned asked;
    const char *only; /* matches labels that contain it; NULL: all */
    int fail_after;   /* windows until the callback fails with -ECANCELED; 0: never */
    int windows;
};
void fx_view_clear(struct fx_view *v);
struct query_visitor fx_visitor(struct fx_view *v);
/* NULL when not shown. */
struct fx_seen *fx_find(struct fx_view *v, const char *labels);
/* base + windows. */
uint64_t fx_running(const struct fx_seen *s);
/* Scan all of the store with a fresh reader. */
void fx_scan_all(struct store *s, struct fx_view *v);
extern const struct query_select fx_all; /* every window, totals */
/* Two sketches hold the same. */
bool fx_same_sketch(const struct weir_sketch *a, const struct weir_sketch *b);
#endif
