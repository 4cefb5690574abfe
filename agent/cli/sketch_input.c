/* SPDX-License-Identifier: Apache-2.0 */
/* sketch_input: see the header. */
#include "cli/sketch_input.h"

#include "plat/plat.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 65535u
#define PROGRESS_EVERY_NS INT64_C(1000000000)
#define WEIGHT_MAX 17592186044415.0 /* 2^44 - 1: in units of 2^-20 it fits 64 bits */

const char *cli_sketch_refused_text(enum sketch_refused reason)
{
    static const char *const texts[] = {
#define SKETCH_REFUSED_TEXT(name, text) [SKETCH_REFUSED_##name] = (text),
        SKETCH_REFUSED_MAP(SKETCH_REFUSED_TEXT)
#undef SKETCH_REFUSED_TEXT
    };
    return texts[reason];
}

/* A NUL-terminated line. */
struct line {
    char *text;
    char delimiter;
};

static bool separates(const struct line *line, char c)
{
    if (line->delimiter)
        return c == line->delimiter;
    return c == ' ' || c == '\t' || c == ',' || c == ';';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Where column n (from 1) begins; NULL: there are fewer. A run of blanks separates once, unless a
 * delimiter was asked for. */
static char *column(const struct line *line, uint32_t n)
{
    char *at = line->text;
    while (!line->delimiter && is_blank(*at))
        at++;
    for (; n > 1; n--) {
        while (*at && !separates(line, *at))
            at++;
        if (!*at)
            return NULL;
        at++;
        while (!line->delimiter && is_blank(*at))
            at++;
    }
    return *at ? at : NULL;
}

/* false: what stands in the column is not a number. */
static bool number(const struct line *line, char *at, double *ret_value)
{
    char *end;
    *ret_value = strtod(at, &end);
    if (end == at)
        return false;
    while (is_blank(*end) && !separates(line, *end))
        end++;
    return !*end || separates(line, *end);
}

/* What becomes of a line: taken, passed over, refused for a reason; or WEIR_ENOMEM. */
enum { TAKEN = -1, PASSED_OVER = -2, NO_MEMORY = -3 };

static int take(const struct sketch_opts *opts, const struct line *line, struct weir_sketch *sk)
{
    double value;
    double weight = 1;
    char *const at = column(line, opts->column);
    if (!at)
        return SKETCH_REFUSED_COLUMN;
    if (!number(line, at, &value))
        return SKETCH_REFUSED_NUMBER;
    if (!isfinite(value))
        return SKETCH_REFUSED_FINITE;
    if (opts->weight_column) {
        char *const of = column(line, opts->weight_column);
        if (!of || !number(line, of, &weight) || !(weight >= 0 && weight <= WEIGHT_MAX))
            return SKETCH_REFUSED_WEIGHT;
    }
    const uint64_t units = (uint64_t)llrint(weight * (double)WEIR_WEIGHT_ONE);
    if (!units)
        return PASSED_OVER;
    const int r = weir_sketch_add(sk, value, units);
    if (r == WEIR_ERANGE)
        return SKETCH_REFUSED_TOTAL;
    return r == WEIR_OK ? TAKEN : NO_MEMORY;
}

/* The first line that has something on it may name the columns. */
static bool is_heading(const struct sketch_input *in, int fate)
{
    return fate == SKETCH_REFUSED_NUMBER && in->taken == 0 &&
           in->refused[SKETCH_REFUSED_NUMBER] == 0;
}

/* Where the reading stands. */
struct reading {
    const struct sketch_opts *opts;
    struct weir_sketch *sk;
    struct sketch_input *in;
    bool heading;  /* no line with something on it yet */
    bool skipping; /* inside a line that is too long */
};

static int read_line(struct reading *rd, char *text, size_t len)
{
    const struct sketch_opts *const opts = rd->opts;
    struct sketch_input *const in = rd->in;
    in->lines++;
    if (len && text[len - 1] == '\r')
        len--;
    text[len] = '\0';
    const struct line line = {.text = text, .delimiter = opts->delimiter};
    if (strspn(text, " \t") == strlen(text) || text[0] == '#') {
        in->passed_over++;
        return WEIR_OK;
    }
    /* a NUL inside would hide the rest */
    const int fate = strlen(text) == len ? take(opts, &line, rd->sk) : (int)SKETCH_REFUSED_NUMBER;
    if (fate == NO_MEMORY)
        return WEIR_ENOMEM;
    if (fate == TAKEN) {
        in->taken++;
    } else if (fate == PASSED_OVER || (rd->heading && is_heading(in, fate))) {
        in->passed_over++;
    } else {
        if (!in->refused[fate]++)
            in->first_refused[fate] = in->lines;
    }
    rd->heading = false;
    return WEIR_OK;
}

static void refuse_long(struct sketch_input *in)
{
    in->lines++;
    if (!in->refused[SKETCH_REFUSED_LONG]++)
        in->first_refused[SKETCH_REFUSED_LONG] = in->lines;
}

static void tell(FILE *progress, const struct sketch_input *in, int64_t *next_ns)
{
    if (!progress || plat_mono_ns() < *next_ns)
        return;
    (void)fprintf(progress, "weir sketch: %" PRIu64 " lines\n", in->lines);
    *next_ns = plat_mono_ns() + PROGRESS_EVERY_NS;
}

/* Lines that are whole in buf[0..*len); what is left of the last one moves to the front. */
static int read_block(struct reading *rd, char *buf, size_t *len, bool at_end)
{
    size_t from = 0;
    while (from < *len || (at_end && rd->skipping)) {
        char *const end = memchr(buf + from, '\n', *len - from);
        if (!end && !at_end)
            break;
        const size_t n = end ? (size_t)(end - (buf + from)) : *len - from;
        int r = WEIR_OK;
        if (rd->skipping)
            refuse_long(rd->in);
        else
            r = read_line(rd, buf + from, n);
        if (r != WEIR_OK)
            return r;
        rd->skipping = false;
        from += n + 1;
        if (!end)
            from = *len;
    }
    *len -= from;
    memmove(buf, buf + from, *len);
    return WEIR_OK;
}

int cli_sketch_read(FILE *from, const struct sketch_opts *opts, struct weir_sketch *sk,
                    struct sketch_input *ret_input, FILE *progress)
{
    char buf[LINE_MAX_BYTES + 1];
    size_t len = 0;
    struct reading rd = {.opts = opts, .sk = sk, .in = ret_input, .heading = true};
    int64_t next_ns = plat_mono_ns() + PROGRESS_EVERY_NS;
    *ret_input = (struct sketch_input){0};
    for (;;) {
        if (len == LINE_MAX_BYTES) {
            rd.skipping = true;
            len = 0;
        }
        const size_t n = fread(buf + len, 1, LINE_MAX_BYTES - len, from);
        len += n;
        if (n == 0 && ferror(from))
            return -1;
        const int r = read_block(&rd, buf, &len, n == 0);
        if (r != WEIR_OK)
            return r;
        if (n == 0)
            return WEIR_OK;
        tell(progress, ret_input, &next_ns);
    }
}
