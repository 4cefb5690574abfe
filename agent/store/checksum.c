/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checksum: each page of weir.db carries a checksum, so that a bit that rotted on the disk is
 * found when its page is read, and never becomes an answer.
 *
 * A layer between SQLite and its file system (a VFS) that sees only the main file. The last 8 bytes
 * of a page are reserved in SQLite's format (byte 20 of the header says so); a write puts XXH3 of
 * the rest there, seeded by the page's number, and a read compares. SQLite itself sees zeros there,
 * so the write-ahead log, which has checksums of its own, holds zeros too; a page that another
 * program folded in from the log (sqlite3 after a crash of ours) has zeros and goes unchecked
 * until we write it again. A file without the reserve, of an older weir, is passed through.
 *
 * A mismatch is SQLITE_CORRUPT, and what holds for corrupt files holds then.
 *
 * Threads: a file belongs to its connection. Memory: one page a connection.
 */
#include "store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    HEADER_BYTES = 100,
    PAGE_SIZE_AT = 16,
    RESERVE_AT = 20,
    SUM_BYTES = 8,
    PAGE_BYTES_MIN = 512
};

static const char magic[16] = "SQLite format 3";

/* Stands before the file of the VFS below, in memory that SQLite gives. */
struct checked {
    sqlite3_file base;
    sqlite3_file *below;
    uint8_t *page;  /* scratch; NULL while page_bytes is 0 */
    int page_bytes; /* 0: not known yet, or not to be checked */
    bool is_damaged;
};

static sqlite3_file *below_of(sqlite3_file *f)
{
    return ((struct checked *)f)->below;
}

static uint64_t sum_of(const uint8_t *page, int bytes, int64_t number)
{
    const uint64_t h = XXH3_64bits_withSeed(page, (size_t)(bytes - SUM_BYTES), (uint64_t)number);
    return h ? h : 1; /* 0 stands for none */
}

static uint64_t get_sum(const uint8_t *page, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < SUM_BYTES; i++)
        v |= (uint64_t)page[bytes - SUM_BYTES + i] << (8 * i);
    return v;
}

static void put_sum(uint8_t *page, int bytes, uint64_t v)
{
    for (int i = 0; i < SUM_BYTES; i++)
        page[bytes - SUM_BYTES + i] = (uint8_t)(v >> (8 * i));
}

/* The size that a header names; 0 for one that SQLite will refuse. */
static int page_bytes_of(const uint8_t *header)
{
    const int n = header[PAGE_SIZE_AT] << 8 | header[PAGE_SIZE_AT + 1];
    if (n == 1)
        return 65536;
    return n >= PAGE_BYTES_MIN && (n & (n - 1)) == 0 ? n : 0;
}

/* 0, or SQLITE_NOMEM. */
static int set_page_bytes(struct checked *c, int bytes)
{
    if (bytes == c->page_bytes)
        return SQLITE_OK;
    uint8_t *const page = realloc(c->page, (size_t)bytes);
    if (!page)
        return SQLITE_NOMEM;
    c->page = page;
    c->page_bytes = bytes;
    return SQLITE_OK;
}

/* The header that lost the mark of the reserve: is what follows still the page we wrote? */
static bool mark_was_lost(struct checked *c, int bytes)
{
    uint8_t *const page = malloc((size_t)bytes);
    if (!page)
        return false;
    bool lost = false;
    if (c->below->pMethods->xRead(c->below, page, bytes, 0) == SQLITE_OK) {
        page[RESERVE_AT] = SUM_BYTES;
        const uint64_t sum = get_sum(page, bytes);
        lost = sum && sum == sum_of(page, bytes, 1);
    }
    free(page);
    return lost;
}

static int look_at_header(struct checked *c)
{
    uint8_t header[HEADER_BYTES];
    sqlite3_int64 size = 0;
    int rc = c->below->pMethods->xFileSize(c->below, &size);
    if (rc != SQLITE_OK || size == 0)
        return rc;
    if (size < PAGE_BYTES_MIN) { /* SQLite takes a few bytes for a fresh file */
        c->is_damaged = true;
        return SQLITE_OK;
    }
    rc = c->below->pMethods->xRead(c->below, header, HEADER_BYTES, 0);
    if (rc != SQLITE_OK)
        return rc;
    const int bytes = page_bytes_of(header);
    if (!bytes)
        return SQLITE_OK;
    if (header[RESERVE_AT] == SUM_BYTES)
        return set_page_bytes(c, bytes);
    c->is_damaged = mark_was_lost(c, bytes);
    return SQLITE_OK;
}

static int on_close(sqlite3_file *f)
{
    struct checked *const c = (struct checked *)f;
    free(c->page);
    c->page = NULL;
    return c->below->pMethods->xClose(c->below);
}

static int verify(uint8_t *page, int bytes, int64_t number)
{
    const uint64_t sum = get_sum(page, bytes);
    if (sum && sum != sum_of(page, bytes, number))
        return SQLITE_CORRUPT;
    memset(page + bytes - SUM_BYTES, 0, SUM_BYTES);
    return SQLITE_OK;
}

/* SQLite fills what a short read left out with zeros. It writes whole pages: one that is there in
 * part was cut. */
static int judge_short(struct checked *c, sqlite3_int64 offset)
{
    sqlite3_int64 size = 0;
    const int rc = c->below->pMethods->xFileSize(c->below, &size);
    if (rc != SQLITE_OK)
        return rc;
    return size > offset ? SQLITE_CORRUPT : SQLITE_IOERR_SHORT_READ;
}

/* A part of a page cannot be checked by itself: its page is read. */
static int read_part(struct checked *c, void *dst, int amount, sqlite3_int64 offset)
{
    const sqlite3_int64 start = offset - offset % c->page_bytes;
    const int at = (int)(offset - start);
    int rc = SQLITE_IOERR_SHORT_READ;
    if (amount <= c->page_bytes - at)
        rc = c->below->pMethods->xRead(c->below, c->page, c->page_bytes, start);
    if (rc == SQLITE_IOERR_SHORT_READ) /* the end of the file, or past a page: SQLite's to judge */
        return c->below->pMethods->xRead(c->below, dst, amount, offset);
    if (rc == SQLITE_OK)
        rc = verify(c->page, c->page_bytes, start / c->page_bytes + 1);
    if (rc == SQLITE_OK)
        memcpy(dst, c->page + at, (size_t)amount);
    return rc;
}

static int on_read(sqlite3_file *f, void *dst, int amount, sqlite3_int64 offset)
{
    struct checked *const c = (struct checked *)f;
    if (c->is_damaged)
        return SQLITE_CORRUPT;
    /* The header is looked at by itself before its page is read whole. */
    if (!c->page_bytes || offset + amount <= HEADER_BYTES)
        return c->below->pMethods->xRead(c->below, dst, amount, offset);
    if (amount != c->page_bytes || offset % amount != 0)
        return read_part(c, dst, amount, offset);
    const int rc = c->below->pMethods->xRead(c->below, dst, amount, offset);
    if (rc == SQLITE_IOERR_SHORT_READ)
        return judge_short(c, offset);
    return rc == SQLITE_OK ? verify(dst, amount, offset / amount + 1) : rc;
}

static int on_write(sqlite3_file *f, const void *src, int amount, sqlite3_int64 offset)
{
    struct checked *const c = (struct checked *)f;
    const uint8_t *const from = src;
    if (offset == 0 && amount >= PAGE_BYTES_MIN && memcmp(from, magic, sizeof magic) == 0 &&
        from[RESERVE_AT] == SUM_BYTES) {
        const int rc = set_page_bytes(c, amount);
        if (rc != SQLITE_OK)
            return rc;
    }
    if (!c->page_bytes || amount != c->page_bytes || offset % amount != 0)
        return c->below->pMethods->xWrite(c->below, src, amount, offset);
    memcpy(c->page, from, (size_t)amount);
    put_sum(c->page, amount, sum_of(c->page, amount, offset / amount + 1));
    return c->below->pMethods->xWrite(c->below, c->page, amount, offset);
}

/* The rest is handed through. */

static int on_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return below_of(f)->pMethods->xTruncate(below_of(f), size);
}

static int on_sync(sqlite3_file *f, int flags)
{
    return below_of(f)->pMethods->xSync(below_of(f), flags);
}

static int on_file_size(sqlite3_file *f, sqlite3_int64 *ret_size)
{
    return below_of(f)->pMethods->xFileSize(below_of(f), ret_size);
}

static int on_lock(sqlite3_file *f, int lock)
{
    return below_of(f)->pMethods->xLock(below_of(f), lock);
}

static int on_unlock(sqlite3_file *f, int lock)
{
    return below_of(f)->pMethods->xUnlock(below_of(f), lock);
}

static int on_check_reserved(sqlite3_file *f, int *ret_held)
{
    return below_of(f)->pMethods->xCheckReservedLock(below_of(f), ret_held);
}

static int on_control(sqlite3_file *f, int op, void *arg)
{
    return below_of(f)->pMethods->xFileControl(below_of(f), op, arg);
}

static int on_sector_size(sqlite3_file *f)
{
    return below_of(f)->pMethods->xSectorSize(below_of(f));
}

static int on_characteristics(sqlite3_file *f)
{
    return below_of(f)->pMethods->xDeviceCharacteristics(below_of(f));
}

static int on_shm_map(sqlite3_file *f, int region, int bytes, int extend, void volatile **ret_map)
{
    return below_of(f)->pMethods->xShmMap(below_of(f), region, bytes, extend, ret_map);
}

static int on_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return below_of(f)->pMethods->xShmLock(below_of(f), offset, n, flags);
}

static void on_shm_barrier(sqlite3_file *f)
{
    below_of(f)->pMethods->xShmBarrier(below_of(f));
}

static int on_shm_unmap(sqlite3_file *f, int remove)
{
    return below_of(f)->pMethods->xShmUnmap(below_of(f), remove);
}

/* Version 2: a log, but no memory map, which would show pages unread. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_file_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_reserved,
    .xFileControl = on_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_characteristics,
    .xShmMap = on_shm_map,
    .xShmLock = on_shm_lock,
    .xShmBarrier = on_shm_barrier,
    .xShmUnmap = on_shm_unmap,
};

static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    sqlite3_vfs *const below = vfs->pAppData;
    if (!(flags & SQLITE_OPEN_MAIN_DB))
        return below->xOpen(below, name, f, flags, ret_flags);
    struct checked *const c = (struct checked *)f;
    *c = (struct checked){.below = (sqlite3_file *)(c + 1)};
    int rc = below->xOpen(below, name, c->below, flags, ret_flags);
    if (rc != SQLITE_OK)
        return rc;
    rc = look_at_header(c);
    if (rc == SQLITE_OK) {
        f->pMethods = &methods;
        return SQLITE_OK;
    }
    (void)on_close(f);
    return rc;
}

static sqlite3_vfs checked_vfs;

int store_checksum_init(void)
{
    if (sqlite3_vfs_find(STORE_VFS))
        return 0;
    sqlite3_vfs *const below = sqlite3_vfs_find(NULL);
    if (!below)
        return -ENOMEM;
    /* What it does not do itself is the one below's: those functions need nothing of their own. */
    checked_vfs = *below;
    checked_vfs.pNext = NULL;
    checked_vfs.zName = STORE_VFS;
    checked_vfs.pAppData = below;
    checked_vfs.szOsFile = (int)sizeof(struct checked) + below->szOsFile;
    checked_vfs.xOpen = on_open;
    return sqlite3_vfs_register(&checked_vfs, 0) == SQLITE_OK ? 0 : -ENOMEM;
}

int store_checksum_reserve(sqlite3 *db)
{
    int bytes = SUM_BYTES; /* holds only while the file is empty */
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
}
