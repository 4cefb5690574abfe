/* SPDX-License-Identifier: Apache-2.0 */
/* Forks while other threads publish and the library's thread aggregates. */
#include "t.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/stats.h>

enum { THREADS = 4, FORKS = 20, OWN = 100 };

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

struct parent {
    struct weir_stats *st;
    atomic_bool enough;
    atomic_uint_fast64_t taken;
    atomic_uint_fast64_t refused;
    atomic_uint_fast64_t hits;
    atomic_uint_fast64_t dropped;
};

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

static struct weir_span span_of(const char *resource)
{
    return (struct weir_span){.service = text("svc"),
                              .name = text("op"),
                              .resource = text(resource),
                              .trace_id = 1,
                              .span_id = 1,
                              .start_ns = t0,
                              .duration_ns = 1000};
}

static int publish(struct weir_producer *p, const char *resource)
{
    const struct weir_source source = {.now_ns = t0};
    const struct weir_span s = span_of(resource);
    return weir_stats_publish(p, &source, &s, 1);
}

static void on_batch(void *ctx, struct weir_batch *batch)
{
    struct parent *const m = ctx;
    struct weir_batch_info info;
    weir_batch_get_info(batch, &info);
    atomic_fetch_add(&m->hits, info.counts.rows_weight / WEIR_WEIGHT_ONE);
    atomic_fetch_add(&m->dropped, info.counts.dropped[WEIR_DROP_INBOX_FULL]);
    weir_batch_release(batch);
}

static void still_clock(void *ctx, int64_t *ret_wall_ns, int64_t *ret_mono_ns)
{
    (void)ctx;
    *ret_wall_ns = t0;
    *ret_mono_ns = 0;
}

static struct weir_stats_start_opts start_opts(struct parent *m)
{
    return (struct weir_stats_start_opts){.struct_size = sizeof(struct weir_stats_start_opts),
                                          .ctx = m,
                                          .batch = on_batch,
                                          .clock = still_clock};
}

static void *produce(void *arg)
{
    struct parent *const m = arg;
    struct weir_producer *p;
    if (weir_stats_producer(m->st, &p) != WEIR_OK)
        return NULL;
    for (unsigned i = 0; !atomic_load(&m->enough); i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "parent-%u", i % 500);
        if (publish(p, name) == WEIR_OK)
            atomic_fetch_add(&m->taken, 1);
        else
            atomic_fetch_add(&m->refused, 1);
    }
    return NULL;
}

/* ---- in the child: an exit code that says which rule does not hold ---- */

static int only_own(struct weir_stats *st, uint64_t spans)
{
    uint64_t hits = 0;
    weir_stats_seal_all(st, t0, 0);
    for (struct weir_batch *b; (b = weir_stats_take_batch(st)) != NULL;) {
        struct weir_batch_info info;
        weir_batch_get_info(b, &info);
        for (size_t i = 0; i < info.rows; i++) {
            struct weir_label l[WEIR_LABELS_MAX];
            struct weir_row row;
            const size_t n = weir_batch_get_labels(b, i, l, WEIR_LABELS_MAX);
            bool own = false;
            for (size_t k = 0; k < n; k++)
                own |= l[k].value.len == 5 && memcmp(l[k].value.ptr, "child", 5) == 0;
            if (!own)
                return 11;
            weir_batch_get_row(b, i, &row);
            hits += row.hits / WEIR_WEIGHT_ONE;
        }
        weir_batch_release(b);
    }
    struct weir_stats_health h;
    weir_stats_get_health(st, &h);
    if (h.received != spans || h.aggregated != spans)
        return 12;
    return hits == spans ? 0 : 13;
}

static int child(struct parent *m, struct weir_producer *mine, const struct weir_stats_identity *id,
                 bool first_free)
{
    if (first_free) { /* the instance goes without ever having been used here */
        weir_producer_free(mine);
        weir_stats_free(m->st);
        return 0;
    }
    struct weir_stats_health h;
    weir_stats_get_health(m->st, &h);
    if (h.received != 0 || h.keys != 0)
        return 1;
    weir_stats_commit(mine); /* of a payload that was open at the fork: the parent's */
    struct weir_producer *own;
    if (weir_stats_producer(m->st, &own) != WEIR_OK)
        return 2;
    for (int i = 0; i < OWN; i++) {
        if (publish(mine, "child") != WEIR_OK || publish(own, "child") != WEIR_OK ||
            weir_stats_publish_identity(own, id, t0, 5, 0, 0) != WEIR_OK)
            return 3;
    }
    (void)weir_stats_poll(m->st, t0, 0);
    const int r = only_own(m->st, 3 * OWN);
    if (r != 0)
        return r;
#ifndef __SANITIZE_THREAD__ /* which does not bear a thread after such a fork */
    atomic_store(&m->hits, 0);
    const struct weir_stats_start_opts o = start_opts(m);
    if (weir_stats_start(m->st, &o) != WEIR_OK)
        return 4;
    if (publish(own, "child") != WEIR_OK || weir_stats_flush(m->st) != WEIR_OK)
        return 5;
    if (atomic_load(&m->hits) != 1)
        return 6;
#endif
    weir_producer_free(mine);
    weir_stats_free(m->st);
    return 0;
}

TEST(a_child_forked_while_four_threads_publish_reports_its_own_spans_alone)
{
    struct parent m = {.st = NULL};
    const struct weir_stats_opts so = {.struct_size = sizeof so, .max_keys = 300};
    T_OK(weir_stats_new(&so, &m.st));
    const struct weir_stats_start_opts o = start_opts(&m);
    T_OK(weir_stats_start(m.st, &o));
    struct weir_producer *mine;
    T_OK(weir_producer_new(m.st, 0, 0, &mine));
    const struct weir_source source = {.now_ns = t0};
    const struct weir_span s = span_of("child");
    struct weir_stats_identity *id;
    T_OK(weir_stats_identity_new(m.st, &source, &s, &id));
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        T_EQ_I64(pthread_create(&threads[i], NULL, produce, &m), 0);
    uint64_t own = 0;
    for (int i = 0; i < FORKS; i++) {
        struct weir_producer *found; /* this thread's, which the child inherits with it */
        T_OK(weir_stats_producer(m.st, &found));
        if (publish(found, "mine") == WEIR_OK)
            own++;
        weir_stats_begin(mine, &source); /* open across the fork */
        T_OK(weir_stats_add(mine, &s));
        T_OK(weir_stats_trace_end(mine));
        const pid_t pid = fork();
        T_TRUE(pid >= 0);
        if (pid == 0)
            _exit(child(&m, mine, id, i % 5 == 4));
        weir_stats_commit(mine);
        own++;
        int status = 0;
        T_EQ_I64(waitpid(pid, &status, 0), pid);
        T_TRUE(WIFEXITED(status));
        T_EQ_I64(WEXITSTATUS(status), 0);
    }
    atomic_store(&m.enough, true);
    for (size_t i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    weir_stats_stop(m.st);
    T_TRUE(m.taken > 0);
    T_EQ_U64(m.hits, m.taken + own); /* the parent lost nothing and counted nothing twice */
    T_EQ_U64(m.dropped, m.refused);
    weir_producer_free(mine);
    weir_stats_free(m.st);
}

TEST(a_childs_child_starts_clean_too)
{
    struct parent m = {.st = NULL};
    T_OK(weir_stats_new(NULL, &m.st));
    struct weir_producer *p;
    T_OK(weir_producer_new(m.st, 0, WEIR_PRODUCER_OWNER, &p));
    T_OK(publish(p, "parent"));
    (void)weir_stats_poll(m.st, t0, 0);
    const pid_t pid = fork();
    T_TRUE(pid >= 0);
    if (pid == 0) {
        if (publish(p, "parent") != WEIR_OK) /* that is what it is to the grandchild */
            _exit(1);
        (void)weir_stats_poll(m.st, t0, 0);
        const pid_t grandchild = fork();
        if (grandchild == 0) {
            const int r = publish(p, "child") == WEIR_OK ? only_own(m.st, 1) : 2;
            _exit(r);
        }
        int status = 0;
        if (waitpid(grandchild, &status, 0) != grandchild || !WIFEXITED(status))
            _exit(3);
        _exit(WEXITSTATUS(status));
    }
    int status = 0;
    T_EQ_I64(waitpid(pid, &status, 0), pid);
    T_TRUE(WIFEXITED(status));
    T_EQ_I64(WEXITSTATUS(status), 0);
    weir_producer_free(p);
    weir_stats_free(m.st);
}

/* ---- peer tags that were set before the fork, and in the child ---- */

static int publish_tagged(struct weir_producer *p, const struct weir_tags *tags, const char *name,
                          int64_t now)
{
    const struct weir_tag_match *const m = weir_tags_find(tags, name, strlen(name));
    if (!m)
        return WEIR_EINVAL;
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    slots[m->slot] = (struct weir_value){.type = WEIR_VALUE_BYTES, .len = 5, .v = {.ptr = "child"}};
    struct weir_span s = span_of("r");
    s.kind = WEIR_KIND_CLIENT;
    s.slots = slots;
    s.present = UINT64_C(1) << m->slot;
    const struct weir_source source = {.now_ns = now};
    return weir_stats_publish(p, &source, &s, 1);
}

/* The one batch there is has the one label. */
static int has_label(struct weir_stats *st, const char *name, int64_t now)
{
    weir_stats_seal_all(st, now, now - t0);
    struct weir_batch *const b = weir_stats_take_batch(st);
    struct weir_label l[WEIR_LABELS_MAX];
    const size_t n = b ? weir_batch_get_labels(b, 0, l, WEIR_LABELS_MAX) : 0;
    int found = 0;
    for (size_t i = 0; i < n; i++)
        found += l[i].name.len == strlen(name) && memcmp(l[i].name.ptr, name, l[i].name.len) == 0;
    weir_batch_release(b);
    return found == 1;
}

static int child_sets_peer_tags(struct weir_stats *st, struct weir_producer *p,
                                const struct weir_tags *before)
{
    int64_t now = t0;
    if (publish_tagged(p, before, "old", now) != WEIR_OK || !has_label(st, "old", now))
        return 21;
    for (int i = 0; i < 50; i++) { /* more than there is room for at once */
        char name[16];
        (void)snprintf(name, sizeof name, "tag%d", i);
        const char *const names[] = {name};
        if (weir_stats_set_peer_tags(st, names, 1) != WEIR_OK)
            return 22;
        if (publish_tagged(p, weir_producer_tags(p), name, now) != WEIR_OK ||
            !has_label(st, name, now))
            return 23;
        for (int k = 0; k < 10; k++) { /* what is not touched leaves the table */
            now += INT64_C(20) * 1000000000;
            (void)publish(p, "child");
            (void)has_label(st, "none", now);
        }
    }
    weir_producer_free(p);
    weir_stats_free(st);
    return 0;
}

TEST(a_child_reads_by_the_peer_tags_of_before_and_sets_its_own)
{
    static const char *const names[] = {"old"};
    const struct weir_stats_opts o = {.struct_size = sizeof o, .profile = WEIR_PROFILE_CLIENT};
    struct weir_stats *st;
    struct weir_producer *p;
    T_OK(weir_stats_new(&o, &st));
    T_OK(weir_producer_new(st, 0, WEIR_PRODUCER_OWNER, &p));
    T_OK(weir_stats_set_peer_tags(st, names, 1));
    const struct weir_tags *const before = weir_producer_tags(p);
    const pid_t pid = fork();
    T_TRUE(pid >= 0);
    if (pid == 0)
        _exit(child_sets_peer_tags(st, p, before));
    int status = 0;
    T_EQ_I64(waitpid(pid, &status, 0), pid);
    T_TRUE(WIFEXITED(status));
    T_EQ_I64(WEXITSTATUS(status), 0);
    T_OK(publish_tagged(p, before, "old", t0));
    T_TRUE(has_label(st, "old", t0));
    weir_producer_free(p);
    weir_stats_free(st);
}
