/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_DECODE_SUPPORT_H
#define T_DECODE_SUPPORT_H
/* support: a sink that keeps what it was given, payload builders, vector files. */
#include "t.h"

#include <weir/decode.h>

/* Slots of the names that t_tags adds to the fixed ones. */
enum { SLOT_PEER = WEIR_TAG_FIXED, SLOT_DIM, SLOT_TWICE, SLOT_VERSION, SLOT_COMPONENT };

struct t_kept {
    struct weir_span span; /* slots points at values below; strings into the payload */
    struct weir_value values[WEIR_TAG_SLOTS_MAX];
};

struct t_spans {
    struct t_kept *kept;
    size_t count;
    size_t cap;
    size_t traces;
    size_t errors;
    size_t refused[WEIR_REFUSAL_COUNT];
    uint64_t digest; /* of everything that was handed over, in order */
    int fail_with;   /* what the span callback returns */
};
struct weir_span_sink t_sink(struct t_spans *spans);
void t_spans_free(struct t_spans *spans);

typedef int t_decode_fn(struct weir_decoder *, const void *, size_t, const struct weir_span_sink *,
                        struct weir_decode_result *, struct weir_where *);
/* The decoder of a route ("/v0.4/traces"), or NULL. */
t_decode_fn *t_route(const char *route);

struct weir_tags *t_tags(void);

/*
 * Decode a copy that ends at a guard page, twice (kept, then by digest alone: it must be
 * deterministic), and once without a sink. spans may be NULL. The kept strings point into bytes.
 */
int t_decode(t_decode_fn *decode, const uint8_t *bytes, size_t n, struct t_spans *spans,
             struct weir_decode_result *ret_result, struct weir_where *ret_where);
/* The same for hex; *ret_bytes is freed by the caller. */
int t_decode_hex(t_decode_fn *decode, const char *hex, struct t_spans *spans, uint8_t **ret_bytes);

/* A value of a kept span as text, "-" if absent: bytes as they are, numbers by %g. Static. */
const char *t_slot(const struct t_kept *k, unsigned slot);
int t_bytes_are(struct weir_bytes b, const char *text);

/* A growing payload. */
struct t_buf {
    uint8_t *at;
    size_t len;
    size_t cap;
};
void t_buf_free(struct t_buf *b);
void t_put(struct t_buf *b, const void *bytes, size_t n);
void t_put_hex(struct t_buf *b, const char *hex);
void t_put_str(struct t_buf *b, const char *text); /* MessagePack, up to 255 bytes */
void t_put_varint(struct t_buf *b, uint64_t v);
void t_put_field(struct t_buf *b, unsigned number, const void *bytes, size_t n);
void t_put_message(struct t_buf *b, unsigned number, struct t_buf *message); /* and empty it */
void t_put_text(struct t_buf *b, unsigned number, const char *text);
void t_put_fixed64(struct t_buf *b, unsigned number, uint64_t v);
void t_put_int(struct t_buf *b, unsigned number, uint64_t v);

/* A body expression of the vectors: parts joined by +, a part hex, N*hex or file:NAME. */
struct t_buf t_body(const char *expression, const char *folder);
/* A hex file of tests/golden/clients; never missing. */
struct t_buf t_golden(const char *name);
/* The next tab-separated cell of *line, which moves on; NULL at the end. Empty cells stand. */
char *t_cell(char **line);
#endif
