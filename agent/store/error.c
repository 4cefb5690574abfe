/* SPDX-License-Identifier: Apache-2.0 */
/* error: results of SQLite as -errno and as one line that names the file and the remedy. */
#include "store/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int store_fail(struct store_error *ret_error, int code, const char *format, ...)
{
    if (ret_error) {
        ret_error->code = code;
        va_list args;
        va_start(args, format);
        (void)vsnprintf(ret_error->text, sizeof ret_error->text, format, args);
        va_end(args);
    }
    return code;
}

bool store_is_corrupt(int rc)
{
    return (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB;
}

int store_errno_of(sqlite3 *db, int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
        return 0;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return -EACCES;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EUCLEAN;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR: {
        const int sys = db ? sqlite3_system_errno(db) : 0;
        return sys > 0 ? -sys : -EIO;
    }
    default: /* results SQLite may add */
        return -EIO;
    }
}

static const char *remedy_of(int code)
{
    switch (code) {
    case -ENOSPC:
    case -EDQUOT:
        return "free disk space; batches wait in memory and are written when there is room";
    case -EBUSY:
        return "another program holds it: end its transaction";
    case -EACCES:
    case -EPERM:
    case -EROFS:
        return "give the agent's user write access, or name another folder with --store.path";
    case -EUCLEAN:
        return "it is damaged";
    default:
        return "see docs/formats/store.md";
    }
}

int store_fail_db(struct store_error *ret_error, sqlite3 *db, int rc, const char *file,
                  const char *doing)
{
    const int code = store_errno_of(db, rc);
    return store_fail(ret_error, code, "%s: %s: %s; %s", file, doing,
                      db ? sqlite3_errmsg(db) : sqlite3_errstr(rc), remedy_of(code));
}
