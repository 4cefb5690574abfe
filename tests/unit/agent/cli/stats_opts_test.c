/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stats_opts.h"
#include "t.h"

static struct config *config_of(const char *flag)
{
    char *const env[] = {NULL};
    char *const argv[] = {(char *)(uintptr_t)flag, NULL};
    struct config *config = NULL;
    struct config_error error;
    const struct config_input input = {.argc = 1, .argv = argv, .env = env, .default_file = NULL};
    if (config_load(&input, &config, &error) != 0)
        T_FAIL("%s", error.text);
    return config;
}

TEST(the_default_configuration_is_the_default_of_the_library)
{
    struct cli_stats_opts o;
    struct config *const config = config_of("--aggregation.dimensions=version,region|cloud.region");
    T_EQ_I64(cli_stats_opts_init(config, &o), 0);
    T_EQ_I64(o.opts.window_for_ns, 10000000000);
    T_EQ_I64(o.opts.lateness_for_ns, 20000000000);
    T_EQ_U64(o.opts.max_keys, 100000);
    T_EQ_U64(o.opts.profile, WEIR_PROFILE_ALL);
    T_EQ_U64(o.opts.late, WEIR_LATE_FOLD);
    T_EQ_U64(o.opts.peer_tag_count, 7);
    T_EQ_STR(o.opts.peer_tags[1], "db.system,db.system.name");
    T_EQ_U64(o.opts.dimension_count, 2);
    T_EQ_STR(o.opts.dimensions[1], "region,cloud.region");
    T_EQ_I64(cli_stats_opts_check(config), WEIR_OK);
    cli_stats_opts_done(&o);
    config_free(config);
}

TEST(none_is_not_the_default)
{
    struct cli_stats_opts o;
    struct config *config = config_of("--aggregation.lateness=0s");
    T_EQ_I64(cli_stats_opts_init(config, &o), 0);
    T_EQ_I64(o.opts.lateness_for_ns, -1);
    cli_stats_opts_done(&o);
    config_free(config);
    config = config_of("--aggregation.peer-tags=");
    T_EQ_I64(cli_stats_opts_init(config, &o), 0);
    T_TRUE(o.opts.peer_tags);
    T_EQ_U64(o.opts.peer_tag_count, 0);
    T_EQ_I64(cli_stats_opts_check(config), WEIR_OK);
    cli_stats_opts_done(&o);
    config_free(config);
}

TEST(the_library_takes_what_the_bounds_allow)
{
    const char *const flags[] = {"--aggregation.window=1s",       "--aggregation.window=1h",
                                 "--aggregation.lateness=24h",    "--aggregation.max-keys=16",
                                 "--aggregation.profile=datadog", "--aggregation.late=correct"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct config *const config = config_of(flags[i]);
        if (cli_stats_opts_check(config) != WEIR_OK)
            T_FAIL("%s: %s", flags[i], weir_strerror(cli_stats_opts_check(config)));
        config_free(config);
    }
}
