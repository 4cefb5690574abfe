/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_RUNNER_H
#define WR_STATS_RUNNER_H
/* runner: the thread of weir_stats_start. */
#include <pthread.h>
#include <stdatomic.h>
#include <weir/stats.h>

struct wr_runner {
    pthread_t thread;
    struct weir_stats_start_opts opts;
    atomic_bool running;
    atomic_bool stop;
    _Atomic uint64_t flush_wanted; /* tickets given */
    _Atomic uint64_t flush_done;   /* the newest ticket that was served */
};

/* In a forked child there is no thread. */
void wr_runner_forget(struct wr_runner *r);
#endif
