/* SPDX-License-Identifier: Apache-2.0 */
/*
 * texts: the bounded table behind weir_texts_intern(). Open addressing, at most half full; beside
 * it one mark for each slot of what was seen there last and not taken in. A string whose mark
 * stands is seen for the second time: most values of a tag with many never get that far.
 */
#include "base/hash.h"
#include "trace/text.h"
#include "trace/utf.h"
#include "wire/out.h"

#define DEFAULT_TEXTS 1024
#define MAX_TEXTS (UINT32_C(1) << 20)
#define DEFAULT_LEN 256
#define MAX_LEN ((uint32_t)1 << 20)

struct entry {
    struct weir_text *text; /* NULL: free */
    uint32_t hash;
    uint32_t used; /* since the last age */
};

struct weir_texts {
    struct weir_alloc alloc;
    uint64_t seed;
    uint32_t max_texts;
    uint32_t max_len;
    uint32_t count;
    uint32_t slots; /* a power of two, >= 2 * max_texts */
    struct entry *entries;
    uint32_t *marks;       /* hash of what was refused last, a slot */
    struct wr_out scratch; /* a string from UTF-16 */
};

static int read_opts(const struct weir_texts_opts *given, struct weir_texts_opts *ret)
{
    struct weir_texts_opts o = {.struct_size = sizeof o};
    if (given) {
        if (given->struct_size < sizeof given->struct_size)
            return WEIR_EINVAL;
        memcpy(&o, given, given->struct_size < sizeof o ? given->struct_size : sizeof o);
    }
    if (!o.max_texts)
        o.max_texts = DEFAULT_TEXTS;
    if (!o.max_len_bytes)
        o.max_len_bytes = DEFAULT_LEN;
    if (o.max_texts > MAX_TEXTS || o.max_len_bytes > MAX_LEN)
        return WEIR_EINVAL;
    *ret = o;
    return WEIR_OK;
}

int weir_texts_new(const struct weir_texts_opts *opts, struct weir_texts **ret_texts)
{
    if (!ret_texts)
        return WEIR_EINVAL;
    struct weir_texts_opts o;
    const int err = read_opts(opts, &o);
    if (err)
        return err;
    const struct weir_alloc alloc = wr_alloc_or_default(&o.alloc);
    struct weir_texts *const t = wr_alloc_zero(&alloc, sizeof *t);
    if (!t)
        return WEIR_ENOMEM;
    t->alloc = alloc;
    t->seed = (uint64_t)(uintptr_t)t; /* the loader's randomness; see seed_of in encoder.c */
    t->max_texts = o.max_texts;
    t->max_len = o.max_len_bytes;
    t->slots = (uint32_t)wr_pow2_ceil((size_t)2 * o.max_texts);
    wr_out_init(&t->scratch, &alloc, (size_t)3 * MAX_LEN);
    t->entries = wr_alloc_zero(&alloc, t->slots * sizeof *t->entries);
    t->marks = wr_alloc_zero(&alloc, t->slots * sizeof *t->marks);
    if (!t->entries || !t->marks) {
        weir_texts_free(t);
        return WEIR_ENOMEM;
    }
    *ret_texts = t;
    return WEIR_OK;
}

void weir_texts_free(struct weir_texts *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; t->entries && i < t->slots; i++)
        weir_text_free(t->entries[i].text);
    wr_out_done(&t->scratch);
    wr_free(&t->alloc, t->entries, t->slots * sizeof *t->entries);
    wr_free(&t->alloc, t->marks, t->slots * sizeof *t->marks);
    const struct weir_alloc alloc = t->alloc;
    wr_free(&alloc, t, sizeof *t);
}

/* The lowest bit is no part of the hash: it is always set, so that no hash is 0. */
static uint32_t home_of(const struct weir_texts *t, uint32_t hash)
{
    return hash >> 1 & (t->slots - 1);
}

/* Where b is, or the free slot where it would go; there always is one. */
static uint32_t slot_of(const struct weir_texts *t, struct weir_bytes b, uint32_t hash)
{
    for (uint32_t at = home_of(t, hash);; at = (at + 1) & (t->slots - 1)) {
        const struct entry *const entry = &t->entries[at];
        if (!entry->text)
            return at;
        if (entry->hash == hash && entry->text->len == b.len &&
            memcmp(wr_text_content(entry->text), b.ptr, b.len) == 0)
            return at;
    }
}

/* b's text; NULL: it is not in, and was not taken in. */
static struct weir_text *find_or_take(struct weir_texts *t, struct weir_bytes b)
{
    const uint32_t hash = (uint32_t)wr_hash(b.ptr, b.len, t->seed) | 1;
    const uint32_t at = slot_of(t, b, hash);
    struct entry *const entry = &t->entries[at];
    if (entry->text) {
        entry->used = 1;
        return entry->text;
    }
    uint32_t *const mark = &t->marks[home_of(t, hash)];
    if (*mark != hash) {
        *mark = hash;
        return NULL;
    }
    /* What is not well-formed would be looked for in vain: its text is another one. */
    if (t->count >= t->max_texts || !wr_utf8_ok(b.ptr, b.len) ||
        weir_text_new(&t->alloc, b.ptr, b.len, &entry->text) != WEIR_OK)
        return NULL;
    entry->hash = hash;
    entry->used = 1;
    *mark = 0;
    t->count++;
    return entry->text;
}

/* s as bytes; false: it is too long, or there is no memory for it. */
static bool bytes_of(struct weir_texts *t, struct weir_str s, struct weir_bytes *ret)
{
    *ret = (struct weir_bytes){.ptr = s.ptr, .len = s.len};
    if (s.kind == WEIR_STR_UTF8)
        return s.len <= t->max_len;
    if (s.kind != WEIR_STR_UTF16 || s.len > t->max_len)
        return false;
    wr_out_clear(&t->scratch);
    char *const at = wr_out_reserve(&t->scratch, (size_t)3 * s.len);
    if (!at)
        return false;
    uint64_t mended = 0;
    *ret = (struct weir_bytes){.ptr = at,
                               .len = (size_t)(wr_utf16_to_utf8(at, s.ptr, s.len, &mended) - at)};
    return ret->len <= t->max_len;
}

struct weir_str weir_texts_intern(struct weir_texts *t, struct weir_str s)
{
    struct weir_bytes b;
    if (!s.ptr || s.len == 0 || !bytes_of(t, s, &b))
        return s;
    const struct weir_text *const text = find_or_take(t, b);
    return text ? weir_str_text(text) : s;
}

/* Entries behind at may have been placed there because it was taken: they move up. */
static void remove_at(struct weir_texts *t, uint32_t at)
{
    const uint32_t mask = t->slots - 1;
    weir_text_free(t->entries[at].text);
    t->count--;
    uint32_t hole = at;
    for (uint32_t i = (at + 1) & mask; t->entries[i].text; i = (i + 1) & mask) {
        const uint32_t home = home_of(t, t->entries[i].hash);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            t->entries[hole] = t->entries[i];
            hole = i;
        }
    }
    t->entries[hole] = (struct entry){.text = NULL};
}

void weir_texts_age(struct weir_texts *t)
{
    for (uint32_t i = 0; i < t->slots;) {
        if (t->entries[i].text && !t->entries[i].used)
            remove_at(t, i); /* look again: another may have moved here */
        else
            i++;
    }
    for (uint32_t i = 0; i < t->slots; i++)
        t->entries[i].used = 0;
}

uint32_t weir_texts_count(const struct weir_texts *t)
{
    return t->count;
}
