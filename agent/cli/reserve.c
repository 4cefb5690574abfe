/* SPDX-License-Identifier: Apache-2.0 */
/* reserve: see reserve.h. */
#include "cli/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FDS_MOST ((size_t)65536) /* half a MiB; a longer table is libuv's to make */

static void nothing(uv_work_t *work)
{
    (void)work;
}

static void after_nothing(uv_work_t *work, int status)
{
    (void)work;
    (void)status;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)poll;
    (void)status;
    (void)events;
}

static void on_closed(uv_handle_t *handle)
{
    const struct reserve *const r = handle->data;
    (void)close(r->fd);
}

/* The table is as long as the highest number watched: watch one so high, for a moment. */
static int take_table(struct reserve *r, uv_loop_t *loop, size_t fds)
{
    const int low = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (low < 0)
        return uv_translate_sys_error(ENFILE);
    r->fd = fcntl(low, F_DUPFD_CLOEXEC, (int)(fds < FDS_MOST ? fds : FDS_MOST));
    (void)close(low);
    if (r->fd < 0)
        return 0; /* past the limit of the process: so many there cannot be */
    int e = uv_poll_init(loop, &r->poll, r->fd);
    if (e) {
        (void)close(r->fd);
        return e;
    }
    r->poll.data = r;
    e = uv_poll_start(&r->poll, UV_READABLE, on_poll);
    (void)uv_poll_stop(&r->poll);
    uv_close((uv_handle_t *)&r->poll, on_closed);
    return e;
}

int reserve_take(struct reserve *r, uv_loop_t *loop, size_t fds)
{
    const int e = take_table(r, loop, fds);
    return e ? e : uv_queue_work(loop, &r->work, nothing, after_nothing);
}
