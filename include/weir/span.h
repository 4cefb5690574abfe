/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_SPAN_H
#define WEIR_SPAN_H
/*
 * span: the borrowed record that decoders hand out and statistics take in, and the table of
 * wanted tags that says which attribute lands in which slot.
 *
 * A decoder walks a payload once. It looks each attribute name up in a struct weir_tags and keeps
 * only the wanted ones, each in its field's slot, so that whoever aggregates never searches. The
 * slots are the fields of contracts "what a row is": first the fixed ones of enum weir_tag, then
 * the peer tags, then added dimensions, in the order they were configured.
 *
 * Threads: a struct weir_tags is immutable once made; any number of threads may read it.
 */
#include <weir/base.h>

WEIR_BEGIN_DECLS

/* Slots 0..WEIR_TAG_FIXED-1. Peer tags and dimensions follow. */
enum weir_tag {
    WEIR_TAG_ENV = 0,
    WEIR_TAG_SERVICE,     /* OTLP service.name; a Datadog span has it as a field */
    WEIR_TAG_OPERATION,   /* OTLP operation.name */
    WEIR_TAG_RESOURCE,    /* OTLP resource.name */
    WEIR_TAG_TYPE,        /* OTLP span.type */
    WEIR_TAG_KIND,        /* Datadog meta span.kind; the decoder turns it into span->kind */
    WEIR_TAG_HTTP_STATUS, /* text or number */
    WEIR_TAG_HTTP_METHOD,
    WEIR_TAG_HTTP_ROUTE,
    WEIR_TAG_GRPC_STATUS,  /* text or number */
    WEIR_TAG_ORIGIN,       /* Datadog _dd.origin */
    WEIR_TAG_BASE_SERVICE, /* Datadog _dd.base_service */
    WEIR_TAG_TOP_LEVEL,    /* Datadog metrics _dd.top_level, _top_level */
    WEIR_TAG_MEASURED,     /* Datadog metrics _dd.measured */
    WEIR_TAG_PARTIAL,      /* Datadog metrics _dd.partial_version */
    /* Of WEIR_PROFILE_CLIENT and of endpoint inference: tables of other instances have no names for
     * them, so that nobody else pays. */
    WEIR_TAG_SERVICE_SOURCE, /* Datadog _dd.svc_src */
    WEIR_TAG_HTTP_ENDPOINT,  /* Datadog http.endpoint */
    WEIR_TAG_HTTP_URL,       /* http.url, url.full */
    WEIR_TAG_FIXED
};

#define WEIR_TAG_SLOTS_MAX 64

/* Where an attribute may stand for a name to match; a bit set. */
enum weir_tag_where {
    WEIR_IN_DD_META = 1 << 0,    /* Datadog meta: string values */
    WEIR_IN_DD_METRICS = 1 << 1, /* Datadog metrics: numbers */
    WEIR_IN_OTLP_SPAN = 1 << 2,
    WEIR_IN_OTLP_RESOURCE = 1 << 3
};

enum weir_value_type {
    WEIR_VALUE_NONE = 0,
    WEIR_VALUE_BYTES, /* as sent: UTF-8 is not yet checked */
    WEIR_VALUE_INT,
    WEIR_VALUE_DOUBLE,
    WEIR_VALUE_BOOL /* in .i */
};

struct weir_value {
    uint8_t type; /* enum weir_value_type */
    uint8_t rank; /* of the name it came by: lower wins, equal replaces; +128 from a resource */
    uint16_t reserved;
    uint32_t len; /* of bytes */
    union {
        const char *ptr;
        int64_t i;
        double d;
    } v;
};

/* One name that may fill a slot. */
struct weir_tag_name {
    const char *name; /* NUL-terminated; copied */
    uint8_t slot;     /* < WEIR_TAG_SLOTS_MAX */
    uint8_t rank;     /* 0..127, 0 first */
    uint8_t where;    /* of enum weir_tag_where */
};

struct weir_tags;

/*
 * Make a table of count names. The fixed fields of every protocol (contracts: rows §2) are always
 * in it; names adds peer tags and dimensions, whose slots start at WEIR_TAG_FIXED.
 * One (name, where) pair may fill several slots.
 *
 * Cost: O(count). Allocates.
 * Errors: WEIR_EINVAL (slot out of range, rank past 127, no where, empty name), WEIR_EFULL (more
 * than 250 names, the 31 fixed ones counted), WEIR_ENOMEM.
 */
WEIR_API WEIR_NODISCARD int weir_tags_new(const struct weir_alloc *alloc,
                                          const struct weir_tag_name *names, size_t count,
                                          struct weir_tags **ret_tags);
WEIR_API void weir_tags_free(struct weir_tags *tags); /* NULL is allowed */

/* A name's match: a slot and a rank; next, if not 0xff, is the index of another match. */
struct weir_tag_match {
    uint8_t slot;
    uint8_t rank;
    uint8_t where;
    uint8_t next;
};

/*
 * Find a name. NULL if no slot wants it at any place. Threads: any. Never allocates.
 * The result is borrowed from tags; weir_tags_next gives the next match of the same name.
 */
WEIR_API const struct weir_tag_match *weir_tags_find(const struct weir_tags *tags, const char *name,
                                                     size_t len);
WEIR_API const struct weir_tag_match *weir_tags_next(const struct weir_tags *tags,
                                                     const struct weir_tag_match *match);

enum weir_kind {
    WEIR_KIND_NONE = 0,     /* none or unknown: the empty kind */
    WEIR_KIND_INTERNAL = 1, /* numbers of opentelemetry.proto.trace.v1.Span.SpanKind */
    WEIR_KIND_SERVER = 2,
    WEIR_KIND_CLIENT = 3,
    WEIR_KIND_PRODUCER = 4,
    WEIR_KIND_CONSUMER = 5
};

enum weir_span_flag {
    WEIR_SPAN_ERROR = 1 << 0,    /* Datadog error != 0, OTLP status code 2 */
    WEIR_SPAN_LOOSE = 1 << 1,    /* not grouped by trace (OTLP): top level needs the trace id too */
    WEIR_SPAN_NO_START = 1 << 2, /* OTLP start 0; start_ns is then the end, duration 0 */
    WEIR_SPAN_NO_END = 1 << 3,   /* OTLP end 0; duration 0 */
    WEIR_SPAN_DD = 1 << 4 /* came by a Datadog route: the rule for starts before 2000 holds */
};

/* A weight that could not be told: it counts as one, and is counted (health.bad_rate). */
#define WEIR_WEIGHT_UNKNOWN (UINT64_C(1) << 63)
/* 1 / rate in units of 2^-20, to the nearest; WEIR_WEIGHT_UNKNOWN for what is not in (0, 1], NaN
 * too. Past 2^20 it is capped when it is counted. */
WEIR_API uint64_t weir_weight_of_rate(double rate);

/* Everything is borrowed until the callback that received it returns. */
struct weir_span {
    struct weir_bytes service;  /* Datadog service, or OTLP resource service.name; may be empty */
    struct weir_bytes name;     /* Datadog name; OTLP attribute operation.name */
    struct weir_bytes resource; /* Datadog resource; OTLP resource.name, else span name */
    struct weir_bytes type;
    uint64_t trace_id_hi;
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t parent_id;
    int64_t start_ns;               /* since the Unix epoch */
    int64_t duration_ns;            /* as sent; may be negative. OTLP: end - start, saturated */
    uint64_t weight;                /* units of 2^-20; 0 means WEIR_WEIGHT_ONE; or UNKNOWN */
    uint8_t kind;                   /* enum weir_kind */
    uint8_t flags;                  /* enum weir_span_flag */
    uint64_t present;               /* bit i: slot i holds a value */
    const struct weir_value *slots; /* of WEIR_TAG_SLOTS_MAX values; only present ones are valid */
    size_t raw_offset;              /* where the span's bytes stand in the payload */
    size_t raw_bytes;
};

WEIR_END_DECLS
#endif
