/* SPDX-License-Identifier: Apache-2.0 */
/* support: see support.h. */
#include "support.h"

size_t t_rows(const char *path, t_row_fn *fn, void *ctx)
{
    size_t bytes = 0;
    size_t rows = 0;
    char *const text = (char *)t_read_file(path, &bytes);
    if (!text)
        T_FAIL("cannot read %s", path);
    for (char *line = text; line < text + bytes;) {
        char *cells[T_CELLS];
        char *const end = memchr(line, '\n', (size_t)(text + bytes - line));
        T_TRUE(end != NULL);
        *end = '\0';
        char *at = line;
        for (size_t i = 0; i < T_CELLS; i++) {
            cells[i] = at;
            char *const tab = strchr(at, '\t');
            if (tab)
                *tab = '\0';
            at = tab ? tab + 1 : end;
        }
        if (line[0] != '#' && line[0] != '\0') {
            fn(ctx, cells);
            rows++;
        }
        line = end + 1;
    }
    free(text);
    return rows;
}

struct t_bytes t_bytes(const char *hex)
{
    const size_t cap = strlen(hex) / 2;
    struct t_bytes b = {.at = malloc(cap ? cap : 1)};
    T_TRUE(b.at != NULL);
    if (strcmp(hex, "-") != 0)
        b.n = t_unhex(hex, b.at, cap);
    return b;
}

struct weir_sketch *t_sketch_of(const struct weir_mapping *mapping, uint32_t max_bins)
{
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .max_bins = max_bins, .mapping = mapping};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    return sk;
}

struct weir_mapping *t_mapping(uint32_t kind, double gamma, double offset)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_new(NULL, kind, gamma, offset, &m));
    return m;
}

static uint64_t weight_at(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t index)
{
    uint64_t weight;
    wr_bins_read(sk, sign, index, 1, &weight);
    return weight;
}

double t_java_quantile(const struct weir_sketch *sk, double q)
{
    double v;
    T_OK(weir_sketch_quantile_by(sk, WEIR_QUANTILE_JAVA, q, &v));
    return v;
}

struct t_bytes t_encode(uint32_t codec, const struct weir_codec_opts *opts,
                        const struct weir_sketch *sk)
{
    const size_t bound = weir_codec_encode_bound(codec, opts, sk);
    struct t_bytes b = {.at = malloc(bound ? bound : 1)};
    T_TRUE(b.at != NULL);
    T_OK(weir_codec_encode(codec, opts, sk, b.at, bound, &b.n));
    T_TRUE(b.n <= bound);
    uint8_t *const exact = malloc(b.n ? b.n : 1);
    T_TRUE(exact != NULL);
    size_t n;
    T_OK(weir_codec_encode(codec, opts, sk, exact, b.n, &n));
    T_EQ_BYTES(exact, n, b.at, b.n);
    free(exact);
    if (b.n) {
        uint8_t *const less = malloc(b.n);
        T_TRUE(less != NULL);
        T_ERR(weir_codec_encode(codec, opts, sk, less, b.n - 1, &n), WEIR_EFULL);
        free(less);
    }
    return b;
}

static void same_store(const struct weir_sketch *a, const struct weir_sketch *b,
                       enum wr_bins_sign sign)
{
    int32_t lo[2] = {0, 0};
    int32_t hi[2] = {-1, -1};
    const bool any = wr_bins_range(a, sign, &lo[0], &hi[0]);
    T_TRUE(any == wr_bins_range(b, sign, &lo[1], &hi[1]));
    if (!any)
        return;
    T_EQ_I64(lo[0], lo[1]);
    T_EQ_I64(hi[0], hi[1]);
    for (int64_t i = lo[0]; i <= hi[0]; i++)
        T_EQ_U64(weight_at(a, sign, (int32_t)i), weight_at(b, sign, (int32_t)i));
}

void t_same_bins(const struct weir_sketch *a, const struct weir_sketch *b)
{
    T_TRUE(weir_mapping_equal(weir_sketch_mapping(a), weir_sketch_mapping(b)));
    T_EQ_U64(weir_sketch_weight(a), weir_sketch_weight(b));
    T_EQ_U64(wr_bins_zero(a), wr_bins_zero(b));
    same_store(a, b, WR_BINS_POSITIVE);
    same_store(a, b, WR_BINS_NEGATIVE);
}
