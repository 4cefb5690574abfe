/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PAYLOAD_H
#define WEIR_PAYLOAD_H
/*
 * payload: a sealed batch as the body of a POST to a Datadog agent's /v0.6/stats (MessagePack).
 *
 * One payload writes the bodies of one sender: it counts them (Sequence), and carries what rounding
 * weights to whole numbers leaves from one row to the next, so that the sums of all that was ever
 * written are those of the batches to half a span, half an error and half a nanosecond.
 *
 * Fields, their order and their bytes are the Java tracer's. Sketches are DDSketch protobuf in
 * nanoseconds, in the mapping of the rows: by default a logarithm of base 2^(1/64) with an offset;
 * with weir_stats_opts.mapping of WEIR_MAPPING_LINEAR, gamma 2^(1/64), offset 0, and max_bins 1024
 * the bytes of that tracer.
 *
 * Threads: one at a time. Memory: one buffer, which grows to the largest body; nothing a row.
 */
#include <weir/base.h>
#include <weir/batch.h>
#include <weir/stats.h>

WEIR_BEGIN_DECLS

struct weir_payload;

enum weir_payload_flag {
    WEIR_PAYLOAD_ALIGN = 1 << 0 /* Start is that of the window, not the time of sending */
};

/* Texts are copied, repaired to UTF-8, and cut between characters: service at 100 bytes, process
 * tags at 5000, the others at 200. Zero in any field means its default. Only ever appended. */
struct weir_payload_opts {
    size_t struct_size; /* sizeof(struct weir_payload_opts) */
    uint32_t flags;     /* enum weir_payload_flag */
    struct weir_bytes runtime_id;
    struct weir_bytes hostname;
    struct weir_bytes service;
    struct weir_bytes env;
    struct weir_bytes version;
    struct weir_bytes process_tags;   /* left out when empty */
    struct weir_bytes git_commit_sha; /* left out when empty */
    uint64_t sequence;                /* of the first body */
    size_t max_bytes;                 /* of a body; default 64 MiB */
};

/* For batches of stats, which must live as long. Errors: WEIR_EINVAL, WEIR_ENOMEM. */
WEIR_API WEIR_NODISCARD int weir_payload_new(const struct weir_stats *stats,
                                             const struct weir_payload_opts *opts,
                                             struct weir_payload **ret_payload);
WEIR_API void weir_payload_free(struct weir_payload *payload); /* NULL is allowed */

/*
 * Write batch; *ret_body is borrowed until the next call. now_ns, since the Unix epoch, is the
 * body's Start unless WEIR_PAYLOAD_ALIGN.
 * Errors, after which nothing was counted or carried: WEIR_EEMPTY (no rows: send nothing),
 * WEIR_EINVAL (a batch of another instance), WEIR_EFULL (max_bytes), WEIR_ENOMEM.
 */
WEIR_API WEIR_NODISCARD int weir_payload_encode(struct weir_payload *payload,
                                                const struct weir_batch *batch, int64_t now_ns,
                                                struct weir_bytes *ret_body);

WEIR_END_DECLS
#endif
