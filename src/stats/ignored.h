/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_IGNORED_H
#define WR_STATS_IGNORED_H
/* ignored: a set of resources, asked for each span that counts. Threads: immutable once made. */
#include "base/alloc.h"

#include <stdbool.h>

struct wr_ignored {
    const struct weir_alloc *alloc;
    struct weir_bytes *texts; /* sorted by length, then by bytes */
    size_t count;
    size_t bytes; /* of the block that texts begins */
};

/* Copies; NULL among them is WEIR_EINVAL. WEIR_ENOMEM. */
int wr_ignored_init(struct wr_ignored *set, const struct weir_alloc *alloc,
                    const char *const *texts, size_t count);
void wr_ignored_done(struct wr_ignored *set);
/* O(log n). */
bool wr_ignored_has(const struct wr_ignored *set, struct weir_bytes text);
#endif
