/* SPDX-License-Identifier: Apache-2.0 */
/* cli: see cli.h. A verb is one row. */
#include "cli/cli.h"

#include "cli/agent.h"
#include "cli/inspect.h"
#include "cli/query.h"
#include "cli/send.h"
#include "cli/sketch.h"
#include "config/near.h"

#include <stdio.h>
#include <string.h>
#include <weir/base.h>

static int cli_version(int argc, char **argv);
static int cli_help(int argc, char **argv);

struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *text;
};
static const struct verb verbs[] = {
    {.name = "agent", .run = cli_agent, .text = "take in spans, keep them, answer queries"},
    {.name = "send", .run = cli_send, .text = "send spans to an agent"},
    {.name = "query", .run = cli_query, .text = "ask an agent, and print a table"},
    {.name = "inspect", .run = cli_inspect, .text = "print what an agent would make of a payload"},
    {.name = "sketch", .run = cli_sketch, .text = "read numbers, print their quantiles"},
    {.name = "version", .run = cli_version, .text = "print the version"},
    {.name = "help", .run = cli_help, .text = "print this, or a verb's help"},
};
#define VERB_COUNT (sizeof verbs / sizeof *verbs)

static void usage(FILE *out)
{
    (void)fputs("usage: weir VERB [ARGUMENT]...\n\n", out);
    for (size_t i = 0; i < VERB_COUNT; i++)
        (void)fprintf(out, "  %-8s  %s\n", verbs[i].name, verbs[i].text);
    (void)fputs("\nweir VERB --help says more.\n", out);
}

static int cli_version(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        (void)fputs("weir version: takes no arguments\n", stderr);
        return 2;
    }
    (void)printf("weir %s\n", weir_version());
    return 0;
}

static const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

static int unknown_verb(const char *name)
{
    const char *names[VERB_COUNT];
    for (size_t i = 0; i < VERB_COUNT; i++)
        names[i] = verbs[i].name;
    const char *const meant = near_find(name, names, VERB_COUNT);
    (void)fprintf(stderr, "weir: unknown verb \"%.60s\"", name);
    if (meant)
        (void)fprintf(stderr, ": did you mean \"weir %s\"?\n", meant);
    else if (strncmp(name, "--", 2) == 0)
        (void)fprintf(stderr, ": flags come after the verb, as in \"weir agent %.60s\"\n", name);
    else
        (void)fputs(": \"weir help\" lists them\n", stderr);
    return 2;
}

static int cli_help(int argc, char **argv)
{
    if (argc > 2) {
        (void)fputs("weir help: takes one verb\n", stderr);
        return 2;
    }
    const struct verb *const verb = argc == 2 ? verb_find(argv[1]) : NULL;
    if (argc == 2 && !verb)
        return unknown_verb(argv[1]);
    if (!verb || verb->run == cli_help || verb->run == cli_version) {
        usage(stdout);
        return 0;
    }
    char flag[] = "--help";
    char *args[] = {argv[1], flag, NULL};
    return verb->run(2, args);
}

int cli_main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return cli_version(argc - 1, argv + 1);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return cli_help(argc - 1, argv + 1);
    const struct verb *const verb = verb_find(argv[1]);
    return verb ? verb->run(argc - 1, argv + 1) : unknown_verb(argv[1]);
}
