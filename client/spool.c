/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool: see spool.h. A file:
 *
 *   8  "weirspl1"
 *   8  sum of all that follows it: FNV-1a, 64 bits, least byte first
 *   8  bytes of the body, least first
 *   8  bytes of the key
 *      key, body
 */
#include "spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 32, SUM_AT = 8, SUMMED_AT = 16, NAME_BYTES = 24, FILES_MAX = 4096 };
enum { DIGITS = 16 };
static const char magic[8] = "weirspl1";
static const char suffix[] = ".stats";
static const char part_name[] = "part"; /* a file that is being written */

static void put64(unsigned char *dst, uint64_t n)
{
    for (int i = 0; i < 8; i++)
        dst[i] = (unsigned char)(n >> (8 * i));
}

static uint64_t get64(const unsigned char *src)
{
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)src[i] << (8 * i);
    return n;
}

#if defined(__clang__)
__attribute__((no_sanitize("unsigned-integer-overflow")))
#endif
static uint64_t
sum_of(const unsigned char *bytes, size_t n)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void name_of(uint64_t id, char dst[NAME_BYTES])
{
    for (int i = 0; i < DIGITS; i++)
        dst[i] = "0123456789abcdef"[(id >> (4 * (DIGITS - 1 - i))) & 15u];
    memcpy(dst + DIGITS, suffix, sizeof suffix);
}

/* 0: not the name of a file of ours. */
static uint64_t id_of(const char *name)
{
    uint64_t id = 0;
    if (strlen(name) != DIGITS + sizeof suffix - 1 || strcmp(name + DIGITS, suffix) != 0)
        return 0;
    for (int i = 0; i < DIGITS; i++) {
        const char c = name[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return 0;
        id = id << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return id;
}

static int lock_folder(struct wr_spool *s)
{
    s->lock_fd = openat(s->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock_fd < 0)
        return WEIR_ERANGE;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(s->lock_fd, F_SETLK, &whole) == 0)
        return WEIR_OK;
    return errno == EACCES || errno == EAGAIN ? WEIR_EBUSY : WEIR_ERANGE;
}

int wr_spool_open(struct wr_spool *s, const char *path)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return WEIR_ERANGE;
    s->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder < 0)
        return WEIR_ERANGE;
    s->next_id = 1;
    const int err = lock_folder(s);
    if (err)
        wr_spool_close(s);
    return err;
}

void wr_spool_close(struct wr_spool *s)
{
    if (s->lock_fd >= 0)
        (void)close(s->lock_fd);
    if (s->folder >= 0)
        (void)close(s->folder);
    s->lock_fd = -1;
    s->folder = -1;
}

void wr_spool_forget(struct wr_spool *s)
{
    /* A child's copies of the descriptors hold no lock; closing them gives none up. */
    wr_spool_close(s);
    s->bytes = 0;
}

static bool write_all(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        const ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

static bool read_all(int fd, void *dst, size_t n)
{
    char *at = dst;
    while (n > 0) {
        const ssize_t done = read(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

/* The whole file in one block; the body begins behind the key. */
static void fill(unsigned char *block, const struct wr_item *item, size_t key_len)
{
    memcpy(block, magic, sizeof magic);
    put64(block + SUMMED_AT, item->len);
    put64(block + SUMMED_AT + 8, key_len);
    memcpy(block + HEAD_BYTES, item->key, key_len);
    memcpy(block + HEAD_BYTES + key_len, item->body, item->len);
    const size_t size = HEAD_BYTES + key_len + item->len;
    put64(block + SUM_AT, sum_of(block + SUMMED_AT, size - SUMMED_AT));
}

static bool write_file(const struct wr_spool *s, const char *name, const void *block, size_t size)
{
    const int fd =
        openat(s->folder, part_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    bool ok = write_all(fd, block, size) && fsync(fd) == 0;
    ok = close(fd) == 0 && ok;
    ok = ok && renameat(s->folder, part_name, s->folder, name) == 0;
    if (!ok)
        (void)unlinkat(s->folder, part_name, 0);
    else
        (void)fsync(s->folder);
    return ok;
}

bool wr_spool_write(struct wr_spool *s, struct wr_item *item)
{
    const size_t key_len = strlen(item->key);
    const size_t size = HEAD_BYTES + key_len + item->len;
    if (s->folder < 0 || !item->body || s->bytes > s->max_bytes || size > s->max_bytes - s->bytes)
        return false;
    unsigned char *const block = wr_client_alloc(s->alloc, size);
    if (!block)
        return false;
    fill(block, item, key_len);
    char name[NAME_BYTES];
    name_of(s->next_id, name);
    const bool ok = write_file(s, name, block, size);
    wr_client_free(s->alloc, block, size);
    if (ok) {
        item->spool_id = s->next_id++;
        s->bytes += size;
    }
    return ok;
}

static bool is_head(const unsigned char head[HEAD_BYTES], uint64_t file_bytes, size_t *ret_body,
                    size_t *ret_key)
{
    const uint64_t body = get64(head + SUMMED_AT);
    const uint64_t key = get64(head + SUMMED_AT + 8);
    if (memcmp(head, magic, sizeof magic) != 0 || key >= WR_KEY_BYTES || body >= file_bytes ||
        file_bytes != HEAD_BYTES + key + body)
        return false;
    *ret_body = (size_t)body;
    *ret_key = (size_t)key;
    return true;
}

/* Read a file into item: its key, and its body when wanted; whatever is wrong with it gives false.
 */
static bool read_file(struct wr_spool *s, const char *name, struct wr_item *item)
{
    const int fd = openat(s->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    unsigned char head[HEAD_BYTES];
    size_t body = 0;
    size_t key = 0;
    if (fd < 0)
        return false;
    bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= HEAD_BYTES &&
              (uint64_t)st.st_size <= s->max_bytes && read_all(fd, head, sizeof head) &&
              is_head(head, (uint64_t)st.st_size, &body, &key);
    const size_t size = (size_t)(ok ? st.st_size : 1);
    unsigned char *const block = ok ? wr_client_alloc(s->alloc, size) : NULL;
    ok = block && read_all(fd, block + HEAD_BYTES, size - HEAD_BYTES);
    (void)close(fd);
    if (ok) {
        memcpy(block, head, sizeof head);
        ok = sum_of(block + SUMMED_AT, size - SUMMED_AT) == get64(head + SUM_AT);
    }
    if (ok) {
        const struct weir_bytes bytes = {(const char *)block + HEAD_BYTES + key, body};
        item->body = wr_client_copy(s->alloc, bytes);
        item->len = body;
        memcpy(item->key, block + HEAD_BYTES, key);
        item->key[key] = 0;
        ok = item->body != NULL;
    }
    wr_client_free(s->alloc, block, size);
    return ok;
}

bool wr_spool_read(struct wr_spool *s, struct wr_item *item)
{
    char name[NAME_BYTES];
    if (s->folder < 0 || item->spool_id == 0)
        return false;
    name_of(item->spool_id, name);
    return read_file(s, name, item);
}

void wr_spool_remove(struct wr_spool *s, struct wr_item *item)
{
    char name[NAME_BYTES];
    if (s->folder < 0 || item->spool_id == 0)
        return;
    name_of(item->spool_id, name);
    (void)unlinkat(s->folder, name, 0);
    const uint64_t size = HEAD_BYTES + strlen(item->key) + item->len;
    s->bytes -= size < s->bytes ? size : s->bytes;
    item->spool_id = 0;
}

/* Numbers of the files, as they come; at most cap. */
static size_t list(const struct wr_spool *s, uint64_t *ids, size_t cap)
{
    const int fd = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const dir = fd < 0 ? NULL : fdopendir(fd);
    size_t count = 0;
    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return 0;
    }
    for (const struct dirent *e = readdir(dir); e && count < cap; e = readdir(dir)) {
        const uint64_t id = id_of(e->d_name);
        if (id)
            ids[count++] = id;
    }
    (void)closedir(dir);
    return count;
}

static void sort(uint64_t *ids, size_t count)
{
    for (size_t i = 1; i < count; i++) { /* few, and mostly in order */
        const uint64_t id = ids[i];
        size_t at = i;
        for (; at > 0 && ids[at - 1] > id; at--)
            ids[at] = ids[at - 1];
        ids[at] = id;
    }
}

/* WEIR_EFORMAT: the file is of no use and removed. */
static int load_one(struct wr_spool *s, struct wr_queue *q, uint64_t id)
{
    char name[NAME_BYTES];
    struct wr_item *const item = wr_client_alloc(s->alloc, sizeof *item);
    if (!item)
        return WEIR_ENOMEM;
    name_of(id, name);
    if (!read_file(s, name, item)) {
        wr_item_free(s->alloc, item);
        (void)unlinkat(s->folder, name, 0);
        return WEIR_EFORMAT;
    }
    wr_item_drop_body(s->alloc, item);
    item->spool_id = id;
    item->tries = 1; /* it was sent before, by another process */
    s->bytes += HEAD_BYTES + strlen(item->key) + item->len;
    wr_queue_push(q, item);
    return WEIR_OK;
}

int wr_spool_load(struct wr_spool *s, struct wr_queue *q, size_t *ret_count, size_t *ret_bad)
{
    const size_t size = FILES_MAX * sizeof(uint64_t);
    uint64_t *const ids = wr_client_alloc(s->alloc, size);
    int err = WEIR_OK;
    if (!ids)
        return WEIR_ENOMEM;
    (void)unlinkat(s->folder, part_name, 0);
    const size_t count = list(s, ids, FILES_MAX);
    sort(ids, count);
    for (size_t i = 0; i < count && !err; i++) {
        err = load_one(s, q, ids[i]);
        if (err == WEIR_OK)
            ++*ret_count;
        else if (err == WEIR_EFORMAT) {
            ++*ret_bad;
            err = WEIR_OK;
        }
        if (ids[i] >= s->next_id && ids[i] < UINT64_MAX)
            s->next_id = ids[i] + 1;
    }
    wr_client_free(s->alloc, ids, size);
    return err;
}
