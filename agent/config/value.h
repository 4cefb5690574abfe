/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CONFIG_VALUE_H
#define AGENT_CONFIG_VALUE_H
/*
 * value: text to a value of an option's type, and back. Inside config/.
 *
 *   duration  10s, 1h30m, 15d: y w d h m s ms, each once, the larger first; 0 alone
 *   bytes     2GiB, 25MiB, 512KB: KiB MiB GiB TiB are powers of 1024, KB MB GB TB of 1000; a bare
 *             number is bytes
 *   count     a decimal number
 *   address   host:port with an IPv4 address, [IPv6] or localhost; empty
 *   list      items separated by commas, each a name or names joined by |
 *
 * Threads: none inside.
 */
#include "config/config.h"

#define CONFIG_WHY_BYTES 400

/*
 * Set the option's field in config, whose old value is freed. -1 fills why with one sentence and
 * leaves the field as it was.
 */
int config_value_set(struct config *config, size_t option, const char *text,
                     char why[CONFIG_WHY_BYTES]);
void config_value_clear(struct config *config, size_t option);

/* A copy fit for an error line: quoted, cut, without control bytes. */
const char *config_quote(const char *text, char buf[80]);
#endif
