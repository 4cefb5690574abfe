/* SPDX-License-Identifier: Apache-2.0 */
/* send_transport: see send_transport.h. One easy handle, which keeps its connection. */
#include "cli/send_transport.h"

#define CURL_DISABLE_TYPECHECK /* its macros would name the functions themselves */
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_FIRST_BYTES 4096

struct send_transport {
    CURL *easy;
    char *base_url;
    struct curl_slist *headers;
    bool chunked;
    size_t max_answer;
    char *answer;
    size_t answer_len;
    size_t answer_cap;
    const char *body_at; /* what a chunked body has left */
    size_t body_left;
    char curl_error[CURL_ERROR_SIZE];
};

/*
 * libcurl by name, loaded when a verb needs it: linked, it and its dozen libraries would be
 * resident in the agent too, which has no use for them (docs/decisions/0001-resident-memory.md).
 */
#define LIBCURL "libcurl.so.4"
#define CURL_MAP(X)                                                                                \
    X(global_init, CURLcode, (long))                                                               \
    X(easy_init, CURL *, (void))                                                                   \
    X(easy_setopt, CURLcode, (CURL *, CURLoption, ...))                                            \
    X(easy_perform, CURLcode, (CURL *))                                                            \
    X(easy_getinfo, CURLcode, (CURL *, CURLINFO, ...))                                             \
    X(easy_cleanup, void, (CURL *))                                                                \
    X(easy_strerror, const char *, (CURLcode))                                                     \
    X(slist_append, struct curl_slist *, (struct curl_slist *, const char *))                      \
    X(slist_free_all, void, (struct curl_slist *))
static struct {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration takes none */
#define CURL_FIELD(name, type, parameters) type(*name) parameters;
    CURL_MAP(CURL_FIELD)
#undef CURL_FIELD
} curl;

/* dlsym gives an object pointer; POSIX says it holds a function's, and ISO C wants it copied. */
static bool load(void *library, const char *name, void *ret_function)
{
    void *const at = dlsym(library, name);
    memcpy(ret_function, &at, sizeof at);
    return at != NULL;
}

int cli_send_transport_global(void)
{
    if (curl.global_init)
        return WEIR_OK;
    void *const library = dlopen(LIBCURL, RTLD_NOW | RTLD_LOCAL);
    bool whole = library != NULL;
#define CURL_LOAD(name, type, parameters) whole = whole && load(library, "curl_" #name, &curl.name);
    CURL_MAP(CURL_LOAD)
#undef CURL_LOAD
    if (!whole) {
        memset(&curl, 0, sizeof curl);
        (void)fputs("weir: cannot load " LIBCURL ", which this verb needs: install libcurl4\n",
                    stderr);
        return WEIR_EVERSION;
    }
    return curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? WEIR_OK : WEIR_ENOMEM;
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *ctx)
{
    struct send_transport *const t = ctx;
    const size_t n = size * count;
    if (n > t->max_answer - t->answer_len)
        return 0;
    if (n > t->answer_cap - t->answer_len) {
        size_t cap = t->answer_cap ? t->answer_cap : ANSWER_FIRST_BYTES;
        while (cap < t->answer_len + n)
            cap *= 2;
        char *const answer = realloc(t->answer, cap);
        if (!answer)
            return 0;
        t->answer = answer;
        t->answer_cap = cap;
    }
    memcpy(t->answer + t->answer_len, bytes, n);
    t->answer_len += n;
    return n;
}

static size_t give_body(char *dst, size_t size, size_t count, void *ctx)
{
    struct send_transport *const t = ctx;
    size_t n = size * count;
    if (n > t->body_left)
        n = t->body_left;
    if (n)
        memcpy(dst, t->body_at, n);
    t->body_at += n;
    t->body_left -= n;
    return n;
}

/* CURLcodes of several options in one: 0 when all were taken. */
static int set_options(struct send_transport *t, const struct send_transport_opts *o)
{
    CURL *const c = t->easy;
    int bad = 0;
    bad |= (int)curl.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    bad |= (int)curl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    bad |= (int)curl.easy_setopt(c, CURLOPT_PROXY, "");
    bad |= (int)curl.easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= (int)curl.easy_setopt(c, CURLOPT_TCP_NODELAY, 1L);
    bad |= (int)curl.easy_setopt(c, CURLOPT_WRITEFUNCTION, take_answer);
    bad |= (int)curl.easy_setopt(c, CURLOPT_WRITEDATA, t);
    bad |= (int)curl.easy_setopt(c, CURLOPT_READFUNCTION, give_body);
    bad |= (int)curl.easy_setopt(c, CURLOPT_READDATA, t);
    bad |= (int)curl.easy_setopt(c, CURLOPT_ERRORBUFFER, t->curl_error);
    bad |= (int)curl.easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(o->timeout_ns / 1000000));
    bad |= (int)curl.easy_setopt(c, CURLOPT_USERAGENT, "weir-send/" WEIR_VERSION_STRING);
    if (o->unix_socket)
        bad |= (int)curl.easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, o->unix_socket);
    return bad;
}

int cli_send_transport_new(const struct send_transport_opts *o,
                           struct send_transport **ret_transport)
{
    struct send_transport *const t = calloc(1, sizeof *t);
    if (!t)
        return WEIR_ENOMEM;
    t->easy = curl.easy_init();
    t->base_url = strdup(o->base_url);
    t->chunked = o->chunked;
    t->max_answer = o->max_answer;
    if (!t->easy || !t->base_url || set_options(t, o) != 0) {
        cli_send_transport_free(t);
        return WEIR_ENOMEM;
    }
    size_t n = strlen(t->base_url);
    while (n > 0 && t->base_url[n - 1] == '/')
        t->base_url[--n] = 0;
    *ret_transport = t;
    return WEIR_OK;
}

void cli_send_transport_free(struct send_transport *t)
{
    if (!t)
        return;
    if (t->easy)
        curl.easy_cleanup(t->easy);
    curl.slist_free_all(t->headers);
    free(t->base_url);
    free(t->answer);
    free(t);
}

static bool add_header(struct send_transport *t, const char *line)
{
    struct curl_slist *const list = curl.slist_append(t->headers, line);
    if (!list)
        return false;
    t->headers = list;
    return true;
}

static bool make_headers(struct send_transport *t, const struct send_request *r)
{
    curl.slist_free_all(t->headers);
    t->headers = NULL;
    char type[128];
    bool ok = add_header(t, "Expect:"); /* libcurl would ask first for large bodies */
    if (r->content_type) {
        (void)snprintf(type, sizeof type, "Content-Type: %s", r->content_type);
        ok = ok && add_header(t, type);
    }
    if (r->gzipped)
        ok = ok && add_header(t, "Content-Encoding: gzip");
    if (t->chunked && r->body.ptr)
        ok = ok && add_header(t, "Transfer-Encoding: chunked");
    for (const char *const *h = r->headers; h && *h; h++)
        ok = ok && add_header(t, *h);
    return ok;
}

/* 0 when the request could be set up. */
static int prepare(struct send_transport *t, const struct send_request *r, const char *url)
{
    CURL *const c = t->easy;
    int bad = make_headers(t, r) ? 0 : 1;
    bad |= (int)curl.easy_setopt(c, CURLOPT_URL, url);
    bad |= (int)curl.easy_setopt(c, CURLOPT_HTTPHEADER, t->headers);
    if (!r->body.ptr) {
        bad |= (int)curl.easy_setopt(c, CURLOPT_HTTPGET, 1L);
    } else if (t->chunked) {
        t->body_at = r->body.ptr;
        t->body_left = r->body.len;
        bad |= (int)curl.easy_setopt(c, CURLOPT_POST, 1L);
        bad |= (int)curl.easy_setopt(c, CURLOPT_POSTFIELDS, NULL);
        bad |= (int)curl.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)-1);
    } else {
        bad |= (int)curl.easy_setopt(c, CURLOPT_POST, 1L);
        bad |= (int)curl.easy_setopt(c, CURLOPT_POSTFIELDS, r->body.ptr);
        bad |= (int)curl.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
    }
    bad |= (int)curl.easy_setopt(c, CURLOPT_CUSTOMREQUEST, r->method);
    return bad;
}

/* Without a connection nothing can have arrived; all other failures leave that open. */
static bool surely_never_arrived(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
           code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
           code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION;
}

/* The beginning of an answer's text on one line, control characters as blanks. */
static void quote_answer(const struct send_answer *a, char *dst, size_t size)
{
    size_t n = 0;
    for (; n < a->body.len && n + 1 < size && n < 120; n++) {
        const unsigned char ch = (unsigned char)a->body.ptr[n];
        dst[n] = ch < 0x20 || ch >= 0x7f ? ' ' : (char)ch;
    }
    while (n > 0 && dst[n - 1] == ' ')
        n--;
    dst[n] = 0;
}

void cli_send_transport_do(struct send_transport *t, const struct send_request *r,
                           struct send_answer *ret)
{
    *ret = (struct send_answer){.outcome = SEND_NEVER};
    t->answer_len = 0;
    t->curl_error[0] = 0;
    char url[1024];
    const int n = snprintf(url, sizeof url, "%s%s", t->base_url, r->path);
    if (n < 0 || (size_t)n >= sizeof url || prepare(t, r, url) != 0) {
        (void)snprintf(ret->error, sizeof ret->error, "cannot set up the request");
        return;
    }
    const CURLcode code = curl.easy_perform(t->easy);
    if (code != CURLE_OK) {
        ret->outcome = surely_never_arrived(code) ? SEND_NEVER : SEND_UNKNOWN;
        (void)snprintf(ret->error, sizeof ret->error, "%s%s: %.120s", t->base_url, r->path,
                       t->curl_error[0] ? t->curl_error : curl.easy_strerror(code));
        return;
    }
    (void)curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &ret->status);
    ret->body = (struct weir_bytes){.ptr = t->answer, .len = t->answer_len};
    ret->outcome = ret->status >= 200 && ret->status <= 299 ? SEND_TAKEN : SEND_REFUSED;
    if (ret->outcome == SEND_REFUSED) {
        char text[128];
        quote_answer(ret, text, sizeof text);
        (void)snprintf(ret->error, sizeof ret->error, "%s answered %ld: %s", r->path, ret->status,
                       text);
    }
}
