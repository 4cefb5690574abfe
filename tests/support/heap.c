/* SPDX-License-Identifier: Apache-2.0 */
/* heap: an allocator that fails on demand, and the out-of-memory sweep. See t.h. */
#include "t.h"

#include <stdlib.h>

void *t_heap_fn(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    struct t_heap *const h = ctx;
    if (new_size == 0) {
        h->live -= (long long)old_size;
        free(ptr);
        return NULL;
    }
    const long number = h->seen++;
    if (h->fail_at >= 0 && (number == h->fail_at || (h->sticky && number > h->fail_at)))
        return NULL;
    void *const p = realloc(ptr, new_size);
    if (p)
        h->live += (long long)new_size - (ptr ? (long long)old_size : 0);
    return p;
}

void t_each_oom(t_oom_fn *body, void *ctx)
{
    for (int sticky = 0; sticky < 2; sticky++) {
        for (long n = 0;; n++) {
            struct t_heap h = {.fail_at = n, .sticky = sticky};
            const struct weir_alloc a = {t_heap_fn, &h};
            const int r = body(&a, ctx);
            if (h.live != 0)
                T_FAIL("allocation %ld refused (sticky %d): %lld bytes leaked", n, sticky, h.live);
            if (h.seen <= n) {
                if (r != WEIR_OK)
                    T_FAIL("failed with no allocation refused: %s", weir_strerror(r));
                break;
            }
            if (r != WEIR_OK && r != WEIR_ENOMEM)
                T_FAIL("allocation %ld refused gave %s", n, weir_strerror(r));
        }
    }
}
