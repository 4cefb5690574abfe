/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roll: hours as one row a series.
 *
 * An hour is summed in steps of some series each, every step a transaction, so that commits of
 * batches come between. It covers the batches up to the highest number when it began
 * (hours.upto_number); later ones of the same hour are read beside it. Until the last step is done
 * (next_series NULL) nobody reads it. Retention forgets the sum of an hour before it takes the
 * first window from it.
 */
#include "store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COMPLETE_AFTER_FOR_NS (INT64_C(1200) * 1000000000)
#define SERIES_A_STEP_MAX 4096

/* Of one series over the hour. */
struct store_sum {
    int64_t series_id;
    uint64_t hits; /* saturate: 2^44 spans in an hour */
    uint64_t errors;
    uint64_t top_level;
    bool is_used;
    struct weir_sketch *ok;
    struct weir_sketch *error;
};

struct hour {
    int64_t end_ns;
    int64_t upto_number;
    int64_t next_series; /* summed are those up to it */
};

int64_t store_hour_of(int64_t end_ns)
{
    int64_t past = end_ns % STORE_HOUR_FOR_NS;
    if (past <= 0)
        past += STORE_HOUR_FOR_NS;
    int64_t hour;
    return __builtin_add_overflow(end_ns, STORE_HOUR_FOR_NS - past, &hour) ? INT64_MAX : hour;
}

void store_sums_free(struct store *s)
{
    for (size_t i = 0; i < s->sum_cap; i++) {
        weir_sketch_free(s->sums[i].ok);
        weir_sketch_free(s->sums[i].error);
    }
    free(s->sums);
    s->sums = NULL;
    s->sum_cap = 0;
}

static int reserve_sums(struct store *s, size_t count)
{
    if (count <= s->sum_cap)
        return 0;
    struct store_sum *const sums = realloc(s->sums, count * sizeof *sums);
    if (!sums)
        return -ENOMEM;
    s->sums = sums;
    memset(sums + s->sum_cap, 0, (count - s->sum_cap) * sizeof *sums);
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = WEIR_GRID_NS};
    while (s->sum_cap < count) {
        struct store_sum *const sum = &sums[s->sum_cap++]; /* half made is freed as whole */
        if (weir_sketch_new(&o, &sum->ok) != WEIR_OK || weir_sketch_new(&o, &sum->error) != WEIR_OK)
            return -ENOMEM;
    }
    return 0;
}

static int get_one(sqlite3_stmt *stmt, int64_t *ret_value, bool *ret_found)
{
    const int rc = sqlite3_step(stmt);
    *ret_found = rc == SQLITE_ROW;
    if (*ret_found)
        *ret_value = sqlite3_column_int64(stmt, 0);
    const int end = sqlite3_reset(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : end;
}

static int find_under_way(struct store *s, struct hour *h, bool *ret_found)
{
    sqlite3_stmt *const get = s->stmts[STORE_HOUR_UNDER_WAY];
    const int rc = sqlite3_step(get);
    *ret_found = rc == SQLITE_ROW;
    if (*ret_found)
        *h = (struct hour){sqlite3_column_int64(get, 0), sqlite3_column_int64(get, 1),
                           sqlite3_column_int64(get, 2)};
    const int end = sqlite3_reset(get);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : end;
}

/* The next hour that is complete at now_ns and was not summed before. */
static int find_next(struct store *s, int64_t now_ns, struct hour *h, bool *ret_found)
{
    int64_t until = 0;
    int64_t end_ns = 0;
    int rc = get_one(s->stmts[STORE_ROLLED_UNTIL], &until, ret_found);
    if (rc != SQLITE_OK || !*ret_found)
        return rc;
    (void)sqlite3_bind_int64(s->stmts[STORE_BATCH_NEXT], 1, until);
    rc = get_one(s->stmts[STORE_BATCH_NEXT], &end_ns, ret_found);
    if (rc != SQLITE_OK || !*ret_found)
        return rc;
    *h = (struct hour){.end_ns = store_hour_of(end_ns), .upto_number = (int64_t)s->last_number};
    int64_t complete_ns;
    *ret_found = !__builtin_add_overflow(h->end_ns, COMPLETE_AFTER_FOR_NS, &complete_ns) &&
                 complete_ns <= now_ns;
    return rc;
}

static int begin_hour(struct store *s, const struct hour *h)
{
    (void)sqlite3_bind_int64(s->stmts[STORE_HOUR_ADD], 1, h->end_ns);
    (void)sqlite3_bind_int64(s->stmts[STORE_HOUR_ADD], 2, h->upto_number);
    (void)sqlite3_bind_int64(s->stmts[STORE_SET_ROLLED], 1, h->end_ns);
    const int rc = store_step_done(s->stmts[STORE_HOUR_ADD]);
    return rc == SQLITE_OK ? store_step_done(s->stmts[STORE_SET_ROLLED]) : rc;
}

static void bind_batches(struct store *s, const struct hour *h)
{
    sqlite3_stmt *const get = s->stmts[STORE_BATCH_NUMBERS];
    (void)sqlite3_bind_int64(get, 1, h->end_ns - STORE_HOUR_FOR_NS);
    (void)sqlite3_bind_int64(get, 2, h->end_ns);
    (void)sqlite3_bind_int64(get, 3, h->upto_number);
}

static int count_batches(struct store *s, const struct hour *h, size_t *ret_count)
{
    sqlite3_stmt *const get = s->stmts[STORE_BATCH_NUMBERS];
    bind_batches(s, h);
    *ret_count = 0;
    int rc;
    while ((rc = sqlite3_step(get)) == SQLITE_ROW)
        ++*ret_count;
    (void)sqlite3_reset(get);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The series of this step, in the order of their ids. */
static int take_series(struct store *s, const struct hour *h, size_t most, size_t *ret_count)
{
    sqlite3_stmt *const get = s->stmts[STORE_SERIES_NEXT];
    (void)sqlite3_bind_int64(get, 1, h->next_series);
    (void)sqlite3_bind_int64(get, 2, (int64_t)most);
    size_t n = 0;
    int rc;
    while ((rc = sqlite3_step(get)) == SQLITE_ROW && n < most) {
        struct store_sum *const sum = &s->sums[n++];
        weir_sketch_clear(sum->ok);
        weir_sketch_clear(sum->error);
        *sum = (struct store_sum){
            .series_id = sqlite3_column_int64(get, 0), .ok = sum->ok, .error = sum->error};
    }
    (void)sqlite3_reset(get);
    *ret_count = n;
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static void add_u64(uint64_t *total, uint64_t v)
{
    if (__builtin_add_overflow(*total, v, total))
        *total = UINT64_MAX;
}

/* What cannot be read makes the whole hour unfit: its windows are read one by one for ever. */
static int add_sketch(sqlite3_stmt *row, int at, struct weir_sketch *total)
{
    const void *const blob = sqlite3_column_blob(row, at);
    const size_t bytes = (size_t)sqlite3_column_bytes(row, at);
    if (!bytes)
        return 0;
    const int r = weir_sketch_merge_encoded(total, blob, bytes);
    if (r == WEIR_OK)
        return 0;
    return r == WEIR_ENOMEM ? -ENOMEM : -EBADMSG;
}

static int add_row(sqlite3_stmt *row, struct store_sum *sum)
{
    sum->is_used = true;
    add_u64(&sum->hits, (uint64_t)sqlite3_column_int64(row, 1));
    add_u64(&sum->errors, (uint64_t)sqlite3_column_int64(row, 2));
    add_u64(&sum->top_level, (uint64_t)sqlite3_column_int64(row, 3));
    const int r = add_sketch(row, 4, sum->ok);
    return r ? r : add_sketch(row, 5, sum->error);
}

/* One step. */
struct step {
    struct hour hour;
    size_t count; /* of s->sums */
    size_t rows;  /* read */
    int rc;
};

static int add_batch(struct store *s, struct step *st, int64_t number)
{
    sqlite3_stmt *const get = s->stmts[STORE_WINDOW_PART];
    (void)sqlite3_bind_int64(get, 1, number);
    (void)sqlite3_bind_int64(get, 2, st->hour.next_series);
    (void)sqlite3_bind_int64(get, 3, s->sums[st->count - 1].series_id);
    size_t at = 0;
    int r = 0;
    while (r == 0 && (st->rc = sqlite3_step(get)) == SQLITE_ROW) {
        const int64_t id = sqlite3_column_int64(get, 0);
        while (at < st->count && s->sums[at].series_id < id)
            at++;
        if (at < st->count && s->sums[at].series_id == id)
            r = add_row(get, &s->sums[at]);
        st->rows++;
    }
    (void)sqlite3_reset(get);
    if (r || st->rc == SQLITE_DONE) {
        st->rc = SQLITE_OK;
        return r;
    }
    return store_errno_of(s->db, st->rc);
}

static int add_batches(struct store *s, struct step *st)
{
    sqlite3_stmt *const get = s->stmts[STORE_BATCH_NUMBERS];
    bind_batches(s, &st->hour);
    int r = 0;
    int rc = SQLITE_DONE;
    while (r == 0 && (rc = sqlite3_step(get)) == SQLITE_ROW)
        r = add_batch(s, st, sqlite3_column_int64(get, 0));
    (void)sqlite3_reset(get);
    if (r || rc == SQLITE_DONE)
        return r;
    st->rc = rc;
    return store_errno_of(s->db, rc);
}

static int bind_sketch(sqlite3_stmt *stmt, int at, const struct weir_sketch *sk,
                       struct store_buf *buf)
{
    if (weir_sketch_weight(sk) == 0) {
        (void)sqlite3_bind_null(stmt, at);
        return 0;
    }
    const int r = store_sketch_encode(sk, buf);
    if (r == 0)
        (void)sqlite3_bind_blob(stmt, at, buf->ptr, (int)buf->len, SQLITE_STATIC);
    return r;
}

static int write_sums(struct store *s, struct step *st)
{
    sqlite3_stmt *const add = s->stmts[STORE_ROLL_ADD];
    for (size_t i = 0; i < st->count; i++) {
        const struct store_sum *const sum = &s->sums[i];
        if (!sum->is_used)
            continue;
        (void)sqlite3_bind_int64(add, 1, st->hour.end_ns);
        (void)sqlite3_bind_int64(add, 2, sum->series_id);
        (void)sqlite3_bind_int64(add, 3, (int64_t)sum->hits);
        (void)sqlite3_bind_int64(add, 4, (int64_t)sum->errors);
        (void)sqlite3_bind_int64(add, 5, (int64_t)sum->top_level);
        int r = bind_sketch(add, 6, sum->ok, &s->blob[0]);
        if (r == 0)
            r = bind_sketch(add, 7, sum->error, &s->blob[1]);
        if (r)
            return r;
        st->rc = store_step_done(add);
        if (st->rc != SQLITE_OK)
            return store_errno_of(s->db, st->rc);
    }
    return 0;
}

/* Sum the next series of the hour; none left: the hour is done. */
static int sum_series(struct store *s, struct step *st, size_t max_rows)
{
    size_t batches = 0;
    st->rc = count_batches(s, &st->hour, &batches);
    if (st->rc != SQLITE_OK)
        return store_errno_of(s->db, st->rc);
    size_t most = max_rows / (batches ? batches : 1) + 1;
    if (most > SERIES_A_STEP_MAX)
        most = SERIES_A_STEP_MAX;
    int r = reserve_sums(s, most);
    if (r)
        return r;
    st->rc = take_series(s, &st->hour, most, &st->count);
    if (st->rc != SQLITE_OK)
        return store_errno_of(s->db, st->rc);
    sqlite3_stmt *const set = s->stmts[STORE_HOUR_SET];
    (void)sqlite3_bind_int64(set, 1, st->hour.end_ns);
    if (st->count) {
        r = add_batches(s, st);
        if (r == 0)
            r = write_sums(s, st);
        (void)sqlite3_bind_int64(set, 2, s->sums[st->count - 1].series_id);
    } else {
        (void)sqlite3_bind_null(set, 2);
    }
    if (r)
        return r;
    st->rc = store_step_done(set);
    return store_errno_of(s->db, st->rc);
}

int store_unroll(struct store *s, int64_t end_ns)
{
    const int64_t hour = store_hour_of(end_ns);
    (void)sqlite3_bind_int64(s->stmts[STORE_HOUR_REMOVE], 1, hour);
    (void)sqlite3_bind_int64(s->stmts[STORE_ROLLS_REMOVE], 1, hour);
    const int rc = store_step_done(s->stmts[STORE_HOUR_REMOVE]);
    return rc == SQLITE_OK ? store_step_done(s->stmts[STORE_ROLLS_REMOVE]) : rc;
}

static int roll_in_transaction(struct store *s, struct step *st, bool is_new, size_t max_rows)
{
    st->rc = store_step_done(s->stmts[STORE_BEGIN]);
    if (st->rc == SQLITE_OK && is_new)
        st->rc = begin_hour(s, &st->hour);
    if (st->rc != SQLITE_OK)
        return store_errno_of(s->db, st->rc);
    int r = sum_series(s, st, max_rows);
    if (r == -EBADMSG) {
        s->counts.totals_failed++;
        st->rc = store_unroll(s, st->hour.end_ns);
        r = store_errno_of(s->db, st->rc);
    }
    if (r)
        return r;
    st->rc = store_commit(s);
    return store_errno_of(s->db, st->rc);
}

int64_t store_roll(struct store *s, int64_t now_ns, size_t max_rows, struct store_error *ret_error)
{
    if (!s->db)
        return store_fail(ret_error, -EIO, "%s: not open", s->file);
    struct step st = {.rc = SQLITE_OK};
    bool found = false;
    bool is_new = false;
    st.rc = find_under_way(s, &st.hour, &found);
    if (st.rc == SQLITE_OK && !found) {
        st.rc = find_next(s, now_ns, &st.hour, &found);
        is_new = true;
    }
    int r = store_errno_of(s->db, st.rc);
    if (r == 0 && !found)
        return 0;
    if (r == 0)
        r = roll_in_transaction(s, &st, is_new, max_rows);
    if (r == 0)
        return (int64_t)st.rows + 1;
    if (st.rc != SQLITE_OK)
        (void)store_fail_db(ret_error, s->db, st.rc, s->file, "summing an hour");
    else
        (void)store_fail(ret_error, r, "%s: summing an hour: %s", s->file, strerrordesc_np(-r));
    store_rollback(s);
    if (store_is_corrupt(st.rc))
        (void)store_replace(s, NULL); /* if that fails, the next write tries again */
    return r;
}
