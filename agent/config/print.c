/* SPDX-License-Identifier: Apache-2.0 */
/* print: the table for readers: --help and --print-config. Threads: none inside. */
#include "config/config.h"

#include <string.h>

#define VALUE_BYTES 8192

/* text, broken at blanks before width. */
static void print_wrapped(FILE *out, const char *indent, const char *text, size_t width)
{
    size_t column = 0;
    while (*text) {
        const size_t n = strcspn(text, " ");
        if (column > 0 && column + 1 + n > width) {
            (void)fputc('\n', out);
            column = 0;
        }
        (void)fprintf(out, "%s%.*s", column == 0 ? indent : " ", (int)n, text);
        column += n + (column > 0);
        text += n;
        text += *text == ' ';
    }
    (void)fputc('\n', out);
}

void config_help(FILE *out)
{
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        const struct config_option *const o = &config_options[i];
        char env[CONFIG_ENV_NAME_BYTES];
        config_env_name(o, env);
        (void)fprintf(out, "  --%s=%s\n", o->name, o->def);
        print_wrapped(out, "      ", o->text, 80);
        if (o->type == CONFIG_ENUM)
            (void)fprintf(out, "      One of %s. ", o->unit);
        else
            (void)fprintf(out, "      ");
        (void)fprintf(out, "Environment: %s\n", env);
    }
}

static void print_quoted(FILE *out, const char *text, size_t n)
{
    (void)fputc('"', out);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"' || text[i] == '\\')
            (void)fputc('\\', out);
        (void)fputc(text[i], out);
    }
    (void)fputc('"', out);
}

static void print_value(const struct config *config, size_t option, FILE *out)
{
    char value[VALUE_BYTES];
    config_format(config, option, value, sizeof value);
    const enum config_type type = config_options[option].type;
    if (type == CONFIG_LIST) {
        (void)fputc('[', out);
        for (const char *item = value; *item;) {
            const size_t n = strcspn(item, ",");
            print_quoted(out, item, n);
            item += n;
            if (*item == ',') {
                (void)fputs(", ", out);
                item++;
            }
        }
        (void)fputc(']', out);
    } else if (type == CONFIG_STRING || type == CONFIG_ADDRESS) {
        print_quoted(out, value, strlen(value));
    } else {
        (void)fputs(value, out);
    }
}

static void print_origin(const struct config *config, size_t option, FILE *out)
{
    const struct config_origin *const origin = &config->origins[option];
    char env[CONFIG_ENV_NAME_BYTES];
    switch (origin->source) {
    case CONFIG_FROM_DEFAULT:
        (void)fputs("  # default\n", out);
        return;
    case CONFIG_FROM_FILE:
        (void)fprintf(out, "  # %s:%d:%d\n", config->file ? config->file : "file", origin->line,
                      origin->column);
        return;
    case CONFIG_FROM_ENV:
        config_env_name(&config_options[option], env);
        (void)fprintf(out, "  # environment %s\n", env);
        return;
    case CONFIG_FROM_FLAG:
        (void)fprintf(out, "  # --%s\n", config_options[option].name);
        return;
    }
}

void config_print(const struct config *config, FILE *out)
{
    const char *before = "";
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        const char *const name = config_options[i].name;
        int depth = 0;
        size_t start = 0;
        bool same = true; /* as the option before, so far */
        if (i == CONFIG_AT_config_file) {
            /* It cannot stand in the file; a reader still wants to know. */
            (void)fprintf(out, "# config.file: %s\n", config->file ? config->file : "none");
            continue;
        }
        for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
            const size_t end = (size_t)(dot - name) + 1;
            same = same && strncmp(before, name, end) == 0;
            if (!same)
                (void)fprintf(out, "%*s%.*s:\n", depth * 2, "", (int)(end - 1 - start),
                              name + start);
            start = end;
            depth++;
        }
        (void)fprintf(out, "%*s%s: ", depth * 2, "", name + start);
        print_value(config, i, out);
        print_origin(config, i, out);
        before = name;
    }
}
