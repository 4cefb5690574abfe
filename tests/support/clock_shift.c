/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_shift: a library to preload that moves the wall clock of one program. The file named by
 * CLOCK_SHIFT_FILE holds the shift, nanoseconds as an int64 of this machine; it is mapped, so a
 * write to it takes effect at once. Other clocks are left as they are.
 *
 * Threads: any. Memory: one mapped page.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift_ns;

__attribute__((constructor)) static void map_shift(void)
{
    const char *const path = getenv("CLOCK_SHIFT_FILE");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *const map = mmap(NULL, sizeof *shift_ns, PROT_READ, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED)
        shift_ns = map;
    (void)close(fd);
}

/* clock_gettime, for those who look it up by name. */
int shifted_clock(clockid_t id, struct timespec *ts) __asm__("clock_gettime");

__attribute__((visibility("default"))) int shifted_clock(clockid_t id, struct timespec *ts)
{
    const long r = syscall(SYS_clock_gettime, id, ts);
    if (r != 0 || !shift_ns || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return (int)r;
    const int64_t ns = (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec + *shift_ns;
    ts->tv_sec = (time_t)(ns / 1000000000);
    ts->tv_nsec = (long)(ns % 1000000000);
    return 0;
}
