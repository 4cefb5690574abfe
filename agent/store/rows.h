/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_STORE_ROWS_H
#define AGENT_STORE_ROWS_H
/*
 * rows: what can be written to the store and shown beside it: a batch, or anything that looks like
 * one. The library makes batches only from spans; tests make rows by hand.
 *
 * Threads: whatever stands behind the functions must be readable from the calling thread.
 */
#include <weir/batch.h>

struct store_rows {
    const void *ctx;
    struct weir_batch_info info;
    /* As weir_batch_get_labels and weir_batch_get_row. */
    size_t (*labels)(const void *ctx, size_t row, struct weir_label *labels, size_t cap);
    void (*row)(const void *ctx, size_t row, struct weir_row *ret_row);
};

/* A view of a batch; borrowed from it. */
struct store_rows store_rows_of(const struct weir_batch *batch);
#endif
