/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_SCHEMA_H
#define WR_STATS_SCHEMA_H
/*
 * schema: which fields a key has, in which order, by which label each answers, and which attribute
 * names fill it (contracts: rows §2).
 *
 * Key bytes (docs/formats/key.md): a 64-bit little-endian mask of the fields that are present, then
 * for each of them, in order, a 16-bit little-endian length and the bytes. An empty field is
 * absent. So two keys are equal exactly when all their fields are. Never stored nor sent: the store
 * keeps labels.
 *
 * Threads: immutable once made.
 */
#include "base/alloc.h"

#include <weir/batch.h>
#include <weir/span.h>
#include <weir/stats.h>

enum wr_field {
    WR_FIELD_ENV = 0,
    WR_FIELD_SERVICE,
    WR_FIELD_OPERATION,
    WR_FIELD_RESOURCE,
    WR_FIELD_TYPE,
    WR_FIELD_KIND, /* one byte, '1'..'5' */
    WR_FIELD_HTTP_STATUS,
    WR_FIELD_HTTP_METHOD,
    WR_FIELD_HTTP_ROUTE,
    WR_FIELD_GRPC_STATUS,
    WR_FIELD_SYNTHETIC, /* "true" */
    WR_FIELD_BASE_SERVICE,
    WR_FIELD_FIXED
};
#define WR_FIELDS_MAX 64

/* Byte limits (contracts: wire §2.9; 200 is the agent's limit of a tag in stats). */
enum { WR_SHORT_MAX = 100, WR_RESOURCE_MAX = 5000, WR_TAG_MAX = 200 };

struct wr_schema {
    struct weir_alloc alloc;
    struct weir_tags *tags;
    size_t peers;      /* fields WR_FIELD_FIXED .. + peers */
    size_t dimensions; /* fields behind them */
    size_t fields;
    char *names[WR_FIELDS_MAX]; /* label names; own for peers and dimensions */
    size_t name_bytes[WR_FIELDS_MAX];
    uint8_t by_name[WR_FIELDS_MAX]; /* fields in the order of their label names */
};

int wr_schema_init(struct wr_schema *schema, const struct weir_stats_opts *opts);
void wr_schema_done(struct wr_schema *schema);

/* wr_labels_fn; ctx is a schema. */
size_t wr_schema_labels(const void *ctx, const char *key, size_t key_bytes,
                        struct weir_label *labels, size_t cap);
#endif
