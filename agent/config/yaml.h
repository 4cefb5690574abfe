/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CONFIG_YAML_H
#define AGENT_CONFIG_YAML_H
/*
 * yaml: a configuration file to values. Inside config/.
 *
 * One document: mappings whose keys, joined by dots, name options. Aliases are refused, so a small
 * file cannot grow; a key of a group may stand empty. Threads: none inside.
 */
#include "config/config.h"

#define CONFIG_FILE_MAX_BYTES 1048576

/* Set what bytes of text say; file is its name for errors. 0, or -1 with *ret_error. */
int config_yaml_read(struct config *config, const char *file, const char *text, size_t bytes,
                     struct config_error *ret_error);
#endif
