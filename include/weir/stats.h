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
 * Or weir_stats_start runs the owner on a thread of its own, which hands the batches to a callback.
 *
 * Threads: as each function says. The owner may be a producer too (WEIR_PRODUCER_OWNER).
 * Clocks: none inside. Time comes in as parameters, and to the thread of weir_stats_start by a
 * hook. Fork (Linux 4.14 and later): the child of a fork finds every instance empty and may publish
 * at once, with the handles it inherited; it polls, or starts a thread, of its own. What the parent
 * had taken in or left open is the parent's alone. What was allocated for it is not freed in the
 * child.
 */
#include <stdbool.h>
#include <weir/base.h>
#include <weir/batch.h>
#include <weir/mapping.h>
#include <weir/span.h>

WEIR_BEGIN_DECLS

struct weir_stats;
struct weir_producer;
struct weir_stats_identity;

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

/* What becomes of a new key when the table is full of keys that have spans in open windows. */
enum weir_cap {
    /* Into the overflow row; and once it was surely hit there more often in a window than the least
     * hit key of the table, that one's rows are folded into the overflow row and it has its place.
     */
    WEIR_CAP_HEAVY = 0,
    WEIR_CAP_FIRST, /* into the overflow row: first come */
    WEIR_CAP_DROP   /* dropped, counted table_full */
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
    uint32_t max_identities; /* prepared at once; default 65,536 */
    uint32_t cap;            /* enum weir_cap */
};

/* Errors: WEIR_EINVAL, WEIR_EFULL (more slots than WEIR_TAG_SLOTS_MAX), WEIR_ENOMEM. */
WEIR_API WEIR_NODISCARD int weir_stats_new(const struct weir_stats_opts *opts,
                                           struct weir_stats **ret_stats);
/* Producers must have been freed and batches released before, and no thread be inside; a thread of
 * weir_stats_start is stopped here. NULL is allowed. */
WEIR_API void weir_stats_free(struct weir_stats *stats);

/* The table of wanted tags for decoders, of the peer tags of the options; borrowed until
 * weir_stats_free. It is the one that spans of a producer are read by until weir_producer_tags was
 * called for it. Threads: any. */
WEIR_API const struct weir_tags *weir_stats_tags(const struct weir_stats *stats);

enum weir_producer_flag {
    WEIR_PRODUCER_OWNER = 1 << 0 /* used only on the thread that polls: its ring stays in cache */
};

/* ring_bytes 0 means 256 KiB; else 4 KiB..64 MiB, rounded up to a power of two. Threads: any.
 * Errors: WEIR_EINVAL, WEIR_ENOMEM, WEIR_EFULL (64 producers). */
WEIR_API WEIR_NODISCARD int weir_producer_new(struct weir_stats *stats, size_t ring_bytes,
                                              uint32_t flags, struct weir_producer **ret_producer);
/*
 * The calling thread's own producer, made at the first call and freed at the thread's end or with
 * the instance. Errors: as weir_producer_new, and WEIR_EFULL where the process has no room for a
 * thread-specific key. Threads: any.
 */
WEIR_API WEIR_NODISCARD int weir_stats_producer(struct weir_stats *stats,
                                                struct weir_producer **ret_producer);
/* What was committed is still drained. NULL is allowed. Threads: the producer's. */
WEIR_API void weir_producer_free(struct weir_producer *producer);

/*
 * Other peer tags from now on, a name each; one that comes twice counts once. Which kinds have them
 * is as ever: client, producer and consumer; an internal span has _dd.base_service, whatever the
 * names are. A producer follows with its next weir_producer_tags; what was published before keeps
 * its labels and is sealed with its window. With the same set of names, in any order, nothing
 * changes. Eight sets may be in use at once; one goes out of use when no producer and no identity
 * has it, and what was published by it was sealed, released, and has left the table.
 * Errors, after which all is as it was: WEIR_EINVAL (a name that is NULL, empty, longer than 200
 * bytes, not UTF-8, or has a comma; or two whose labels are one, or a fixed field's), WEIR_EFULL
 * (with the dimensions more than 46 names), WEIR_EBUSY (eight other sets are in use), WEIR_ENOMEM.
 * Cost: for producers one load where they ask for the table; never a lock. Threads: any.
 */
WEIR_API WEIR_NODISCARD int weir_stats_set_peer_tags(struct weir_stats *stats,
                                                     const char *const *names, size_t count);
/*
 * The table of the peer tags that are set now. From here on this producer reads spans by it: their
 * slots are those of this table. Between weir_stats_begin and the commit of what was added it is
 * the one of before. Borrowed until the next call, or until the producer is freed. Threads: the
 * producer's.
 */
WEIR_API const struct weir_tags *weir_producer_tags(struct weir_producer *producer);

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
 * Prepare a label set: the labels that span would have, coming from source, worked out and hashed
 * once. Of span only what makes labels counts, and its measured and partial marks. The identity is
 * good in every producer of the instance; it is freed by weir_stats_identity_free or with the
 * instance. Threads: any.
 * Errors: WEIR_EFULL (opts.max_identities; a freed one makes room at a later poll), WEIR_ENOMEM.
 */
WEIR_API WEIR_NODISCARD int weir_stats_identity_new(struct weir_stats *stats,
                                                    const struct weir_source *source,
                                                    const struct weir_span *span,
                                                    struct weir_stats_identity **ret_identity);
/* The same for a span with the slots of the producer's table (weir_producer_tags). The identity
 * keeps its labels when other peer tags are set. Threads: the producer's. Errors: the same. */
WEIR_API WEIR_NODISCARD int weir_producer_identity_new(struct weir_producer *producer,
                                                       const struct weir_source *source,
                                                       const struct weir_span *span,
                                                       struct weir_stats_identity **ret_identity);
/* No thread publishes by it any more; what was published is kept. NULL is allowed. Threads: any. */
WEIR_API void weir_stats_identity_free(struct weir_stats_identity *identity);

enum weir_identity_flag {
    WEIR_IDENTITY_ERROR = 1 << 0,
    WEIR_IDENTITY_TOP_LEVEL = 1 << 1 /* nothing else says so: there is no trace around it */
};

/*
 * Publish one span of a prepared label set that ended at end_ns, as weir_stats_publish would, for
 * CLIENT as a trace of its own; without ALIGN end_ns is to be the time of publishing. Not between
 * begin and commit. weight is as in struct weir_span: 0 means one.
 * Errors: WEIR_EFULL (dropped and counted). Cost: one record of 56 bytes; no copy of labels and no
 * hash. Never allocates. Threads: the producer's.
 */
WEIR_API WEIR_NODISCARD int weir_stats_publish_identity(struct weir_producer *producer,
                                                        const struct weir_stats_identity *identity,
                                                        int64_t end_ns, int64_t duration_ns,
                                                        uint32_t flags, uint64_t weight);

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
    /* Spans with the id of another of their trace, which count all the same; where top level is
     * computed, since nothing else looks ids up. */
    uint64_t duplicate_ids;
    /* Of the cap. displaced is a total: keys that gave their place to heavier ones. */
    uint64_t displaced;
    uint64_t
        newcomers; /* keys that found the table full, in the newest window that had any; +-3 % */
    /* Of limits, by enum weir_limit: what they are (WEIR_LIMIT_OFF: none), and how many different
     * values became tracer_blocked_value in the newest cycle that had any, +-3 %: so much more room
     * was wanted. */
    uint64_t folded[WEIR_LIMIT_SLOTS];
    uint32_t limits[WEIR_LIMIT_SLOTS];
};
/* Threads: owner. */
WEIR_API void weir_stats_get_health(const struct weir_stats *stats,
                                    struct weir_stats_health *ret_health);

/*
 * The owner on a thread of its own. Between start and stop the functions marked "Threads: owner"
 * are its alone; the callbacks run on it and may call them.
 */
struct weir_stats_start_opts {
    size_t struct_size; /* sizeof(struct weir_stats_start_opts) */
    void *ctx;          /* for batch and health */
    /* Each sealed batch, which is the callee's to release. Required. */
    void (*batch)(void *ctx, struct weir_batch *batch);
    /* After batches were handed over, and at the stop. May be NULL. */
    void (*health)(void *ctx, const struct weir_stats_health *health);
    /* Wall clock since the Unix epoch and a monotonic one. NULL: the system's. */
    void (*clock)(void *clock_ctx, int64_t *ret_wall_ns, int64_t *ret_mono_ns);
    void *clock_ctx;
    int64_t poll_for_ns; /* 200 us .. 60 s: longest sleep while nothing comes; default 10 ms */
};
/* Errors: WEIR_EINVAL, WEIR_EBUSY (started already), WEIR_ENOMEM (no thread to be had).
 * Threads: the owner's before, start and stop one at a time. */
WEIR_API WEIR_NODISCARD int weir_stats_start(struct weir_stats *stats,
                                             const struct weir_stats_start_opts *opts);
/* Seal and hand over what is there, end the thread; not from a callback. What is committed later
 * waits for the next poll or start. Nothing where nothing was started. */
WEIR_API void weir_stats_stop(struct weir_stats *stats);
/* Report now: returns when all that the calling thread had committed has been sealed and handed to
 * the batch callback. Errors: WEIR_EINVAL (not started; from a callback). Threads: any. */
WEIR_API WEIR_NODISCARD int weir_stats_flush(struct weir_stats *stats);

#define WEIR_NEWCOMERS_TOP 10
/*
 * Of the keys that found the table full, in the newest window that had any, the rank-th (0 first)
 * of the WEIR_NEWCOMERS_TOP most hit: its labels, as weir_batch_get_labels gives them, and what it
 * was hit at least, in units of 2^-20. Returns how many labels there are; 0: no such rank. The
 * labels are borrowed until the next poll. Threads: owner.
 */
WEIR_API size_t weir_stats_get_newcomer(const struct weir_stats *stats, size_t rank,
                                        uint64_t *ret_hits, struct weir_label *labels, size_t cap);

#define WEIR_FOLDED_TOP 10
/* A value that became tracer_blocked_value; hits in units of 2^-20. */
struct weir_folded {
    struct weir_bytes name;  /* of its label; empty: of a peer tag that is set no more */
    struct weir_bytes value; /* its first 200 bytes */
    uint64_t hits_at_least;
    uint64_t hits_at_most;
};
/*
 * Of the values of a field that were past its limit in the newest cycle that had any, the rank-th
 * (0 first) of the WEIR_FOLDED_TOP that were surely hit most; false: no such rank. Texts are
 * borrowed until the next poll. Threads: owner.
 */
WEIR_API bool weir_stats_get_folded(const struct weir_stats *stats, enum weir_limit limit,
                                    size_t rank, struct weir_folded *ret_folded);

WEIR_END_DECLS
#endif
