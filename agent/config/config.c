/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: see config.h. The sources are laid over each other from the weakest to the strongest;
 * flags are looked through once before, for the file's name. Threads: none inside.
 */
#include "config/config.h"

#include "config/lookup.h"
#include "config/near.h"
#include "config/value.h"
#include "config/yaml.h"
#include "plat/plat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct config_option config_options[CONFIG_OPTION_COUNT] = {
#define OPT(field, option_name, option_type, option_unit, default_text, least, most, when,         \
            sentence)                                                                              \
    [CONFIG_AT_##field] = {.name = (option_name),                                                  \
                           .type = CONFIG_##option_type,                                           \
                           .unit = (option_unit),                                                  \
                           .def = (default_text),                                                  \
                           .min = (least),                                                         \
                           .max = (most),                                                          \
                           .reload = CONFIG_##when,                                                \
                           .text = (sentence),                                                     \
                           .offset = offsetof(struct config, field)},
#include "config/options.def"
#undef OPT
};

/* WEIR_ and the name in capitals. */
static void derived_env_name(const struct config_option *option, char name[CONFIG_ENV_NAME_BYTES])
{
    (void)snprintf(name, CONFIG_ENV_NAME_BYTES, "WEIR_%s", option->name);
    for (char *s = name; *s; s++) {
        if (*s == '.' || *s == '-')
            *s = '_';
        else if (*s >= 'a' && *s <= 'z')
            *s = (char)(*s - 'a' + 'A');
    }
}

void config_env_name(const struct config_option *option, char ret_name[CONFIG_ENV_NAME_BYTES])
{
    if (option == &config_options[CONFIG_AT_config_file])
        (void)snprintf(ret_name, CONFIG_ENV_NAME_BYTES, "WEIR_CONFIG");
    else
        derived_env_name(option, ret_name);
}

static int set_defaults(struct config *config, struct config_error *error)
{
    char why[CONFIG_WHY_BYTES];
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        if (config_value_set(config, i, config_options[i].def, why) != 0)
            return config_refuse(error, config_options[i].name, "%s", why);
    }
    return 0;
}

/* Flags. */

struct flag {
    size_t option;
    const char *text;
};
struct flags {
    struct flag *list; /* at most argc */
    size_t count;
};

static int unknown_flag(const char *flag, struct config_error *error)
{
    const char *names[CONFIG_OPTION_COUNT + 3];
    size_t count = 0;
    char name[CONFIG_ENV_NAME_BYTES];
    char quoted[80];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(flag + 2, "="), flag + 2);
    for (; count < CONFIG_OPTION_COUNT; count++)
        names[count] = config_options[count].name;
    names[count++] = "help";
    names[count++] = "check-config";
    names[count++] = "print-config";
    const char *const meant = near_find(name, names, count);
    (void)config_quote(flag, quoted);
    return meant ? config_refuse(error, quoted, "unknown flag: did you mean --%s?", meant)
                 : config_refuse(error, quoted, "unknown flag: --help lists them");
}

static bool take_ask(const char *arg, struct config *config)
{
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
        config->ask_help = true;
    else if (strcmp(arg, "--check-config") == 0)
        config->ask_check = true;
    else if (strcmp(arg, "--print-config") == 0)
        config->ask_print = true;
    else
        return false;
    return true;
}

/* --name=value or --name value, at *at; moves *at past what it took. */
static int take_flag(const struct config_input *input, int *at, struct flags *flags,
                     struct config_error *error)
{
    const char *const arg = input->argv[*at];
    const char *const equals = strchr(arg, '=');
    char name[128];
    char quoted[80];
    if (strncmp(arg, "--", 2) != 0)
        return config_refuse(error, config_quote(arg, quoted),
                             "unexpected argument: settings are given as --name=value");
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
    const size_t option = config_find(name);
    if (option == CONFIG_OPTION_COUNT)
        return unknown_flag(arg, error);
    for (size_t i = 0; i < flags->count; i++) {
        if (flags->list[i].option == option)
            return config_refuse(error, config_quote(arg, quoted), "given twice");
    }
    if (!equals && *at + 1 >= input->argc)
        return config_refuse(error, config_quote(arg, quoted), "needs a value");
    flags->list[flags->count++] =
        (struct flag){.option = option, .text = equals ? equals + 1 : input->argv[++*at]};
    return 0;
}

static int scan_flags(const struct config_input *input, struct config *config, struct flags *flags,
                      struct config_error *error)
{
    for (int i = 0; i < input->argc; i++) {
        if (strcmp(input->argv[i], "--help") == 0 || strcmp(input->argv[i], "-h") == 0) {
            config->ask_help = true;
            return 0;
        }
    }
    for (int i = 0; i < input->argc; i++) {
        if (!take_ask(input->argv[i], config) && take_flag(input, &i, flags, error) != 0)
            return -1;
    }
    return 0;
}

static int apply_flags(struct config *config, const struct flags *flags, struct config_error *error)
{
    char why[CONFIG_WHY_BYTES];
    char place[CONFIG_ENV_NAME_BYTES + 2];
    for (size_t i = 0; i < flags->count; i++) {
        const struct flag *const f = &flags->list[i];
        (void)snprintf(place, sizeof place, "--%s", config_options[f->option].name);
        if (config_value_set(config, f->option, f->text, why) != 0)
            return config_refuse(error, place, "%s", why);
        config->origins[f->option].source = CONFIG_FROM_FLAG;
    }
    return 0;
}

/* Environment. */

/*
 * A name that is nearly one of ours was meant to be it. Other WEIR_ names are left alone: the
 * other verbs have theirs, and Kubernetes makes WEIR_PORT and its like for a service named weir.
 */
static int refuse_near_names(const char *entry, struct config_error *error)
{
    char name[CONFIG_ENV_NAME_BYTES];
    char known[CONFIG_ENV_NAME_BYTES];
    const size_t n = strcspn(entry, "=");
    if (n >= sizeof name)
        return 0;
    memcpy(name, entry, n);
    name[n] = 0;
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        char derived[CONFIG_ENV_NAME_BYTES]; /* WEIR_CONFIG_FILE, which is WEIR_CONFIG */
        derived_env_name(&config_options[i], derived);
        config_env_name(&config_options[i], known);
        if (near_distance(name, known) <= 2 || near_distance(name, derived) <= 2)
            return config_refuse(error, name, "unknown name in the environment: did you mean %s?",
                                 known);
    }
    return 0;
}

/* The option an entry of environ sets, and its text; CONFIG_OPTION_COUNT for none. */
static size_t env_option(const char *entry, const char **ret_text)
{
    char known[CONFIG_ENV_NAME_BYTES];
    const size_t n = strcspn(entry, "=");
    for (size_t i = 0; entry[n] == '=' && i < CONFIG_OPTION_COUNT; i++) {
        config_env_name(&config_options[i], known);
        if (strlen(known) == n && memcmp(known, entry, n) == 0) {
            *ret_text = entry + n + 1;
            return i;
        }
    }
    return CONFIG_OPTION_COUNT;
}

static int apply_env(struct config *config, char *const *env, struct config_error *error)
{
    char why[CONFIG_WHY_BYTES];
    char name[CONFIG_ENV_NAME_BYTES];
    for (; *env; env++) {
        const char *text = NULL;
        if (strncmp(*env, "WEIR_", 5) != 0)
            continue;
        const size_t option = env_option(*env, &text);
        if (option == CONFIG_OPTION_COUNT) {
            if (refuse_near_names(*env, error) != 0)
                return -1;
            continue;
        }
        config_env_name(&config_options[option], name);
        if (config_value_set(config, option, text, why) != 0)
            return config_refuse(error, name, "%s", why);
        config->origins[option].source = CONFIG_FROM_ENV;
    }
    return 0;
}

/* File. */

static int read_file(FILE *f, const char *name, char **ret_text, size_t *ret_bytes,
                     struct config_error *error)
{
    char *const text = malloc(CONFIG_FILE_MAX_BYTES + 1);
    if (!text)
        return config_refuse(error, name, "out of memory");
    const size_t n = fread(text, 1, CONFIG_FILE_MAX_BYTES + 1, f);
    int r = 0;
    if (ferror(f))
        r = config_refuse(error, name, "%s", plat_strerror(errno));
    else if (n > CONFIG_FILE_MAX_BYTES)
        r = config_refuse(error, name, "larger than %d bytes", CONFIG_FILE_MAX_BYTES);
    if (r != 0) {
        free(text);
        return r;
    }
    *ret_text = text;
    *ret_bytes = n;
    return 0;
}

static int apply_file(struct config *config, const char *name, bool must_exist,
                      struct config_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const f = fopen(name, "re");
    if (!f)
        return errno == ENOENT && !must_exist
                   ? 0
                   : config_refuse(error, name, "%s", plat_strerror(errno));
    int r = read_file(f, name, &text, &bytes, error);
    (void)fclose(f);
    if (r != 0)
        return r;
    config->file = strdup(name);
    r = config->file ? config_yaml_read(config, name, text, bytes, error)
                     : config_refuse(error, name, "out of memory");
    free(text);
    return r;
}

/* Of flag, environment and default, the file to read; NULL: none. */
static const char *file_name(const struct config_input *input, const struct flags *flags,
                             bool *ret_must_exist)
{
    *ret_must_exist = true;
    for (size_t i = 0; i < flags->count; i++) {
        if (flags->list[i].option == CONFIG_AT_config_file && *flags->list[i].text)
            return flags->list[i].text;
    }
    for (char *const *env = input->env; *env; env++) {
        const char *text = NULL;
        if (env_option(*env, &text) == CONFIG_AT_config_file && *text)
            return text;
    }
    *ret_must_exist = false;
    return input->default_file;
}

static int load(const struct config_input *input, struct config *config, struct flags *flags,
                struct config_error *error)
{
    bool must_exist;
    if (set_defaults(config, error) != 0 || scan_flags(input, config, flags, error) != 0)
        return -1;
    if (config->ask_help)
        return 0;
    const char *const name = file_name(input, flags, &must_exist);
    if (name && apply_file(config, name, must_exist, error) != 0)
        return -1;
    if (apply_env(config, input->env, error) != 0)
        return -1;
    return apply_flags(config, flags, error);
}

int config_load(const struct config_input *input, struct config **ret_config,
                struct config_error *ret_error)
{
    struct config *const config = calloc(1, sizeof *config);
    struct flags flags = {.list = calloc((size_t)input->argc + 1, sizeof *flags.list), .count = 0};
    int r = -1;
    if (!config || !flags.list)
        (void)config_refuse(ret_error, "configuration", "out of memory");
    else
        r = load(input, config, &flags, ret_error);
    free(flags.list);
    if (r != 0) {
        config_free(config);
        return r;
    }
    *ret_config = config;
    return 0;
}

void config_free(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++)
        config_value_clear(config, i);
    free(config->file);
    free(config);
}
