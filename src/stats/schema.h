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

#include <stdbool.h>

#include <weir/batch.h>
#include <weir/span.h>
#include <weir/stats.h>

enum wr_field {
    WR_FIELD_ENV = 0,
    WR_FIELD_SERVICE,
    WR_FIELD_OPERATION,
    WR_FIELD_RESOURCE,
    WR_FIELD_TYPE,
    WR_FIELD_KIND, /* one byte, '1'..'5'; profile client: its text */
    WR_FIELD_HTTP_STATUS,
    WR_FIELD_HTTP_METHOD,
    WR_FIELD_HTTP_ROUTE,
    WR_FIELD_GRPC_STATUS,
    WR_FIELD_SYNTHETIC, /* "true" */
    WR_FIELD_BASE_SERVICE,
    WR_FIELD_SERVICE_SOURCE, /* these three: profile client alone */
    WR_FIELD_TRACE_ROOT,     /* "true" or "false"; absent: not known */
    WR_FIELD_HTTP_ENDPOINT,
    WR_FIELD_FIXED
};
/* The three bits above them are the schema's number, see schemas.h. */
#define WR_FIELDS_MAX 61

/* Byte limits (contracts: wire §2.9; 200 is the agent's limit of a tag in stats). */
enum { WR_SHORT_MAX = 100, WR_RESOURCE_MAX = 5000, WR_TAG_MAX = 200 };
/* Of a client's dimensions: 200 UTF-16 units are at most so many bytes. */
enum { WR_DIMENSION_UNITS = 200, WR_DIMENSION_MAX = 600, WR_CLIENT_DIMENSIONS = 4 };

#define WR_SENTINEL "tracer_blocked_value" /* contracts: span-stats §1.6 */

struct wr_schema {
    struct weir_alloc alloc;
    struct weir_tags *tags;
    size_t peers;      /* fields WR_FIELD_FIXED .. + peers */
    size_t dimensions; /* fields behind them */
    size_t fields;
    uint64_t mark;              /* of keys with a peer tag or a dimension: number << 61 */
    unsigned number;            /* in its struct wr_schemas */
    bool plain;                 /* each peer tag is one name */
    bool client;                /* WEIR_PROFILE_CLIENT */
    uint32_t flags;             /* enum weir_stats_flag */
    uint64_t ignored;           /* dimensions that were left out */
    char *names[WR_FIELDS_MAX]; /* label names; own for peers and dimensions */
    size_t name_bytes[WR_FIELDS_MAX];
    size_t
        tags_bound; /* bytes that the names of all tags take besides the values, heads included */
    char *tags_text[WR_FIELDS_MAX]; /* peers and dimensions as the attribute is called; the same
                                       length */
    uint8_t by_name[WR_FIELDS_MAX]; /* fields in the order of their label names */
};

int wr_schema_init(struct wr_schema *schema, const struct weir_stats_opts *opts);
void wr_schema_done(struct wr_schema *schema);

/* The fields of a key; .ptr NULL: absent. */
void wr_schema_fields(const struct wr_schema *schema, const char *key, size_t key_bytes,
                      struct weir_bytes fields[WR_FIELDS_MAX]);
enum weir_kind wr_schema_kind(const struct wr_schema *schema, struct weir_bytes field);

size_t wr_schema_labels(const struct wr_schema *schema, const char *key, size_t key_bytes,
                        struct weir_label *labels, size_t cap);
#endif
