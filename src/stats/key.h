/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_KEY_H
#define WR_STATS_KEY_H
/* key: a span's fields as canonical key bytes (schema.h), built once, in place. */
#include "stats/schema.h"

/* What the fields' repair had to do. */
struct wr_key_notes {
    uint64_t repaired;
    uint64_t truncated;
    uint64_t bad_status;
};

/* No key of this span is longer; none is longer than WR_KEY_MAX. */
size_t wr_key_bound(const struct weir_span *span);
enum { WR_KEY_MAX = 8 + 2 * (2 + WR_RESOURCE_MAX) + (WR_FIELDS_MAX - 2) * (2 + WR_TAG_MAX) };

/*
 * Write the key of span at dst, which has room for wr_key_bound; returns its length.
 * *ret_service is where the service stands in it, for the comparison of neighbours in a trace.
 */
size_t wr_key_build(const struct wr_schema *schema, const struct weir_span *span,
                    struct weir_bytes lang, char *dst, struct weir_bytes *ret_service,
                    struct wr_key_notes *notes);

/* The key of the overflow row: every text field is the sentinel (contracts: span-stats §1.6). */
size_t wr_key_overflow(const struct wr_schema *schema, char *dst, size_t cap);
enum { WR_KEY_OVERFLOW_MAX = 8 + WR_FIELDS_MAX * 32 };
#endif
