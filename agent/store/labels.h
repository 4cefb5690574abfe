/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_STORE_LABELS_H
#define AGENT_STORE_LABELS_H
/*
 * labels: the identity of a series as bytes, and a map from it.
 *
 * Canonical form: labels sorted by name, each a length-prefixed name and a length-prefixed value
 * (lengths as base-128 integers, low group first). No separators, so two label sets never share a
 * form. The hash only finds candidates; the whole bytes are compared.
 *
 * Threads: none inside. Memory: the C heap; a form has at most STORE_LABELS_BYTES_MAX bytes.
 */
#include <stdbool.h>
#include <weir/batch.h>

#define STORE_LABELS_BYTES_MAX ((size_t)1 << 20)

struct store_buf {
    char *ptr;
    size_t len;
    size_t cap;
};
/* Room for at least bytes; contents are not kept. 0 or -ENOMEM. */
int store_buf_reserve(struct store_buf *buf, size_t bytes);
void store_buf_done(struct store_buf *buf);

/* Replace buf by the canonical form. labels is sorted in place if it is not. 0, -ENOMEM,
 * -E2BIG (past STORE_LABELS_BYTES_MAX). */
int store_labels_encode(struct store_buf *buf, struct weir_label *labels, size_t count);
/* Labels of a canonical form, borrowed from it. -EBADMSG for other bytes or more than cap. */
int store_labels_decode(struct weir_bytes form, struct weir_label *labels, size_t cap,
                        size_t *ret_count);
/* XXH3 64 bit, seed 0: stored, so it never changes. */
uint64_t store_labels_hash(struct weir_bytes form);

/* map: canonical bytes (copied) to 0, 1, 2, ... in order of arrival. */
struct store_map;
int store_map_new(struct store_map **ret_map); /* 0 or -ENOMEM */
void store_map_free(struct store_map *map);    /* NULL is allowed */
/* The number of form, added if need be; -ENOMEM. */
int64_t store_map_add(struct store_map *map, struct weir_bytes form);
/* The number of form, or -ENOENT. */
int64_t store_map_find(const struct store_map *map, struct weir_bytes form);
size_t store_map_count(const struct store_map *map);
/* Borrowed until store_map_free. number < count. */
struct weir_bytes store_map_get(const struct store_map *map, size_t number);
#endif
