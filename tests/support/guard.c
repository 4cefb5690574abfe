/* SPDX-License-Identifier: Apache-2.0 */
/* guard: bytes that end flush against an unreadable page. See t.h. */
#include "t.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct t_guard t_guard_new(const void *bytes, size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t body = (n + page - 1) / page * page;
    struct t_guard g = {.map_bytes = body + page};
    g.map = mmap(NULL, g.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.map == MAP_FAILED || mprotect((char *)g.map + body, page, PROT_NONE) != 0)
        T_FAIL("no guard page");
    uint8_t *const at = (uint8_t *)g.map + body - n;
    if (n)
        memcpy(at, bytes, n);
    g.ptr = at;
    return g;
}

void t_guard_free(struct t_guard *g)
{
    (void)munmap(g->map, g->map_bytes);
    g->map = NULL;
}
