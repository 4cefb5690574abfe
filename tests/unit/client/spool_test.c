/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: bodies outlive the process, a kill in the middle, and damage. */
#include "fake.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char stats_path[] = "/v0.6/stats";

struct place {
    char path[64];
};

static struct place make_place(void)
{
    struct place p = {"/tmp/weir-spool-XXXXXX"};
    T_TRUE(mkdtemp(p.path) != NULL);
    return p;
}

static void each_file(const struct place *p, void (*fn)(const char *path, void *ctx), void *ctx)
{
    DIR *const dir = opendir(p->path);
    T_TRUE(dir != NULL);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char path[400];
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", p->path, e->d_name);
        fn(path, ctx);
    }
    (void)closedir(dir);
}

static void count_one(const char *path, void *ctx)
{
    size_t *const n = ctx;
    *n += strstr(path, ".stats") != NULL;
}

static size_t files(const struct place *p)
{
    size_t n = 0;
    each_file(p, count_one, &n);
    return n;
}

static void remove_one(const char *path, void *ctx)
{
    (void)ctx;
    (void)unlink(path);
}

static void remove_place(const struct place *p)
{
    each_file(p, remove_one, NULL);
    T_EQ_I64(rmdir(p->path), 0);
}

static void open_rig(struct fake_rig *r, const struct place *p)
{
    fake_init(r);
    r->opts.spool = p->path;
    r->opts.drain_for_ns = -1;
    fake_open(r, true);
    fake_poll(r);
}

TEST(what_an_outage_left_is_sent_by_the_next_process_with_the_same_key_and_bytes)
{
    static struct fake_rig r;
    const struct place p = make_place();
    open_rig(&r, &p);
    r.agent.outcome = WEIR_CLIENT_UNREACHED;
    fake_spans(&r, "first", 1);
    fake_poll(&r);
    T_EQ_U64(files(&p), 1); /* as soon as it was refused */
    fake_spans(&r, "second", 1);
    fake_poll(&r);
    const struct fake_seen *s = fake_nth(&r, stats_path, 0);
    unsigned char first[1024];
    const size_t len = s->len;
    T_TRUE(len < sizeof first);
    memcpy(first, s->body, len);
    fake_close(&r);
    T_EQ_U64(files(&p), 2);

    open_rig(&r, &p);
    T_EQ_U64(fake_health(&r).spool_loaded, 2);
    fake_poll(&r);
    T_EQ_U64(fake_count(&r, stats_path), 2);
    s = fake_nth(&r, stats_path, 0);
    T_EQ_BYTES(s->body, s->len, first, len);
    T_EQ_STR(fake_header(s, "Idempotency-Key"), "rid-0");
    T_EQ_STR(fake_header(fake_nth(&r, stats_path, 1), "Idempotency-Key"), "rid-1");
    T_EQ_U64(files(&p), 0);
    T_EQ_U64(fake_health(&r).spool_bytes, 0);
    fake_close(&r);
    remove_place(&p);
}

TEST(a_body_that_is_taken_at_once_never_touches_the_disk)
{
    static struct fake_rig r;
    const struct place p = make_place();
    open_rig(&r, &p);
    fake_spans(&r, "a", 1);
    fake_poll(&r);
    T_EQ_U64(fake_health(&r).spool_written, 0);
    fake_close(&r);
    remove_place(&p);
}

TEST(a_process_that_is_killed_leaves_only_whole_bodies)
{
    const struct place p = make_place();
    int ready[2];
    T_EQ_I64(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        static struct fake_rig r;
        open_rig(&r, &p);
        r.agent.outcome = WEIR_CLIENT_UNREACHED;
        for (int i = 0;; i++) {
            fake_spans(&r, "killed", 1);
            fake_pass(&r, FAKE_S);
            if (i == 20)
                (void)!write(ready[1], "x", 1);
        }
    }
    char c;
    T_EQ_I64(read(ready[0], &c, 1), 1);
    (void)usleep(3000);
    T_EQ_I64(kill(child, SIGKILL), 0);
    T_TRUE(waitpid(child, NULL, 0) == child);
    (void)close(ready[0]);
    (void)close(ready[1]);

    static struct fake_rig r;
    open_rig(&r, &p);
    const struct weir_client_health h = fake_health(&r);
    T_TRUE(h.spool_loaded >= 10);
    T_EQ_U64(h.stats_dropped[WEIR_CLIENT_DROP_SPOOL], 0);
    fake_pass(&r, FAKE_S);
    T_EQ_U64(fake_health(&r).stats_sent, h.spool_loaded);
    char last[96] = "";
    for (size_t i = 0; i < fake_count(&r, stats_path); i++) {
        const char *const key = fake_header(fake_nth(&r, stats_path, i), "Idempotency-Key");
        T_TRUE(strcmp(key, last) != 0); /* each once */
        (void)snprintf(last, sizeof last, "%s", key);
    }
    fake_close(&r);
    remove_place(&p);
}

static void damage_one(const char *path, void *ctx)
{
    size_t *const n = ctx;
    const int fd = strstr(path, ".stats") ? open(path, O_RDWR) : -1;
    struct stat st;
    if (fd < 0)
        return;
    T_EQ_I64(fstat(fd, &st), 0);
    char c;
    switch ((*n)++) {
    case 0: /* shorter */
        T_EQ_I64(ftruncate(fd, st.st_size - 1), 0);
        break;
    case 1: /* another byte */
        T_EQ_I64(pread(fd, &c, 1, st.st_size - 5), 1);
        c ^= 1;
        T_EQ_I64(pwrite(fd, &c, 1, st.st_size - 5), 1);
        break;
    case 2: /* no longer a file of ours */
        T_EQ_I64(pwrite(fd, "x", 1, 0), 1);
        break;
    case 3:
        T_EQ_I64(ftruncate(fd, 0), 0);
        break;
    default:
        break;
    }
    (void)close(fd);
}

TEST(damaged_files_and_halves_are_removed_and_counted_and_strange_names_left_alone)
{
    static struct fake_rig r;
    const struct place p = make_place();
    open_rig(&r, &p);
    r.agent.outcome = WEIR_CLIENT_UNREACHED;
    for (int i = 0; i < 5; i++) {
        fake_spans(&r, "a", 1);
        fake_pass(&r, 10 * FAKE_S);
    }
    fake_close(&r);
    T_EQ_U64(files(&p), 5);
    size_t n = 0;
    each_file(&p, damage_one, &n);
    char part[128];
    char other[128];
    (void)snprintf(part, sizeof part, "%s/part", p.path);
    (void)snprintf(other, sizeof other, "%s/000000000000000x.stats", p.path);
    T_TRUE(close(open(part, O_CREAT | O_WRONLY, 0600)) == 0);
    T_TRUE(close(open(other, O_CREAT | O_WRONLY, 0600)) == 0);
    open_rig(&r, &p);
    fake_poll(&r);
    const struct weir_client_health h = fake_health(&r);
    T_EQ_U64(h.spool_loaded, 1);
    T_EQ_U64(h.stats_sent, 1);
    T_EQ_U64(h.stats_dropped[WEIR_CLIENT_DROP_SPOOL], 4);
    T_TRUE(access(part, F_OK) != 0);
    T_EQ_I64(access(other, F_OK), 0);
    fake_close(&r);
    remove_place(&p);
}

TEST(a_file_that_vanishes_is_counted_when_its_turn_comes)
{
    static struct fake_rig r;
    const struct place p = make_place();
    open_rig(&r, &p);
    r.agent.outcome = WEIR_CLIENT_UNREACHED;
    fake_spans(&r, "a", 1);
    fake_poll(&r);
    fake_close(&r);
    open_rig(&r, &p); /* sends it */
    fake_close(&r);
    open_rig(&r, &p);
    r.agent.outcome = WEIR_CLIENT_UNREACHED;
    fake_spans(&r, "a", 1);
    fake_poll(&r);
    fake_close(&r);
    fake_init(&r);
    r.opts.spool = p.path;
    fake_open(&r, true);
    each_file(&p, remove_one, NULL);
    fake_poll(&r);
    T_EQ_U64(fake_health(&r).stats_dropped[WEIR_CLIENT_DROP_SPOOL], 1);
    T_EQ_U64(fake_health(&r).stats_sent, 0);
    fake_close(&r);
    remove_place(&p);
}

TEST(memory_that_is_full_keeps_bodies_on_disk_alone_and_the_disk_is_bounded_too)
{
    static struct fake_rig r;
    const struct place p = make_place();
    fake_init(&r);
    r.opts.spool = p.path;
    r.opts.max_stats_payloads = 2;
    r.opts.max_spool_bytes = 3000; /* seven or eight of them */
    fake_open(&r, true);
    fake_poll(&r);
    r.agent.outcome = WEIR_CLIENT_UNREACHED;
    for (int i = 0; i < 20; i++) {
        fake_spans(&r, "a", 1);
        fake_poll(&r);
    }
    struct weir_client_health h = fake_health(&r);
    T_TRUE(h.spool_bytes <= 3000);
    T_TRUE(h.queued_stats > 5);
    T_TRUE(h.spool_failed > 0);
    T_EQ_U64(h.queued_stats + h.stats_dropped[WEIR_CLIENT_DROP_QUEUE_FULL], 20);
    const uint64_t queued = h.queued_stats;
    r.agent.outcome = WEIR_CLIENT_ANSWERED;
    fake_pass(&r, 10 * FAKE_S);
    T_EQ_U64(fake_health(&r).stats_sent, queued);
    T_EQ_U64(files(&p), 0);
    fake_close(&r);
    remove_place(&p);
}

TEST(a_spool_that_another_process_has_or_that_cannot_be_is_refused)
{
    static struct fake_rig r;
    const struct place p = make_place();
    int ready[2];
    int go[2];
    T_EQ_I64(pipe(ready), 0);
    T_EQ_I64(pipe(go), 0);
    const pid_t child = fork();
    char c;
    if (child == 0) {
        (void)close(go[1]);
        open_rig(&r, &p);
        (void)!write(ready[1], "x", 1);
        (void)!read(go[0], &c, 1);
        _exit(0);
    }
    T_EQ_I64(read(ready[0], &c, 1), 1);
    fake_init(&r);
    r.opts.spool = p.path;
    T_ERR(weir_client_new(&r.opts, &r.client), WEIR_EBUSY);
    (void)close(go[1]);
    T_TRUE(waitpid(child, NULL, 0) == child);
    T_OK(weir_client_new(&r.opts, &r.client));
    fake_close(&r);
    r.opts.spool = "/dev/null";
    T_ERR(weir_client_new(&r.opts, &r.client), WEIR_ERANGE);
    r.opts.spool = "/nowhere/at/all";
    T_ERR(weir_client_new(&r.opts, &r.client), WEIR_ERANGE);
    for (int i = 0; i < 2; i++) {
        (void)close(ready[i]);
    }
    (void)close(go[0]);
    remove_place(&p);
}
