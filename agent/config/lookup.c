/* SPDX-License-Identifier: Apache-2.0 */
/* lookup: see lookup.h. The table has some thirty rows and is walked. Memory: the stack. */
#include "config/lookup.h"

#include "config/near.h"

#include <stdarg.h>
#include <string.h>

size_t config_find(const char *name)
{
    size_t i = 0;
    while (i < CONFIG_OPTION_COUNT && strcmp(config_options[i].name, name) != 0)
        i++;
    return i;
}

bool config_is_group(const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        if (strncmp(config_options[i].name, name, n) == 0 && config_options[i].name[n] == '.')
            return true;
    }
    return false;
}

const char *config_meant(const char *name, char buf[64])
{
    /* Each option cut to the depth of name: so a wrong group is answered by a group. */
    const char *names[CONFIG_OPTION_COUNT];
    char local[CONFIG_OPTION_COUNT][64];
    size_t dots = 0;
    for (const char *s = name; *s; s++)
        dots += *s == '.';
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        size_t n = 0;
        size_t left = dots;
        const char *const full = config_options[i].name;
        while (full[n] && n + 1 < sizeof local[i] && (full[n] != '.' || left > 0)) {
            left -= full[n] == '.';
            local[i][n] = full[n];
            n++;
        }
        local[i][n] = 0;
        names[i] = local[i];
    }
    const char *const found = near_find(name, names, CONFIG_OPTION_COUNT);
    if (!found)
        return NULL;
    memcpy(buf, found, strlen(found) + 1);
    return buf;
}

int config_refuse(struct config_error *error, const char *place, const char *format, ...)
{
    const int n = snprintf(error->text, sizeof error->text, "%s: ", place);
    if (n >= 0 && (size_t)n < sizeof error->text) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(error->text + n, sizeof error->text - (size_t)n, format, args);
        va_end(args);
    }
    return -1;
}
