/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CONFIG_CONFIG_H
#define AGENT_CONFIG_CONFIG_H
/*
 * config: options.def as a struct, filled from defaults, then a YAML file, then the environment,
 * then flags; each value knows where it came from.
 *
 * web.listen-address is nested keys (or one dotted key) in the file, WEIR_WEB_LISTEN_ADDRESS in
 * the environment and --web.listen-address=… as a flag. What is unknown, given twice, or out of
 * range is refused with its place and the nearest name that is known.
 *
 * Threads: none inside; a loaded struct config is read-only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum config_type {
    CONFIG_STRING = 0,
    CONFIG_ENUM,
    CONFIG_DURATION,
    CONFIG_BYTES,
    CONFIG_COUNT,
    CONFIG_ADDRESS,
    CONFIG_LIST
};
enum config_reload { CONFIG_START = 0 };

struct config_address {
    char *host; /* NULL: off. Without the brackets of IPv6. */
    int port;
};
struct config_list {
    char **items;
    size_t count;
};

enum config_index {
#define OPT(field, name, type, unit, def, min, max, reload, text) CONFIG_AT_##field,
#include "config/options.def"
#undef OPT
    CONFIG_OPTION_COUNT
};

/* The words of ENUM options, by index. */
enum config_late { CONFIG_LATE_FOLD = 0, CONFIG_LATE_DROP, CONFIG_LATE_CORRECT };
enum config_overflow { CONFIG_OVERFLOW_HEAVY = 0, CONFIG_OVERFLOW_FIRST, CONFIG_OVERFLOW_DROP };
enum config_infer { CONFIG_INFER_NO = 0, CONFIG_INFER_MISSING, CONFIG_INFER_ALWAYS };
enum config_profile { CONFIG_PROFILE_ALL = 0, CONFIG_PROFILE_DATADOG };
/* The word by which a path is left to the rules of its sentence. */
#define CONFIG_AUTO "auto"

enum config_source { CONFIG_FROM_DEFAULT = 0, CONFIG_FROM_FILE, CONFIG_FROM_ENV, CONFIG_FROM_FLAG };
struct config_origin {
    enum config_source source;
    int line; /* of the file, from 1 */
    int column;
};

#define CONFIG_C_STRING char *
#define CONFIG_C_ENUM int
#define CONFIG_C_DURATION int64_t /* ns */
#define CONFIG_C_BYTES int64_t
#define CONFIG_C_COUNT int64_t
#define CONFIG_C_ADDRESS struct config_address
#define CONFIG_C_LIST struct config_list
struct config {
#define OPT(field, name, type, unit, def, min, max, reload, text) CONFIG_C_##type field;
#include "config/options.def"
#undef OPT
    struct config_origin origins[CONFIG_OPTION_COUNT];
    char *file; /* the one that was read; NULL: none */
    /* Asked for by flag; whoever loads acts on them. With ask_help nothing else is looked at. */
    bool ask_help;
    bool ask_check;
    bool ask_print;
};

/* A row of options.def. */
struct config_option {
    const char *name;
    enum config_type type;
    const char *unit;
    const char *def;
    int64_t min;
    int64_t max;
    enum config_reload reload;
    const char *text;
    size_t offset; /* in struct config */
};
extern const struct config_option config_options[CONFIG_OPTION_COUNT];

struct config_input {
    int argc; /* flags only: without the program and the verb */
    char *const *argv;
    char *const *env;         /* as environ */
    const char *default_file; /* read if it is there; NULL: none */
};
struct config_error {
    char text[1024]; /* one line, with the place, without the newline */
};

/* 0, or -1 with *ret_error. */
int config_load(const struct config_input *input, struct config **ret_config,
                struct config_error *ret_error);
void config_free(struct config *config); /* NULL is allowed */

#define CONFIG_ENV_NAME_BYTES 64
/* WEIR_WEB_LISTEN_ADDRESS for web.listen-address; WEIR_CONFIG for config.file. */
void config_env_name(const struct config_option *option, char ret_name[CONFIG_ENV_NAME_BYTES]);

/* A value as the file would have it, without quotes; cut at bytes. */
void config_format(const struct config *config, size_t option, char *buf, size_t bytes);
/* All flags with default and sentence, for --help. */
void config_help(FILE *out);
/* All values as YAML that can be read back; a comment names each one's origin. */
void config_print(const struct config *config, FILE *out);
#endif
