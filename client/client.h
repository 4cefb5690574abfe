/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CLIENT_CLIENT_H
#define WR_CLIENT_CLIENT_H
/*
 * client: the inside of struct weir_client, and what its rooms ask of each other.
 *
 *   client.c     make, free, questions         discovery.c  /info, on and off
 *   owner.c      poll, thread, stop, drain     send.c       one request, and what its answer means
 *   fork.c       what a child finds            stats.c      engine -> bodies
 *   options.c    defaults, texts, headers      traces.c     traces -> payloads
 *   outbox.c     the queues under the lock     spool.c      bodies on disk
 *
 * Locks, in this order: trace_lock or stats_lock, then lock. Nothing is sent under any of them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <weir/client.h>

#include "base.h"
#include "info.h"
#include "queue.h"
#include "rates.h"
#include "retry.h"
#include "spool.h"

enum { WR_VERSION_V03 = 3 }; /* beside enum weir_trace_version: its body is that of v0.4 */
enum { WR_OWN_HEADERS = 8, WR_HOST_HEADERS = 16, WR_REQUEST_HEADERS = 10 };
enum { WR_ANSWER_MAX_BYTES = 1 << 20 };

/* Statistics of the engine. */
struct wr_client_stats {
    struct weir_stats *engine; /* NULL: none is attached */
    struct weir_payload_opts identity;
    char *texts[7]; /* of identity, NULs behind them */
    struct weir_payload *payload;
    uint64_t sequence;
    struct weir_signal_node clear;
    bool clear_pending; /* under lock */
    bool wanted;        /* under lock: on by what is known of the agent */
    atomic_bool on;     /* what hosts see: later than wanted, by the CLEAR */
    bool started;       /* the engine's thread is ours; of who starts and stops */
};

/* The open payloads of traces. */
struct wr_client_traces {
    struct weir_trace_encoder *encoders[2]; /* low priority, kept */
    struct weir_trace_header header;
    uint32_t version;  /* of what is open */
    bool computed;     /* statistics were on for what is open */
    int64_t opened_ns; /* when the first of what is open came; INT64_MAX: nothing is open */
};

struct weir_client {
    struct weir_alloc alloc;
    struct weir_client_opts opts; /* texts within: ours */
    char *spool_path;
    struct weir_client_header headers[WR_OWN_HEADERS + WR_HOST_HEADERS];
    size_t header_count;
    struct weir_client_transport transport;
    char runtime_id[WEIR_CLIENT_RUNTIME_ID];

    struct wr_fork_page *fork_page;
    uint64_t generation;

    pthread_mutex_t lock; /* queues, health, agent, p0, wishes */
    pthread_cond_t wake;
    bool has_locks;
    bool woken;
    struct wr_queue stats_queue;
    struct wr_queue trace_queue;
    struct wr_spool spool;
    struct weir_client_health health;
    struct weir_client_agent agent;
    uint64_t p0_traces; /* not yet said to the agent */
    uint64_t p0_spans;
    bool want_info;
    bool want_flush;
    _Atomic uint32_t version; /* of traces: enum weir_trace_version or WR_VERSION_V03 */

    pthread_mutex_t stats_lock;
    struct wr_client_stats stats;
    pthread_mutex_t trace_lock;
    struct wr_client_traces traces;

    /* The owner's. */
    struct wr_info *info; /* the last answer; agent is its copy */
    struct wr_retry info_retry;
    struct wr_retry stats_retry;
    struct wr_retry trace_retry;
    int64_t next_info_ns;
    int64_t last_info_ns;
    bool tags_pending; /* the engine could not take the peer tags */
    bool downgrade;    /* an answer of 404 to statistics waits for /info */
    struct wr_rates rates;
    int64_t poll_mono_ns; /* the time poll was given, */
    int64_t poll_wall_ns;
    int64_t poll_clock_ns; /* and what the clock said then */
    int64_t deadline_ns;   /* requests end by it; INT64_MAX: none */
    bool hosted;           /* the host polls */
    bool last_unreached;   /* of the last request */
    size_t done_requests;  /* since the last call of health */

    pthread_t thread;
    bool running;
    bool stop;              /* under lock */
    int64_t stop_for_ns;    /* under lock */
    _Atomic int64_t cut_ns; /* of the clock: a request under way is given up */
};

/* options.c */
int wr_client_take_options(struct weir_client *c, const struct weir_client_opts *opts);
void wr_client_free_options(struct weir_client *c);

/* fork.c: to be called first by every public function. */
void wr_client_enter(struct weir_client *c);
int wr_client_init_locks(struct weir_client *c);

/* outbox.c. wr_client_drop: item is freed; lock is held. */
void wr_client_drop(struct weir_client *c, struct wr_item *item, enum weir_client_drop reason);
void wr_client_drop_all(struct weir_client *c, struct wr_queue *q, enum weir_client_drop reason);
/* Takes item; makes room; wakes the owner. WEIR_EFULL: it did not fit and is dropped. */
int wr_client_queue(struct weir_client *c, struct wr_item *item);
void wr_client_requeue(struct weir_client *c, struct wr_item *item);
void wr_client_spool_all(struct weir_client *c); /* lock is held */
void wr_client_wake(struct weir_client *c);      /* lock is held */

/* owner.c */
int64_t wr_client_now(const struct weir_client *c);

/* send.c: whether something was sent. */
bool wr_client_send_stats(struct weir_client *c);
bool wr_client_send_traces(struct weir_client *c);
struct wr_call {
    const char *method;
    const char *path;
    struct weir_bytes body;
    struct weir_client_header more[WR_REQUEST_HEADERS];
    size_t more_count;
};
void wr_client_call(struct weir_client *c, const struct wr_call *call,
                    struct weir_client_response *ret_answer);

/* discovery.c */
bool wr_client_discovery_is_due(struct weir_client *c);
void wr_client_discover_now(struct weir_client *c);
int64_t wr_client_next_discovery_ns(struct weir_client *c);
void wr_client_saw_state(struct weir_client *c, struct weir_bytes state);
void wr_client_settle_version(struct weir_client *c); /* lock is held */

/* stats.c */
void wr_client_poll_engine(struct weir_client *c, int64_t wall_ns, int64_t mono_ns);
void wr_client_seal_engine(struct weir_client *c);
int wr_client_start_engine(struct weir_client *c);
void wr_client_set_stats(struct weir_client *c, bool on); /* lock is not held */
/* The peer tags that the agent wants, to the engine. false: to be tried again later. */
bool wr_client_set_peer_tags(struct weir_client *c, const char *const *names, size_t count);
/* The engine has no message of ours any more. */
void wr_client_release_engine(struct weir_client *c);
void wr_client_free_stats(struct weir_client *c);

/* traces.c */
/* The agent does not take traces now and some wait: open payloads fill up rather than age. */
bool wr_client_traces_wait(struct weir_client *c);
void wr_client_flush_due(struct weir_client *c, bool all);
int64_t wr_client_next_flush_ns(struct weir_client *c);
void wr_client_halve_payloads(struct weir_client *c, size_t len);
void wr_client_free_traces(struct weir_client *c);

/* transport_curl.c: ctx of ret_transport is freed by its free. */
int wr_client_curl_new(struct weir_client *c, struct weir_client_transport *ret_transport);
#endif
