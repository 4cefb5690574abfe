/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_QUERY_SOURCE_FAKE_H
#define TESTS_QUERY_SOURCE_FAKE_H
/*
 * source_fake: arrays behind struct query_source, filled by durations, with the contract of
 * agent/query/source.h: windows by their end, a base of removed ones, open ones when asked.
 */
#include "query/source.h"

#define FAKE_SERIES_MAX 16
#define FAKE_WINDOWS_MAX 512
#define FAKE_LABELS_MAX 8

struct fake_window {
    size_t series;
    int64_t start_ns;
    int64_t end_ns;
    bool open;
    struct weir_row row;
};

struct fake_series {
    struct weir_label labels[FAKE_LABELS_MAX];
    size_t label_count;
    bool has_base;
    struct query_base base;
};

struct fake {
    struct fake_series series[FAKE_SERIES_MAX];
    size_t series_count;
    struct fake_window windows[FAKE_WINDOWS_MAX];
    size_t window_count;
    bool include_open;
    int fail_with; /* not 0: scan returns it */
    struct query_source source;
};

void fake_init(struct fake *f);
void fake_done(struct fake *f);
/* "name=value,..." sorted by name; the text must live on. Returns its index. */
size_t fake_add_series(struct fake *f, const char *labels);
/* An empty window of the series; add durations to it. */
struct fake_window *fake_add_window(struct fake *f, size_t series, int64_t start_s, int64_t end_s);
void fake_hit(struct fake_window *w, int64_t duration_ns, bool error, uint64_t weight);
/* What retention removed: count hits without error of one duration. */
void fake_set_base(struct fake *f, size_t series, int64_t duration_ns, uint64_t count);
#endif
