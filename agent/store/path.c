/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path: the folder of the store: where it is by default, making it, and the lock in it.
 *
 * The lock is flock on weir.lock: the kernel lets go of it when the process ends in any way, so a
 * stale file means nothing. The holder's pid stands in it for the message of the next.
 */
#include "store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int join(char *dst, size_t cap, const char *a, size_t a_len, const char *b)
{
    const int n = snprintf(dst, cap, "%.*s%s", (int)a_len, a, b);
    return n >= 0 && (size_t)n < cap ? 0 : -ENAMETOOLONG;
}

/* Can be written; or does not exist and could be made. */
static bool is_writable(const char *dir)
{
    if (access(dir, F_OK) == 0) {
        struct stat st;
        return stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && access(dir, W_OK | X_OK) == 0;
    }
    const char *const slash = strrchr(dir, '/');
    char parent[4096];
    return errno == ENOENT && slash && slash > dir && (size_t)(slash - dir) < sizeof parent &&
           join(parent, sizeof parent, dir, (size_t)(slash - dir), "") == 0 &&
           access(parent, W_OK | X_OK) == 0;
}

int store_default_path_of(const char *state_dirs, const char *system_dir, const char *xdg_home,
                          const char *home, char *dst, size_t cap)
{
    if (state_dirs && *state_dirs) /* systemd.exec(5): several are separated by colons */
        return join(dst, cap, state_dirs, strcspn(state_dirs, ":"), "");
    if (is_writable(system_dir))
        return join(dst, cap, system_dir, strlen(system_dir), "");
    if (xdg_home && *xdg_home == '/') /* the base directory specification: relative is invalid */
        return join(dst, cap, xdg_home, strlen(xdg_home), "/weir");
    if (home && *home)
        return join(dst, cap, home, strlen(home), "/.local/state/weir");
    return -ENOENT;
}

int store_default_path(char *dst, size_t cap)
{
    /* Called at the start, before there are threads. */
    const char *const state_dirs = getenv("STATE_DIRECTORY"); /* NOLINT(concurrency-mt-unsafe) */
    const char *const xdg_home = getenv("XDG_STATE_HOME");    /* NOLINT(concurrency-mt-unsafe) */
    const char *home = getenv("HOME");                        /* NOLINT(concurrency-mt-unsafe) */
    struct passwd pw;
    struct passwd *found = NULL;
    char text[4096];
    if ((!home || !*home) && getpwuid_r(getuid(), &pw, text, sizeof text, &found) == 0 && found)
        home = found->pw_dir;
    return store_default_path_of(state_dirs, "/var/lib/weir", xdg_home, home, dst, cap);
}

static int make_each(char *path)
{
    for (char *at = path + 1;; at++) {
        if (*at && *at != '/')
            continue;
        const char was = *at;
        *at = 0;
        const int r = mkdir(path, 0750);
        const int err = errno;
        *at = was;
        if (r != 0 && err != EEXIST && (err != EROFS || access(path, F_OK) != 0))
            return -err;
        if (!was)
            return 0;
    }
}

int store_make_folder(const char *dir, struct store_error *ret_error)
{
    if (!*dir)
        return store_fail(ret_error, -ENOENT, "the folder of the store is empty: set --store.path");
    char *const path = strdup(dir);
    if (!path)
        return store_fail(ret_error, -ENOMEM, "%s: no memory", dir);
    int r = make_each(path);
    free(path);
    struct stat st;
    if (r == 0 && stat(dir, &st) != 0)
        r = -errno;
    else if (r == 0 && !S_ISDIR(st.st_mode))
        r = -ENOTDIR;
    if (r)
        return store_fail(ret_error, r,
                          "%s: cannot make the folder of the store: %s; name one that can be "
                          "written with --store.path",
                          dir, strerrordesc_np(-r));
    return 0;
}

static long read_pid(int fd)
{
    char text[32];
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = 0;
    return strtol(text, NULL, 10);
}

int store_lock(const char *dir, struct store_error *ret_error)
{
    char path[4096];
    if (join(path, sizeof path, dir, strlen(dir), "/" STORE_LOCK))
        return store_fail(ret_error, -ENAMETOOLONG, "%s: the path is too long", dir);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0) {
        const int err = errno;
        return store_fail(ret_error, -err,
                          "%s: cannot write there: %s; give the agent's user write access, or name "
                          "another folder with --store.path",
                          path, strerrordesc_np(err));
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int err = errno;
        const long pid = read_pid(fd);
        (void)close(fd);
        if (err != EWOULDBLOCK)
            return store_fail(ret_error, -err, "%s: cannot be locked: %s", path,
                              strerrordesc_np(err));
        return store_fail(ret_error, WEIR_EBUSY,
                          "%s: another weir agent (pid %ld) uses this store; stop it, or name "
                          "another folder with --store.path",
                          path, pid);
    }
    char text[32];
    const int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* A full disk must not end the start: only the next agent's message is poorer for it. */
    const bool said = ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n;
    (void)said;
    return fd;
}
