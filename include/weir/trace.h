/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H
/*
 * trace: encode traces for a Datadog agent: v0.4 (span maps), v0.5 (a dictionary before the traces)
 * and v1.0 (integer keys, strings by reference after their first use).
 *
 * An encoder gathers complete traces into one payload, in the caller's buffer or in one that grows
 * up to a maximum. A trace that does not fit leaves the encoder, dictionary included, as it was:
 * the payload is handed over and the trace tried once more. One that fits no payload is refused and
 * counted.
 *
 *   weir_trace_begin(encoder, version)
 *   weir_trace_add(encoder, trace) ...
 *   weir_trace_payload(encoder, &payload) -> to the agent; weir_trace_clear(encoder)
 *
 * What a span is in each format is stated in docs/formats/trace-v04.md, -v05.md and -v1.md. Numbers
 * have their narrowest form, ids are unsigned, doubles are float64. Of tags with the same key the
 * last one is sent, and a tag has precedence over what the encoder would write itself under that
 * key. Text that is not well-formed is mended and counted.
 *
 * Threads: one thread may use an encoder at a time. Memory: the payload, its dictionary, and one
 * span's scratch; nothing is allocated once these have grown.
 */
#include <weir/base.h>
#include <weir/text.h>

WEIR_BEGIN_DECLS

enum weir_trace_version { WEIR_TRACE_V04 = 4, WEIR_TRACE_V05 = 5, WEIR_TRACE_V1 = 10 };

enum weir_trace_type {
    WEIR_TRACE_STR = 0,
    WEIR_TRACE_BOOL = 1, /* in .i; text "true" or "false" before v1.0 */
    WEIR_TRACE_INT = 2,
    WEIR_TRACE_DOUBLE = 3,
    WEIR_TRACE_ARRAY = 4 /* of links' and events' attributes alone; its items are no arrays */
};

struct weir_trace_value {
    uint32_t type;  /* enum weir_trace_type */
    uint32_t count; /* of items */
    union {
        struct weir_str str;
        int64_t i;
        double d;
        const struct weir_trace_value *items;
    } v;
};

struct weir_trace_tag {
    struct weir_str key;
    struct weir_trace_value value;
};

struct weir_trace_link {
    uint64_t trace_id_hi;
    uint64_t trace_id;
    uint64_t span_id;
    struct weir_str tracestate;
    const struct weir_trace_tag *attributes;
    uint32_t attribute_count;
    uint32_t flags; /* the lowest 8 bits are sent */
};

struct weir_trace_event {
    int64_t time_ns;
    struct weir_str name;
    const struct weir_trace_tag *attributes;
    size_t attribute_count;
};

/* An entry of meta_struct: not sent in v0.5. */
struct weir_trace_blob {
    struct weir_str key;
    struct weir_bytes value; /* MessagePack; sent as it is */
};

/* What few spans have. */
struct weir_trace_extra {
    const struct weir_trace_link *links;
    size_t link_count;
    const struct weir_trace_event *events;
    size_t event_count;
    const struct weir_trace_blob *blobs;
    size_t blob_count;
};

enum weir_trace_span_flag {
    WEIR_TRACE_MEASURED = 1 << 0,
    WEIR_TRACE_TOP_LEVEL = 1 << 1,
    WEIR_TRACE_THREAD = 1 << 2 /* thread_id is set */
};

/* Borrowed for the call. Zero means none, where nothing else is said. */
struct weir_trace_span {
    struct weir_str service;
    struct weir_str name;
    struct weir_str resource;
    struct weir_str type; /* no string is nil in v0.4, "" in the others; the three above alike */
    uint64_t trace_id;    /* its low 64 bits */
    uint64_t span_id;
    uint64_t parent_id;
    int64_t start_ns;
    int64_t duration_ns;
    int32_t error;
    uint32_t flags;               /* enum weir_trace_span_flag */
    int32_t long_running_version; /* above 0: unfinished, sent before; below: finished at last */
    uint16_t http_status;
    uint8_t kind; /* 1 internal, 2 server, 3 client, 4 producer, 5 consumer (enum weir_kind) */
    uint8_t reserved;
    int64_t thread_id;
    struct weir_str thread_name;
    const struct weir_trace_tag *tags;
    size_t tag_count;
    const struct weir_trace_extra *extra; /* NULL: none */
};

enum weir_trace_flag { WEIR_TRACE_PRIORITY = 1 << 0 /* priority is set */ };

/* A chunk of one trace: spans that are sent together. Borrowed for the call. */
struct weir_trace {
    const struct weir_trace_span *spans;
    size_t span_count;
    uint64_t trace_id_hi; /* before v1.0: _dd.p.tid of the first span */
    int32_t priority;     /* sampling priority */
    uint32_t flags;       /* enum weir_trace_flag */
    struct weir_str origin;
    struct weir_str service;           /* of the local root; default: the first span's. v1.0 */
    const struct weir_trace_tag *tags; /* _dd.p.*: with the first span */
    size_t tag_count;
};

/* What v1.0 says once a payload. All may be left out. */
struct weir_trace_header {
    struct weir_str container_id;
    struct weir_str language;
    struct weir_str language_version;
    struct weir_str tracer_version;
    struct weir_str runtime_id;
    struct weir_str env;
    struct weir_str hostname;
    struct weir_str app_version;
    const struct weir_trace_tag *tags; /* _dd.tags.process; before v1.0 with the first span */
    size_t tag_count;
};

struct weir_trace_encoder;

/*
 * Takes a full payload; it is borrowed until this returns. The encoder must not be called from it.
 */
typedef void weir_trace_full_fn(void *ctx, uint32_t version, struct weir_bytes payload,
                                uint64_t traces, uint64_t spans);

struct weir_trace_opts {
    size_t struct_size;
    struct weir_alloc alloc;
    uint32_t version; /* enum weir_trace_version; default v0.4 */
    uint32_t reserved;
    size_t max_bytes; /* of a payload; default 8 MiB; of buffer, where there is one */
    void *buffer;     /* borrowed until the encoder is freed; NULL: one that grows */
    const struct weir_trace_header *header; /* likewise, with all it points to; NULL: none */
    weir_trace_full_fn *full;               /* NULL: weir_trace_add gives WEIR_EFULL instead */
    void *full_ctx;
};

/* opts NULL means all defaults. Errors: WEIR_EINVAL, WEIR_ENOMEM. */
WEIR_API WEIR_NODISCARD int weir_trace_encoder_new(const struct weir_trace_opts *opts,
                                                   struct weir_trace_encoder **ret_encoder);
WEIR_API void weir_trace_encoder_free(struct weir_trace_encoder *encoder); /* NULL is allowed */

/* Begin an empty payload of that version. Errors: WEIR_EINVAL. */
WEIR_API WEIR_NODISCARD int weir_trace_begin(struct weir_trace_encoder *encoder, uint32_t version);
/* Begin the next payload of the same version; capacity kept, dictionary emptied. */
WEIR_API void weir_trace_clear(struct weir_trace_encoder *encoder);

/*
 * Add one trace. After an error the encoder is as it was before the call, counters of refusals
 * apart. A text that was added must outlive the payload: until begin, clear, or the return of full.
 * A trace without spans is an empty array; in v1.0 it is not sent.
 *
 * Cost: O(bytes). Errors: WEIR_EFULL (there is no room: take the payload and try once more; when
 * there is no trace in it, the trace is refused and counted), WEIR_ENOMEM, WEIR_ERANGE (more than
 * 2^32 - 1 of something), WEIR_EINVAL (a NULL with a count, an unknown kind or type).
 */
WEIR_API WEIR_NODISCARD int weir_trace_add(struct weir_trace_encoder *encoder,
                                           const struct weir_trace *trace);

/*
 * The payload so far: borrowed until the next call on the encoder. An encoder without traces gives
 * the empty payload of its version. Errors: WEIR_EFULL (max_bytes is less than that), WEIR_ENOMEM.
 */
WEIR_API WEIR_NODISCARD int weir_trace_payload(struct weir_trace_encoder *encoder,
                                               struct weir_bytes *ret_payload);

struct weir_trace_counts {
    uint64_t traces; /* in this payload */
    uint64_t spans;
    uint64_t payloads_full;  /* from here on since the encoder was made: handed to full */
    uint64_t traces_refused; /* fit no payload */
    uint64_t spans_refused;
    uint64_t
        texts_mended; /* were not well-formed; a text in a trace that was refused is not counted */
    uint64_t links_dropped; /* did not fit their tag of 25,000 bytes before v1.0 */
};
WEIR_API void weir_trace_get_counts(const struct weir_trace_encoder *encoder,
                                    struct weir_trace_counts *ret_counts);

WEIR_END_DECLS
#endif
