/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_PIPELINE_MEMORY_H
#define AGENT_PIPELINE_MEMORY_H
/*
 * memory: rows that are not in the store yet, shown together with it as one source: a series that
 * is in both has the store's id in both.
 *
 * Series are told by their canonical labels (store/labels.h). One only in memory gets an id past
 * all of the store's, the same for every scan of this object.
 *
 * Threads: none inside. Memory: the labels of each series once, four bytes a row.
 */
#include "store/rows.h"
#include "store/store.h"

struct memory;
int memory_new(struct memory **ret_memory); /* 0 or -ENOMEM */
void memory_free(struct memory *m);         /* NULL is allowed */

enum memory_kind { MEMORY_SEALED, MEMORY_OPEN };
/* rows is copied, what stands behind it is borrowed until memory_free. 0 or -errno. */
int memory_add(struct memory *m, const struct store_rows *rows, enum memory_kind kind);
/* The store's rows (inside the reader's transaction), then those in memory. */
int memory_scan(struct memory *m, struct store_reader *reader, const struct query_select *select,
                const struct query_visitor *visitor);
#endif
