/* SPDX-License-Identifier: Apache-2.0 */
/* rows: a batch behind the functions of rows.h. */
#include "store/store.h"

static size_t batch_labels(const void *ctx, size_t row, struct weir_label *labels, size_t cap)
{
    return weir_batch_get_labels(ctx, row, labels, cap);
}

static void batch_row(const void *ctx, size_t row, struct weir_row *ret_row)
{
    weir_batch_get_row(ctx, row, ret_row);
}

struct store_rows store_rows_of(const struct weir_batch *batch)
{
    struct store_rows rows = {.ctx = batch, .labels = batch_labels, .row = batch_row};
    weir_batch_get_info(batch, &rows.info);
    return rows;
}

int store_write(struct store *s, const struct weir_batch *batch, uint64_t number,
                struct store_error *ret_error)
{
    const struct store_rows rows = store_rows_of(batch);
    return store_write_rows(s, &rows, number, ret_error);
}
