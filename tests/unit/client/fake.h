/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_CLIENT_FAKE_H
#define T_CLIENT_FAKE_H
/*
 * fake: an agent as a transport of the host, which answers as a test says and keeps what it was
 * sent; and a client with an engine in front of it, on a clock of the test's.
 */
#include <t.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <weir/client.h>

enum { FAKE_SEEN_MAX = 512, FAKE_HEADERS_MAX = 24 };
#define FAKE_S INT64_C(1000000000)

struct fake_seen {
    char method[8];
    char path[24];
    char names[FAKE_HEADERS_MAX][40];
    char values[FAKE_HEADERS_MAX][96];
    size_t header_count;
    unsigned char *body;
    size_t len;
};

struct fake {
    pthread_mutex_t lock;
    uint32_t outcome;  /* of every request */
    int status_stats;  /* of /v0.6/stats; 0: 200 */
    int status_info;   /* of /info; 0: 200 */
    int status_traces; /* of all traces; 0: 200 */
    int status_once;   /* of the next traces alone; 0: as above */
    size_t max_body;   /* larger traces are answered 413; 0: no limit */
    int gone;          /* bits: 1 v1.0, 2 v0.5, 4 v0.4, 8 v0.3 answer gone_status */
    int gone_status;   /* 0: 404 */
    const char *info;
    const char *state;      /* Datadog-Agent-State of all but /info */
    const char *info_state; /* of /info */
    const char *answer;     /* to traces */
    const char *rates_version;
    const char *retry_after;
    struct fake_seen seen[FAKE_SEEN_MAX];
    size_t seen_count;
    size_t forks;
    size_t frees;
};

struct fake_rig {
    struct fake agent;
    struct t_heap heap;
    struct weir_client_transport transport;
    struct weir_client_opts opts;
    struct weir_client *client;
    struct weir_stats *engine; /* NULL: none */
    struct weir_producer *producer;
    int64_t now; /* wall clock and monotonic one */
};

extern const char fake_info[]; /* of an agent that takes everything, with two peer tags */

void fake_init(struct fake_rig *r); /* opts may be changed before fake_open */
void fake_open(struct fake_rig *r, bool with_engine);
void fake_close(struct fake_rig *r);
/* Poll until nothing is due, at most a hundred times; the time stays. */
void fake_poll(struct fake_rig *r);
void fake_pass(struct fake_rig *r, int64_t for_ns); /* and poll */
/* Publish n spans of that resource and seal them. */
void fake_spans(struct fake_rig *r, const char *resource, size_t n);
void fake_publish(struct fake_rig *r, const char *resource, size_t n);
void fake_trace(struct fake_rig *r, size_t spans, uint32_t flags);
struct weir_client_health fake_health(struct fake_rig *r);

size_t fake_count(const struct fake_rig *r, const char *path);
/* The i-th request of that path. */
const struct fake_seen *fake_nth(const struct fake_rig *r, const char *path, size_t i);
const char *fake_header(const struct fake_seen *s, const char *name); /* NULL: not there */
bool fake_has(const struct fake_seen *s, const char *text);           /* in its body */
void fake_clear(struct fake *a);
#endif
