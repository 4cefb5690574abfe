/* SPDX-License-Identifier: Apache-2.0 */
/* plat: see plat.h. Linux. */
#include "plat/plat.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_ns(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t plat_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

int64_t plat_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t plat_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void plat_random(void *dst, size_t bytes)
{
    char *at = dst;
    while (bytes > 0) {
        const ssize_t got = getrandom(at, bytes, 0);
        if (got <= 0) {
            perror("weir: getrandom");
            _exit(1);
        }
        at += got;
        bytes -= (size_t)got;
    }
}

uint64_t plat_rss_bytes(void)
{
    FILE *const f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    unsigned long long size = 0;
    unsigned long long resident = 0;
    const int n = fscanf(f, "%llu %llu", &size, &resident); /* NOLINT(cert-err34-c): the kernel's */
    (void)fclose(f);
    return n == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t plat_open_fds(void)
{
    DIR *const d = opendir("/proc/self/fd");
    if (!d)
        return 0;
    uint64_t count = 0;
    while (readdir(d))
        count++;
    (void)closedir(d);
    return count > 3 ? count - 3 : 0; /* ".", ".." and the folder itself */
}

uint64_t plat_max_fds(void)
{
    struct rlimit lim;
    return getrlimit(RLIMIT_NOFILE, &lim) == 0 ? (uint64_t)lim.rlim_cur : 0;
}

int64_t plat_start_wall_ns(void)
{
    FILE *const f = fopen("/proc/self/stat", "re");
    if (!f)
        return 0;
    unsigned long long ticks = 0;
    /* Field 22, proc(5); the name in field 2 is ours and holds no blank. */
    const int n = fscanf(/* NOLINT(cert-err34-c): the kernel's */
                         f,
                         "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                         "%*d %*d %*d %llu",
                         &ticks);
    (void)fclose(f);
    if (n != 1)
        return 0;
    const int64_t since_boot = (int64_t)ticks * (1000000000 / sysconf(_SC_CLK_TCK));
    return plat_wall_ns() - (clock_ns(CLOCK_BOOTTIME) - since_boot);
}

const char *plat_strerror(int err)
{
    const char *const text = strerrordesc_np(err);
    return text ? text : "unknown error";
}

/* glibc raises its threshold for maps of their own to the largest block that was ever freed, and
 * keeps twice as much of what is freed: one body of 25 MiB, and the process stays that large for
 * good. Fixed values stop that. A body below the first stays cheap to have and to give back.
 *
 * One heap for all threads: glibc makes one for each by mapping 64 MiB of address space; where that
 * is refused, the thread maps every block by itself, and finds no memory though the first heap has
 * plenty that is free. Threads allocate too little here to be in one another's way. */
void plat_heap_init(void)
{
    enum { MAP_BYTES = 1024 * 1024, KEEP_BYTES = 2 * 1024 * 1024 };
    /* NOLINTBEGIN(concurrency-mt-unsafe): there is no other thread yet */
    (void)mallopt(M_MMAP_THRESHOLD, MAP_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
    (void)mallopt(M_ARENA_MAX, 1);
    /* NOLINTEND(concurrency-mt-unsafe) */
}
