/* SPDX-License-Identifier: Apache-2.0 */
/* ignored: see ignored.h. */
#include "stats/ignored.h"

#include "base/bits.h"

/* The same order for both: shorter first. */
static int compare(struct weir_bytes a, struct weir_bytes b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return a.len ? memcmp(a.ptr, b.ptr, a.len) : 0;
}

/* The first that is not before text. */
static size_t place_of(const struct wr_ignored *set, struct weir_bytes text)
{
    size_t lo = 0;
    size_t hi = set->count;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (compare(set->texts[mid], text) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int wr_ignored_init(struct wr_ignored *set, const struct weir_alloc *alloc,
                    const char *const *texts, size_t count)
{
    *set = (struct wr_ignored){.alloc = alloc};
    size_t chars = 0;
    size_t bytes;
    if (count && !texts)
        return WEIR_EINVAL;
    for (size_t i = 0; i < count; i++) {
        if (!texts[i])
            return WEIR_EINVAL;
        chars += strlen(texts[i]);
    }
    if (!count)
        return WEIR_OK;
    if (wr_mul_size(count, sizeof *set->texts, &bytes) || wr_add_size(bytes, chars, &bytes))
        return WEIR_EINVAL;
    set->texts = wr_alloc(alloc, bytes);
    if (!set->texts)
        return WEIR_ENOMEM;
    set->bytes = bytes;
    char *copy = (char *)(set->texts + count);
    for (size_t i = 0; i < count; i++) {
        const struct weir_bytes text = {.ptr = copy, .len = strlen(texts[i])};
        memcpy(copy, texts[i], text.len);
        copy += text.len;
        const size_t at = place_of(set, text);
        memmove(set->texts + at + 1, set->texts + at, (set->count - at) * sizeof text);
        set->texts[at] = text;
        set->count++;
    }
    return WEIR_OK;
}

void wr_ignored_done(struct wr_ignored *set)
{
    if (set->texts)
        wr_free(set->alloc, set->texts, set->bytes);
    *set = (struct wr_ignored){0};
}

bool wr_ignored_has(const struct wr_ignored *set, struct weir_bytes text)
{
    const size_t at = place_of(set, text);
    return at < set->count && compare(set->texts[at], text) == 0;
}
