/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels: see labels.h. The map is open addressing over the stored hashes, at most half full; its
 * hash is seeded at random, as strangers choose the labels.
 */
#include "store/labels.h"

#include "plat/plat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

int store_buf_reserve(struct store_buf *buf, size_t bytes)
{
    if (bytes <= buf->cap)
        return 0;
    size_t cap = buf->cap ? buf->cap : 512;
    while (cap < bytes)
        cap *= 2;
    char *const ptr = malloc(cap);
    if (!ptr)
        return -ENOMEM;
    free(buf->ptr);
    *buf = (struct store_buf){.ptr = ptr, .cap = cap};
    return 0;
}

void store_buf_done(struct store_buf *buf)
{
    free(buf->ptr);
    *buf = (struct store_buf){0};
}

static int compare_bytes(struct weir_bytes a, struct weir_bytes b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int r = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return r ? r : (a.len > b.len) - (a.len < b.len);
}

static int compare_labels(const void *pa, const void *pb)
{
    const struct weir_label *const a = pa;
    const struct weir_label *const b = pb;
    const int r = compare_bytes(a->name, b->name);
    return r ? r : compare_bytes(a->value, b->value);
}

static void sort_labels(struct weir_label *labels, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (compare_labels(&labels[i - 1], &labels[i]) > 0) {
            qsort(labels, count, sizeof *labels, compare_labels);
            return;
        }
    }
}

/* A length below 2^28 takes at most 4 bytes. */
#define LENGTH_BYTES_MAX 4

static char *put_field(char *at, struct weir_bytes field)
{
    size_t len = field.len;
    for (; len >= 0x80; len >>= 7)
        *at++ = (char)(uint8_t)(len | 0x80);
    *at++ = (char)(uint8_t)len;
    if (field.len)
        memcpy(at, field.ptr, field.len);
    return at + field.len;
}

int store_labels_encode(struct store_buf *buf, struct weir_label *labels, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t name = labels[i].name.len;
        const size_t value = labels[i].value.len;
        if (name > STORE_LABELS_BYTES_MAX || value > STORE_LABELS_BYTES_MAX)
            return -E2BIG;
        bytes += name + value + 2 * (size_t)LENGTH_BYTES_MAX;
        if (bytes > STORE_LABELS_BYTES_MAX)
            return -E2BIG;
    }
    const int r = store_buf_reserve(buf, bytes ? bytes : 1);
    if (r)
        return r;
    sort_labels(labels, count);
    char *at = buf->ptr;
    for (size_t i = 0; i < count; i++)
        at = put_field(put_field(at, labels[i].name), labels[i].value);
    buf->len = (size_t)(at - buf->ptr);
    return 0;
}

static bool take_field(struct weir_bytes *rest, struct weir_bytes *ret_field)
{
    size_t len = 0;
    for (unsigned i = 0; i < LENGTH_BYTES_MAX && i < rest->len; i++) {
        const uint8_t b = (uint8_t)rest->ptr[i];
        len |= (size_t)(b & 0x7f) << (7 * i);
        if (b & 0x80)
            continue;
        if (rest->len - i - 1 < len)
            return false;
        *ret_field = (struct weir_bytes){rest->ptr + i + 1, len};
        rest->ptr += i + 1 + len;
        rest->len -= i + 1 + len;
        return true;
    }
    return false;
}

int store_labels_decode(struct weir_bytes form, struct weir_label *labels, size_t cap,
                        size_t *ret_count)
{
    size_t n = 0;
    while (form.len > 0) {
        if (n == cap || !take_field(&form, &labels[n].name) || !take_field(&form, &labels[n].value))
            return -EBADMSG;
        n++;
    }
    *ret_count = n;
    return 0;
}

uint64_t store_labels_hash(struct weir_bytes form)
{
    return XXH3_64bits(form.ptr, form.len);
}

#define CHUNK_BYTES ((size_t)64 << 10)

struct chunk {
    struct chunk *next;
    size_t used;
    size_t cap;
    char bytes[];
};

struct entry {
    uint64_t hash;
    struct weir_bytes form;
};

struct store_map {
    uint64_t seed;
    struct chunk *chunks;
    struct entry *entries; /* by number */
    size_t count;
    size_t entry_cap;
    uint32_t *slots; /* number + 1; 0 is empty */
    size_t slot_mask;
};

int store_map_new(struct store_map **ret_map)
{
    struct store_map *const m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->slot_mask = 63;
    m->slots = calloc(m->slot_mask + 1, sizeof *m->slots);
    if (!m->slots) {
        free(m);
        return -ENOMEM;
    }
    plat_random(&m->seed, sizeof m->seed);
    *ret_map = m;
    return 0;
}

void store_map_free(struct store_map *map)
{
    if (!map)
        return;
    for (struct chunk *c = map->chunks; c;) {
        struct chunk *const next = c->next;
        free(c);
        c = next;
    }
    free(map->entries);
    free(map->slots);
    free(map);
}

static size_t find_slot(const struct store_map *map, uint64_t hash, struct weir_bytes form)
{
    size_t at = (size_t)hash & map->slot_mask;
    for (; map->slots[at]; at = (at + 1) & map->slot_mask) {
        const struct entry *const e = &map->entries[map->slots[at] - 1];
        if (e->hash == hash && compare_bytes(e->form, form) == 0)
            break;
    }
    return at;
}

static int grow_slots(struct store_map *map)
{
    const size_t count = (map->slot_mask + 1) * 2;
    uint32_t *const slots = calloc(count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < map->count; i++) {
        size_t at = (size_t)map->entries[i].hash & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(map->slots);
    map->slots = slots;
    map->slot_mask = count - 1;
    return 0;
}

static int grow_entries(struct store_map *map)
{
    const size_t cap = map->entry_cap ? map->entry_cap * 2 : 64;
    struct entry *const entries = realloc(map->entries, cap * sizeof *entries);
    if (!entries)
        return -ENOMEM;
    map->entries = entries;
    map->entry_cap = cap;
    return 0;
}

/* Copies live as long as the map, so that entries may move and their bytes do not. */
static const char *keep(struct store_map *map, struct weir_bytes form)
{
    struct chunk *c = map->chunks;
    if (!c || c->cap - c->used < form.len) {
        const size_t cap = form.len > CHUNK_BYTES ? form.len : CHUNK_BYTES;
        c = malloc(sizeof *c + cap);
        if (!c)
            return NULL;
        *c = (struct chunk){.next = map->chunks, .cap = cap};
        map->chunks = c;
    }
    char *const at = c->bytes + c->used;
    if (form.len)
        memcpy(at, form.ptr, form.len);
    c->used += form.len;
    return at;
}

int64_t store_map_add(struct store_map *map, struct weir_bytes form)
{
    const uint64_t hash = XXH3_64bits_withSeed(form.ptr, form.len, map->seed);
    const size_t found = find_slot(map, hash, form);
    if (map->slots[found])
        return (int64_t)map->slots[found] - 1;
    if (map->count == map->entry_cap && grow_entries(map))
        return -ENOMEM;
    if ((map->count + 1) * 2 > map->slot_mask + 1 && grow_slots(map))
        return -ENOMEM;
    const char *const copy = keep(map, form);
    if (!copy)
        return -ENOMEM;
    const size_t number = map->count++;
    map->entries[number] = (struct entry){hash, {copy, form.len}};
    map->slots[find_slot(map, hash, form)] = (uint32_t)number + 1;
    return (int64_t)number;
}

int64_t store_map_find(const struct store_map *map, struct weir_bytes form)
{
    const uint64_t hash = XXH3_64bits_withSeed(form.ptr, form.len, map->seed);
    const uint32_t slot = map->slots[find_slot(map, hash, form)];
    return slot ? (int64_t)slot - 1 : -ENOENT;
}

size_t store_map_count(const struct store_map *map)
{
    return map->count;
}

struct weir_bytes store_map_get(const struct store_map *map, size_t number)
{
    return map->entries[number].form;
}
