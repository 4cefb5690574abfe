/* SPDX-License-Identifier: Apache-2.0 */
/* flags: see flags.h. */
#include "cli/flags.h"

#include "config/near.h"

#include <stdint.h>
#include <string.h>

static const struct cli_flag *flag_at(const struct cli_flags *flags, size_t i)
{
    return (const struct cli_flag *)(const void *)((const char *)flags->at + i * flags->stride);
}

static size_t find(const struct cli_flags *flags, const char *name, size_t len)
{
    for (size_t i = 0; i < flags->count; i++) {
        const char *const known = flag_at(flags, i)->name;
        if (strlen(known) == len && memcmp(known, name, len) == 0)
            return i;
    }
    return SIZE_MAX;
}

static size_t unknown(const struct cli_flags *flags, const char *name, size_t len, FILE *err)
{
    char shown[64];
    (void)snprintf(shown, sizeof shown, "%.*s", len < 60 ? (int)len : 60, name);
    const char *nearest = flag_at(flags, 0)->name;
    for (size_t i = 1; i < flags->count; i++) {
        const char *const known = flag_at(flags, i)->name;
        if (near_distance(shown, known) < near_distance(shown, nearest))
            nearest = known;
    }
    (void)fprintf(err, "weir %s: unknown option --%s; did you mean --%s?\n", flags->verb, shown,
                  nearest);
    return SIZE_MAX;
}

size_t cli_flags_read(const struct cli_flags *flags, int argc, char **argv, int *at,
                      const char **ret_value, FILE *err)
{
    const char *const name = argv[*at] + 2;
    const size_t len = strcspn(name, "=");
    const size_t i = find(flags, name, len);
    if (i == SIZE_MAX)
        return unknown(flags, name, len, err);
    const struct cli_flag *const flag = flag_at(flags, i);
    const char *value = name[len] == '=' ? name + len + 1 : NULL;
    if (value && !flag->argument) {
        (void)fprintf(err, "weir %s: --%s takes no value\n", flags->verb, flag->name);
        return SIZE_MAX;
    }
    if (!value && flag->argument && flag->argument[0] != '[') {
        if (*at + 1 >= argc) {
            (void)fprintf(err, "weir %s: --%s needs a value\n", flags->verb, flag->name);
            return SIZE_MAX;
        }
        value = argv[++*at];
    }
    *ret_value = value;
    return i;
}

bool cli_flags_line(const struct cli_line *line, int argc, char **argv, FILE *err)
{
    bool only_arguments = false; /* behind -- */
    for (int at = 1; at < argc; at++) {
        const char *const arg = argv[at];
        bool ok = true;
        if (!only_arguments && strcmp(arg, "--") == 0)
            only_arguments = true;
        else if (!only_arguments && strcmp(arg, "-h") == 0)
            *line->help = true;
        else if (!only_arguments && strncmp(arg, "--", 2) == 0)
            ok = line->option(line->opts, argc, argv, &at, err);
        else
            ok = line->argument(line->opts, arg, err);
        if (!ok)
            return false;
    }
    return true;
}

bool cli_flags_refuse(const struct cli_flags *flags, size_t flag, const char *value, FILE *err)
{
    const struct cli_flag *const f = flag_at(flags, flag);
    (void)fprintf(err, "weir %s: --%s %.60s: wanted: %s\n", flags->verb, f->name,
                  value ? value : "", f->help);
    return false;
}

void cli_flags_help(const struct cli_flags *flags, int width, FILE *to)
{
    for (size_t i = 0; i < flags->count; i++) {
        const struct cli_flag *const f = flag_at(flags, i);
        char left[64];
        (void)snprintf(left, sizeof left, "--%s%s%s", f->name, f->argument ? " " : "",
                       f->argument ? f->argument : "");
        (void)fprintf(to, "  %-*s %s\n", width, left, f->help);
    }
}
