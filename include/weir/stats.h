/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_STATS_H
#define WEIR_STATS_H
/*
 * stats: spans in, sealed windows of hits, errors and latency sketches out.
 *
 * Producers turn spans into canonical keys and publish them into the inbox; one owner thread
 * polls: it drains the inbox into the table, and seals windows when their time has come.
 *
 *   producer (any thread, one handle each)        owner (one thread at a time)
 *     weir_stats_begin                               weir_stats_poll
 *     weir_stats_add ... weir_stats_trace_end        weir_stats_take_batch ... weir_batch_release
 *     weir_stats_commit | weir_stats_abandon         weir_stats_snapshot
 *
 * What was added becomes visible to the owner at commit, all of it or nothing, so that a payload
 * whose last byte is bad leaves no trace.
 *
 * Threads: as each function says. The owner may be a producer too (WEIR_PRODUCER_OWNER).
 * Clocks: none inside. Time comes in as parameters.
 */
#include <stdbool.h>
#include <weir/base.h>
#include <weir/batch.h>
#include <weir/mapping.h>
#include <weir/span.h>

WEIR_BEGIN_DECLS

struct weir_stats;
struct weir_producer;

enum weir_profile {
    WEIR_PROFILE_ALL = 0,     /* every span counts but partial snapshots */
    WEIR_PROFILE_DATADOG = 1, /* the trace-agent's: top level, measured, or of an eligible kind */
    /* A tracer's own: as DATADOG, of spans that last longer than 0, and with the tracer's key:
     * service, operation, resource, type, kind, HTTP status, synthetic, trace root, service source,
     * peer tags, and, by flags, HTTP method, endpoint; gRPC status of spans of type rpc. No env.
     * WEIR_TAG_KIND, where it is present, is the kind, by case; else weir_span.kind. */
    WEIR_PROFILE_CLIENT = 2
};

enum weir_stats_flag {
    /* CLIENT: a span belongs to the window of its end, as in the other profiles. Without it to the
     * one in which it is published. */
    WEIR_STATS_ALIGN = 1 << 0,
    /* CLIENT: HTTP method and endpoint are in the key. */
    WEIR_STATS_ENDPOINTS = 1 << 1,
    /* A span with an HTTP method and without endpoint and route has the endpoint that its URL
     * tells: eight segments, those that look like parameters named by their form. Outside of CLIENT
     * it is the route. */
    WEIR_STATS_INFER_ENDPOINT = 1 << 2,
    /* The same whether there is a route or not. */
    WEIR_STATS_SIMPLIFY_ENDPOINT = 1 << 3,
    /* Each span counts once in its sketch, whatever it weighs, as in the reference; hits, errors
     * and durations stay weighted. sketch_weight of a batch is then one a span. */
    WEIR_STATS_UNWEIGHTED_SKETCHES = 1 << 4
};

/* Fields whose distinct values can be limited, by the names the reference counts them by. Append
 * only. */
#define WEIR_LIMIT_MAP(X)                                                                          \
    X(RESOURCE, "resource")                                                                        \
    X(SERVICE, "service")                                                                          \
    X(OPERATION, "name")                                                                           \
    X(SERVICE_SOURCE, "service_source")                                                            \
    X(TYPE, "type")                                                                                \
    X(KIND, "span_kind")                                                                           \
    X(HTTP_METHOD, "http_method")                                                                  \
    X(HTTP_ENDPOINT, "http_endpoint") /* the route, outside of CLIENT */                           \
    X(GRPC_STATUS, "grpc_status_code")                                                             \
    X(PEER_TAGS, "peer_tags")               /* each tag by itself */                               \
    X(ADDITIONAL, "additional_metric_tags") /* each dimension by itself */

enum weir_limit {
#define WEIR_LIMIT_ENUM(name, text) WEIR_LIMIT_##name,
    WEIR_LIMIT_MAP(WEIR_LIMIT_ENUM)
#undef WEIR_LIMIT_ENUM
        WEIR_LIMIT_COUNT
};
#define WEIR_LIMIT_SLOTS 16
#define WEIR_LIMIT_MAX 65536u
#define WEIR_LIMIT_OFF UINT32_MAX
WEIR_API const char *weir_limit_name(enum weir_limit limit); /* "resource", ... */

enum weir_late {
    WEIR_LATE_FOLD = 0, /* into the oldest open window, counted late */
    WEIR_LATE_DROP,     /* dropped, counted */
    WEIR_LATE_CORRECT   /* a batch of its own with the true start, counted late */
};

/* Zero or NULL in any field means its default. Fields are only ever appended. */
struct weir_stats_opts {
    size_t struct_size;       /* sizeof(struct weir_stats_opts) */
    struct weir_alloc alloc;  /* copied */
    uint32_t profile;         /* enum weir_profile */
    uint32_t late;            /* enum weir_late */
    int64_t window_for_ns;    /* >= 1 s; default 10 s */
    int64_t lateness_for_ns;  /* >= 0, rounded up to windows; default 20 s; -1 means 0; CLIENT
                                 without ALIGN: default 0 */
    uint32_t max_keys;        /* entries of the table; default 100,000, CLIENT 2,048; newcomers past
                                 it overflow */
    uint32_t max_corrections; /* correction windows open at once; default 512; past it: folded */
    uint32_t idle_windows;    /* an entry untouched for so many windows goes; default 6 */
    uint32_t shard;           /* number written into batches */
    uint64_t seed;            /* of the key hash; give a random one where strangers choose keys */
    /* Peer tags, for kinds client, producer, consumer. Each is names separated by commas, the
     * first present wins and names the label. NULL peer_tags means the defaults of rows §2, for
     * CLIENT none: there they are what the agent asks for. */
    const char *const *peer_tags;
    size_t peer_tag_count;
    /* Added dimensions, the same form: span attribute first, then resource attribute. CLIENT takes
     * the first four in the order of their names; others, and names that are empty or have a colon,
     * are left out (health.dimensions_ignored), and a value of more than 200 UTF-16 units is
     * written as tracer_blocked_value (health.oversized). */
    const char *const *dimensions;
    size_t dimension_count;
    uint32_t flags; /* enum weir_stats_flag */
    /*
     * Distinct values a field may have in a cycle, by enum weir_limit: first come. One more is
     * written as tracer_blocked_value, counted (health.collapsed), and its span goes to the row
     * with that value. A cycle ends with the current window, or a report. 0 is the profile's
     * default (CLIENT: 1024 resources, 32 services, 64 operations, 16 sources, types and methods, 8
     * kinds, 512 endpoints, 24 gRPC codes, 512 a peer tag, 100 a dimension; else no limit); at most
     * WEIR_LIMIT_MAX, or WEIR_LIMIT_OFF.
     */
    uint32_t limits[WEIR_LIMIT_SLOTS];
    /* Of the rows' sketches; NULL and 0: those of weir_sketch_opts. Another kind than BASE2 bins
     * nanoseconds. The instance holds the mapping. */
    const struct weir_mapping *mapping;
    uint32_t max_bins;
    /* CLIENT: a span that would count and has one of these resources ends its trace: it and those
     * behind it do not count. Copied. */
    const char *const *ignored_resources;
    size_t ignored_resource_count;
};

/* Errors: WEIR_EINVAL, WEIR_EFULL (more slots than WEIR_TAG_SLOTS_MAX), WEIR_ENOMEM. */
WEIR_API WEIR_NODISCARD int weir_stats_new(const struct weir_stats_opts *opts,
                                           struct weir_stats **ret_stats);
/* Producers must have been freed and batches released before. NULL is allowed. */
WEIR_API void weir_stats_free(struct weir_stats *stats);

/* The table of wanted tags for decoders; borrowed until weir_stats_free. Threads: any. */
WEIR_API const struct weir_tags *weir_stats_tags(const struct weir_stats *stats);

enum weir_producer_flag {
    WEIR_PRODUCER_OWNER = 1 << 0 /* used only on the thread that polls: its ring stays in cache */
};

/* ring_bytes 0 means 256 KiB; else 4 KiB..64 MiB, rounded up to a power of two. Threads: any.
 * Errors: WEIR_EINVAL, WEIR_ENOMEM, WEIR_EFULL (64 producers). */
WEIR_API WEIR_NODISCARD int weir_producer_new(struct weir_stats *stats, size_t ring_bytes,
                                              uint32_t flags, struct weir_producer **ret_producer);
/* What was committed is still drained. NULL is allowed. Threads: the producer's. */
WEIR_API void weir_producer_free(struct weir_producer *producer);

/* Where a payload came from. */
struct weir_source {
    struct weir_bytes lang; /* Datadog-Meta-Lang, for unnamed-<lang>-service; may be empty */
    uint32_t flags;         /* enum weir_source_flag */
    int64_t now_ns;         /* arrival, wall clock, since the Unix epoch */
};
enum weir_source_flag {
    WEIR_SOURCE_TOP_LEVEL_COMPUTED = 1 << 0 /* Datadog-Client-Computed-Top-Level: flags only */
};

/* Begin a payload; source is copied but for lang's bytes, borrowed until commit or abandon. */
WEIR_API void weir_stats_begin(struct weir_producer *producer, const struct weir_source *source);

/*
 * Add one span to the open payload. Strings are copied; invalid UTF-8 is repaired, over-long
 * fields are cut (contracts: wire §2.9), both counted.
 * Errors: WEIR_EFULL (the ring has no room: abandon, or commit what there is and poll) and
 * WEIR_ENOMEM, which leave the payload as it was before the call.
 * Cost: one copy of the labels and one hash. Never allocates but for the first spans of a
 * trace longer than any before. Threads: the producer's.
 */
WEIR_API WEIR_NODISCARD int weir_stats_add(struct weir_producer *producer,
                                           const struct weir_span *span);
/* End a trace (or, for loose spans, the payload): top level and eligibility are settled here.
 * Errors: WEIR_ENOMEM (a long trace; still open: try again or abandon). Threads: the producer's. */
WEIR_API WEIR_NODISCARD int weir_stats_trace_end(struct weir_producer *producer);
/* Make everything up to the last trace_end visible to the owner. */
WEIR_API void weir_stats_commit(struct weir_producer *producer);
/* Forget everything since begin or the last commit. */
WEIR_API void weir_stats_abandon(struct weir_producer *producer);
/* Count spans as received and dropped inbox_full, in the window that is current at the next poll.
 */
WEIR_API void weir_stats_drop(struct weir_producer *producer, uint64_t spans);

/*
 * begin, add each, trace_end, commit: for a host that has a finished trace of its own. A full
 * inbox drops the whole trace, counted by inbox_full.
 * Errors: WEIR_EFULL (dropped and counted).
 */
WEIR_API WEIR_NODISCARD int weir_stats_publish(struct weir_producer *producer,
                                               const struct weir_source *source,
                                               const struct weir_span *spans, size_t count);

/* CLIENT: whether the traces ended since begin, or the one published last, must be kept: a span
 * that counts has an error. Of one that was refused any span with an error. Else a sampler may drop
 * what it likes: the statistics have it. Threads: the producer's. */
WEIR_API bool weir_stats_must_keep(const struct weir_producer *producer);

/*
 * Drain the inbox, then seal what is due. Cadence runs on mono_ns (CLOCK_MONOTONIC), labels on
 * wall_ns; a wall clock that moves against it by more than a window seals all open windows and
 * goes on from the new time, counted. Returns the number of records drained. Threads: owner.
 */
WEIR_API size_t weir_stats_poll(struct weir_stats *stats, int64_t wall_ns, int64_t mono_ns);

/* Nanoseconds from mono_ns until poll has something to seal; >= 0. Threads: owner. */
WEIR_API int64_t weir_stats_next_seal_for_ns(const struct weir_stats *stats, int64_t mono_ns);

/* The oldest sealed batch not yet taken, or NULL. The caller owns it. Threads: owner. */
WEIR_API struct weir_batch *weir_stats_take_batch(struct weir_stats *stats);

/* Drain, then seal every open window now: REPORT. Threads: owner. */
WEIR_API void weir_stats_seal_all(struct weir_stats *stats, int64_t wall_ns, int64_t mono_ns);

/*
 * Copy the open windows, one batch each (flag WEIR_BATCH_OPEN), oldest first, drained before.
 * Fills up to cap; returns how many. A window that could not be copied for want of memory
 * is left out and counted (health.snapshot_failed). Threads: owner.
 */
WEIR_API size_t weir_stats_snapshot(struct weir_stats *stats, struct weir_batch **batches,
                                    size_t cap);

/*
 * Messages for the owner, from any thread, handled by the next poll after everything that the
 * caller's own producer had committed. The node is the caller's and must live until done is
 * called, on the owner's thread.
 *
 *   REPORT  drain, then seal every open window
 *   CLEAR   throw the open windows away, counted as dropped cleared; the inbox is not emptied
 *   STOP    REPORT, then refuse what comes later (counted inbox_full)
 */
enum weir_signal { WEIR_SIGNAL_REPORT = 1, WEIR_SIGNAL_CLEAR, WEIR_SIGNAL_STOP };
struct weir_signal_node {
    struct weir_signal_node *next; /* the library's */
    enum weir_signal kind;
    void (*done)(struct weir_signal_node *node); /* may be NULL */
    void *ctx;                                   /* the caller's */
};
WEIR_API void weir_stats_signal(struct weir_stats *stats, struct weir_signal_node *node);

/* Totals since weir_stats_new. Monotone. Records for which not even a window could be allocated
 * are in received and dropped[memory] here, and in no batch. */
struct weir_stats_health {
    uint64_t received; /* spans committed or dropped by producers */
    uint64_t aggregated;
    uint64_t ineligible;
    uint64_t partial;
    uint64_t dropped[WEIR_DROP_COUNT];
    uint64_t late;
    uint64_t future;
    uint64_t overflow;
    uint64_t negative_duration;
    uint64_t time_missing;
    uint64_t before_2000;
    uint64_t utf8_repaired; /* fields */
    uint64_t truncated;     /* fields */
    uint64_t weight_capped;
    uint64_t bad_status; /* http.status_code outside 100..599, field left empty */
    uint64_t clock_steps;
    uint64_t snapshot_failed;
    uint64_t sealed_batches;
    uint64_t expunged; /* entries that went for want of spans */
    /* Gauges. */
    uint64_t keys;
    uint64_t max_keys;
    uint64_t open_windows;
    uint64_t table_bytes;
    uint64_t pool_sketches; /* spares */
    uint64_t inbox_bytes;   /* committed, not yet drained */
    /* Of CLIENT. Traces as they are published, and of them those that need not be kept. */
    uint64_t traces_in;
    uint64_t spans_in; /* that counted, of traces that were taken */
    uint64_t dropped_p0_traces;
    uint64_t dropped_p0_spans;   /* all of these traces */
    uint64_t oversized;          /* values of dimensions that were too long */
    uint64_t dimensions_ignored; /* of the options */
    uint64_t bad_rate;           /* weights that were WEIR_WEIGHT_UNKNOWN */
    /* Of limits, by enum weir_limit: values written as tracer_blocked_value, one a span. overflow
     * is what the reference calls collapsed:whole_key. */
    uint64_t collapsed[WEIR_LIMIT_SLOTS];
};
/* Threads: owner. */
WEIR_API void weir_stats_get_health(const struct weir_stats *stats,
                                    struct weir_stats_health *ret_health);

WEIR_END_DECLS
#endif
