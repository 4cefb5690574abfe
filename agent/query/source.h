/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_SOURCE_H
#define AGENT_QUERY_SOURCE_H
/*
 * source: what the evaluator reads: series and the windows of each. The store, the batches that
 * wait for it and (include_open) the open windows stand behind it; tests put arrays behind it.
 *
 * A series is a row identity: its labels, without status_code and __name__ (the evaluator splits
 * each row in STATUS_CODE_ERROR and STATUS_CODE_UNSET and names the metrics).
 *
 * Threads: one evaluation uses a source on one thread; the source keeps what it shows stable
 * from open to close.
 */
#include <stdbool.h>
#include <weir/batch.h>

struct query_series {
    uint64_t id; /* the same for the same series while the source is open */
    /* Sorted by name; of a series that matched borrowed while the source is open, of another until
     * match returns. */
    const struct weir_label *labels;
    size_t label_count;
};

struct query_window {
    int64_t start_ns;
    int64_t end_ns;      /* the sample time of the window */
    struct weir_row row; /* borrowed during the call */
    /* Its sketches as the store has them, encoded, instead of row.ok and row.error: then those are
     * NULL. len 0: there is none. Borrowed too. */
    struct weir_bytes ok_form;
    struct weir_bytes error_form;
};

/* What retention removed and the time it begins; all zero where nothing was. */
struct query_base {
    int64_t created_ns;    /* start of the first window ever of the series */
    struct weir_row row;   /* totals of removed windows; borrowed during the call */
    struct weir_u128 hits; /* of the removed windows, units of 2^-20 */
    struct weir_u128 errors;
};

struct query_select {
    int64_t after_ns; /* windows with after_ns < end_ns <= until_ns; INT64_MIN: from the first */
    int64_t until_ns;
    bool totals; /* call base for each matching series before its windows */
    /* Windows that end by then may come summed, several of a series as one; 0: each by itself. */
    int64_t coarse_until_ns;
    bool counts_only; /* hits and errors suffice: a row's ok and error may be NULL all the same */
};

struct query_visitor {
    void *ctx;
    /* Does the series match? Asked once a series; false skips it. */
    bool (*match)(void *ctx, const struct query_series *series);
    int (*base)(void *ctx, const struct query_series *series, const struct query_base *base);
    /* Windows of one series come in any order; several may carry the same start: they add up. */
    int (*window)(void *ctx, const struct query_series *series, const struct query_window *window);
};

/* An open window's end lies ahead: it is visited, as if it ended at until_ns, when the source
 * includes open windows and its start < until_ns. 0, or what a callback returned, or -EIO. */
struct query_source {
    void *ctx;
    int (*scan)(void *ctx, const struct query_select *select, const struct query_visitor *visitor);
};
#endif
