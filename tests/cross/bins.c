/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bins INDEX.TSV FORM.TSV: the golden indices and forms of sketches, and a digest over many more,
 * of mappings of every kind, by this processor. tests/cross/run.sh compares the digests of several:
 * they are the same to the bit. Stands alone, so that it builds without the test framework for any
 * target.
 */
#include "sketch/mapping.h"
#include "sketch/sketch.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned failures;

static void fail(const char *what, const char *line)
{
    fprintf(stderr, "bins: %s: %.120s\n", what, line);
    failures++;
}

struct digest {
    uint64_t h;
};

/* FNV-1a (Fowler, Noll, Vo), over the bytes of the number, low first: alike on every byte order. */
static void mix(struct digest *d, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++) {
        d->h ^= v >> (8 * i) & 0xff;
        d->h *= UINT64_C(0x100000001b3);
    }
}

static uint64_t next(uint64_t *s)
{
    *s += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = *s;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static unsigned check_index(const char *path)
{
    char line[256];
    unsigned rows = 0;
    FILE *const f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        char grid[8];
        char value[64];
        int want;
        if (line[0] == '#' || sscanf(line, "%7s %63s %d", grid, value, &want) != 3)
            continue;
        const int got = grid[0] == 'n' ? wr_mapping_index_ns(strtoll(value, NULL, 10))
                                       : wr_mapping_index_value(strtod(value, NULL));
        if (got != want)
            fail("index", line);
        rows++;
    }
    if (f)
        (void)fclose(f);
    return rows;
}

static struct weir_sketch *sketch(uint32_t grid)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = grid, .max_bins = 32768};
    struct weir_sketch *sk;
    if (weir_sketch_new(&o, &sk) != WEIR_OK)
        exit(1);
    return sk;
}

static void put(struct weir_sketch *sk, double v, int64_t ns, uint64_t weight)
{
    const int r = weir_sketch_grid(sk) == WEIR_GRID_NS ? weir_sketch_add_ns(sk, ns, weight)
                                                       : weir_sketch_add(sk, v, weight);
    if (r != WEIR_OK)
        fail("add", weir_strerror(r));
}

/* The samples of a row; the form in hex must be hex. */
static void check_form(char *samples, const char *hex, uint32_t grid, const char *id)
{
    struct weir_sketch *const sk = sketch(grid);
    for (char *at = samples; *at && *at != '\t';) {
        char *end;
        const double v = strtod(at, &end);
        const int64_t ns = strtoll(at, NULL, 10);
        put(sk, v, ns, strtoull(end + 1, &at, 10));
        while (*at == ' ')
            at++;
    }
    static uint8_t form[1 << 20];
    size_t n = 0;
    if (weir_sketch_encode(sk, form, sizeof form, &n) != WEIR_OK)
        fail("encode", id);
    for (size_t i = 0; i < n; i++) {
        char two[3];
        (void)snprintf(two, sizeof two, "%02x", form[i]);
        if (hex[2 * i] != two[0] || hex[2 * i + 1] != two[1]) {
            fail("form", id);
            break;
        }
    }
    struct weir_sketch *const back = sketch(grid);
    if (weir_sketch_decode(back, form, n) != WEIR_OK)
        fail("decode", id);
    weir_sketch_free(back);
    weir_sketch_free(sk);
}

static unsigned check_forms(const char *path)
{
    static char line[1 << 20];
    unsigned rows = 0;
    FILE *const f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        char *const grid = line[0] == '#' ? NULL : strchr(line, '\t');
        char *const samples = grid ? strchr(grid + 1, '\t') : NULL;
        char *const hex = samples ? strchr(samples + 1, '\t') : NULL;
        if (!hex)
            continue;
        check_form(samples + 1, hex + 1, grid[1] == 'n' ? WEIR_GRID_NS : WEIR_GRID_VALUE, line);
        rows++;
    }
    if (f)
        (void)fclose(f);
    return rows;
}

static void digest_indices(struct digest *d)
{
    uint64_t s = 1;
    for (int i = 0; i < 300000; i++) {
        const int64_t ns = (int64_t)(next(&s) >> (1 + next(&s) % 62)) | 1;
        mix(d, (uint64_t)(int64_t)wr_mapping_index_ns(ns));
        /* A finite double above the zeros: any fraction, an exponent of a normal number. */
        const uint64_t bits = (next(&s) >> 12) | (1 + next(&s) % 2045) << 52;
        double v;
        memcpy(&v, &bits, sizeof v);
        if (v > WR_MAPPING_ZERO_MAX)
            mix(d, (uint64_t)(int64_t)wr_mapping_index_value(v));
    }
}

static void mix_double(struct digest *d, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    mix(d, bits);
}

static void digest_kind(struct digest *d, const struct weir_mapping *m, uint64_t *s)
{
    double values[64];
    int32_t indices[64];
    int32_t lo;
    int32_t hi;
    mix_double(d, weir_mapping_accuracy(m));
    wr_mapping_limits(m, false, &lo, &hi);
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < 64; i++) {
            /* of any exponent or of those that tables cover; a bound and the double below it */
            const uint64_t exponent = round % 2 ? 1 + next(s) % 2045 : 980 + next(s) % 110;
            const uint64_t bits = (next(s) >> 12) | exponent << 52;
            memcpy(&values[i], &bits, sizeof bits);
            if (i % 4 > 1)
                values[i] = weir_mapping_lower(
                    m, lo + (int32_t)(next(s) % (uint64_t)((int64_t)hi - lo + 1)));
            if (i % 4 == 3)
                values[i] = nextafter(values[i], 0);
        }
        wr_mapping_index_many(m, values, 64, indices);
        for (int i = 0; i < 64; i++) {
            mix_double(d, values[i]);
            mix(d, (uint64_t)(int64_t)indices[i]);
            if (indices[i] == WR_MAPPING_NO_BIN)
                continue;
            if (wr_mapping_index(m, values[i]) != indices[i])
                fail("index of many", "");
            mix_double(d, weir_mapping_value(m, indices[i]));
        }
    }
    for (int i = 0; i < 400; i++)
        mix(d, (uint64_t)(int64_t)wr_mapping_index_duration(
                   m, (int64_t)(next(s) >> (1 + next(s) % 62)) | 1));
}

/* Every scale; every other kind at several widths and offsets, with a table and without. */
static void digest_kinds(struct digest *d)
{
    static const double gammas[] = {1.0000411, 1.015625, 0x1.052bf5a814afdp+0, 0x1.02c9a3e778061p+0,
                                    1.3,       1e9};
    static const double offsets[] = {0, 1338.5, 0x1.fe049efe8ad80p+0, -77.25};
    uint64_t s = 3;
    for (int32_t scale = WEIR_SCALE_MIN; scale <= WEIR_SCALE_MAX; scale++)
        digest_kind(d, &wr_mapping_base2s[scale - WEIR_SCALE_MIN], &s);
    for (unsigned i = 0; i < 5 * 6 * 4; i++) {
        const uint32_t kind = WEIR_MAPPING_LOG + i % 5;
        struct weir_mapping *m;
        struct weir_mapping *bare;
        if (weir_mapping_new(NULL, kind, gammas[i / 5 % 6], offsets[i / 30], &m) != WEIR_OK ||
            wr_mapping_read_only(NULL, kind, gammas[i / 5 % 6], offsets[i / 30], &bare) != WEIR_OK)
            exit(1);
        digest_kind(d, m, &s);
        digest_kind(d, bare, &s);
        weir_mapping_unref(bare);
        weir_mapping_unref(m);
    }
}

static void digest_quantiles(struct digest *d, const struct weir_sketch *sk)
{
    for (int q = 0; q <= 20; q++) {
        double v = 0;
        if (weir_sketch_quantile(sk, q / 20.0, &v) != WEIR_OK)
            fail("quantile", "");
        mix_double(d, v);
    }
}

/* Bins that move to another kind of mapping. */
static void digest_converted(struct digest *d, const struct weir_sketch *src, int round)
{
    struct weir_mapping *m;
    if (weir_mapping_new(NULL, WEIR_MAPPING_LOG + (uint32_t)round % 5, 1.03, 0.5, &m) != WEIR_OK)
        exit(1);
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .grid = weir_sketch_grid(src), .max_bins = 4000, .mapping = m};
    struct weir_sketch *sk;
    if (weir_sketch_new(&o, &sk) != WEIR_OK || weir_sketch_convert(sk, src) != WEIR_OK)
        exit(1);
    mix(d, weir_sketch_bins_weight(sk));
    digest_quantiles(d, sk);
    weir_sketch_free(sk);
    weir_mapping_unref(m);
}

/* Random histories: every width of counter, fractional weights, merges, quantiles. */
static void digest_sketches(struct digest *d)
{
    uint64_t s = 2;
    static uint8_t form[1 << 20];
    for (int round = 0; round < 60; round++) {
        const uint32_t grid = round % 2 ? WEIR_GRID_NS : WEIR_GRID_VALUE;
        struct weir_sketch *const a = sketch(grid);
        struct weir_sketch *const b = sketch(grid);
        for (int i = 0; i < 3000; i++) {
            const int64_t ns = (int64_t)(next(&s) >> (20 + next(&s) % 30));
            const uint64_t weight =
                round % 3 ? WEIR_WEIGHT_ONE << next(&s) % 18 : 1 + next(&s) % 9999999;
            put(i % 3 ? a : b, (double)ns * (next(&s) % 5 ? 1e-3 : -1e-6), ns, weight);
        }
        if (weir_sketch_merge(a, b) != WEIR_OK)
            fail("merge", "");
        size_t n = 0;
        if (weir_sketch_encode(a, form, sizeof form, &n) != WEIR_OK)
            fail("encode", "");
        for (size_t i = 0; i < n; i++)
            mix(d, form[i]);
        digest_quantiles(d, a);
        digest_converted(d, a, round);
        weir_sketch_free(a);
        weir_sketch_free(b);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: bins INDEX.TSV FORM.TSV\n", stderr);
        return 2;
    }
    const unsigned indices = check_index(argv[1]);
    const unsigned forms = check_forms(argv[2]);
    struct digest d = {UINT64_C(0xcbf29ce484222325)};
    digest_indices(&d);
    digest_kinds(&d);
    digest_sketches(&d);
    printf("%u indices, %u forms, digest %016llx\n", indices, forms, (unsigned long long)d.h);
    return failures || indices < 100 || forms < 20;
}
