/* SPDX-License-Identifier: Apache-2.0 */
/* The option lists of the manual pages are those of options.def, to the byte. */
#include "config/config.h"
#include "t.h"

#include <stdlib.h>
#include <string.h>

#define BEGIN ".\\\" options: begin\n"
#define END ".\\\" options: end\n"

static void put_word(FILE *f, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (word[i] == '~')
            (void)fputs("\\(ti", f);
        else
            (void)fputc(word[i], f);
    }
}

/* A sentence a line, broken before 78 columns. */
static void put_sentence(FILE *f, const char *text)
{
    size_t column = 0;
    while (*text) {
        const size_t n = strcspn(text, " ");
        if (column > 0 && column + 1 + n > 78) {
            (void)fputc('\n', f);
            column = 0;
        }
        (void)fputs(column > 0 ? " " : "", f);
        put_word(f, text, n);
        column += n + (column > 0);
        text += n;
        if (text[-1] == '.' && *text) {
            (void)fputc('\n', f);
            column = 0;
        }
        text += *text == ' ';
    }
    (void)fputc('\n', f);
}

static void put_option(FILE *f, const struct config_option *o, const char *flag)
{
    char env[CONFIG_ENV_NAME_BYTES];
    config_env_name(o, env);
    if (flag)
        (void)fprintf(f, ".It Fl Fl %s Ns = Ns Ar %s\n", o->name, flag);
    else
        (void)fprintf(f, ".It Ic %s\n", o->name);
    put_sentence(f, o->text);
    if (o->type == CONFIG_ENUM)
        (void)fprintf(f, "One of\n.Ql %s .\n", o->unit);
    if (*o->def)
        (void)fprintf(f, "Default:\n.Ql %s .\n", o->def);
    else
        (void)fprintf(f, "Empty by default.\n");
    (void)fprintf(f, "Environment:\n.Ev %s .\n", env);
}

static const char *value_word(const struct config_option *o)
{
    switch (o->type) {
    case CONFIG_DURATION:
        return "duration";
    case CONFIG_BYTES:
        return "size";
    case CONFIG_COUNT:
        return "number";
    case CONFIG_ENUM:
        return "word";
    case CONFIG_STRING:
    case CONFIG_ADDRESS:
    case CONFIG_LIST:
        return o->unit;
    }
    return "";
}

static void check_page(const char *page, bool flags)
{
    char path[512];
    size_t n = 0;
    (void)snprintf(path, sizeof path, "%s/man/%s", T_SOURCE_DIR, page);
    char *const text = (char *)t_read_file(path, &n);
    T_TRUE(text);
    char *want = NULL;
    size_t want_bytes = 0;
    FILE *const f = open_memstream(&want, &want_bytes);
    T_TRUE(f);
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        if (flags || i != CONFIG_AT_config_file)
            put_option(f, &config_options[i], flags ? value_word(&config_options[i]) : NULL);
    }
    T_TRUE(fclose(f) == 0);
    char *const begin = strstr(text, BEGIN);
    char *const end = strstr(text, END);
    T_TRUE(begin && end && begin < end);
    const char *const got = begin + strlen(BEGIN);
    if ((size_t)(end - got) != want_bytes || memcmp(got, want, want_bytes) != 0) {
        /* The list as it should be, to be put into the page by hand. */
        char out[512];
        (void)snprintf(out, sizeof out, "%s/%s.options", T_BINARY_DIR, page);
        FILE *const fresh = fopen(out, "we");
        T_TRUE(fresh);
        T_EQ_U64(fwrite(want, 1, want_bytes, fresh), want_bytes);
        (void)fclose(fresh);
        T_FAIL("%s differs from options.def: see %s", page, out);
    }
    free(want);
    free(text);
}

TEST(the_page_of_the_file_lists_every_option)
{
    check_page("weir.yaml.5", false);
}

TEST(the_page_of_the_agent_lists_every_flag)
{
    check_page("weir-agent.8", true);
}
