/* SPDX-License-Identifier: Apache-2.0 */
#include "log/line.h"
#include "log/log.h"
#include "t.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((sentinel)) static const char *line_of(const struct log_event *e, ...)
{
    static char buf[LOG_LINE_BYTES + 1];
    va_list pairs;
    va_start(pairs, e);
    const size_t n = log_line_build(buf, e, pairs);
    va_end(pairs);
    T_TRUE(n <= LOG_LINE_BYTES);
    buf[n] = 0;
    return buf;
}

static struct log_event event_of(enum log_format format)
{
    /* date -u -d @1764496800 gives 2025-11-30T10:00:00 */
    return (struct log_event){.format = format,
                              .level = LOG_WARN_LEVEL,
                              .wall_ns = 1764496800123456789,
                              .at = "store",
                              .event = "write_failed"};
}

TEST(a_logfmt_line_has_time_level_place_event_and_pairs)
{
    const struct log_event e = event_of(LOG_LOGFMT);
    T_EQ_STR(line_of(&e, "err", "disk full", "attempt", "3", (const char *)NULL),
             "ts=2025-11-30T10:00:00.123Z level=warn at=store event=write_failed "
             "err=\"disk full\" attempt=3\n");
    T_EQ_STR(line_of(&e, (const char *)NULL),
             "ts=2025-11-30T10:00:00.123Z level=warn at=store event=write_failed\n");
}

TEST(a_json_line_has_the_same_fields_as_strings)
{
    struct log_event e = event_of(LOG_JSON);
    e.suppressed = 7;
    T_EQ_STR(line_of(&e, "err", "disk full", (const char *)NULL),
             "{\"ts\":\"2025-11-30T10:00:00.123Z\",\"level\":\"warn\",\"at\":\"store\","
             "\"event\":\"write_failed\",\"suppressed\":\"7\",\"err\":\"disk full\"}\n");
}

TEST(a_value_cannot_end_its_field_or_its_line)
{
    const struct log_event e = event_of(LOG_LOGFMT);
    const struct {
        const char *value;
        const char *want;
    } rows[] = {
        {"", " k=\"\"\n"},
        {"a=b", " k=\"a=b\"\n"},
        {"a\nlevel=error", " k=\"a\\nlevel=error\"\n"},
        {"say \"no\"", " k=\"say \\\"no\\\"\"\n"},
        {"C:\\x", " k=\"C:\\\\x\"\n"},
        {"tab\there", " k=\"tab\\there\"\n"},
        {"\x1b[31m", " k=\"\\u001b[31m\"\n"},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82",
         " k=\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82\"\n"},
        {"\xff\xc3", " k=\"\\ufffd\\ufffd\"\n"},
        {"\xed\xa0\x80", " k=\"\\ufffd\\ufffd\\ufffd\"\n"}, /* a surrogate is not UTF-8 */
        {"\xc0\xaf", " k=\"\\ufffd\\ufffd\"\n"},            /* nor is an over-long slash */
        {"\xf4\x90\x80\x80", " k=\"\\ufffd\\ufffd\\ufffd\\ufffd\"\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const line = line_of(&e, "k", rows[i].value, (const char *)NULL);
        T_EQ_STR(strstr(line, " k="), rows[i].want);
    }
}

TEST(what_does_not_fit_is_left_out_whole_and_said)
{
    char *const big = malloc(LOG_LINE_BYTES + 1);
    T_TRUE(big);
    for (int format = LOG_LOGFMT; format <= LOG_JSON; format++) {
        const struct log_event e = event_of((enum log_format)format);
        for (size_t n = LOG_LINE_BYTES - 200; n <= LOG_LINE_BYTES; n++) {
            memset(big, 'x', n);
            big[n] = 0;
            const char *const line =
                line_of(&e, "a", "1", "big", big, "b", "2", (const char *)NULL);
            const bool cut = strstr(line, "truncated") != NULL;
            T_TRUE(cut == !strstr(line, format == LOG_JSON ? "\"b\":\"2\"" : " b=2"));
            T_TRUE(cut || strstr(line, "big"));
            T_EQ_U64(line[strlen(line) - 1], '\n');
            T_TRUE(strstr(line, format == LOG_JSON ? "\"a\":\"1\"" : " a=1"));
        }
        memset(big, '\n', LOG_LINE_BYTES);
        big[LOG_LINE_BYTES] = 0;
        T_TRUE(strstr(line_of(&e, "big", big, (const char *)NULL), "truncated"));
    }
    free(big);
}

TEST(a_site_speaks_ten_times_at_once_then_once_a_second)
{
    struct log_site site = {0};
    uint32_t kept = 99;
    for (int i = 0; i < LOG_SITE_BURST; i++) {
        T_TRUE(log_site_admit(&site, 5000, &kept));
        T_EQ_U64(kept, 0);
    }
    for (int i = 0; i < 3; i++)
        T_TRUE(!log_site_admit(&site, 5000, &kept));
    T_TRUE(log_site_admit(&site, 5001, &kept));
    T_EQ_U64(kept, 3);
    T_TRUE(!log_site_admit(&site, 5001, &kept));
    T_TRUE(log_site_admit(&site, 5002, &kept));
    T_EQ_U64(kept, 1);
    /* A quiet time fills the burst again, and no more than the burst. */
    for (int i = 0; i < LOG_SITE_BURST; i++)
        T_TRUE(log_site_admit(&site, 9000, &kept));
    T_TRUE(!log_site_admit(&site, 9000, &kept));
}

/* What fn writes to standard error; freed by the caller. */
static char *stderr_of(void (*fn)(void))
{
    FILE *const f = tmpfile();
    T_TRUE(f);
    const int kept = dup(STDERR_FILENO);
    T_TRUE(kept >= 0 && dup2(fileno(f), STDERR_FILENO) >= 0);
    fn();
    T_TRUE(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    T_TRUE(fseek(f, 0, SEEK_END) == 0);
    const long n = ftell(f);
    T_TRUE(n >= 0 && fseek(f, 0, SEEK_SET) == 0);
    char *const text = calloc(1, (size_t)n + 1);
    T_TRUE(text);
    T_EQ_U64(fread(text, 1, (size_t)n, f), (uint64_t)n);
    (void)fclose(f);
    return text;
}

static size_t lines_in(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void say_one_of_each_level(void)
{
    LOG_DEBUG("t", "one");
    LOG_INFO("t", "two", "n", LOG_U64(UINT64_MAX), "m", LOG_I64(INT64_MIN));
    LOG_WARN("t", "three");
    LOG_ERROR("t", "four");
}

TEST(lines_below_the_level_are_not_written)
{
    log_setup(LOG_INFO_LEVEL, LOG_LOGFMT);
    char *text = stderr_of(say_one_of_each_level);
    T_EQ_U64(lines_in(text), 3);
    T_TRUE(!strstr(text, "event=one"));
    T_TRUE(strstr(text, "event=two n=18446744073709551615 m=-9223372036854775808\n"));
    free(text);
    log_setup(LOG_ERROR_LEVEL, LOG_JSON);
    text = stderr_of(say_one_of_each_level);
    T_EQ_U64(lines_in(text), 1);
    T_TRUE(strstr(text, "\"event\":\"four\"}"));
    free(text);
    log_setup(LOG_INFO_LEVEL, LOG_LOGFMT);
}

static void say_often(void)
{
    for (int i = 0; i < 1000; i++)
        LOG_WARN("t", "again");
}

TEST(a_loop_of_warnings_writes_its_burst_and_little_more)
{
    char *const text = stderr_of(say_often);
    T_TRUE(lines_in(text) >= LOG_SITE_BURST && lines_in(text) < 30);
    free(text);
}

static void *speaker(void *arg)
{
    struct log_site sites[50];
    memset(sites, 0, sizeof sites);
    for (size_t i = 0; i < 50; i++)
        log_write(&sites[i], LOG_INFO_LEVEL, "t", "thread", "who", (const char *)arg,
                  (const char *)NULL);
    return NULL;
}

static void say_from_threads(void)
{
    static const char *const names[4] = {"a a", "b b", "c c", "d d"};
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        T_EQ_I64(pthread_create(&threads[i], NULL, speaker, (void *)(uintptr_t)names[i]), 0);
    for (size_t i = 0; i < 4; i++)
        T_EQ_I64(pthread_join(threads[i], NULL), 0);
}

TEST(lines_of_several_threads_never_mix)
{
    char *const text = stderr_of(say_from_threads);
    T_EQ_U64(lines_in(text), 200);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        T_TRUE(strncmp(line, "ts=", 3) == 0);
        T_TRUE(strlen(line) == strlen("ts=2025-11-30T10:00:00.123Z level=info at=t event=thread "
                                      "who=\"a a\""));
    }
    free(text);
}
