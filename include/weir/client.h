/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_CLIENT_H
#define WEIR_CLIENT_H
/*
 * client: the link from a program to a Datadog agent: span statistics and traces out, what the
 * agent can take and its sampling rates in. A library of its own, libweir-client, on libcurl or on
 * a transport of the host.
 *
 * The client asks the agent what it takes (GET /info), at the start, every info_for_ns, and when
 * the state that the agent names in its answers changes. Statistics are on while the agent takes
 * them and leaves traces that are counted to be dropped; where it no longer does, they go off and
 * the engine is cleared, and come on again by themselves. The peer tags that the agent wants become
 * those of the engine.
 *
 * What is to be sent waits in two bounded queues. A body that the agent did not get is sent again,
 * with back-off and jitter: of statistics to the byte, with the same RuntimeID, Sequence and
 * Idempotency-Key, also where it is unknown whether it arrived; of traces, in which nothing tells a
 * repeat, only where it surely did not. Bodies of statistics that were refused once can be kept in
 * a folder, from which the next process of the host sends them. What is dropped is counted, by
 * reason.
 *
 *   weir_client_new(&opts, &client)
 *   weir_client_attach_stats(client, stats, &identity)    weir_client_add_trace(client, &trace,
 * ...) weir_client_start(client)                             or weir_client_poll now and then
 *   weir_client_free(client)                              which sends what it still can
 *
 * Nothing is logged; what happens is counted (weir_client_get_health).
 *
 * Threads: as each function says; "owner" is the thread of weir_client_start, or else the one that
 * polls. Clocks: as parameters, and to the thread by a hook. Fork (Linux 4.14 and later): the child
 * finds the client without connection, queue, thread and spool, with another runtime id, and may
 * use it at once or start it again. What was allocated for the parent is not freed in the child.
 * Memory: the queues, under their bounds, one open payload of traces a priority, and what libcurl
 * holds for one connection.
 */
#include <stdbool.h>
#include <weir/base.h>
#include <weir/batch.h>
#include <weir/payload.h>
#include <weir/stats.h>
#include <weir/trace.h>

WEIR_BEGIN_DECLS

struct weir_client;

struct weir_client_header {
    const char *name;
    const char *value;
};

/* What became of a request. */
enum weir_client_outcome {
    WEIR_CLIENT_ANSWERED = 0,
    WEIR_CLIENT_UNREACHED = 1, /* nothing can have arrived */
    WEIR_CLIENT_UNKNOWN = 2    /* sent in part or whole, no whole answer */
};

/* Borrowed for the call. */
struct weir_client_request {
    const char *method; /* "GET", "POST", "PUT" */
    const char *path;   /* "/v0.6/stats" */
    const struct weir_client_header *headers;
    size_t header_count;
    struct weir_bytes body;  /* empty: none */
    int64_t timeout_for_ns;  /* of the whole request */
    size_t max_answer_bytes; /* a longer body is UNKNOWN */
};

/* All zero before the call. Bytes are borrowed until the next call. */
struct weir_client_response {
    uint32_t outcome; /* enum weir_client_outcome */
    int32_t status;   /* of HTTP */
    struct weir_bytes body;
    struct weir_bytes agent_state;   /* Datadog-Agent-State */
    struct weir_bytes rates_version; /* Datadog-Rates-Payload-Version */
    struct weir_bytes retry_after;   /* Retry-After */
};

/* A transport of the host. Called by the owner alone, one request at a time. */
struct weir_client_transport {
    void *ctx;
    void (*send)(void *ctx, const struct weir_client_request *request,
                 struct weir_client_response *ret_response);
    void (*forked)(void *ctx); /* in a child, before its first request; NULL: nothing to do */
    void (*free)(void *ctx);   /* with the client; NULL: nothing to do */
};

/* Why something was dropped. Append only. */
#define WEIR_CLIENT_DROP_MAP(X)                                                                    \
    X(QUEUE_FULL, "queue_full") /* the oldest of the lowest priority goes */                       \
    X(MEMORY, "memory")         /* no memory to encode or keep it */                               \
    X(OFF, "off")               /* statistics, while the agent takes none */                       \
    X(DOWNGRADED, "downgraded") /* statistics that waited when the agent took no more */           \
    X(REFUSED, "refused")       /* the agent's answer was 3xx or 4xx: a bad payload */             \
    X(TOO_LARGE, "too_large")   /* 413 to what cannot be halved, or larger than a payload */       \
    X(ATTEMPTS, "attempts")     /* answered max_attempts times, never taken */                     \
    X(UNKNOWN, "unknown")       /* traces that may have arrived: not sent twice */                 \
    X(VERSION, "version")       /* traces encoded for a version that the agent does not take */    \
    X(SPOOL, "spool")           /* a file of the spool that cannot be read any more */             \
    X(STOPPED, "stopped")       /* the drain at the end did not come to it */                      \
    X(P0, "p0")                 /* traces whose statistics are counted and need not be kept */

enum weir_client_drop {
#define WEIR_CLIENT_DROP_ENUM(name, text) WEIR_CLIENT_DROP_##name,
    WEIR_CLIENT_DROP_MAP(WEIR_CLIENT_DROP_ENUM)
#undef WEIR_CLIENT_DROP_ENUM
        WEIR_CLIENT_DROP_COUNT
};
#define WEIR_CLIENT_DROP_SLOTS 16
/* "queue_full", ... Static storage; NULL for another number. Threads: any. */
WEIR_API const char *weir_client_drop_name(enum weir_client_drop reason);

/* Totals since weir_client_new. Monotone, but for the gauges. */
struct weir_client_health {
    uint64_t requests;
    uint64_t answered;
    uint64_t unreached;
    uint64_t unknown;
    uint64_t bad_payloads;  /* answers of 4xx to bodies, but for 404, 408, 413, 415 and 429 */
    uint64_t server_errors; /* answers of 5xx, and 408 and 429 */
    uint64_t info_taken;    /* answers to /info that could be read */
    uint64_t info_failed;
    uint64_t state_changes;     /* of Datadog-Agent-State that made /info be read again */
    uint64_t upgrades;          /* statistics went on */
    uint64_t downgrades;        /* and off */
    uint64_t fallbacks;         /* answers of 404 and 415 to traces: the next lower version */
    uint64_t peer_tags_refused; /* times the engine did not take what the agent wants */
    uint64_t rates_changed;
    uint64_t rates_refused; /* that could not be read */
    /* Bodies of statistics. */
    uint64_t stats_sent;
    uint64_t stats_retried; /* times one was sent again */
    uint64_t stats_dropped[WEIR_CLIENT_DROP_SLOTS];
    /* Payloads of traces, and what is in them. */
    uint64_t trace_payloads_sent;
    uint64_t trace_payloads_retried;
    uint64_t traces_in;
    uint64_t spans_in;
    uint64_t traces_sent;
    uint64_t spans_sent;
    uint64_t traces_dropped[WEIR_CLIENT_DROP_SLOTS];
    uint64_t spans_dropped[WEIR_CLIENT_DROP_SLOTS];
    uint64_t spans_sampled; /* of traces that were dropped as P0, sent by themselves */
    /* The spool. */
    uint64_t spool_written;
    uint64_t spool_loaded; /* of an earlier process */
    uint64_t spool_failed; /* files that could not be written */
    /* Gauges. */
    uint64_t stats_on; /* 1: the agent takes statistics */
    uint64_t queued_stats;
    uint64_t queued_stats_bytes; /* in memory */
    uint64_t queued_traces;      /* payloads */
    uint64_t queued_trace_bytes;
    uint64_t spool_bytes;
};

/* A sampling rate that the agent asks for. */
struct weir_client_rate {
    struct weir_bytes key; /* "service:shop,env:prod"; "service:,env:" is everything else */
    double rate;           /* 0..1 */
};

enum weir_client_flag {
    /* Until the agent's first answer to /info statistics count as on, and their bodies wait. */
    WEIR_CLIENT_OPTIMISTIC = 1 << 0,
    /* Statistics go to agents older than 7.65.0, too. */
    WEIR_CLIENT_ANY_VERSION = 1 << 1,
    /* Spans of add_trace have no WEIR_TRACE_TOP_LEVEL of the host's: the agent works it out. */
    WEIR_CLIENT_NO_TOP_LEVEL = 1 << 2,
    /* The host runs the engine that is attached, and gives its batches by weir_client_add_batch. */
    WEIR_CLIENT_HOST_ENGINE = 1 << 3
};

/* Zero or NULL in any field means its default. Texts are copied. Fields are only ever appended. */
struct weir_client_opts {
    size_t struct_size;      /* sizeof(struct weir_client_opts) */
    struct weir_alloc alloc; /* copied; called from any thread that calls the client, and its own */
    /* http://HOST[:PORT] or unix:///PATH. Default: unix:///var/run/datadog/apm.socket where that is
     * there, else http://127.0.0.1:8126. */
    const char *url;
    const struct weir_client_transport *transport; /* copied; in place of libcurl and url */
    uint32_t flags;                                /* enum weir_client_flag */
    uint32_t trace_version; /* enum weir_trace_version, where the agent has it; default v0.4 */
    struct weir_bytes lang; /* of headers; each is left out when empty */
    struct weir_bytes lang_version;
    struct weir_bytes lang_interpreter;
    struct weir_bytes lang_vendor;
    struct weir_bytes tracer_version;
    struct weir_bytes container_id;
    struct weir_bytes entity_id;
    const struct weir_client_header *headers; /* more, with every request; at most 16 */
    size_t header_count;
    int64_t timeout_for_ns;      /* of a request; default 10 s */
    int64_t info_for_ns;         /* between requests of /info; default 60 s */
    int64_t flush_for_ns;        /* traces wait so long for their payload to fill; default 1 s */
    int64_t retry_first_for_ns;  /* default 500 ms; doubles up to the next, with jitter */
    int64_t retry_max_for_ns;    /* default 10 s */
    int64_t drain_for_ns;        /* of weir_client_free; default 2 s; -1: none */
    uint32_t max_attempts;       /* that the agent answered; default 20 */
    uint32_t max_stats_payloads; /* in memory; default 256 */
    uint32_t max_trace_payloads; /* default 256 */
    uint32_t reserved;
    size_t max_stats_bytes; /* of queued bodies in memory; default 16 MiB */
    size_t max_trace_bytes; /* default 32 MiB */
    size_t payload_bytes;   /* of one payload of traces; default 5 MiB; at least 4 KiB */
    /* A folder, made if absent, that one process at a time uses: bodies of statistics that the
     * agent did not take at once. NULL: none. */
    const char *spool;
    uint64_t max_spool_bytes;               /* default 64 MiB */
    uint64_t seed;                          /* of the jitter; 0: from the system */
    const struct weir_trace_header *header; /* of v1.0 payloads; borrowed; runtime_id is ours */
    void *ctx;                              /* of the callbacks, which may be NULL */
    /* Called by the owner. The rates changed; borrowed for the call. */
    void (*rates)(void *ctx, const struct weir_client_rate *rates, size_t count);
    /* The peer tags that the agent wants are others, and the engine has them from here on
     * (weir_stats_set_peer_tags); borrowed for the call. */
    void (*peer_tags)(void *ctx, const char *const *names, size_t count);
    /* After requests. */
    void (*health)(void *ctx, const struct weir_client_health *health);
    /* As weir_stats_start_opts.health, by the thread that weir_client_start has the engine start.
     */
    void (*stats_health)(void *ctx, const struct weir_stats_health *health);
    /* Called by weir_client_add_trace, and must not call the client: whether a span of a trace that
     * is dropped as P0 is sent all the same. */
    bool (*keep_span)(void *ctx, const struct weir_trace_span *span);
    /* As weir_stats_start_opts.clock. */
    void (*clock)(void *clock_ctx, int64_t *ret_wall_ns, int64_t *ret_mono_ns);
    void *clock_ctx;
};

/*
 * opts NULL means all defaults. Errors: WEIR_EINVAL (an option, url among them), WEIR_ENOMEM,
 * WEIR_EBUSY (another process has the spool), WEIR_ERANGE (the folder cannot be made or used).
 * Threads: any.
 */
WEIR_API WEIR_NODISCARD int weir_client_new(const struct weir_client_opts *opts,
                                            struct weir_client **ret_client);
/* Stop as weir_client_stop with drain_for_ns, and free; before the engine that is attached. NULL is
 * allowed. No thread is inside, none comes. */
WEIR_API void weir_client_free(struct weir_client *client);

/*
 * Send the statistics of stats, which lives until the client is freed. identity is what its bodies
 * say of their sender; it may be NULL. Its runtime_id, of at most 63 bytes, is made by the client
 * when it is empty, and always in a child of a fork. Before weir_client_start, once.
 * Errors: WEIR_EINVAL, WEIR_EBUSY (there is one already), WEIR_ENOMEM. Threads: owner.
 */
WEIR_API WEIR_NODISCARD int weir_client_attach_stats(struct weir_client *client,
                                                     struct weir_stats *stats,
                                                     const struct weir_payload_opts *identity);
/*
 * Run the owner on a thread of its own, and the engine that is attached on another
 * (weir_stats_start). Errors: WEIR_EBUSY (started already, or the engine is), WEIR_ENOMEM (no
 * thread to be had). Threads: start and stop one at a time.
 */
WEIR_API WEIR_NODISCARD int weir_client_start(struct weir_client *client);
/*
 * Seal what the engine has open, end the threads, and go on sending for at most drain_for_ns or
 * until the agent is not reached. What is left then stays queued: for another start, or for free,
 * which spools or drops it. Threads: not a callback's.
 */
WEIR_API void weir_client_stop(struct weir_client *client, int64_t drain_for_ns);

/*
 * Without weir_client_start: poll the engine that is attached and send what it sealed, and what
 * else waits, a few requests at most. Returns the nanoseconds until there is something to do
 * again. Requests block up to timeout_for_ns. Threads: owner.
 */
WEIR_API int64_t weir_client_poll(struct weir_client *client, int64_t wall_ns, int64_t mono_ns);

/* Whether the agent takes statistics. Where it does not, spans need not be published, and traces
 * must not be dropped for having been counted. Threads: any. */
WEIR_API bool weir_client_stats_on(struct weir_client *client);

/* Take a sealed batch of the engine that is attached (WEIR_CLIENT_HOST_ENGINE). Takes batch, also
 * on failure. Errors: WEIR_EINVAL (no engine), WEIR_ENOMEM, WEIR_EFULL; counted. Threads: any. */
WEIR_API WEIR_NODISCARD int weir_client_add_batch(struct weir_client *client,
                                                  struct weir_batch *batch, int64_t now_ns);

enum weir_client_trace_flag {
    WEIR_CLIENT_KEEP = 1 << 0 /* of the sampler, the user, or weir_stats_must_keep */
};
/*
 * Add a trace to the open payload. Without WEIR_CLIENT_KEEP it is of low priority: dropped and
 * counted P0 where statistics are on, else sent, and dropped first when there is no room. Texts of
 * struct weir_text must live as long as the client.
 * Errors: those of weir_trace_add, WEIR_EFULL (larger than payload_bytes: dropped and counted).
 * Threads: any.
 */
WEIR_API WEIR_NODISCARD int weir_client_add_trace(struct weir_client *client,
                                                  const struct weir_trace *trace, uint32_t flags);
/* Queue a payload that the host has encoded, for weir_client_trace_version. Copied.
 * Errors: WEIR_EINVAL, WEIR_ENOMEM, WEIR_EFULL; dropped and counted then. Threads: any. */
WEIR_API WEIR_NODISCARD int weir_client_add_payload(struct weir_client *client, uint32_t version,
                                                    struct weir_bytes payload, uint64_t traces,
                                                    uint64_t spans, uint32_t flags);
/* The version that the agent takes now (enum weir_trace_version). Threads: any. */
WEIR_API uint32_t weir_client_trace_version(struct weir_client *client);
/* Open payloads of traces are sent at once, whatever flush_for_ns says. Threads: any. */
WEIR_API void weir_client_flush(struct weir_client *client);
/* Ask /info now. Threads: any. */
WEIR_API void weir_client_discover(struct weir_client *client);

#define WEIR_CLIENT_PEER_TAGS_MAX 64
/* What the agent said last, all of one answer. */
struct weir_client_agent {
    bool known;    /* there was an answer */
    bool stats;    /* it lists /v0.6/stats */
    bool drop_p0s; /* client_drop_p0s */
    bool v1;       /* endpoints of traces */
    bool v05;
    bool v04;
    bool v03;
    uint8_t reserved;
    uint32_t obfuscation_version;
    uint32_t peer_tag_count;
    uint32_t span_kind_count; /* of span_kinds_stats_computed */
    char version[32];         /* "" where it is missing or longer */
    char state[80];           /* Datadog-Agent-State; "" where there was none */
};
/* Threads: any. */
WEIR_API void weir_client_get_agent(struct weir_client *client,
                                    struct weir_client_agent *ret_agent);
WEIR_API void weir_client_get_health(struct weir_client *client,
                                     struct weir_client_health *ret_health);
#define WEIR_CLIENT_RUNTIME_ID 64
/* What the bodies name, NUL-terminated; another in a child of a fork. Threads: any. */
WEIR_API void weir_client_get_runtime_id(struct weir_client *client,
                                         char ret_id[WEIR_CLIENT_RUNTIME_ID]);

WEIR_END_DECLS
#endif
