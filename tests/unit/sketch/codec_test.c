/* SPDX-License-Identifier: Apache-2.0 */
/* codec: the compact form against bytes of an independent writer, and what the decoder refuses. */
#include "t_sketch.h"

#include <math.h>
#include <string.h>

struct row {
    char *id;
    uint32_t grid;
    char *samples;
    uint8_t bytes[4096];
    size_t n;
};

/* The next row of the golden file; false at its end. */
static bool next_row(char **at, struct row *row)
{
    char *line = *at;
    if (!line || !*line)
        return false;
    char *const end = strchr(line, '\n');
    *end = 0;
    *at = end + 1;
    char *field[4];
    for (int i = 0; i < 4; i++) {
        field[i] = line;
        line = strchr(line, '\t');
        if (line)
            *line++ = 0;
    }
    row->id = field[0];
    row->grid = strcmp(field[1], "ns") == 0 ? WEIR_GRID_NS : WEIR_GRID_VALUE;
    row->samples = field[2];
    row->n = t_unhex(field[3], row->bytes, sizeof row->bytes);
    return true;
}

static struct weir_sketch *record(const struct row *row)
{
    struct weir_sketch *const sk = t_sketch(row->grid, 32768);
    for (char *at = row->samples; *at;) {
        char *end;
        const char *const start = at;
        const double v = strtod(at, &end);
        const int64_t ns = strtoll(start, NULL, 10);
        const uint64_t weight = strtoull(end + 1, &at, 10);
        T_OK(row->grid == WEIR_GRID_NS ? weir_sketch_add_ns(sk, ns, weight)
                                       : weir_sketch_add(sk, v, weight));
        at += strspn(at, " ");
    }
    T_TRUE(wr_sketch_check(sk));
    return sk;
}

static char *golden(void)
{
    size_t n;
    char *const text = (char *)t_read_file(T_SOURCE_DIR "/tests/golden/sketch/form.tsv", &n);
    T_TRUE(text != NULL);
    return text;
}

TEST(the_form_is_that_of_the_golden_file_and_decodes_to_the_same_sketch)
{
    char *const text = golden();
    char *at = strchr(text, '\n') + 1;
    struct row row;
    int rows = 0;
    for (; next_row(&at, &row); rows++) {
        struct weir_sketch *const sk = record(&row);
        size_t n;
        uint8_t *const form = t_sketch_form(sk, &n);
        if (n != row.n || memcmp(form, row.bytes, n) != 0)
            print_error("%s:\n", row.id);
        T_EQ_BYTES(form, n, row.bytes, row.n);
        free(form);
        struct weir_sketch *const back = t_sketch(row.grid, 32768);
        T_OK(weir_sketch_decode(back, row.bytes, row.n));
        t_sketch_same(back, sk);
        T_EQ_U64(weir_sketch_weight(back), weir_sketch_weight(sk));
        T_EQ_DBL(weir_sketch_sum(back), weir_sketch_sum(sk));
        if (weir_sketch_weight(sk))
            T_EQ_DBL(t_sketch_q(back, 0.5), t_sketch_q(sk, 0.5));
        weir_sketch_free(back);
        weir_sketch_free(sk);
    }
    T_EQ_U64(rows, 24);
    free(text);
}

TEST(a_buffer_one_byte_short_is_refused)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(sk, 1000, 0));
    uint8_t bytes[64];
    size_t n = 99;
    T_ERR(weir_sketch_encode(sk, bytes, weir_sketch_encoded_bytes(sk) - 1, &n), WEIR_EFULL);
    T_EQ_U64(n, 99);
    T_OK(weir_sketch_encode(sk, bytes, weir_sketch_encoded_bytes(sk), &n));
    T_EQ_U64(n, weir_sketch_encoded_bytes(sk));
    weir_sketch_free(sk);
}

/* sk has something in it before, and nothing after. */
static void expect_refused(struct weir_sketch *sk, const uint8_t *bytes, size_t n, int want)
{
    weir_sketch_clear(sk);
    T_OK(weir_sketch_grid(sk) == WEIR_GRID_NS ? weir_sketch_add_ns(sk, 77, 0)
                                              : weir_sketch_add(sk, -77, 0));
    struct t_guard g = t_guard_new(bytes, n);
    const int r = weir_sketch_decode(sk, g.ptr, n);
    t_guard_free(&g);
    if (want)
        T_ERR(r, want);
    else
        T_TRUE(r == WEIR_EFORMAT || r == WEIR_ETRUNCATED || r == WEIR_EVERSION);
    T_EQ_U64(weir_sketch_weight(sk), 0);
    T_TRUE(wr_sketch_check(sk));
}

TEST(every_prefix_of_a_form_is_truncated_and_one_byte_more_is_refused)
{
    char *const text = golden();
    char *at = strchr(text, '\n') + 1;
    struct row row;
    while (next_row(&at, &row)) {
        struct weir_sketch *const sk = t_sketch(row.grid, 0);
        for (size_t n = 0; n < row.n; n++)
            expect_refused(sk, row.bytes, n, WEIR_ETRUNCATED);
        row.bytes[row.n] = 0;
        expect_refused(sk, row.bytes, row.n + 1, WEIR_EFORMAT);
        weir_sketch_free(sk);
    }
    free(text);
}

/* Whatever a flipped bit turns a form into, it is refused, or is the form of what was read. */
TEST(a_flipped_bit_is_refused_or_is_another_sketch_in_its_own_form)
{
    char *const text = golden();
    char *at = strchr(text, '\n') + 1;
    struct row row;
    while (next_row(&at, &row)) {
        struct weir_sketch *const sk = t_sketch(row.grid, 32768);
        for (size_t bit = 0; bit < row.n * 8; bit++) {
            row.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            const int r = weir_sketch_decode(sk, row.bytes, row.n);
            T_TRUE(wr_sketch_check(sk));
            if (r == WEIR_OK) {
                size_t n;
                uint8_t *const form = t_sketch_form(sk, &n);
                T_EQ_BYTES(form, n, row.bytes, row.n);
                free(form);
            } else {
                T_EQ_U64(weir_sketch_weight(sk), 0);
            }
            row.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        weir_sketch_free(sk);
    }
    free(text);
}

static const struct {
    const char *why;
    uint32_t grid;
    const char *hex;
    int want;
} refused[] = {
    {"another version", WEIR_GRID_NS, "030106", WEIR_EVERSION},
    {"version 0", WEIR_GRID_NS, "000106", WEIR_EVERSION},
    {"a scale that is too fine", WEIR_GRID_NS, "010109", WEIR_EVERSION},
    {"a scale that is too coarse", WEIR_GRID_NS, "0101f5", WEIR_EVERSION},
    {"version 2 for what 1 can say", WEIR_GRID_NS, "02010006", WEIR_EFORMAT},
    {"version 2 for a collapse that shows", WEIR_GRID_NS,
     "02090206 02 00005006000000000000000000000000 01 63 a117 01 02", WEIR_EFORMAT},
    {"a flag of version 2 that is not there", WEIR_GRID_NS, "02014006", WEIR_EFORMAT},
    {"an error of nothing", WEIR_GRID_VALUE, "02002006 000000000000f03f", WEIR_EFORMAT},
    {"an error of 0", WEIR_GRID_VALUE,
     "02082006 0000000000000000 01 000000000000f03f 0000000000000000 000000000000f03f "
     "000000000000f03f 01 01 01",
     WEIR_EFORMAT},
    {"a collapse of bins that are not there", WEIR_GRID_VALUE, "02000206", WEIR_EFORMAT},
    {"a mapping of gamma 1", WEIR_GRID_VALUE, "02000101 000000000000f03f 0000000000000000",
     WEIR_EVERSION},
    {"a kind of mapping that is not there", WEIR_GRID_VALUE,
     "02000106 333333333333f33f 0000000000000000", WEIR_EVERSION},
    {"base 2 spelled out", WEIR_GRID_VALUE, "02000100 0000000000000040 0000000000000000",
     WEIR_EFORMAT},
    {"another grid", WEIR_GRID_NS, "010006", WEIR_EVERSION},
    {"another grid", WEIR_GRID_VALUE, "010106", WEIR_EVERSION},
    {"a flag that is not there", WEIR_GRID_NS, "018106", WEIR_EFORMAT},
    {"fractions of nothing", WEIR_GRID_NS, "010306", WEIR_EFORMAT},
    {"pairs without bins", WEIR_GRID_NS, "012106", WEIR_EFORMAT},
    {"negative nanoseconds", WEIR_GRID_NS, "011106", WEIR_EFORMAT},
    /* one duration of 100 ns, which stands at the end, with one thing wrong at a time */
    {"total 2 of 1", WEIR_GRID_NS, "010906 02 0000800c000000000000000000000000 64 00 a117 01 01",
     0},
    {"total 0", WEIR_GRID_NS, "010906 00 00000000000000000000000000000000 64 00 a117 01 01", 0},
    {"sum under min", WEIR_GRID_NS, "010906 01 ffff3f06000000000000000000000000 64 00 a117 01 01",
     0},
    {"sum above max", WEIR_GRID_NS, "010906 01 01004006000000000000000000000000 64 00 a117 01 01",
     0},
    {"max past 2^63", WEIR_GRID_NS,
     "010906 01 00004006000000000000000000000000 64 ffffffffffffffff7f a117 01 01", 0},
    {"min of another bin", WEIR_GRID_NS,
     "010906 01 00005006000000000000000000000000 65 00 a117 01 01", 0},
    {"no bins", WEIR_GRID_NS, "010906 01 00004006000000000000000000000000 64 00 a117 00", 0},
    {"an empty bin", WEIR_GRID_NS, "010906 01 00004006000000000000000000000000 64 00 a117 01 00",
     0},
    {"empty first bin", WEIR_GRID_NS,
     "010906 01 00004006000000000000000000000000 64 00 a317 02 00 01", 0},
    {"empty last bin", WEIR_GRID_NS,
     "010906 01 00004006000000000000000000000000 64 00 a117 02 01 00", 0},
    {"2^63 bins", WEIR_GRID_NS,
     "010906 01 00004006000000000000000000000000 64 00 a117 80808080808080808001 01", 0},
    {"index 2^31", WEIR_GRID_NS,
     "010906 01 00004006000000000000000000000000 64 00 8080808010 01 01", 0},
    {"index of less than 1 ns", WEIR_GRID_NS,
     "010906 01 00004006000000000000000000000000 64 00 f51d 01 01", 0},
    {"a varint too long", WEIR_GRID_NS,
     "010906 8100 00004006000000000000000000000000 64 00 a117 01 01", WEIR_EFORMAT},
    {"a varint past 64 bits", WEIR_GRID_NS,
     "010906 80808080808080808002 00004006000000000000000000000000 64 00 a117 01 01", WEIR_EFORMAT},
    {"whole weights past 64 bits", WEIR_GRID_NS,
     "010906 808080808040 00004006000000000000000000000000 64 00 a117 01 808080808040", 0},
    {"fractions that are whole", WEIR_GRID_NS,
     "010b06 808040 00004006000000000000000000000000 64 00 a117 01 808040", WEIR_EFORMAT},
    {"pairs where a run is no longer", WEIR_GRID_NS,
     "012906 01 00004006000000000000000000000000 64 00 a117 01 01", WEIR_EFORMAT},
    {"a zero bin of 0", WEIR_GRID_NS,
     "010d06 01 00004006000000000000000000000000 00 64 00 a117 01 01", 0},
    {"a zero and min above it", WEIR_GRID_NS,
     "010d06 02 00004006000000000000000000000000 64 00 01 a117 01 01", 0},
    {"a gap past the last index", WEIR_GRID_NS,
     "012906 02 0000800c000000000000000000000000 64 00 a117 02 01 ffff03 01", 0},
    /* one value, 1.0: bin -1 */
    {"a NaN sum", WEIR_GRID_VALUE,
     "010806 01 000000000000f87f 0000000000000000 000000000000f03f 000000000000f03f 01 01 01", 0},
    {"an infinite min", WEIR_GRID_VALUE,
     "010806 01 000000000000f03f 0000000000000000 000000000000f0ff 000000000000f03f 01 01 01", 0},
    {"a NaN max", WEIR_GRID_VALUE,
     "010806 01 000000000000f03f 0000000000000000 000000000000f03f 000000000000f87f 01 01 01", 0},
    {"a sum in two parts that are one", WEIR_GRID_VALUE,
     "010806 01 000000000000e03f 000000000000e03f 000000000000f03f 000000000000f03f 01 01 01", 0},
    {"max in another bin", WEIR_GRID_VALUE,
     "010806 01 000000000000f03f 0000000000000000 000000000000f03f 0000000000000040 01 01 01", 0},
    {"a negative min without bins", WEIR_GRID_VALUE,
     "010806 01 000000000000f03f 0000000000000000 000000000000f0bf 000000000000f03f 01 01 01", 0},
    {"minus zero", WEIR_GRID_VALUE,
     "010406 01 0000000000000000 0000000000000000 0000000000000080 0000000000000000 01", 0},
};

TEST(a_form_that_does_not_agree_with_itself_is_refused)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        uint8_t bytes[256];
        const size_t n = t_unhex(refused[i].hex, bytes, sizeof bytes);
        struct weir_sketch *const sk = t_sketch(refused[i].grid, 0);
        print_message("%s\n", refused[i].why);
        expect_refused(sk, bytes, n, refused[i].want);
        weir_sketch_free(sk);
    }
    /* and the two that were changed are themselves accepted */
    static const char *const accepted[2] = {
        "010906 01 00004006000000000000000000000000 64 00 a117 01 01",
        "010806 01 000000000000f03f 0000000000000000 000000000000f03f 000000000000f03f 01 01 01"};
    for (uint32_t grid = 0; grid < 2; grid++) {
        uint8_t bytes[64];
        const size_t n = t_unhex(accepted[grid ? 0 : 1], bytes, sizeof bytes);
        struct weir_sketch *const sk = t_sketch(grid, 0);
        T_OK(weir_sketch_decode(sk, bytes, n));
        T_EQ_U64(weir_sketch_weight(sk), ONE);
        weir_sketch_free(sk);
    }
}

TEST(a_wide_form_collapses_into_a_narrow_sketch)
{
    struct weir_sketch *const wide = t_sketch(WEIR_GRID_VALUE, 0);
    for (int i = 0; i < 100; i++)
        T_OK(weir_sketch_add(wide, i < 50 ? exp2(i / 8.0) : -exp2(i / 8.0), (uint64_t)i + 1));
    size_t n;
    uint8_t *const form = t_sketch_form(wide, &n);
    struct weir_sketch *const narrow = t_sketch(WEIR_GRID_VALUE, 16);
    T_OK(weir_sketch_decode(narrow, form, n));
    T_TRUE(wr_sketch_check(narrow));
    T_EQ_U64(weir_sketch_bins_weight(narrow), weir_sketch_weight(wide));
    T_EQ_DBL(t_sketch_q(narrow, 1), t_sketch_q(wide, 1));
    T_EQ_DBL(t_sketch_q(narrow, 0), t_sketch_q(wide, 0));
    /* what a collapsed sketch encodes to can be read again */
    struct weir_sketch *const again = t_sketch(WEIR_GRID_VALUE, 0);
    size_t m;
    uint8_t *const small = t_sketch_form(narrow, &m);
    T_OK(weir_sketch_decode(again, small, m));
    t_sketch_same(again, narrow);
    free(form);
    free(small);
    weir_sketch_free(wide);
    weir_sketch_free(narrow);
    weir_sketch_free(again);
}

/* A distance of 2^64 - 1 and one more bin would be none at all. */
TEST(a_distance_that_wraps_is_refused)
{
    static const uint8_t most[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 32768);
    uint8_t form[128];
    size_t n;
    T_OK(weir_sketch_add(sk, 1, 0));
    T_OK(weir_sketch_add(sk, 4, 0));
    T_OK(weir_sketch_encode(sk, form, sizeof form, &n));
    T_TRUE(form[n - 3] == 1 && form[n - 2] == 0x7f &&
           form[n - 1] == 1); /* count, distance, count */
    memcpy(form + n - 2, most, sizeof most);
    form[n - 2 + sizeof most] = 1;
    T_ERR(weir_sketch_decode(sk, form, n - 1 + sizeof most), WEIR_EFORMAT);
    weir_sketch_free(sk);
}
