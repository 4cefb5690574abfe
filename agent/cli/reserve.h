/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_RESERVE_H
#define AGENT_CLI_RESERVE_H
/*
 * reserve: libuv ends the process when it cannot make its worker threads, or cannot make its table
 * of descriptors longer. Both are had at the start instead, so that a want of memory later finds
 * only calls that can fail.
 *
 * Threads: loop. Memory: a stack each of libuv's workers, which it would make at the first query;
 * 8 bytes a descriptor.
 */
#include <stddef.h>
#include <uv.h>

struct reserve {
    uv_work_t work;
    uv_poll_t poll;
    int fd;
};

/* Must live until the loop has ended. fds: as many descriptors as the process may come to have.
 * 0, or an error of libuv. */
int reserve_take(struct reserve *r, uv_loop_t *loop, size_t fds);
#endif
