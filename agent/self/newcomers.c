/* SPDX-License-Identifier: Apache-2.0 */
/* newcomers: see newcomers.h. */
#include "self/newcomers.h"

/* Labels are UTF-8; what JSON cannot hold as it is, is escaped. */
static void put_string(struct self_text *t, struct weir_bytes b)
{
    self_text_puts(t, "\"");
    for (size_t i = 0; i < b.len; i++) {
        const unsigned char c = (unsigned char)b.ptr[i];
        if (c < 0x20)
            self_text_putf(t, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            self_text_putf(t, "\\%c", c);
        else
            self_text_put(t, b.ptr + i, 1);
    }
    self_text_puts(t, "\"");
}

static void put_labels(struct self_text *t, const struct weir_label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        self_text_puts(t, i ? "," : "");
        put_string(t, labels[i].name);
        self_text_puts(t, ":");
        put_string(t, labels[i].value);
    }
}

static void put_folded_top(const struct weir_stats *stats, enum weir_limit limit,
                           struct self_text *t)
{
    struct weir_folded f;
    for (size_t rank = 0; weir_stats_get_folded(stats, limit, rank, &f); rank++) {
        self_text_puts(t, rank ? ",{\"label\":" : "{\"label\":");
        put_string(t, f.name);
        self_text_puts(t, ",\"value\":");
        put_string(t, f.value);
        self_text_puts(t, ",\"hits_at_least\":");
        self_text_u64(t, f.hits_at_least / WEIR_WEIGHT_ONE);
        self_text_puts(t, ",\"hits_at_most\":");
        self_text_u64(t, f.hits_at_most / WEIR_WEIGHT_ONE);
        self_text_puts(t, "}");
    }
}

/* Of each field with a limit. */
static void put_folded(const struct weir_stats *stats, const struct weir_stats_health *h,
                       struct self_text *t)
{
    bool first = true;
    for (int i = 0; i < WEIR_LIMIT_COUNT; i++) {
        if (h->limits[i] == WEIR_LIMIT_OFF)
            continue;
        self_text_puts(t, first ? "\"" : ",\"");
        first = false;
        self_text_puts(t, weir_limit_name((enum weir_limit)i));
        self_text_puts(t, "\":{\"limit\":");
        self_text_u64(t, h->limits[i]);
        self_text_puts(t, ",\"spans\":");
        self_text_u64(t, h->collapsed[i]);
        self_text_puts(t, ",\"values\":");
        self_text_u64(t, h->folded[i]);
        self_text_puts(t, ",\"top\":[");
        put_folded_top(stats, (enum weir_limit)i, t);
        self_text_puts(t, "]}");
    }
}

void newcomers_write(const struct weir_stats *stats, struct self_text *t)
{
    struct weir_stats_health h;
    weir_stats_get_health(stats, &h);
    self_text_puts(t, "{\"keys\":");
    self_text_u64(t, h.newcomers);
    self_text_puts(t, ",\"displaced\":");
    self_text_u64(t, h.displaced);
    self_text_puts(t, ",\"top\":[");
    for (size_t rank = 0; rank < WEIR_NEWCOMERS_TOP; rank++) {
        struct weir_label labels[WEIR_LABELS_MAX];
        uint64_t hits = 0;
        const size_t count = weir_stats_get_newcomer(stats, rank, &hits, labels, WEIR_LABELS_MAX);
        if (count == 0)
            break;
        self_text_puts(t, rank ? ",{\"hits_at_least\":" : "{\"hits_at_least\":");
        self_text_u64(t, hits / WEIR_WEIGHT_ONE);
        self_text_puts(t, ",\"labels\":{");
        put_labels(t, labels, count);
        self_text_puts(t, "}}");
    }
    self_text_puts(t, "],\"folded\":{");
    put_folded(stats, &h, t);
    self_text_puts(t, "}}\n");
}
