/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_NET_PARSER_H
#define AGENT_NET_PARSER_H
/*
 * parser: HTTP/1.1 requests from bytes, in any splits. Pure: no I/O, no clock, no route.
 *
 * The caller feeds what it has; the parser takes as much as leads to the next event and says how
 * much that was. The head is copied once into a block of its own (the reading buffer is shared by
 * all connections); a body is never copied here, its runs are pointed at where they stand.
 *
 * Refused, because two readers could understand it differently (RFC 9112 §§2.2, 5, 6, 7): a bare
 * LF or CR, a folded field, a blank before the colon, several Content-Length or Host fields, a
 * Content-Length that is not plain digits, Transfer-Encoding other than exactly one "chunked",
 * both framings at once, and Transfer-Encoding in HTTP/1.0.
 *
 * Threads: none inside. Memory: a head of at most max_head_bytes and its fields, from the heap,
 * made with the first byte of a head and gone when the caller is done with it.
 */
#include "net/head.h"

enum net_parse_state {
    NET_PARSE_START = 0, /* before a request; up to four empty lines are passed over */
    NET_PARSE_START_LF,
    NET_PARSE_METHOD,
    NET_PARSE_TARGET,
    NET_PARSE_VERSION,
    NET_PARSE_LINE_LF,
    NET_PARSE_FIELD,
    NET_PARSE_NAME,
    NET_PARSE_BLANK,
    NET_PARSE_VALUE,
    NET_PARSE_VALUE_LF,
    NET_PARSE_HEAD_LF,
    NET_PARSE_FIXED, /* a body of known length */
    NET_PARSE_SIZE,  /* chunks */
    NET_PARSE_EXTENSION,
    NET_PARSE_SIZE_LF,
    NET_PARSE_DATA,
    NET_PARSE_DATA_CR,
    NET_PARSE_DATA_LF,
    NET_PARSE_TRAILER,
    NET_PARSE_TRAILER_LINE,
    NET_PARSE_TRAILER_LF,
    NET_PARSE_LAST_LF,
    NET_PARSE_END,   /* the next feed gives NET_EVENT_END */
    NET_PARSE_DONE,  /* until net_parser_next */
    NET_PARSE_FAILED /* for ever */
};

enum net_event {
    NET_EVENT_MORE = 0, /* all bytes taken, nothing to report */
    NET_EVENT_HEAD,     /* parser->head is complete; take it, then set body_limit */
    NET_EVENT_BODY,     /* parser->data is a run of the body; borrowed from what was fed */
    NET_EVENT_END,      /* the message is complete */
    NET_EVENT_FAILED    /* parser->refusal and parser->status say why */
};

struct net_parser {
    enum net_parse_state state;
    enum net_event event;
    size_t max_head_bytes;
    size_t max_headers;
    size_t taken; /* bytes of this head, or of this message's chunk lines and trailers */
    struct net_head *head;
    uint32_t mark;      /* where the token being read begins in head->bytes */
    uint8_t digits;     /* of a chunk size; of the version */
    uint8_t blanks;     /* empty lines before the request */
    bool chunked;       /* of the message whose head was taken */
    char version[8];    /* as it comes */
    uint64_t remaining; /* of a fixed body or a chunk */
    uint64_t body_bytes;
    uint64_t body_limit; /* of a chunked body; more is refused TOO_LARGE when it is announced */
    struct weir_bytes data;
    enum net_refusal refusal;
    int status;
};

void net_parser_init(struct net_parser *parser, size_t max_head_bytes, size_t max_headers);
void net_parser_done(struct net_parser *parser);
/* Ready for the next request on the connection. */
void net_parser_next(struct net_parser *parser);
/* Feed bytes; *ret_taken of them were used up. With none, the events due without input come. */
enum net_event net_parser_feed(struct net_parser *parser, const char *bytes, size_t len,
                               size_t *ret_taken);
/* The head that NET_EVENT_HEAD announced; now the caller's, for net_head_free. */
struct net_head *net_parser_take_head(struct net_parser *parser);
/* Nothing of a request has come yet. */
bool net_parser_is_idle(const struct net_parser *parser);
/* In the middle of a head. */
bool net_parser_in_head(const struct net_parser *parser);
#endif
