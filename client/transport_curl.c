/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport_curl: requests by libcurl, over one connection that is kept.
 *
 * Proxies of the environment are not used, redirects not followed, and no signal is touched.
 * What libcurl holds for itself comes from its own heap. Its initialisation of the process is left
 * to its first handle unless the host did it.
 *
 * Fork: the child closes its copy of the socket and forgets the handle, which a thread of the
 * parent may have been using.
 */
#include "client.h"
#include "url.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STATE_BYTES = 80, LINE_BYTES = 4096, URL_BYTES = WR_URL_BYTES + 64 };

struct curl_transport {
    struct weir_client *client;
    struct wr_url url;
    CURL *easy; /* NULL: not made yet */
    curl_socket_t socket;
    struct wr_buf answer;
    char state[STATE_BYTES];
    char rates[STATE_BYTES];
    char retry_after[STATE_BYTES];
};

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct curl_transport *const t = ctx;
    wr_buf_add(&t->answer, bytes, size * count);
    return t->answer.err ? 0 : size * count;
}

static bool is_named(const char *line, size_t len, const char *name)
{
    const size_t n = strlen(name);
    if (len <= n || line[n] != ':')
        return false;
    for (size_t i = 0; i < n; i++) {
        const char c = line[i] >= 'A' && line[i] <= 'Z' ? (char)(line[i] + 32) : line[i];
        if (c != name[i])
            return false;
    }
    return true;
}

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    struct curl_transport *const t = ctx;
    size_t len = size * count;
    char *const places[] = {t->state, t->rates, t->retry_after};
    static const char *const names[] = {"datadog-agent-state", "datadog-rates-payload-version",
                                        "retry-after"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!is_named(line, len, names[i]))
            continue;
        const char *at = line + strlen(names[i]) + 1;
        const char *end = line + len;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        while (end > at && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
            end--;
        const size_t n = (size_t)(end - at);
        if (n < STATE_BYTES) {
            memcpy(places[i], at, n);
            places[i][n] = 0;
        }
    }
    return len;
}

static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct curl_transport *const t = ctx;
    (void)purpose;
    t->socket = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    return t->socket;
}

static int on_close(void *ctx, curl_socket_t socket)
{
    struct curl_transport *const t = ctx;
    if (t->socket == socket)
        t->socket = CURL_SOCKET_BAD;
    return close(socket);
}

/* Whether a request that is under way is to be given up: weir_client_stop's time is over. */
static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t d, curl_off_t e)
{
    struct curl_transport *const t = ctx;
    const struct weir_client *const c = t->client;
    (void)a;
    (void)b;
    (void)d;
    (void)e;
    const int64_t cut_ns = atomic_load(&c->cut_ns);
    if (cut_ns == INT64_MAX)
        return 0;
    int64_t wall_ns;
    int64_t mono_ns;
    c->opts.clock(c->opts.clock_ctx, &wall_ns, &mono_ns);
    return mono_ns >= cut_ns;
}

/* 0 when all were taken. */
static int set_options(struct curl_transport *t)
{
    CURL *const e = t->easy;
    int bad = 0;
    bad |= (int)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    bad |= (int)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http");
    bad |= (int)curl_easy_setopt(e, CURLOPT_PROXY, "");
    bad |= (int)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= (int)curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    bad |= (int)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    bad |= (int)curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    bad |= (int)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    bad |= (int)curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    bad |= (int)curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_open);
    bad |= (int)curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, t);
    bad |= (int)curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    bad |= (int)curl_easy_setopt(e, CURLOPT_CLOSESOCKETDATA, t);
    bad |= (int)curl_easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress);
    bad |= (int)curl_easy_setopt(e, CURLOPT_XFERINFODATA, t);
    bad |= (int)curl_easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
    bad |= (int)curl_easy_setopt(e, CURLOPT_MAXCONNECTS, 1L);
    bad |= (int)curl_easy_setopt(e, CURLOPT_USERAGENT, "libweir-client/" WEIR_VERSION_STRING);
    if (t->url.socket[0])
        bad |= (int)curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, t->url.socket);
    return bad;
}

static bool need_handle(struct curl_transport *t)
{
    if (t->easy)
        return true;
    t->easy = curl_easy_init();
    if (t->easy && set_options(t) != 0) {
        curl_easy_cleanup(t->easy);
        t->easy = NULL;
    }
    return t->easy != NULL;
}

static bool append(struct curl_slist **list, const char *line)
{
    struct curl_slist *const longer = curl_slist_append(*list, line);
    if (longer)
        *list = longer;
    return longer != NULL;
}

static bool make_headers(const struct weir_client_request *r, struct curl_slist **list)
{
    char line[LINE_BYTES];
    bool ok = append(list, "Expect:"); /* libcurl would ask first for large bodies */
    for (size_t i = 0; i < r->header_count && ok; i++) {
        const size_t name = strlen(r->headers[i].name);
        const size_t value = strlen(r->headers[i].value);
        if (name + value + 3 > sizeof line)
            return false;
        memcpy(line, r->headers[i].name, name);
        if (value) {
            memcpy(line + name, ": ", 2);
            memcpy(line + name + 2, r->headers[i].value, value + 1);
        } else {
            memcpy(line + name, ";", 2); /* libcurl's way to say that the value is empty */
        }
        ok = append(list, line);
    }
    return ok;
}

static int prepare(struct curl_transport *t, const struct weir_client_request *r,
                   struct curl_slist **list)
{
    CURL *const e = t->easy;
    char url[URL_BYTES];
    const size_t base = strlen(t->url.base);
    const size_t path = strlen(r->path);
    if (base + path >= sizeof url || !make_headers(r, list))
        return 1;
    memcpy(url, t->url.base, base);
    memcpy(url + base, r->path, path + 1);
    int bad = 0;
    bad |= (int)curl_easy_setopt(e, CURLOPT_URL, url);
    bad |= (int)curl_easy_setopt(e, CURLOPT_HTTPHEADER, *list);
    bad |= (int)curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(r->timeout_for_ns / WR_MS_NS) + 1);
    if (r->body.len) {
        bad |= (int)curl_easy_setopt(e, CURLOPT_POST, 1L);
        bad |= (int)curl_easy_setopt(e, CURLOPT_POSTFIELDS, r->body.ptr);
        bad |= (int)curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
    } else {
        bad |= (int)curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
    }
    bad |= (int)curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, r->method);
    return bad;
}

/*
 * Without a connection nothing can have arrived; all other failures leave that open. So does one
 * to connect when a kept connection was tried before and died under the request.
 */
static uint32_t outcome_of(CURL *easy, CURLcode code)
{
    long sent = 0;
    if (code == CURLE_OK)
        return WEIR_CLIENT_ANSWERED;
    if (curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent) != CURLE_OK || sent > 0)
        return WEIR_CLIENT_UNKNOWN;
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
        code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        return WEIR_CLIENT_UNREACHED;
    return WEIR_CLIENT_UNKNOWN;
}

static struct weir_bytes bytes_of(const char *text)
{
    return (struct weir_bytes){.ptr = text, .len = strlen(text)};
}

static void on_send(void *ctx, const struct weir_client_request *r,
                    struct weir_client_response *ret)
{
    struct curl_transport *const t = ctx;
    struct curl_slist *list = NULL;
    long status = 0;
    ret->outcome = WEIR_CLIENT_UNREACHED;
    t->answer.len = 0;
    t->answer.err = WEIR_OK;
    t->answer.max = r->max_answer_bytes;
    t->state[0] = 0;
    t->rates[0] = 0;
    t->retry_after[0] = 0;
    if (need_handle(t) && prepare(t, r, &list) == 0) {
        ret->outcome = outcome_of(t->easy, curl_easy_perform(t->easy));
        if (ret->outcome == WEIR_CLIENT_ANSWERED)
            (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    }
    if (t->easy)
        (void)curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(list);
    ret->status = (int32_t)status;
    ret->body = (struct weir_bytes){.ptr = t->answer.ptr, .len = t->answer.len};
    ret->agent_state = bytes_of(t->state);
    ret->rates_version = bytes_of(t->rates);
    ret->retry_after = bytes_of(t->retry_after);
}

static void on_forked(void *ctx)
{
    struct curl_transport *const t = ctx;
    if (t->socket != CURL_SOCKET_BAD)
        (void)close(t->socket);
    t->socket = CURL_SOCKET_BAD;
    t->easy = NULL;
    t->answer.ptr = NULL;
    t->answer.len = 0;
    t->answer.cap = 0;
}

static void on_free(void *ctx)
{
    struct curl_transport *const t = ctx;
    if (t->easy)
        curl_easy_cleanup(t->easy);
    wr_buf_free(&t->answer);
    wr_client_free(&t->client->alloc, t, sizeof *t);
}

int wr_client_curl_new(struct weir_client *c, struct weir_client_transport *ret_transport)
{
    struct wr_url url;
    if (!wr_url_parse(c->opts.url, &url))
        return WEIR_EINVAL;
    struct curl_transport *const t = wr_client_alloc(&c->alloc, sizeof *t);
    if (!t)
        return WEIR_ENOMEM;
    t->client = c;
    t->url = url;
    t->socket = CURL_SOCKET_BAD;
    t->answer.alloc = &c->alloc;
    *ret_transport = (struct weir_client_transport){
        .ctx = t, .send = on_send, .forked = on_forked, .free = on_free};
    return WEIR_OK;
}
