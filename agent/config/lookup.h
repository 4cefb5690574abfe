/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CONFIG_LOOKUP_H
#define AGENT_CONFIG_LOOKUP_H
/* lookup: names of options and of their groups. Inside config/. Threads: any. */
#include "config/config.h"

/* Index of the option, or CONFIG_OPTION_COUNT. */
size_t config_find(const char *name);
/* Is it the name of a group: "web", "store.retention"? */
bool config_is_group(const char *name);
/* The option or group that was meant with as many dots as name, else any option; NULL: none near.
 * Written to buf. */
const char *config_meant(const char *name, char buf[64]);

/* Fill the error: place, then the message. Returns -1. */
int config_refuse(struct config_error *error, const char *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#endif
