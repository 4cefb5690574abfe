/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema: the tables, and the steps from each version to the next (docs/formats/store.md).
 *
 * windows is clustered by batch number. A batch is written in one go, so a commit appends: at
 * 100,000 series a window is some 15 MB of new pages. Clustered by series the same commit would
 * touch a page of every series, 800 MB. Reading all series of a time range is a sequential
 * scan; reading few is one seek a batch and series, (number, series_id) being the key; retention
 * takes whole leaves off the left edge. Which numbers a time range has is in batches, by end_ns.
 * part tells apart the rows of one batch whose keys differ and whose labels do not.
 */
#include "store/internal.h"

#include <errno.h>
#include <stdio.h>

const struct store_step store_steps[STORE_SCHEMA_VERSION] = {
    {.sql = "CREATE TABLE meta("
            "  key TEXT PRIMARY KEY,"
            "  value NOT NULL"
            ") WITHOUT ROWID;"
            "INSERT INTO meta(key, value) VALUES('last_number', 0);"
            "CREATE TABLE series("
            "  id INTEGER PRIMARY KEY,"
            "  hash INTEGER NOT NULL,"
            "  labels BLOB NOT NULL,"
            "  created_ns INTEGER NOT NULL,"
            "  first_number INTEGER NOT NULL,"
            "  UNIQUE(hash, labels)"
            ");"
            "CREATE TABLE batches("
            "  number INTEGER PRIMARY KEY,"
            "  start_ns INTEGER NOT NULL,"
            "  end_ns INTEGER NOT NULL,"
            "  shard INTEGER NOT NULL,"
            "  flags INTEGER NOT NULL,"
            "  rows INTEGER NOT NULL,"
            "  received INTEGER NOT NULL,"
            "  aggregated INTEGER NOT NULL,"
            "  ineligible INTEGER NOT NULL,"
            "  partial INTEGER NOT NULL,"
            "  admitted_weight INTEGER NOT NULL,"
            "  rows_weight INTEGER NOT NULL,"
            "  sketch_weight INTEGER NOT NULL,"
            "  late INTEGER NOT NULL,"
            "  future INTEGER NOT NULL,"
            "  overflow INTEGER NOT NULL"
            ");"
            "CREATE INDEX batches_end ON batches(end_ns);"
            "CREATE TABLE drops("
            "  number INTEGER NOT NULL,"
            "  reason TEXT NOT NULL,"
            "  spans INTEGER NOT NULL,"
            "  PRIMARY KEY(number, reason)"
            ") WITHOUT ROWID;"
            "CREATE TABLE windows("
            "  number INTEGER NOT NULL,"
            "  series_id INTEGER NOT NULL,"
            "  part INTEGER NOT NULL,"
            "  hits INTEGER NOT NULL,"
            "  errors INTEGER NOT NULL,"
            "  top_level INTEGER NOT NULL,"
            "  ok BLOB,"
            "  error BLOB,"
            "  PRIMARY KEY(number, series_id, part)"
            ") WITHOUT ROWID;"
            "CREATE TABLE totals("
            "  series_id INTEGER PRIMARY KEY,"
            "  hits BLOB NOT NULL,"
            "  errors BLOB NOT NULL,"
            "  top_level BLOB NOT NULL,"
            "  ok BLOB,"
            "  error BLOB"
            ");"},
    {.sql = "INSERT INTO meta(key, value) VALUES('rolled_until', 0);"
            "CREATE TABLE hours("
            "  end_ns INTEGER PRIMARY KEY,"
            "  upto_number INTEGER NOT NULL,"
            "  next_series INTEGER"
            ");"
            "CREATE TABLE rolls("
            "  end_ns INTEGER NOT NULL,"
            "  series_id INTEGER NOT NULL,"
            "  hits INTEGER NOT NULL,"
            "  errors INTEGER NOT NULL,"
            "  top_level INTEGER NOT NULL,"
            "  ok BLOB,"
            "  error BLOB,"
            "  PRIMARY KEY(end_ns, series_id)"
            ") WITHOUT ROWID;"},
};

int store_db_number(sqlite3 *db, const char *sql, int64_t *ret_value)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            *ret_value = sqlite3_column_int64(stmt, 0);
            rc = SQLITE_OK;
        } else if (rc == SQLITE_DONE) {
            rc = SQLITE_EMPTY;
        }
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

static int run_step(sqlite3 *db, const struct store_step *step, int version)
{
    /* Whose file it is goes with the first tables: between the two a crash would leave a
     * stranger's. */
    char sql[96];
    (void)snprintf(sql, sizeof sql, "PRAGMA user_version = %d; PRAGMA application_id = %d", version,
                   STORE_APPLICATION_ID);
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_exec(db, step->sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return rc;
}

int store_migrate(sqlite3 *db, const char *file, const struct store_step *steps, int count,
                  int *ret_rc, struct store_error *ret_error)
{
    int64_t version = 0;
    int rc = store_db_number(db, "PRAGMA user_version", &version);
    *ret_rc = rc;
    if (rc != SQLITE_OK)
        return store_fail_db(ret_error, db, rc, file, "reading the schema version");
    if (version > count || version < 0)
        return store_fail(ret_error, WEIR_EVERSION,
                          "%s: schema version %lld, this weir knows up to %d; run the newer weir "
                          "that wrote it, or name another folder with --store.path",
                          file, (long long)version, count);
    for (int v = (int)version; v < count; v++) {
        rc = run_step(db, &steps[v], v + 1);
        if (rc == SQLITE_OK)
            continue;
        *ret_rc = rc;
        const int code = store_fail_db(ret_error, db, rc, file, "migrating the schema");
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL); /* fails when none is open: fine */
        return code;
    }
    return 0;
}
