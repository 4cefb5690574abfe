/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CLIENT_INFO_H
#define WR_CLIENT_INFO_H
/* info: what an answer to GET /info says. */
#include <weir/client.h>

#include "json.h"

enum { WR_INFO_TAG_BYTES = 101 }; /* of a peer tag's name, its NUL included; longer: left out */

struct wr_info {
    struct weir_client_agent agent; /* but for state */
    bool has_endpoints;
    char peer_tags[WEIR_CLIENT_PEER_TAGS_MAX][WR_INFO_TAG_BYTES];
};

/* Whether text is such an answer: an object with a list of endpoints. What else is in it, or is of
 * an unexpected type, is passed over. */
bool wr_info_parse(struct weir_bytes text, struct wr_info *ret_info);
/* Whether version ("7.65.0") is that of an agent whose statistics can be relied upon. */
bool wr_info_is_recent(const char *version);
#endif
