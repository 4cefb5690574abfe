/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent: see agent.h. Flags, the ways to end without running, and the start: from then on the
 * daemon has it.
 */
#include "cli/agent.h"

#include "cli/daemon.h"
#include "cli/stats_opts.h"
#include "config/config.h"
#include "log/log.h"

#include <stdio.h>
#include <unistd.h>

#define DEFAULT_FILE "/etc/weir/weir.yaml"

static void print_help(void)
{
    (void)fputs("usage: weir agent [--NAME=VALUE]...\n"
                "\n"
                "Take in spans, keep them, answer queries. A setting comes from the file (nested\n"
                "keys), over it from the environment, over that from a flag.\n"
                "\n"
                "  --check-config\n"
                "      Load the configuration, print what is not a default, and exit.\n"
                "  --print-config\n"
                "      Load the configuration, print all of it with origins, and exit.\n"
                "  --help\n"
                "      Print this and exit.\n"
                "\n",
                stdout);
    config_help(stdout);
}

static void print_changes(const struct config *config)
{
    (void)printf("The configuration is valid. File: %s\n", config->file ? config->file : "none");
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        char value[8192];
        char env[CONFIG_ENV_NAME_BYTES];
        const struct config_origin *const origin = &config->origins[i];
        if (origin->source == CONFIG_FROM_DEFAULT)
            continue;
        config_format(config, i, value, sizeof value);
        config_env_name(&config_options[i], env);
        (void)printf("  %s = \"%s\"  ", config_options[i].name, value);
        if (origin->source == CONFIG_FROM_FILE)
            (void)printf("(%s:%d:%d)\n", config->file, origin->line, origin->column);
        else if (origin->source == CONFIG_FROM_ENV)
            (void)printf("(environment %s)\n", env);
        else
            (void)printf("(flag)\n");
    }
}

/* Standard output may be a pipe whose reader left: then nothing was said. */
static int printed(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}

/* What only the library can judge: how many names fit. */
static int check_names(const struct config *config)
{
    const int r = cli_stats_opts_check(config);
    if (r == WEIR_OK)
        return 0;
    (void)fprintf(stderr, "weir agent: aggregation.peer-tags and aggregation.dimensions: %s\n",
                  weir_strerror(r));
    return 2;
}

/* Loaded and valid: do what was asked. */
static int act(const struct config *config)
{
    if (config->ask_help) {
        print_help();
        return printed();
    }
    const int r = check_names(config);
    if (r != 0)
        return r;
    if (config->ask_print) {
        config_print(config, stdout);
        return printed();
    }
    if (config->ask_check) {
        print_changes(config);
        return printed();
    }
    log_setup((enum log_level)config->log_level, (enum log_format)config->log_format);
    return daemon_run(config);
}

int cli_agent(int argc, char **argv)
{
    struct config *config = NULL;
    struct config_error error = {.text = ""};
    const struct config_input input = {
        .argc = argc - 1, .argv = argv + 1, .env = environ, .default_file = DEFAULT_FILE};
    if (config_load(&input, &config, &error) != 0) {
        (void)fprintf(stderr, "weir agent: %s\n", error.text);
        return 2;
    }
    const int status = act(config);
    config_free(config);
    return status;
}
