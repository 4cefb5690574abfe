/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_BASE_FORK_H
#define WR_BASE_FORK_H
/*
 * fork: a word that a forked child finds zero: it lies in a page that the kernel wipes at fork
 * (MADV_WIPEONFORK, Linux 4.14). Elsewhere the child finds what its parent wrote.
 */
#include <stdatomic.h>
#include <stdint.h>

struct wr_fork_word {
    _Atomic uint64_t value;
};

/* NULL: no memory. The value is 0. */
struct wr_fork_word *wr_fork_word_new(void);
void wr_fork_word_free(struct wr_fork_word *word);
#endif
