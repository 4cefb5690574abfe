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
    self_text_puts(t, "]}\n");
}
