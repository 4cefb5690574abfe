/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near: see near.h. The optimal string alignment distance, by the usual table of which three
 * rows are kept. Threads: any. Memory: the stack.
 */
#include "config/near.h"

#include <string.h>

#define NEAR_MAX 64

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t near_distance(const char *a, const char *b)
{
    size_t rows[3][NEAR_MAX + 1];
    const size_t na = strlen(a);
    const size_t nb = strlen(b);
    if (na > NEAR_MAX || nb > NEAR_MAX)
        return na > nb ? na : nb;
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *const row = rows[i % 3];
        const size_t *const above = rows[(i + 2) % 3];
        const size_t *const above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            const size_t differs = a[i - 1] != b[j - 1];
            row[j] = least(above[j - 1] + differs, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], above2[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

const char *near_find(const char *text, const char *const *names, size_t count)
{
    const char *found = NULL;
    size_t best = (size_t)-1;
    for (size_t i = 0; i < count; i++) {
        const size_t d = near_distance(text, names[i]);
        if (d < best) {
            best = d;
            found = names[i];
        }
    }
    /* A third of the name may be wrong, two letters always; a name of three shares nothing then. */
    const size_t n = strlen(text);
    return best <= (n / 3 > 2 ? n / 3 : 2) && best < n ? found : NULL;
}
