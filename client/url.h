/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CLIENT_URL_H
#define WR_CLIENT_URL_H
/* url: where the agent is: http://HOST[:PORT] or unix:///PATH. */
#include <stdbool.h>
#include <stddef.h>

#define WR_AGENT_SOCKET "/var/run/datadog/apm.socket"
#define WR_AGENT_URL "http://127.0.0.1:8126"

enum { WR_URL_BYTES = 512, WR_SOCKET_BYTES = 108 }; /* of sockaddr_un */

struct wr_url {
    char base[WR_URL_BYTES];      /* "http://host:port", without a slash at its end */
    char socket[WR_SOCKET_BYTES]; /* "": by TCP */
};

/* false: not of these forms, or too long. text NULL: the default, by what is there. */
bool wr_url_parse(const char *text, struct wr_url *ret_url);
#endif
