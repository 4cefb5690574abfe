/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_NET_TEXT_H
#define AGENT_NET_TEXT_H
/* text: field values of HTTP: comparison in any case, blanks, lists, media types. Threads: any. */
#include <stdbool.h>
#include <weir/base.h>

/* Without regard to the case of ASCII letters. */
bool net_text_is(struct weir_bytes text, const char *want);
/* Without blanks and tabs at both ends. */
struct weir_bytes net_text_trim(struct weir_bytes text);
/* Cut the first element of a comma list from *list, trimmed. False when the list is used up. */
bool net_text_next(struct weir_bytes *list, struct weir_bytes *ret_element);
/* The media type of a Content-Type, without its parameters. */
struct weir_bytes net_text_media_type(struct weir_bytes value);
#endif
