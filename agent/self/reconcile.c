/* SPDX-License-Identifier: Apache-2.0 */
/* reconcile: see reconcile.h. Both sides of each equation are printed, so a reader can redo it. */
#include "self/reconcile.h"

static bool is_sum(uint64_t received, const uint64_t terms[3], const uint64_t *dropped)
{
    uint64_t sum = 0;
    bool wrapped = false;
    for (size_t i = 0; i < 3; i++)
        wrapped |= __builtin_add_overflow(sum, terms[i], &sum);
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        wrapped |= __builtin_add_overflow(sum, dropped[i], &sum);
    return !wrapped && sum == received;
}

bool reconcile_spans_balanced(const struct weir_window_counts *counts)
{
    const uint64_t terms[3] = {counts->aggregated, counts->ineligible, counts->partial};
    return is_sum(counts->received, terms, counts->dropped);
}

bool reconcile_weight_balanced(const struct weir_window_counts *counts)
{
    return counts->rows_weight == counts->admitted_weight &&
           counts->sketch_weight == counts->admitted_weight;
}

static bool process_balanced(const struct weir_stats_health *h)
{
    const uint64_t terms[3] = {h->aggregated, h->ineligible, h->partial};
    return is_sum(h->received, terms, h->dropped);
}

static const char *word(bool b)
{
    return b ? "true" : "false";
}

/* "key":v, */
static void put_u64(struct self_text *t, const char *key, uint64_t v)
{
    self_text_putf(t, "\"%s\":", key);
    self_text_u64(t, v);
    self_text_puts(t, ",");
}

static void put_i64(struct self_text *t, const char *key, int64_t v)
{
    self_text_putf(t, "\"%s\":", key);
    self_text_i64(t, v);
    self_text_puts(t, ",");
}

static void put_dropped(struct self_text *t, const uint64_t *dropped)
{
    self_text_puts(t, "\"dropped\":{");
    for (int i = 0; i < WEIR_DROP_COUNT; i++) {
        self_text_putf(t, "%s\"%s\":", i ? "," : "", weir_drop_name((enum weir_drop)i));
        self_text_u64(t, dropped[i]);
    }
    self_text_puts(t, "},");
}

static void put_process(struct self_text *t, const struct pipeline_health *h)
{
    self_text_puts(t, "\"process\":{");
    put_u64(t, "received", h->stats.received);
    put_u64(t, "aggregated", h->stats.aggregated);
    put_u64(t, "ineligible", h->stats.ineligible);
    put_u64(t, "partial", h->stats.partial);
    put_dropped(t, h->stats.dropped);
    put_u64(t, "late", h->stats.late);
    put_u64(t, "future", h->stats.future);
    put_u64(t, "overflow", h->stats.overflow);
    self_text_putf(t, "\"balanced\":%s},\"batches\":{", word(process_balanced(&h->stats)));
    put_u64(t, "sealed", h->batches_sealed);
    put_u64(t, "stored", h->batches_stored);
    put_u64(t, "pending", h->batches_pending);
    put_u64(t, "lost", h->batches_lost);
    put_u64(t, "lost_spans", h->lost_spans);
    self_text_puts(t, "\"lost_weight\":");
    self_text_u64(t, h->lost_weight);
    self_text_puts(t, "}");
}

static const char *state_of(const struct pipeline_window *w)
{
    if (w->info.flags & WEIR_BATCH_OPEN)
        return "open";
    if (w->lost)
        return "lost";
    return w->stored ? "stored" : "sealed";
}

static void put_window(struct self_text *t, const struct pipeline_window *w)
{
    const struct weir_window_counts *const c = &w->info.counts;
    const uint32_t flags = w->info.flags;
    self_text_puts(t, "{");
    put_i64(t, "start_ns", w->info.start_ns);
    put_i64(t, "for_ns", w->info.for_ns);
    put_u64(t, "shard", w->info.shard);
    self_text_putf(t, "\"state\":\"%s\",\"early\":%s,\"correction\":%s,\"cleared\":%s,",
                   state_of(w), word(flags & WEIR_BATCH_EARLY), word(flags & WEIR_BATCH_CORRECTION),
                   word(flags & WEIR_BATCH_CLEARED));
    put_u64(t, "rows", w->info.rows);
    self_text_puts(t, "\"spans\":{");
    put_u64(t, "received", c->received);
    put_u64(t, "aggregated", c->aggregated);
    put_u64(t, "ineligible", c->ineligible);
    put_u64(t, "partial", c->partial);
    put_dropped(t, c->dropped);
    put_u64(t, "late", c->late);
    put_u64(t, "future", c->future);
    put_u64(t, "overflow", c->overflow);
    self_text_putf(t, "\"balanced\":%s},\"weight\":{", word(reconcile_spans_balanced(c)));
    put_u64(t, "admitted", c->admitted_weight);
    put_u64(t, "rows", c->rows_weight);
    put_u64(t, "sketches", c->sketch_weight);
    self_text_putf(t, "\"balanced\":%s}}", word(reconcile_weight_balanced(c)));
}

void reconcile_write(const struct pipeline_health *health, const struct pipeline_window *windows,
                     size_t count, struct self_text *t)
{
    bool balanced = process_balanced(&health->stats);
    for (size_t i = 0; i < count; i++)
        balanced = balanced && reconcile_spans_balanced(&windows[i].info.counts) &&
                   reconcile_weight_balanced(&windows[i].info.counts);
    self_text_putf(t, "{\"balanced\":%s,\"weight_unit\":\"1/1048576 span\",", word(balanced));
    put_process(t, health);
    self_text_puts(t, ",\"windows\":[");
    for (size_t i = 0; i < count; i++) {
        self_text_puts(t, i ? ",\n" : "");
        put_window(t, &windows[i]);
    }
    self_text_puts(t, "]}\n");
}
