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
    uint64_t oversized;
};

/* No key of this span is longer; none is longer than WR_KEY_MAX. */
size_t wr_key_bound(const struct weir_span *span);
enum {
    WR_ENDPOINT_MAX = 8 * 20, /* eight segments of at most 19 bytes, see endpoint.c */
    WR_KEY_MAX = 8 + 2 * (2 + WR_RESOURCE_MAX) + (WR_FIELDS_MAX - 2) * (2 + WR_TAG_MAX) +
                 WR_CLIENT_DIMENSIONS * (WR_DIMENSION_MAX - WR_TAG_MAX)
};

/*
 * Write the key of span at dst, which has room for wr_key_bound; returns its length.
 * *ret_service is where the service stands in it, for the comparison of neighbours in a trace.
 */
size_t wr_key_build(const struct wr_schema *schema, const struct weir_span *span,
                    struct weir_bytes lang, char *dst, struct weir_bytes *ret_service,
                    struct wr_key_notes *notes);

/* The same for profile client (contracts: span-stats §1.2, §1.3, §1.7). */
size_t wr_key_build_client(const struct wr_schema *schema, const struct weir_span *span, char *dst,
                           struct weir_bytes *ret_service, struct wr_key_notes *notes);
/* What the slot says by case, else the span; other texts are of no kind, but a label. */
enum weir_kind wr_key_client_kind(const struct weir_span *span);
/* "server", ... of a kind; empty for none. */
struct weir_bytes wr_kind_text(enum weir_kind kind);

/* endpoint.c: the endpoint that a URL tells (contracts: span-stats §1.4). dst has room for
 * WR_ENDPOINT_MAX bytes; returns how many there are, at least one. */
size_t wr_endpoint_of_url(char *dst, const char *url, size_t len);
/* Put what the flags want of it into the field; true when they wanted it. */
struct wr_key_writer;
bool wr_key_put_inferred(struct wr_key_writer *w, enum wr_field field,
                         const struct wr_schema *schema, const struct weir_span *span);

/* The key of the overflow row: every text field is the sentinel (contracts: span-stats §1.6). */
size_t wr_key_overflow(const struct wr_schema *schema, char *dst, size_t cap);
enum { WR_KEY_OVERFLOW_MAX = 8 + WR_FIELDS_MAX * 32 };
#endif
