/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_screen: see query_screen.h. Sequences are those of ECMA-48 and DEC's private modes 7
 * (lines wrap), 25 (the cursor shows) and 1049 (alternate screen), which every terminal of the
 * last decades knows; there is no terminfo.
 */
#include "cli/query_screen.h"

#include "plat/plat.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ENTER "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
#define LEAVE "\x1b[?7h\x1b[?25h\x1b[?1049l"
#define HOME "\x1b[H"
#define END_OF_LINE "\x1b[K"
#define END_OF_SCREEN "\x1b[J"

#define FRAME_MAX_BYTES ((size_t)256 * 1024 * 1024)

/* What the handlers look at. */
static volatile sig_atomic_t is_on_terminal;
static volatile sig_atomic_t has_new_size;

static void put_now(const char *text, size_t len)
{
    const ssize_t ignored = write(STDOUT_FILENO, text, len);
    (void)ignored; /* there is nobody left to tell */
}

static void on_end(int number)
{
    (void)number;
    if (is_on_terminal)
        put_now(LEAVE, sizeof LEAVE - 1);
    _exit(0);
}

static void on_size(int number)
{
    (void)number;
    has_new_size = 1;
}

/* SIGSTOP cannot be caught: the process stops inside this handler and goes on in it. */
static void on_stop(int number)
{
    const int kept = errno;
    (void)number;
    if (is_on_terminal)
        put_now(LEAVE, sizeof LEAVE - 1);
    (void)raise(SIGSTOP);
    if (is_on_terminal)
        put_now(ENTER, sizeof ENTER - 1);
    has_new_size = 1; /* paint at once */
    errno = kept;
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    (void)sigfillset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

static bool can_paint(void)
{
    const char *const term = getenv("TERM"); /* NOLINT(concurrency-mt-unsafe): before any thread */
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

void cli_query_screen_open(struct query_screen *screen, bool plain)
{
    *screen = (struct query_screen){.is_terminal = !plain && can_paint()};
    query_buf_init(&screen->frame, FRAME_MAX_BYTES);
    is_on_terminal = screen->is_terminal;
    handle(SIGINT, on_end);
    handle(SIGTERM, on_end);
    handle(SIGHUP, on_end);
    if (!screen->is_terminal)
        return;
    handle(SIGWINCH, on_size);
    handle(SIGTSTP, on_stop);
    put_now(ENTER, sizeof ENTER - 1);
}

void cli_query_screen_close(struct query_screen *screen)
{
    if (screen->is_terminal)
        put_now(LEAVE, sizeof LEAVE - 1);
    is_on_terminal = 0;
    query_buf_done(&screen->frame);
}

void cli_query_screen_measure(struct query_screen *screen)
{
    struct winsize size = {.ws_row = 0};
    screen->rows = 0;
    screen->columns = 0;
    if (!screen->is_terminal)
        return;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col;
    screen->rows = known ? size.ws_row : 24;
    screen->columns = known ? size.ws_col : 80;
}

static bool write_all(const char *text, size_t len)
{
    while (len) {
        const ssize_t n = write(STDOUT_FILENO, text, len);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        if (n < 0 && errno == EAGAIN) { /* a terminal that somebody made non-blocking */
            struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
            (void)poll(&p, 1, -1);
        }
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* A line as far as it fits. What the line before it left behind is erased, but not from the last
 * column: there the cursor still stands on what was put last. */
static void paint_line(struct query_screen *screen, const char *line, size_t len)
{
    size_t column = 0;
    size_t at = 0;
    while (at < len && column < screen->columns) {
        size_t step;
        (void)query_utf8_next(line + at, len - at, &step);
        at += step;
        column++;
    }
    query_buf_put(&screen->frame, line, at);
    if (column < screen->columns)
        query_buf_put_text(&screen->frame, END_OF_LINE);
}

/* The first rows lines; no newline behind the last, which would scroll. */
static void paint(struct query_screen *screen, const char *text, size_t len)
{
    query_buf_put_text(&screen->frame, HOME);
    size_t row = 0;
    for (; len && row < screen->rows; row++) {
        const char *const newline = memchr(text, '\n', len);
        const size_t n = newline ? (size_t)(newline - text) : len;
        const size_t step = n + (newline ? 1 : 0);
        query_buf_put_text(&screen->frame, row ? "\r\n" : "");
        paint_line(screen, text, n);
        text += step;
        len -= step;
    }
    if (row < screen->rows)
        query_buf_put_text(&screen->frame, row ? "\r\n" END_OF_SCREEN : END_OF_SCREEN);
}

bool cli_query_screen_put(struct query_screen *screen, const char *text, size_t len)
{
    query_buf_clear(&screen->frame);
    if (screen->is_terminal) {
        paint(screen, text, len);
    } else {
        query_buf_put_text(&screen->frame, screen->is_later ? "\n" : "");
        query_buf_put(&screen->frame, text, len);
    }
    screen->is_later = true;
    return !screen->frame.err && write_all(screen->frame.ptr, screen->frame.len);
}

enum query_wake cli_query_screen_wait(int64_t until_mono_ns)
{
    /* The signal must not come between the look at the flag and the sleep. */
    sigset_t hold;
    sigset_t before;
    (void)sigemptyset(&hold);
    (void)sigaddset(&hold, SIGWINCH);
    (void)sigaddset(&hold, SIGTSTP);
    (void)sigprocmask(SIG_BLOCK, &hold, &before); /* NOLINT(concurrency-mt-unsafe): one thread */
    int64_t left = until_mono_ns - plat_mono_ns();
    while (!has_new_size && left > 0) {
        const struct timespec t = {.tv_sec = (time_t)(left / 1000000000),
                                   .tv_nsec = (long)(left % 1000000000)};
        (void)ppoll(NULL, 0, &t, &before);
        left = until_mono_ns - plat_mono_ns();
    }
    const bool is_size = has_new_size;
    has_new_size = 0;
    (void)sigprocmask(SIG_SETMASK, &before, NULL); /* NOLINT(concurrency-mt-unsafe) */
    return is_size ? QUERY_WAKE_SIZE : QUERY_WAKE_TIME;
}
