/* SPDX-License-Identifier: Apache-2.0 */
/* t: see t.h. */
#include "t.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct t_case *first;
static struct t_case **last = &first;

void t_register(struct t_case *c)
{
    *last = c;
    last = &c->next;
}

void t_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[2048];
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s (seed %" PRIu64 ")\n", text, t_seed());
    _fail(file, line);
    abort(); /* _fail does not return */
}

void t_skip_missing(const char *what, const char *file, int line)
{
    if (getenv("CI"))
        t_fail(file, line, "missing under CI: %s", what);
    print_message("skipped: %s is missing\n", what);
    skip();
}

void t_eq_u64(uint64_t a, uint64_t b, const char *ea, const char *eb, const char *file, int line)
{
    if (a != b)
        t_fail(file, line, "%s = %" PRIu64 ", %s = %" PRIu64, ea, a, eb, b);
}

void t_eq_i64(int64_t a, int64_t b, const char *ea, const char *eb, const char *file, int line)
{
    if (a != b)
        t_fail(file, line, "%s = %" PRId64 ", %s = %" PRId64, ea, a, eb, b);
}

void t_eq_dbl(double a, double b, double rel, const char *ea, const char *eb, const char *file,
              int line)
{
    const double bigger = fmax(fabs(a), fabs(b));
    if (!(fabs(a - b) <= rel * bigger))
        t_fail(file, line, "%s = %.17g, %s = %.17g, relative error %.3g, allowed %.3g", ea, a, eb,
               b, fabs(a - b) / bigger, rel);
}

void t_eq_str(const char *a, const char *b, const char *ea, const char *eb, const char *file,
              int line)
{
    if (!a || !b || strcmp(a, b) != 0)
        t_fail(file, line, "%s = \"%s\", %s = \"%s\"", ea, a ? a : "(null)", eb, b ? b : "(null)");
}

void t_eq_bytes(const void *a, size_t na, const void *b, size_t nb, const char *file, int line)
{
    const uint8_t *const pa = a;
    const uint8_t *const pb = b;
    size_t i = 0;
    while (i < na && i < nb && pa[i] == pb[i])
        i++;
    if (i == na && i == nb)
        return;
    char text[2][3 * 24 + 1];
    for (int side = 0; side < 2; side++) {
        const uint8_t *const p = side ? pb : pa;
        const size_t n = side ? nb : na;
        size_t out = 0;
        text[side][0] = 0;
        for (size_t j = i >= 4 ? i - 4 : 0; j < n && out < 24; j++, out++)
            (void)snprintf(text[side] + 3 * out, 4, "%02x ", p[j]);
    }
    t_fail(file, line, "%zu bytes and %zu bytes differ at %zu\n  got  .. %s\n  want .. %s", na, nb,
           i, text[0], text[1]);
}

uint64_t t_seed(void)
{
    const char *const text = getenv("T_SEED");
    return text ? strtoull(text, NULL, 0) : UINT64_C(20260830);
}

struct t_rng t_rng(uint64_t seed)
{
    return (struct t_rng){.s = seed};
}

uint64_t t_next(struct t_rng *r)
{
    r->s += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = r->s;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t t_below(struct t_rng *r, uint64_t n)
{
    return t_next(r) % n;
}

double t_unit(struct t_rng *r)
{
    return (double)(t_next(r) >> 11) * 0x1p-53;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

size_t t_unhex(const char *hex, uint8_t *dst, size_t cap)
{
    size_t n = 0;
    for (const char *at = hex; *at;) {
        if (*at == ' ' || *at == '\n' || *at == '\t') {
            at++;
            continue;
        }
        const int hi = digit(at[0]);
        const int lo = hi < 0 ? -1 : digit(at[1]);
        if (lo < 0 || n >= cap)
            T_FAIL("bad hex, or longer than %zu bytes, at \"%.8s\"", cap, at);
        dst[n++] = (uint8_t)(hi << 4 | lo);
        at += 2;
    }
    return n;
}

uint8_t *t_read_file(const char *path, size_t *ret_bytes)
{
    FILE *const f = fopen(path, "rb");
    if (!f)
        return NULL;
    uint8_t *bytes = NULL;
    if (fseek(f, 0, SEEK_END) == 0) {
        const long size = ftell(f);
        bytes = size < 0 ? NULL : malloc((size_t)size + 1);
        if (bytes && fseek(f, 0, SEEK_SET) == 0)
            *ret_bytes = fread(bytes, 1, (size_t)size, f);
        if (bytes)
            bytes[*ret_bytes] = 0;
    }
    (void)fclose(f);
    return bytes;
}

int main(void)
{
    size_t count = 0;
    for (const struct t_case *c = first; c; c = c->next)
        count++;
    struct CMUnitTest *const tests = calloc(count ? count : 1, sizeof *tests);
    size_t i = 0;
    for (const struct t_case *c = first; c; c = c->next)
        tests[i++] = (struct CMUnitTest){.name = c->name, .test_func = c->fn};
    if (count == 0) {
        print_error("no tests in this binary\n");
        return 1;
    }
    const int failed = _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
    free(tests);
    return failed ? 1 : 0;
}
