/* SPDX-License-Identifier: Apache-2.0 */
/* url: see url.h. libcurl parses what passes here once more, and strictly. */
#include "url.h"

#include <string.h>
#include <unistd.h>

static const char http[] = "http://";
static const char unix_socket[] = "unix://";

static bool take_socket(const char *path, struct wr_url *ret_url)
{
    const size_t len = strlen(path);
    if (path[0] != '/' || len < 2 || len >= sizeof ret_url->socket)
        return false;
    memcpy(ret_url->socket, path, len + 1);
    memcpy(ret_url->base, "http://localhost", sizeof "http://localhost");
    return true;
}

/* HOST or HOST:PORT, an address of IPv6 in brackets; no user, path, query. */
static bool is_authority(const char *at, size_t len)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-_:[]%";
    return len > 0 && at[0] != ':' && strspn(at, allowed) >= len;
}

bool wr_url_parse(const char *text, struct wr_url *ret_url)
{
    memset(ret_url, 0, sizeof *ret_url);
    if (!text && access(WR_AGENT_SOCKET, F_OK) == 0)
        return take_socket(WR_AGENT_SOCKET, ret_url);
    if (!text)
        text = WR_AGENT_URL;
    if (strncmp(text, unix_socket, sizeof unix_socket - 1) == 0)
        return take_socket(text + sizeof unix_socket - 1, ret_url);
    if (strncmp(text, http, sizeof http - 1) != 0)
        return false;
    size_t len = strlen(text);
    if (text[len - 1] == '/' && len > sizeof http)
        len--;
    if (len >= sizeof ret_url->base || !is_authority(text + sizeof http - 1, len - sizeof http + 1))
        return false;
    memcpy(ret_url->base, text, len);
    ret_url->base[len] = 0;
    return true;
}
