/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch: sealed rows. A batch copies the keys of its rows, since entries change on with their
 * owner, and owns the sketches that were in the slots. Objects are reused, capacity kept.
 */
#include "aggregate/shard.h"

enum { SPARE_BATCHES_MAX = 8 };

const char *weir_drop_name(enum weir_drop reason)
{
    static const char *const names[] = {
#define DROP_NAME(name, text) [WEIR_DROP_##name] = (text),
        WEIR_DROP_MAP(DROP_NAME)
#undef DROP_NAME
    };
    return (unsigned)reason < WEIR_DROP_COUNT ? names[reason] : "unknown";
}

void wr_batch_free(struct wr_shard *s, struct weir_batch *b)
{
    const struct weir_alloc *const a = &s->opts.alloc;
    wr_free(a, b->rows, b->rows_cap * sizeof *b->rows);
    wr_free(a, b->keys, b->keys_cap);
    wr_free(a, b, sizeof *b);
}

/* Both or neither: a batch that got half of what it needs would sit on memory that is short. It is
 * empty, so nothing is copied. */
static int batch_fit(struct wr_shard *s, struct weir_batch *b, size_t rows, size_t key_bytes)
{
    const struct weir_alloc *const a = &s->opts.alloc;
    struct wr_row *more_rows = NULL;
    char *more_keys = NULL;
    size_t bytes = 0;
    if (rows > b->rows_cap) {
        if (!wr_mul_size(rows, sizeof *b->rows, &bytes))
            more_rows = wr_alloc(a, bytes);
        if (!more_rows)
            return WEIR_ENOMEM;
    }
    if (key_bytes > b->keys_cap) {
        more_keys = wr_alloc(a, key_bytes);
        if (!more_keys) {
            wr_free(a, more_rows, bytes);
            return WEIR_ENOMEM;
        }
        wr_free(a, b->keys, b->keys_cap);
        b->keys = more_keys;
        b->keys_cap = key_bytes;
    }
    if (more_rows) {
        wr_free(a, b->rows, b->rows_cap * sizeof *b->rows);
        b->rows = more_rows;
        b->rows_cap = rows;
    }
    return WEIR_OK;
}

struct weir_batch *wr_batch_get(struct wr_shard *s, size_t rows, size_t key_bytes)
{
    struct weir_batch *b = s->spare_batches;
    if (b) {
        s->spare_batches = b->next;
        s->spare_batch_count--;
    } else {
        b = wr_alloc_zero(&s->opts.alloc, sizeof *b);
        if (!b)
            return NULL;
    }
    b->shard = s;
    b->generation = s->generation;
    b->next = NULL;
    b->info = (struct weir_batch_info){.for_ns = s->opts.window_for_ns, .shard = s->opts.number};
    b->keys_used = 0;
    b->epochs = 0;
    if (batch_fit(s, b, rows, key_bytes) != WEIR_OK) {
        wr_batch_recycle(s, b);
        return NULL;
    }
    return b;
}

struct weir_batch *wr_batch_get_spare(struct wr_shard *s, struct wr_entry *const *entries,
                                      size_t count, size_t *ret_from)
{
    struct weir_batch *const b = s->spare_batches;
    size_t rows = 0;
    size_t bytes = 0;
    while (b && rows < count && rows < b->rows_cap) {
        const size_t more = entries[count - rows - 1]->key_bytes;
        if (more > b->keys_cap - bytes)
            break;
        bytes += more;
        rows++;
    }
    if (!rows)
        return NULL;
    *ret_from = count - rows;
    return wr_batch_get(s, rows, bytes);
}

void wr_batch_add(struct weir_batch *b, struct wr_entry *e, const struct wr_slot *slot)
{
    WR_ASSERT(b->info.rows < b->rows_cap && b->keys_cap - b->keys_used >= e->key_bytes);
    const unsigned epoch = wr_key_epoch(wr_entry_key(e), e->key_bytes);
    b->shard->epoch_batches[epoch] += !(b->epochs >> epoch & 1);
    b->epochs |= (uint8_t)(1u << epoch);
    if (e->key_bytes)
        memcpy(b->keys + b->keys_used, wr_entry_key(e), e->key_bytes);
    b->rows[b->info.rows++] = (struct wr_row){.key_at = b->keys_used,
                                              .key_bytes = e->key_bytes,
                                              .hits = slot->hits,
                                              .errors = slot->errors,
                                              .top_level = slot->top_level,
                                              .ok = slot->ok,
                                              .error = slot->error};
    b->keys_used += e->key_bytes;
}

void wr_batch_recycle(struct wr_shard *s, struct weir_batch *b)
{
    for (size_t i = 0; i < b->info.rows; i++) {
        weir_sketch_pool_put(s->pool, b->rows[i].ok);
        weir_sketch_pool_put(s->pool, b->rows[i].error);
    }
    b->info.rows = 0;
    for (unsigned left = b->epochs; left; left &= left - 1)
        s->epoch_batches[__builtin_ctz(left)]--;
    b->epochs = 0;
    if (s->spare_batch_count >= SPARE_BATCHES_MAX) {
        wr_batch_free(s, b);
        return;
    }
    b->next = s->spare_batches;
    s->spare_batches = b;
    s->spare_batch_count++;
}

void wr_batch_reap(struct wr_shard *s)
{
    if (!atomic_load_explicit(&s->given_back, memory_order_relaxed))
        return;
    /* acquire: the last reader has finished with the batch. */
    struct weir_batch *b = atomic_exchange_explicit(&s->given_back, NULL, memory_order_acquire);
    while (b) {
        struct weir_batch *const next = b->next;
        if (b->generation == s->generation) /* else from before a fork */
            wr_batch_recycle(s, b);
        b = next;
    }
}

void weir_batch_release(struct weir_batch *batch)
{
    if (!batch)
        return;
    struct wr_shard *const s = batch->shard;
    batch->next = atomic_load_explicit(&s->given_back, memory_order_relaxed);
    /* release: this thread's reads come before the owner's reuse. */
    while (!atomic_compare_exchange_weak_explicit(&s->given_back, &batch->next, batch,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

void weir_batch_get_info(const struct weir_batch *batch, struct weir_batch_info *ret_info)
{
    *ret_info = batch->info;
}

void weir_batch_get_row(const struct weir_batch *batch, size_t row, struct weir_row *ret_row)
{
    WR_ASSERT(row < batch->info.rows);
    const struct wr_row *const r = &batch->rows[row];
    *ret_row = (struct weir_row){.hits = r->hits,
                                 .errors = r->errors,
                                 .top_level = r->top_level,
                                 .ok = r->ok,
                                 .error = r->error};
}

size_t weir_batch_get_labels(const struct weir_batch *batch, size_t row, struct weir_label *labels,
                             size_t cap)
{
    WR_ASSERT(row < batch->info.rows);
    const struct wr_row *const r = &batch->rows[row];
    const struct wr_shard_opts *const o = &batch->shard->opts;
    return o->labels(o->labels_ctx, batch->keys + r->key_at, r->key_bytes, labels, cap);
}
