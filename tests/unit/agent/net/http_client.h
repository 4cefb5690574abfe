/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_HTTP_CLIENT_H
#define T_HTTP_CLIENT_H
/*
 * http_client: a raw client for tests of the server, on the thread of its loop: it runs the loop
 * while it sends and waits. Also the readers of the shared vectors in http/.
 */
#include "t.h"

#include <uv.h>

struct http_client {
    uv_loop_t *loop;
    int fd;
    char *in; /* received, not yet read as an answer */
    size_t len;
    size_t cap;
    bool ended; /* the server closed */
    bool reset; /* and not cleanly */
};
struct http_client http_tcp(uv_loop_t *loop, int port);
struct http_client http_unix(uv_loop_t *loop, const char *path);
void http_close(struct http_client *c);
/* Send all of it, or as much as the server takes before it closes. */
void http_send(struct http_client *c, const void *bytes, size_t len);
void http_send_text(struct http_client *c, const char *text);
void http_end(struct http_client *c); /* close the writing side */
/* Run the loop for so long, receiving. */
void http_wait(struct http_client *c, int ms);

struct http_answer {
    int status; /* 0: none came */
    char head[4096];
    char body[8192]; /* cut, NUL-terminated */
    size_t body_bytes;
};
/* Wait for the next answer; head_only for an answer to HEAD. */
struct http_answer http_read(struct http_client *c, bool head_only);
/* Send a text and wait. */
struct http_answer http_ask(struct http_client *c, const char *text);
/* Wait for the server to close. */
bool http_closed(struct http_client *c, int ms);
/* The value of a field of the answer's head, or NULL; static storage. */
const char *http_field(const struct http_answer *a, const char *name);

/* A body expression of the vectors as bytes, freed with free(); folder is for file: parts. */
uint8_t *http_expand(const char *expression, const char *folder, size_t *ret_bytes);
/* One row of a .tsv: up to 8 columns, in place. False at the end. */
struct http_rows {
    char *text;
    char *at;
};
bool http_rows_open(struct http_rows *r, const char *path);
bool http_rows_next(struct http_rows *r, char *columns[8]);
void http_rows_close(struct http_rows *r);

/* Replay raw-http.tsv against a server: every row; prints and counts those that differ. */
struct http_replay {
    unsigned rows;
    unsigned wrong;
};
struct http_replay http_replay_raw(uv_loop_t *loop, int port, const char *tsv);
/* Whether a status is one of "200|400". */
bool http_status_in(int status, const char *alternatives);
#endif
