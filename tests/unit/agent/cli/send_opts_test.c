/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/send_opts.h"
#include "t.h"

#include <stdlib.h>
#include <string.h>

/* Parse a line split at blanks; what was said about it goes to text. */
static bool parse(const char *line, struct send_opts *o, char *text, size_t size)
{
    char copy[512];
    char *argv[32] = {copy};
    int argc = 0;
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *at = copy; at && argc < 32;) {
        argv[argc++] = at;
        at = strchr(at, ' ');
        if (at)
            *at++ = 0;
    }
    char *said = NULL;
    size_t n = 0;
    FILE *const err = open_memstream(&said, &n);
    T_TRUE(err);
    const bool ok = cli_send_opts_parse(argc, argv, o, err);
    (void)fclose(err);
    (void)snprintf(text, size, "%s", said);
    free(said);
    /* Texts of o point into copy: none outlives this call but those that are compared here. */
    return ok;
}

TEST(the_line_of_the_manual_is_taken)
{
    struct send_opts o;
    char text[512];
    T_TRUE(parse("send --preset shop --rate 20000 --for 60s --check", &o, text, sizeof text));
    T_EQ_STR(text, "");
    T_EQ_I64(o.preset, SEND_PRESET_SHOP);
    T_EQ_DBL(o.rate, 20000);
    T_EQ_I64(o.for_ns, INT64_C(60000000000));
    T_TRUE(o.check && !o.json && !o.gzip);
    T_EQ_U64(cli_send_opts_spans(&o), 1200000);
}

TEST(values_stand_behind_an_equals_sign_or_in_the_next_word)
{
    struct send_opts o;
    char text[512];
    T_TRUE(parse("send --protocol=v0.5 --count=7 --seed 3 --gzip --services=2 --resources 3", &o,
                 text, sizeof text));
    T_EQ_I64(o.protocol, SEND_V05);
    T_EQ_U64(o.count, 7);
    T_EQ_I64(o.for_ns, 0);
    T_TRUE(o.seed_given && o.seed == 3 && o.gzip);
    T_EQ_I64(o.preset, SEND_PRESET_SIMPLE);
    T_EQ_U64(o.services * o.resources, 6);
}

TEST(without_an_end_a_run_takes_ten_seconds)
{
    struct send_opts o;
    char text[512];
    T_TRUE(parse("send", &o, text, sizeof text));
    T_EQ_I64(o.for_ns, INT64_C(10000000000));
    T_EQ_STR(o.url, "http://127.0.0.1:8126");
    T_TRUE(parse("send --protocol otlp", &o, text, sizeof text));
    T_EQ_STR(o.url, "http://127.0.0.1:4318");
    T_TRUE(parse("send --rate 0", &o, text, sizeof text));
    T_EQ_U64(cli_send_opts_spans(&o), 0); /* no one can say */
}

TEST(an_unknown_option_is_answered_with_the_nearest_one)
{
    static const char *const rows[][2] = {
        {"send --presets shop", "--preset?"},
        {"send --chek", "--check?"},
        {"send --error-rate 1", "--error-ratio?"},
        {"send --unix-sock=/x", "--unix-socket?"},
        {"send --aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "mean --"},
    };
    struct send_opts o;
    char text[512];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        T_TRUE(!parse(rows[i][0], &o, text, sizeof text));
        if (!strstr(text, "unknown option") || !strstr(text, rows[i][1]))
            T_FAIL("%s was answered with: %s", rows[i][0], text);
    }
}

TEST(values_out_of_range_and_stray_words_are_refused)
{
    static const char *const lines[] = {
        "send now",
        "send --rate",
        "send --rate -1",
        "send --rate nan",
        "send --rate 0x10",
        "send --rate 1e10",
        "send --count 0",
        "send --count 1.5",
        "send --count 99999999999999999999",
        "send --batch 0",
        "send --batch 10001",
        "send --spans-per-trace 1001",
        "send --for 60",
        "send --for 1s1s",
        "send --for -1s",
        "send --check=yes",
        "send --protocol v0.3",
        "send --preset market",
        "send --url=",
        "send --error-ratio 2",
        "send --latency normal:1s:1",
        "send --services 0",
        "send --seed x",
        "send --services 1000 --resources 101",
        "send -x",
        "send --",
        "send --preset shop --services 2",
    };
    struct send_opts o;
    char text[512];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (parse(lines[i], &o, text, sizeof text))
            T_FAIL("taken: %s", lines[i]);
        T_TRUE(strncmp(text, "weir send: ", 11) == 0);
    }
}

TEST(a_check_that_would_keep_too_many_samples_is_refused_at_the_start)
{
    struct send_opts o;
    char text[512];
    T_TRUE(!parse("send --rate 20000 --for 30m --check", &o, text, sizeof text));
    T_TRUE(strstr(text, "36000000") && strstr(text, "--check-max-samples 20000000"));
    T_TRUE(parse("send --rate 20000 --for 30m", &o, text, sizeof text));
    T_TRUE(parse("send --rate 20000 --for 30m --check --check-max-samples 36000000", &o, text,
                 sizeof text));
    T_TRUE(
        !parse("send --count 101 --rate 0 --check --check-max-samples 100", &o, text, sizeof text));
}

TEST(help_names_every_option_and_needs_no_sense_of_the_rest)
{
    struct send_opts o;
    char text[512];
    T_TRUE(parse("send --preset shop --services 2 --help", &o, text, sizeof text));
    T_TRUE(o.help);
    T_TRUE(parse("send -h", &o, text, sizeof text) && o.help);
    char *said = NULL;
    size_t n = 0;
    FILE *const to = open_memstream(&said, &n);
    cli_send_opts_help(to);
    (void)fclose(to);
    T_TRUE(strstr(said, "--check-max-samples N") && strstr(said, "--latency DIST"));
    free(said);
}
