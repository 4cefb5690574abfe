/* SPDX-License-Identifier: Apache-2.0 */
/* rows_fixture: see rows_fixture.h. */
#include "rows_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct query_select fx_all = {.after_ns = INT64_MIN, .until_ns = INT64_MAX, .totals = true};

static struct weir_sketch *sketch_new(void)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = WEIR_GRID_NS};
    struct weir_sketch *sk = NULL;
    T_OK(weir_sketch_new(&o, &sk));
    return sk;
}

struct fx_batch *fx_batch_new(int64_t window)
{
    struct fx_batch *const b = calloc(1, sizeof *b);
    T_TRUE(b);
    b->info.start_ns = FX_T0 + window * 10 * FX_SECOND;
    b->info.for_ns = 10 * FX_SECOND;
    return b;
}

void fx_batch_free(struct fx_batch *b)
{
    for (size_t i = 0; i < b->info.rows; i++) {
        weir_sketch_free(b->rows[i].ok);
        weir_sketch_free(b->rows[i].error);
    }
    free(b->rows);
    free(b);
}

static struct weir_sketch *filled(unsigned count, int64_t duration_ns)
{
    if (!count)
        return NULL;
    struct weir_sketch *const sk = sketch_new();
    for (unsigned i = 0; i < count; i++)
        T_OK(weir_sketch_add_ns(sk, duration_ns + (int64_t)i * 1000, WEIR_WEIGHT_ONE));
    return sk;
}

void fx_add(struct fx_batch *b, const char *labels, unsigned ok, unsigned error,
            int64_t duration_ns)
{
    struct fx_row *const rows = realloc(b->rows, (b->info.rows + 1) * sizeof *rows);
    T_TRUE(rows);
    b->rows = rows;
    struct fx_row *const r = &rows[b->info.rows++];
    memset(r, 0, sizeof *r);
    (void)snprintf(r->labels, sizeof r->labels, "%s", labels);
    r->ok = filled(ok, duration_ns);
    r->error = filled(error, duration_ns);
    const uint64_t weight = (uint64_t)(ok + error) * WEIR_WEIGHT_ONE;
    r->row = (struct weir_row){.hits = weight,
                               .errors = error * WEIR_WEIGHT_ONE,
                               .top_level = ok * WEIR_WEIGHT_ONE,
                               .ok = r->ok,
                               .error = r->error};
    struct weir_window_counts *const c = &b->info.counts;
    c->received += ok + error;
    c->aggregated += ok + error;
    c->admitted_weight += weight;
    c->rows_weight += weight;
    c->sketch_weight += weight;
}

static size_t parse_labels(const char *text, struct weir_label *labels, size_t cap)
{
    size_t n = 0;
    while (*text && n < cap) {
        const size_t name = strcspn(text, "=");
        const char *const value = text + name + 1;
        const size_t value_len = strcspn(value, " ");
        labels[n++] = (struct weir_label){{text, name}, {value, value_len}};
        text = value + value_len + (value[value_len] == ' ');
    }
    return n;
}

static size_t batch_labels(const void *ctx, size_t row, struct weir_label *labels, size_t cap)
{
    const struct fx_batch *const b = ctx;
    return parse_labels(b->rows[row].labels, labels, cap);
}

static void batch_row(const void *ctx, size_t row, struct weir_row *ret_row)
{
    const struct fx_batch *const b = ctx;
    *ret_row = b->rows[row].row;
}

struct store_rows fx_rows(const struct fx_batch *b)
{
    return (struct store_rows){.ctx = b, .info = b->info, .labels = batch_labels, .row = batch_row};
}

struct fx_folder fx_folder_new(void)
{
    struct fx_folder f;
    const char *const tmp = getenv("TMPDIR");
    (void)snprintf(f.path, sizeof f.path, "%.90s/weir-test-XXXXXX", tmp ? tmp : "/tmp");
    T_TRUE(mkdtemp(f.path));
    return f;
}

void fx_folder_free(const struct fx_folder *f)
{
    DIR *const d = opendir(f->path);
    T_TRUE(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", f->path, e->d_name);
        (void)unlink(path);
    }
    (void)closedir(d);
    (void)rmdir(f->path);
}

bool fx_exists(const struct fx_folder *f, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", f->path, name);
    return access(path, F_OK) == 0;
}

unsigned fx_count(const struct fx_folder *f, const char *prefix, char *ret_name, size_t cap)
{
    DIR *const d = opendir(f->path);
    T_TRUE(d);
    unsigned n = 0;
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        const size_t len = strlen(e->d_name);
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 ||
            (len > 4 && (strcmp(e->d_name + len - 4, "-wal") == 0 ||
                         strcmp(e->d_name + len - 4, "-shm") == 0)))
            continue;
        if (ret_name)
            (void)snprintf(ret_name, cap, "%s", e->d_name);
        n++;
    }
    (void)closedir(d);
    return n;
}

struct store *fx_open(const struct fx_folder *f)
{
    const struct store_opts o = {.path = f->path,
                                 .retention_for_ns = STORE_RETENTION_FOR_NS_DEFAULT,
                                 .retention_bytes = STORE_RETENTION_BYTES_DEFAULT};
    struct store *s = NULL;
    struct store_error error = {0};
    bool replaced = true;
    if (store_open(&o, &s, &replaced, &error))
        T_FAIL("%s", error.text);
    T_TRUE(!replaced);
    return s;
}

void fx_write(struct store *s, const struct fx_batch *b, uint64_t number)
{
    const struct store_rows rows = fx_rows(b);
    struct store_error error = {0};
    if (store_write_rows(s, &rows, number, &error))
        T_FAIL("%s", error.text);
}

void fx_view_clear(struct fx_view *v)
{
    for (size_t i = 0; i < v->count; i++) {
        weir_sketch_free(v->seen[i].ok);
        weir_sketch_free(v->seen[i].error);
    }
    free(v->seen);
    *v = (struct fx_view){.only = v->only};
}

static void text_of(const struct query_series *s, char *dst, size_t cap)
{
    size_t at = 0;
    dst[0] = 0;
    for (size_t i = 0; i < s->label_count && at < cap; i++)
        at += (size_t)snprintf(dst + at, cap - at, "%s%.*s=%.*s", i ? " " : "",
                               (int)s->labels[i].name.len, s->labels[i].name.ptr,
                               (int)s->labels[i].value.len, s->labels[i].value.ptr);
}

static struct fx_seen *seen_of(struct fx_view *v, const struct query_series *s)
{
    for (size_t i = 0; i < v->count; i++) {
        if (v->seen[i].id == s->id)
            return &v->seen[i];
    }
    T_FAIL("a series was shown that was not asked for");
}

static bool view_match(void *ctx, const struct query_series *s)
{
    struct fx_view *const v = ctx;
    v->asked++;
    char text[256];
    text_of(s, text, sizeof text);
    for (size_t i = 0; i < v->count; i++) {
        if (v->seen[i].id == s->id || strcmp(v->seen[i].labels, text) == 0)
            T_FAIL("asked twice about %s", text);
    }
    if (v->only && !strstr(text, v->only))
        return false;
    struct fx_seen *const seen = realloc(v->seen, (v->count + 1) * sizeof *seen);
    T_TRUE(seen);
    v->seen = seen;
    struct fx_seen *const n = &seen[v->count++];
    *n = (struct fx_seen){.id = s->id, .ok = sketch_new(), .error = sketch_new()};
    (void)snprintf(n->labels, sizeof n->labels, "%s", text);
    return true;
}

static void merge_row(struct fx_seen *n, const struct weir_row *row)
{
    if (row->ok)
        T_OK(weir_sketch_merge(n->ok, row->ok));
    if (row->error)
        T_OK(weir_sketch_merge(n->error, row->error));
}

/* As whoever merges them does: bytes that are damaged are the scan's error. */
static int merge_form(struct weir_sketch *dst, struct weir_bytes form)
{
    return !form.len || weir_sketch_merge_encoded(dst, form.ptr, form.len) == WEIR_OK ? 0 : -EIO;
}

static int view_base(void *ctx, const struct query_series *s, const struct query_base *base)
{
    struct fx_seen *const n = seen_of(ctx, s);
    T_EQ_U64(n->windows, 0); /* before its windows */
    n->bases++;
    n->created_ns = base->created_ns;
    n->base_hits = base->hits;
    n->base_errors = base->errors;
    merge_row(n, &base->row);
    return 0;
}

static int view_window(void *ctx, const struct query_series *s, const struct query_window *w)
{
    struct fx_view *const v = ctx;
    struct fx_seen *const n = seen_of(v, s);
    n->hits += w->row.hits;
    n->errors += w->row.errors;
    n->top_level += w->row.top_level;
    n->windows++;
    n->last_start_ns = w->start_ns;
    n->last_end_ns = w->end_ns;
    merge_row(n, &w->row);
    if (merge_form(n->ok, w->ok_form) || merge_form(n->error, w->error_form))
        return -EIO;
    return v->fail_after && ++v->windows >= v->fail_after ? -ECANCELED : 0;
}

struct query_visitor fx_visitor(struct fx_view *v)
{
    return (struct query_visitor){
        .ctx = v, .match = view_match, .base = view_base, .window = view_window};
}

struct fx_seen *fx_find(struct fx_view *v, const char *labels)
{
    for (size_t i = 0; i < v->count; i++) {
        if (strcmp(v->seen[i].labels, labels) == 0)
            return &v->seen[i];
    }
    return NULL;
}

uint64_t fx_running(const struct fx_seen *s)
{
    T_EQ_U64(s->base_hits.hi, 0);
    return s->base_hits.lo + s->hits;
}

void fx_scan_all(struct store *s, struct fx_view *v)
{
    fx_view_clear(v);
    struct store_reader *r = NULL;
    T_OK(store_reader_open(s, &r, NULL));
    uint64_t last = 0;
    T_OK(store_reader_begin(r, UINT64_MAX, &last));
    T_EQ_U64(last, store_last_number(s));
    const struct query_visitor visitor = fx_visitor(v);
    T_OK(store_reader_scan(r, &fx_all, &visitor));
    store_reader_close(r);
}

bool fx_same_sketch(const struct weir_sketch *a, const struct weir_sketch *b)
{
    const size_t bytes = weir_sketch_encoded_bytes(a);
    if (bytes != weir_sketch_encoded_bytes(b))
        return false;
    uint8_t *const pa = malloc(bytes);
    uint8_t *const pb = malloc(bytes);
    T_TRUE(pa && pb);
    size_t na = 0;
    size_t nb = 0;
    T_OK(weir_sketch_encode(a, pa, bytes, &na));
    T_OK(weir_sketch_encode(b, pb, bytes, &nb));
    const bool same = na == nb && memcmp(pa, pb, na) == 0;
    free(pa);
    free(pb);
    return same;
}
