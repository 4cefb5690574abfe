/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay: a fuzz target over its corpus, for builds without libFuzzer: replay CORPUS.hex
 *
 * One input a line in hex; blank lines and lines that begin with # are passed over. A line that
 * ends the process is named before it does.
 *
 * Threads: one. Memory: a line of at most LINE_MAX_BYTES, and its bytes.
 */
#include "fuzz.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 64 * 1024 };

static volatile sig_atomic_t line_now;

static void name_line(int number)
{
    static const char text[] = "replay: failed at line ";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    char digits[12];
    size_t at = sizeof digits;
    digits[--at] = '\n';
    for (int n = line_now; n > 0 && at > 0; n /= 10)
        digits[--at] = (char)('0' + n % 10);
    (void)!write(STDERR_FILENO, digits + at, sizeof digits - at);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes of the hex in place; SIZE_MAX: it is not hex. */
static size_t unhex(char *line)
{
    size_t n = 0;
    for (const char *p = line; *p; p += 2) {
        const int high = digit_of(p[0]);
        const int low = high < 0 ? -1 : digit_of(p[1]);
        if (low < 0)
            return SIZE_MAX;
        line[n++] = (char)(high * 16 + low);
    }
    return n;
}

static bool replay_line(char *line)
{
    line[strcspn(line, "\n")] = '\0';
    const size_t n = unhex(line);
    if (n == SIZE_MAX)
        return false;
    uint8_t *const exact = fz_copy(line, n);
    (void)LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return true;
}

static int replay_file(FILE *f, const char *path)
{
    static char line[LINE_MAX_BYTES];
    int inputs = 0;
    const uint8_t none = 0;
    (void)LLVMFuzzerTestOneInput(&none, 0);
    while (fgets(line, sizeof line, f)) {
        line_now++;
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (!replay_line(line)) {
            (void)fprintf(stderr, "%s:%d: not hex\n", path, (int)line_now);
            return 1;
        }
        inputs++;
    }
    (void)printf("%s: %d inputs\n", path, inputs);
    return inputs > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s CORPUS.hex\n", argv[0]);
        return 2;
    }
    const int fatal[] = {SIGABRT, SIGILL, SIGTRAP, SIGFPE};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        (void)signal(fatal[i], name_line);
    FILE *const f = fopen(argv[1], "r");
    if (!f) {
        perror(argv[1]);
        return 2;
    }
    const int r = replay_file(f, argv[1]);
    (void)fclose(f);
    return r;
}
