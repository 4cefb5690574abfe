/* SPDX-License-Identifier: Apache-2.0 */
#include "config/near.h"
#include "config/value.h"
#include "t.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct config *config_new(void)
{
    char *const env[] = {NULL};
    struct config *config = NULL;
    struct config_error error;
    const struct config_input input = {.argc = 0, .argv = NULL, .env = env, .default_file = NULL};
    if (config_load(&input, &config, &error) != 0)
        T_FAIL("%s", error.text);
    return config;
}

/* Set option and give what it reads as, or the reason, in buf. */
static int set(size_t option, const char *text, char buf[9000])
{
    struct config *const config = config_new();
    char why[CONFIG_WHY_BYTES] = "";
    const int r = config_value_set(config, option, text, why);
    if (r == 0)
        config_format(config, option, buf, 9000);
    else
        (void)snprintf(buf, 9000, "%s", why);
    config_free(config);
    return r;
}

static void takes(size_t option, const char *text, const char *want)
{
    char buf[9000];
    if (set(option, text, buf) != 0)
        T_FAIL("%s refused \"%s\": %s", config_options[option].name, text, buf);
    T_EQ_STR(buf, want);
}

static void refuses(size_t option, const char *text, const char *want_part)
{
    char buf[9000];
    if (set(option, text, buf) == 0)
        T_FAIL("%s took \"%s\" as \"%s\"", config_options[option].name, text, buf);
    if (!strstr(buf, want_part))
        T_FAIL("\"%s\" was refused with \"%s\", want \"%s\" in it", text, buf, want_part);
}

TEST(a_duration_is_numbers_with_units_the_larger_first)
{
    const size_t o = CONFIG_AT_store_retention_time;
    takes(o, "15d", "15d");
    takes(o, "1h30m", "1h30m");
    takes(o, "90m", "1h30m");
    takes(o, "2w", "14d");
    takes(o, "1y", "365d");
    takes(o, "1d2h3m4s5ms", "1d2h3m4s5ms");
    takes(CONFIG_AT_aggregation_lateness, "0", "0s");
    takes(CONFIG_AT_aggregation_lateness, "0s", "0s");
    const char *const bad[] = {
        "",        "10",   "h",    "1h 30m", "30m1h", "1h1h", "-1h",
        "+1h",     "1.5h", "1H",   "1hour",  " 1h",   "1h ",  "0x1h",
        "1h\n",    "1e3h", "01h2", "1us",    "٣h",    "1hm",  "9223372036854775808ms",
        "300y300y"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses(o, bad[i], "is not a duration");
    refuses(o, "9999999999y", "is not a duration");
}

TEST(a_size_is_one_number_with_one_unit)
{
    const size_t o = CONFIG_AT_store_retention_size;
    takes(o, "2GiB", "2GiB");
    takes(o, "2048MiB", "2GiB");
    takes(o, "2GB", "2GB");
    takes(o, "2000000000", "2GB");
    takes(o, "2000000001", "2000000001");
    takes(o, "1TiB", "1TiB");
    takes(o, "1536KiB", "1536KiB");
    takes(o, "17", "17");
    takes(o, "17B", "17");
    takes(o, "0", "0");
    const char *const bad[] = {"",      "GiB",    "2gib", "2 GiB", "2GiB1MiB",     "-1",
                               "2GiB ", "1.5GiB", "2G",   "0x10",  "9999999999TiB"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses(o, bad[i], "is not a size");
}

TEST(a_count_is_a_decimal_number_and_nothing_else)
{
    const size_t o = CONFIG_AT_aggregation_max_keys;
    takes(o, "100", "100");
    takes(o, "0100", "100");
    const char *const bad[] = {"",
                               "1k",
                               "1,000",
                               "1_000",
                               "-1",
                               "+1",
                               "1.0",
                               "1e3",
                               " 100",
                               "100 ",
                               "18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses(o, bad[i], "is not a whole number");
}

TEST(an_address_has_a_host_and_a_port)
{
    const size_t o = CONFIG_AT_web_listen_address;
    takes(o, "0.0.0.0:1", "0.0.0.0:1");
    takes(o, "localhost:65535", "localhost:65535");
    takes(o, "[::1]:9099", "[::1]:9099");
    takes(o, "[::]:0", "[::]:0");
    takes(o, "", "");
    refuses(o, ":9099", "0.0.0.0:port for every network");
    refuses(o, "9099", "has no port: write host:port");
    refuses(o, "127.0.0.1", "has no port: write host:port");
    refuses(o, "[::1]", "has no port: write host:port");
    refuses(o, "::1:9099", "in brackets");
    refuses(o, "[127.0.0.1]:9099", "in brackets");
    refuses(o, "[]:9099", "in brackets");
    refuses(o, "[", "has no port");
    refuses(o, "example.com:80", "localhost");
    refuses(o, "127.0.0.1:", "has no port from 0 to 65535");
    refuses(o, "127.0.0.1:http", "has no port from 0 to 65535");
    refuses(o, "127.0.0.1:80 ", "has no port from 0 to 65535");
    refuses(o, "127.0.0.1:-1", "has no port from 0 to 65535");
    refuses(o, "127.0.0.1:65536", "has no port from 0 to 65535");
    refuses(o, "127.0.0.1:99999999999999999999", "has no port from 0 to 65535");
    refuses(o, "11111111111111111111111111111111111111111111111111111111111111111111:80",
            "no address before its port");
}

TEST(an_enum_takes_its_words_alone)
{
    takes(CONFIG_AT_aggregation_late, "fold", "fold");
    takes(CONFIG_AT_aggregation_late, "correct", "correct");
    const char *const bad[] = {"", "Fold", "fol", "folds", "fold|drop", " fold", "2", "|"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses(CONFIG_AT_aggregation_late, bad[i], "is not one of fold|drop|correct");
}

TEST(a_list_is_names_between_commas)
{
    const size_t o = CONFIG_AT_aggregation_dimensions;
    takes(o, "", "");
    takes(o, "version", "version");
    takes(o, "version, region|cloud.region", "version,region|cloud.region");
    refuses(o, ",", "is not a name");
    refuses(o, "a,", "a comma is at the end");
    refuses(o, "a,,b", "is not a name");
    refuses(o, "a b", "is not a name");
    refuses(o, "|a", "is not a name");
    refuses(o, "a|", "is not a name");
    refuses(o, "a||b", "is not a name");
    refuses(o, "a,b,a", "\"a\" is there twice");
    refuses(o, "a\n", "is not a name");
    char longest[202];
    memset(longest, 'x', 201);
    longest[201] = 0;
    refuses(o, longest, "is not a name");
    longest[200] = 0;
    takes(o, longest, longest);
}

TEST(a_string_has_no_control_bytes)
{
    takes(CONFIG_AT_store_path, "/var/lib/we ir", "/var/lib/we ir");
    refuses(CONFIG_AT_store_path, "/var\n/x", "control byte");
    refuses(CONFIG_AT_store_path, "\x7f", "control byte");
}

TEST(a_value_is_utf_8_as_in_the_file)
{
    takes(CONFIG_AT_store_path, "/\xc3\xbc/\xe2\x80\xa8", "/\xc3\xbc/\xe2\x80\xa8");
    refuses(CONFIG_AT_store_path, "/\xff", "not UTF-8");
    refuses(CONFIG_AT_store_path, "/\xc3", "not UTF-8");
    refuses(CONFIG_AT_aggregation_dimensions, "a,b\xed\xa0\x80", "not UTF-8");
}

TEST(a_refused_value_leaves_the_old_one)
{
    struct config *const config = config_new();
    char why[CONFIG_WHY_BYTES];
    T_EQ_I64(config_value_set(config, CONFIG_AT_aggregation_window, "1ms", why), -1);
    T_EQ_I64(config->aggregation_window, 10000000000);
    T_EQ_I64(config_value_set(config, CONFIG_AT_web_listen_address, "x", why), -1);
    T_EQ_STR(config->web_listen_address.host, "127.0.0.1");
    T_EQ_I64(config_value_set(config, CONFIG_AT_aggregation_peer_tags, "a,,", why), -1);
    T_EQ_U64(config->aggregation_peer_tags.count, 7);
    config_free(config);
}

static void text_of_number(const struct config_option *o, int64_t v, char buf[64])
{
    if (o->type == CONFIG_DURATION)
        (void)snprintf(buf, 64, "%" PRId64 "ms", v / 1000000);
    else
        (void)snprintf(buf, 64, "%" PRId64, v);
}

static void check_number_bounds(size_t i)
{
    const struct config_option *const o = &config_options[i];
    const int64_t step = o->type == CONFIG_DURATION ? 1000000 : 1; /* a duration is whole ms */
    char text[64];
    char back[9000];
    T_EQ_I64(o->min % step, 0);
    T_EQ_I64(o->max % step, 0);
    text_of_number(o, o->min, text);
    T_EQ_I64(set(i, text, back), 0);
    text_of_number(o, o->max, text);
    T_EQ_I64(set(i, text, back), 0);
    text_of_number(o, o->max + step, text);
    refuses(i, text, "is the most");
    if (o->min > 0) {
        text_of_number(o, o->min - step, text);
        refuses(i, text, "is the least");
    } else {
        T_EQ_I64(o->min, 0); /* a sign is refused by the grammar */
    }
}

static void check_string_bounds(size_t i)
{
    const struct config_option *const o = &config_options[i];
    char back[9000];
    char *const text = malloc((size_t)o->max + 2);
    T_TRUE(text);
    memset(text, 'x', (size_t)o->max + 1);
    text[o->max + 1] = 0;
    refuses(i, text, "is the most");
    text[o->max] = 0;
    T_EQ_I64(set(i, text, back), 0);
    if (o->min > 0)
        refuses(i, "", "is empty");
    else
        takes(i, "", "");
    free(text);
}

static void check_list_bounds(size_t i)
{
    char text[9000] = "";
    char back[9000];
    size_t n = 0;
    for (int64_t k = 0; k < config_options[i].max; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%0200d", k ? "," : "", (int)k);
    takes(i, text, text);
    (void)snprintf(text + n, sizeof text - n, ",more");
    T_EQ_I64(set(i, text, back), -1);
    T_TRUE(strstr(back, "more than 40"));
}

TEST(every_bound_refuses_what_lies_just_past_it)
{
    size_t bounded = 0;
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        switch (config_options[i].type) {
        case CONFIG_DURATION:
        case CONFIG_BYTES:
        case CONFIG_COUNT:
            check_number_bounds(i);
            bounded++;
            break;
        case CONFIG_STRING:
            check_string_bounds(i);
            bounded++;
            break;
        case CONFIG_LIST:
            check_list_bounds(i);
            bounded++;
            break;
        case CONFIG_ADDRESS:
            takes(i, "127.0.0.1:65535", "127.0.0.1:65535");
            refuses(i, "127.0.0.1:65536", "65535");
            bounded++;
            break;
        case CONFIG_ENUM: {
            int64_t words = 1;
            for (const char *s = config_options[i].unit; *s; s++)
                words += *s == '|';
            T_EQ_I64(config_options[i].min, 0);
            T_EQ_I64(config_options[i].max, words - 1);
            refuses(i, "nonsense", "is not one of");
            bounded++;
            break;
        }
        }
    }
    T_EQ_U64(bounded, CONFIG_OPTION_COUNT);
}

TEST(every_default_reads_back_as_itself)
{
    for (size_t i = 0; i < CONFIG_OPTION_COUNT; i++) {
        char back[9000];
        T_EQ_I64(set(i, config_options[i].def, back), 0);
        takes(i, back, back);
    }
}

TEST(the_nearest_name_is_the_one_with_the_fewest_slips)
{
    const char *const names[] = {"web.listen-address", "receivers.otlp.http-listen-address",
                                 "log.level"};
    T_EQ_U64(near_distance("", ""), 0);
    T_EQ_U64(near_distance("kitten", "sitting"), 3);
    T_EQ_U64(near_distance("ab", "ba"), 1);
    T_EQ_U64(near_distance("abc", ""), 3);
    T_EQ_U64(near_distance("", "abc"), 3);
    T_EQ_STR(near_find("web.listen-adress", names, 3), "web.listen-address");
    T_EQ_STR(near_find("log.lvele", names, 3), "log.level");
    T_TRUE(!near_find("zz", names, 3));
    T_TRUE(!near_find("", names, 3));
    T_TRUE(!near_find("completely-different", names, 3));
    T_TRUE(!near_find("log.level", names, 0));
}

/* The recursive definition, for short words. */
static size_t distance_by_definition(const char *a, size_t na, const char *b, size_t nb)
{
    if (na == 0 || nb == 0)
        return na + nb;
    size_t best = distance_by_definition(a, na - 1, b, nb - 1) + (a[na - 1] != b[nb - 1]);
    size_t d = distance_by_definition(a, na - 1, b, nb) + 1;
    best = d < best ? d : best;
    d = distance_by_definition(a, na, b, nb - 1) + 1;
    best = d < best ? d : best;
    if (na > 1 && nb > 1 && a[na - 1] == b[nb - 2] && a[na - 2] == b[nb - 1]) {
        d = distance_by_definition(a, na - 2, b, nb - 2) + 1;
        best = d < best ? d : best;
    }
    return best;
}

TEST(the_distance_is_that_of_its_recursive_definition)
{
    struct t_rng r = t_rng(t_seed());
    for (int i = 0; i < 300; i++) {
        char a[8] = "";
        char b[8] = "";
        const size_t na = t_below(&r, 7);
        const size_t nb = t_below(&r, 7);
        for (size_t k = 0; k < na; k++)
            a[k] = (char)('a' + t_below(&r, 3));
        for (size_t k = 0; k < nb; k++)
            b[k] = (char)('a' + t_below(&r, 3));
        T_EQ_U64(near_distance(a, b), distance_by_definition(a, na, b, nb));
    }
}
