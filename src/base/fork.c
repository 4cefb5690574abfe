/* SPDX-License-Identifier: Apache-2.0 */
/* fork: see fork.h. A page of its own, so not from the allocator hook. */
#include "base/fork.h"

#include <stddef.h>
#include <sys/mman.h>

enum { WORD_MAP_BYTES = 4096 }; /* the kernel rounds up to its page */

struct wr_fork_word *wr_fork_word_new(void)
{
    void *const page =
        mmap(NULL, WORD_MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
#ifdef MADV_WIPEONFORK
    /* A kernel that does not know it leaves forks unseen, as the header says. */
    (void)madvise(page, WORD_MAP_BYTES, MADV_WIPEONFORK);
#endif
    return page;
}

void wr_fork_word_free(struct wr_fork_word *word)
{
    if (word)
        (void)munmap(word, WORD_MAP_BYTES);
}
