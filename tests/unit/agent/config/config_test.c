/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"
#include "config/lookup.h"
#include "t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-config-XXXXXX";
static char file[64];

static void write_file(const char *text, size_t n)
{
    if (!file[0]) {
        T_TRUE(mkdtemp(folder));
        (void)snprintf(file, sizeof file, "%s/w.yaml", folder);
    }
    FILE *const f = fopen(file, "we");
    T_TRUE(f);
    T_EQ_U64(fwrite(text, 1, n, f), n);
    T_TRUE(fclose(f) == 0);
}

static void remove_file(void)
{
    if (file[0]) {
        (void)unlink(file);
        (void)rmdir(folder);
        memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
        file[0] = 0;
    }
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NONE ((const char *const[]){NULL})

static int try_load(const char *text, const char *const *env, const char *const *args,
                    struct config **ret, struct config_error *error)
{
    if (text)
        write_file(text, strlen(text));
    int argc = 0;
    while (args[argc])
        argc++;
    const struct config_input input = {.argc = argc,
                                       .argv = (char *const *)(uintptr_t)args,
                                       .env = (char *const *)(uintptr_t)env,
                                       .default_file = text ? file : NULL};
    const int r = config_load(&input, ret, error);
    remove_file();
    return r;
}

static struct config *load(const char *text, const char *const *env, const char *const *args)
{
    struct config *config = NULL;
    struct config_error error;
    if (try_load(text, env, args, &config, &error) != 0)
        T_FAIL("%s", error.text);
    return config;
}

/* The error without the folder of the file; freed never: static. */
static const char *refusal(const char *text, const char *const *env, const char *const *args)
{
    static struct config_error error;
    struct config *config = NULL;
    if (try_load(text, env, args, &config, &error) == 0) {
        config_free(config);
        T_FAIL("taken: %s", text ? text : args[0] ? args[0] : env[0]);
    }
    T_TRUE(!config);
    const char *const at = strstr(error.text, "/w.yaml");
    return text && at ? at + 1 : error.text;
}

TEST(a_field_is_named_as_its_option)
{
    const char *const fields[] = {
#define OPT(field, name, type, unit, def, min, max, reload, text) #field,
#include "config/options.def"
#undef OPT
    };
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s", config_options[i].name);
        for (char *s = name; *s; s++)
            *s = *s == '.' || *s == '-' ? '_' : *s;
        T_EQ_STR(fields[i], name);
        T_EQ_U64(config_find(config_options[i].name), i);
        T_TRUE(!config_is_group(config_options[i].name));
        T_TRUE(strlen(config_options[i].name) < 60);
    }
}

TEST(the_defaults_are_those_of_the_contract)
{
    struct config *const c = load(NULL, NONE, NONE);
    T_EQ_STR(c->receivers_datadog_listen_address.host, "127.0.0.1");
    T_EQ_I64(c->receivers_datadog_listen_address.port, 8126);
    T_EQ_I64(c->receivers_otlp_http_listen_address.port, 4318);
    T_EQ_I64(c->web_listen_address.port, 9099);
    T_EQ_I64(c->aggregation_window, 10000000000);
    T_EQ_I64(c->aggregation_lateness, 20000000000);
    T_EQ_I64(c->aggregation_late, CONFIG_LATE_FOLD);
    T_EQ_I64(c->aggregation_profile, CONFIG_PROFILE_ALL);
    T_EQ_I64(c->aggregation_max_keys, 100000);
    T_EQ_I64(c->store_retention_time, INT64_C(15) * 86400 * 1000000000);
    T_EQ_I64(c->store_retention_size, INT64_C(2) << 30);
    T_EQ_I64(c->query_lookback_delta, 300000000000);
    T_EQ_STR(c->aggregation_peer_tags.items[1], "db.system|db.system.name");
    T_TRUE(!c->file);
    config_free(c);
}

TEST(a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default)
{
    const char *const text = "aggregation:\n  window: 11s\n  lateness: 12s\n  max-keys: 1000\n";
    const char *const *const env =
        ARGS("PATH=/bin", "WEIR_AGGREGATION_LATENESS=13s", "WEIR_AGGREGATION_MAX_KEYS=2000");
    struct config *const c = load(text, env, ARGS("--aggregation.max-keys=3000"));
    T_EQ_I64(c->aggregation_window, 11000000000);
    T_EQ_I64(c->aggregation_lateness, 13000000000);
    T_EQ_I64(c->aggregation_max_keys, 3000);
    T_EQ_I64(c->origins[CONFIG_AT_aggregation_profile].source, CONFIG_FROM_DEFAULT);
    T_EQ_I64(c->origins[CONFIG_AT_aggregation_window].source, CONFIG_FROM_FILE);
    T_EQ_I64(c->origins[CONFIG_AT_aggregation_window].line, 2);
    T_EQ_I64(c->origins[CONFIG_AT_aggregation_window].column, 3);
    T_EQ_I64(c->origins[CONFIG_AT_aggregation_lateness].source, CONFIG_FROM_ENV);
    T_EQ_I64(c->origins[CONFIG_AT_aggregation_max_keys].source, CONFIG_FROM_FLAG);
    config_free(c);
}

TEST(a_flag_takes_its_value_behind_equals_or_as_the_next_word)
{
    struct config *c = load(NULL, NONE, ARGS("--log.level", "debug", "--store.path=/x=y"));
    T_EQ_I64(c->log_level, 0);
    T_EQ_STR(c->store_path, "/x=y");
    config_free(c);
    c = load(NULL, NONE, ARGS("--web.listen-address="));
    T_TRUE(!c->web_listen_address.host);
    config_free(c);
    c = load(NULL, NONE, ARGS("--web.listen-address", "", "--check-config", "--print-config"));
    T_TRUE(!c->web_listen_address.host && c->ask_check && c->ask_print && !c->ask_help);
    config_free(c);
    T_EQ_STR(refusal(NULL, NONE, ARGS("--log.level")), "\"--log.level\": needs a value");
    T_EQ_STR(refusal(NULL, NONE, ARGS("--log.level=info", "--log.level", "warn")),
             "\"--log.level\": given twice");
    T_EQ_STR(refusal(NULL, NONE, ARGS("--log.level=loud")),
             "--log.level: \"loud\" is not one of debug|info|warn|error");
    T_EQ_STR(refusal(NULL, NONE, ARGS("info")),
             "\"info\": unexpected argument: settings are given as --name=value");
    T_EQ_STR(refusal(NULL, NONE, ARGS("-log.level=info")),
             "\"-log.level=info\": unexpected argument: settings are given as --name=value");
}

TEST(an_unknown_flag_is_refused_with_the_nearest)
{
    T_EQ_STR(refusal(NULL, NONE, ARGS("--web.listen-adress=127.0.0.1:1")),
             "\"--web.listen-adress=127.0.0.1:1\": unknown flag: did you mean "
             "--web.listen-address?");
    T_EQ_STR(refusal(NULL, NONE, ARGS("--chek-config")),
             "\"--chek-config\": unknown flag: did you mean --check-config?");
    T_EQ_STR(refusal(NULL, NONE, ARGS("--frobnicate")),
             "\"--frobnicate\": unknown flag: --help lists them");
    T_EQ_STR(refusal(NULL, NONE, ARGS("--")), "\"--\": unknown flag: --help lists them");
}

TEST(help_is_answered_whatever_else_is_asked)
{
    struct config *const c = load(NULL, ARGS("WEIR_LOG_LEVEL=loud"), ARGS("--nonsense", "-h"));
    T_TRUE(c->ask_help);
    config_free(c);
}

TEST(a_name_nearly_ours_in_the_environment_is_refused_and_others_are_left_alone)
{
    T_EQ_STR(refusal(NULL, ARGS("WEIR_LOG_LEVLE=info"), NONE),
             "WEIR_LOG_LEVLE: unknown name in the environment: did you mean WEIR_LOG_LEVEL?");
    T_EQ_STR(refusal(NULL, ARGS("WEIR_CONFIG_FILE=/x"), NONE),
             "WEIR_CONFIG_FILE: unknown name in the environment: did you mean WEIR_CONFIG?");
    T_EQ_STR(refusal(NULL, ARGS("WEIR_LOG_LEVEL="), NONE),
             "WEIR_LOG_LEVEL: \"\" is not one of debug|info|warn|error");
    T_EQ_STR(refusal(NULL, ARGS("WEIR_LOG_LEVEL"), NONE),
             "WEIR_LOG_LEVEL: unknown name in the environment: did you mean WEIR_LOG_LEVEL?");
    struct config *const c = load(NULL,
                                  ARGS("WEIR_URL=http://x", "WEIR_PORT=tcp://10.0.0.1:8126",
                                       "WEIR_PORT_8126_TCP_ADDR=10.0.0.1", "WEIR_SERVICE_HOST=x",
                                       "XWEIR_LOG_LEVLE=x", "WEIR_RECEIVERS_DATADOG_SOCKET="),
                                  NONE);
    T_EQ_STR(c->receivers_datadog_socket, "");
    config_free(c);
}

TEST(the_file_is_named_by_flag_else_environment_else_default)
{
    struct config_error error;
    struct config *c = NULL;
    write_file("log: {level: warn}", strlen("log: {level: warn}"));
    char env[128];
    char flag[128];
    (void)snprintf(env, sizeof env, "WEIR_CONFIG=%s", file);
    (void)snprintf(flag, sizeof flag, "--config.file=%s", file);
    char *const envs[] = {env, NULL};
    char *const bad_envs[] = {(char[]){"WEIR_CONFIG=/nonexistent/w.yaml"}, NULL};
    char *const no_envs[] = {NULL};
    char *const flags[] = {flag, NULL};
    struct config_input input = {
        .argc = 0, .argv = flags, .env = envs, .default_file = "/nonexistent"};
    T_EQ_I64(config_load(&input, &c, &error), 0);
    T_EQ_I64(c->log_level, 2);
    T_EQ_STR(c->file, file);
    config_free(c);
    input = (struct config_input){.argc = 1, .argv = flags, .env = bad_envs, .default_file = NULL};
    T_EQ_I64(config_load(&input, &c, &error), 0);
    T_EQ_I64(c->log_level, 2);
    config_free(c);
    input.argc = 0;
    T_EQ_I64(config_load(&input, &c, &error), -1);
    T_EQ_STR(error.text, "/nonexistent/w.yaml: No such file or directory");
    /* The default file need not be there; but what is there must be readable. */
    input = (struct config_input){
        .argc = 0, .argv = flags, .env = no_envs, .default_file = "/nonexistent"};
    T_EQ_I64(config_load(&input, &c, &error), 0);
    T_TRUE(!c->file);
    config_free(c);
    input.default_file = "/";
    T_EQ_I64(config_load(&input, &c, &error), -1);
    T_EQ_STR(error.text, "/: Is a directory");
    remove_file();
}

TEST(the_file_may_nest_or_dot_its_keys_or_say_nothing)
{
    const char *const texts[] = {
        "store:\n  retention:\n    time: 1d\n",
        "store.retention.time: 1d\n",
        "store: {retention: {time: \"1d\"}}",
        "store:\n  retention.time: '1d' # a day\n  path: auto\n",
        "---\nstore:\n  retention:\n    time: >-\n      1d\n...\n",
        "\xef\xbb\xbfstore:\r\n  retention:\r\n    time: 1d\r\nweb:\r\n",
        "{\"store\": {\"retention\": {\"time\": \"1d\"}}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct config *const c = load(texts[i], NONE, NONE);
        T_EQ_I64(c->store_retention_time, INT64_C(86400000000000));
        config_free(c);
    }
    const char *const nothing[] = {"",      "\n", "# nothing\n",
                                   "---\n", "{}", "store:\nweb:\n#  x: y\n"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        struct config *const c = load(nothing[i], NONE, NONE);
        T_EQ_I64(c->store_retention_time, INT64_C(1296000000000000));
        config_free(c);
    }
}

TEST(a_list_of_the_file_is_a_sequence_or_words_between_commas)
{
    const char *const texts[] = {
        "aggregation:\n  dimensions: [version, \"region|cloud.region\"]\n",
        "aggregation:\n  dimensions:\n    - version\n    - region|cloud.region\n",
        "aggregation:\n  dimensions: version, region|cloud.region\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct config *const c = load(texts[i], NONE, NONE);
        T_EQ_U64(c->aggregation_dimensions.count, 2);
        T_EQ_STR(c->aggregation_dimensions.items[0], "version");
        T_EQ_STR(c->aggregation_dimensions.items[1], "region|cloud.region");
        config_free(c);
    }
    struct config *const c = load("aggregation: {peer-tags: []}", NONE, NONE);
    T_EQ_U64(c->aggregation_peer_tags.count, 0);
    config_free(c);
}

TEST(an_error_of_the_file_names_line_and_column)
{
    const struct {
        const char *text;
        const char *want;
    } rows[] = {
        {"web:\n  listen-adress: x\n",
         "w.yaml:2:3: unknown key \"web.listen-adress\": did you mean web.listen-address?"},
        {"recievers:\n  datadog: {}\n",
         "w.yaml:1:1: unknown key \"recievers\": did you mean receivers?"},
        {"store:\n  retntion: {time: 1d}\n",
         "w.yaml:2:3: unknown key \"store.retntion\": did you mean store.retention?"},
        {"frobnicate: 1\n", "w.yaml:1:1: unknown key \"frobnicate\""},
        {"log:\n  level: loud\n",
         "w.yaml:2:10: log.level: \"loud\" is not one of debug|info|warn|error"},
        {"log:\n  level: info\nlog.level: warn\n",
         "w.yaml:3:1: log.level is set twice: first at line 2"},
        {"log:\n  level:\n", "w.yaml:2:3: log.level has no value: write \"\" for an empty one"},
        {"log:\n  level: [info]\n", "w.yaml:2:3: log.level needs one value"},
        {"log:\n  level: {a: b}\n", "w.yaml:2:3: log.level needs one value"},
        {"log: info\n", "w.yaml:1:1: log is a group: its settings go below it"},
        {"log: [level]\n", "w.yaml:1:1: log is a group: its settings go below it"},
        {"config:\n  file: /x\n", "w.yaml:2:3: config.file cannot be set in the file itself"},
        {"- log\n", "w.yaml: the file must be keys and values"},
        {"log\n", "w.yaml: the file must be keys and values"},
        {"log: {level: info}\n---\nlog: {level: warn}\n",
         "w.yaml: a second document follows the first"},
        {"log: {level: &a info, format: *a}\n", "w.yaml:1:23: log.format needs one value"},
        {"aggregation:\n  dimensions: [a, [b]]\n",
         "w.yaml: an item must be one name, or names joined by |"},
        {"aggregation:\n  dimensions: [a, \"b,c\"]\n",
         "w.yaml:2:20: an item must be one name, or names joined by |"},
        {"aggregation:\n  dimensions: [a, a]\n",
         "w.yaml:2:3: aggregation.dimensions: \"a\" is there twice"},
        {"? [a]\n: b\n", "w.yaml: a key must be one word"},
        {"log:\n  level: \"in\\0fo\"\n", "w.yaml:2:3: log.level needs one value"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        T_EQ_STR(refusal(rows[i].text, NONE, NONE), rows[i].want);
}

TEST(broken_yaml_is_refused_with_its_place)
{
    const char *const texts[] = {"log: {level: info\n",
                                 "log:\n\tlevel: info\n",
                                 "a: b: c\n",
                                 "log: \"info\n",
                                 "\xff\xfd",
                                 "log: info } x\n",
                                 "log:\n  level: info\n format: json\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *const r = refusal(texts[i], NONE, NONE);
        if (strncmp(r, "w.yaml:", 7) != 0)
            T_FAIL("%zu: %s", i, r);
    }
    const char *const twice = refusal("log:\n  level: info\n  level: warn\n", NONE, NONE);
    T_TRUE(strncmp(twice, "w.yaml:3:3: ", 12) == 0 && strstr(twice, "duplicate"));
}

TEST(a_byte_that_is_no_text_is_refused_and_does_not_end_the_file)
{
    T_EQ_STR(refusal("log: {level: info}\n  \xff\nlog: {level: loud}\n", NONE, NONE),
             "w.yaml:2:3: a byte that is not UTF-8 text");
    T_EQ_STR(refusal("log: {level: \"a\x01\"}\n", NONE, NONE),
             "w.yaml:1:16: a byte that is not UTF-8 text");
    struct config *const c = load("# \xc3\xa4\xe2\x82\xac\nlog: {level: warn}\n", NONE, NONE);
    T_EQ_I64(c->log_level, 2);
    config_free(c);
}

TEST(a_file_past_its_limit_is_refused)
{
    const size_t n = 1048577;
    char *const text = malloc(n);
    T_TRUE(text);
    memset(text, '#', n);
    write_file(text, n);
    struct config *c = NULL;
    struct config_error error;
    char *const env[] = {NULL};
    const struct config_input input = {.argc = 0, .argv = NULL, .env = env, .default_file = file};
    T_EQ_I64(config_load(&input, &c, &error), -1);
    T_TRUE(strstr(error.text, "larger than 1048576 bytes"));
    write_file(text, n - 1);
    T_EQ_I64(config_load(&input, &c, &error), 0);
    config_free(c);
    free(text);
    remove_file();
}

static char *printed(const struct config *c)
{
    char *text = NULL;
    size_t n = 0;
    FILE *const f = open_memstream(&text, &n);
    T_TRUE(f);
    config_print(c, f);
    T_TRUE(fclose(f) == 0);
    return text;
}

TEST(what_is_printed_reads_back_as_the_same_and_names_each_origin)
{
    const char *const text = "store:\n  path: \"/a \\\"b\\\\c\"\n";
    struct config *const c =
        load(text, ARGS("WEIR_AGGREGATION_DIMENSIONS=version,a|b"),
             ARGS("--web.listen-address=[::1]:0", "--aggregation.window=1m30s"));
    char *const first = printed(c);
    T_TRUE(strstr(first, "    listen-address: \"127.0.0.1:8126\"  # default\n"));
    T_TRUE(strstr(first, "\nweb:\n  listen-address: \"[::1]:0\"  # --web.listen-address\n"));
    T_TRUE(strstr(first, "  window: 1m30s  # --aggregation.window\n"));
    T_TRUE(strstr(first, "  dimensions: [\"version\", \"a|b\"]  # environment "
                         "WEIR_AGGREGATION_DIMENSIONS\n"));
    T_TRUE(strstr(first, "w.yaml:2:3\n"));
    struct config *const again = load(first, NONE, NONE);
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        char a[9000];
        char b[9000];
        config_format(c, i, a, sizeof a);
        config_format(again, i, b, sizeof b);
        T_EQ_STR(a, b);
        if (i != CONFIG_AT_config_file)
            T_EQ_I64(again->origins[i].source, CONFIG_FROM_FILE);
    }
    free(first);
    config_free(c);
    config_free(again);
}

TEST(help_names_every_flag_and_environment_name)
{
    char *text = NULL;
    size_t n = 0;
    FILE *const f = open_memstream(&text, &n);
    T_TRUE(f);
    config_help(f);
    T_TRUE(fclose(f) == 0);
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        char want[600];
        char env[CONFIG_ENV_NAME_BYTES];
        (void)snprintf(want, sizeof want, "  --%s=%s\n", config_options[i].name,
                       config_options[i].def);
        T_TRUE(strstr(text, want));
        config_env_name(&config_options[i], env);
        (void)snprintf(want, sizeof want, "Environment: %s\n", env);
        T_TRUE(strstr(text, want));
    }
    T_TRUE(strstr(text, "Environment: WEIR_CONFIG\n"));
    T_TRUE(strstr(text, "Environment: WEIR_STORE_RETENTION_TIME\n"));
    free(text);
}

TEST(a_cut_or_bent_file_never_breaks_the_reader)
{
    static const char good[] = "log: {level: info}\nstore:\n  retention:\n    time: 1d\n"
                               "aggregation:\n  dimensions: [a, \"b|c\"]\n  window: '10s'\n";
    struct t_rng r = t_rng(t_seed());
    size_t taken = 0;
    for (int i = 0; i < 1500; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        size_t n = sizeof good - 1;
        if (i % 3 == 0)
            n = t_below(&r, n);
        for (int k = 0; k < i % 4; k++)
            text[t_below(&r, sizeof good - 1)] = (char)t_below(&r, 256);
        write_file(text, n);
        struct config *c = NULL;
        struct config_error error;
        char *const env[] = {NULL};
        const struct config_input input = {
            .argc = 0, .argv = NULL, .env = env, .default_file = file};
        if (config_load(&input, &c, &error) == 0) {
            taken++;
            config_free(c);
        } else {
            T_TRUE(!strchr(error.text, '\n') && error.text[0] == '/');
        }
    }
    T_TRUE(taken > 0 && taken < 1500);
    remove_file();
}
