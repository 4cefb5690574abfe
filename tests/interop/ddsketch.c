/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddsketch: the library's codec behind the same few lines of text as ddsketch-go/main.go and
 * histogram-go/main.go: a case a line on stdin, one line of answer each.
 *
 *   write FORMAT KIND GAMMA OFFSET BLOCKS VALUE:WEIGHT...   answers hex; BLOCKS is one or cut
 *   read  FORMAT HEX                                        answers what is in it
 *
 * Threads: one. Memory: the C heap, of a case at a time.
 */
#include "sketch/bins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/codec.h>

static void need(int r, const char *what)
{
    if (r == WEIR_OK)
        return;
    (void)fprintf(stderr, "ddsketch: %s: %s\n", what, weir_strerror(r));
    exit(1);
}

static uint32_t codec_of(const char *format)
{
    for (uint32_t codec = WEIR_CODEC_OTLP_EXP; weir_codec_name(codec); codec++)
        if (strcmp(format, weir_codec_name(codec)) == 0)
            return codec;
    return strcmp(format, "proto") == 0 || strcmp(format, "stream") == 0 ? WEIR_CODEC_DD_PROTO
                                                                         : WEIR_CODEC_DD_COMPACT;
}

static struct weir_mapping *mapping_of(char **save)
{
    const char *const kind = strtok_r(NULL, " \n", save);
    const double gamma = strtod(strtok_r(NULL, " \n", save), NULL);
    const double offset = strtod(strtok_r(NULL, " \n", save), NULL);
    struct weir_mapping *m;
    if (strcmp(kind, "base2") == 0)
        need(weir_mapping_base2(NULL, 6, &m), "mapping");
    else
        need(weir_mapping_new(NULL,
                              strcmp(kind, "linear") == 0  ? WEIR_MAPPING_LINEAR
                              : strcmp(kind, "cubic") == 0 ? WEIR_MAPPING_CUBIC
                                                           : WEIR_MAPPING_LOG,
                              gamma, offset, &m),
             "mapping");
    return m;
}

static void write_case(char **save)
{
    const char *const format = strtok_r(NULL, " \n", save);
    struct weir_mapping *const m = mapping_of(save);
    const char *const blocks = strtok_r(NULL, " \n", save);
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .max_bins = 32768, .mapping = m};
    const struct weir_codec_opts co = {
        .struct_size = sizeof co,
        .flags = (strcmp(blocks, "one") == 0 ? WEIR_CODEC_ONE_BLOCK : 0) |
                 (strcmp(format, "exact") == 0 ? 0 : WEIR_CODEC_NO_STATS)};
    struct weir_sketch *sk;
    need(weir_sketch_new(&o, &sk), "new");
    for (char *pair; (pair = strtok_r(NULL, " \n", save)) != NULL;) {
        char *end;
        const double v = strtod(pair, &end);
        need(weir_sketch_add(sk, v, (uint64_t)(strtod(end + 1, NULL) * (double)WEIR_WEIGHT_ONE)),
             "add");
    }
    const size_t cap = weir_codec_encode_bound(codec_of(format), &co, sk);
    unsigned char *const bytes = malloc(cap);
    size_t n = 0;
    need(bytes ? WEIR_OK : WEIR_ENOMEM, "memory");
    need(weir_codec_encode(codec_of(format), &co, sk, bytes, cap, &n), "encode");
    for (size_t i = 0; i < n; i++)
        printf("%02x", bytes[i]);
    printf("\n");
    free(bytes);
    weir_sketch_free(sk);
    weir_mapping_unref(m);
}

static void print_bins(const struct weir_sketch *sk, enum wr_bins_sign sign, char name)
{
    int32_t lo;
    int32_t hi;
    if (!wr_bins_range(sk, sign, &lo, &hi))
        return;
    for (int64_t i = lo; i <= hi; i++) {
        uint64_t weight;
        wr_bins_read(sk, sign, (int32_t)i, 1, &weight);
        if (weight)
            printf(" %c%d:%.17g", name, (int)i, (double)weight * 0x1p-20);
    }
}

static void read_case(char **save)
{
    const char *const format = strtok_r(NULL, " \n", save);
    char *const hex = strtok_r(NULL, " \n", save);
    const size_t n = strlen(hex) / 2;
    unsigned char *const bytes = (unsigned char *)hex; /* in place: a byte is behind its digits */
    for (size_t i = 0; i < n; i++) {
        const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    const struct weir_sketch_opts o = {.struct_size = sizeof o,
                                       .max_bins = 32768}; /* no collapse */
    struct weir_sketch *sk;
    need(weir_sketch_new(&o, &sk), "new");
    need(weir_codec_decode(codec_of(format), NULL, bytes, n, sk, NULL), "decode");
    double min;
    double max;
    if (strcmp(format, "exact") == 0 && weir_sketch_min(sk, &min) == WEIR_OK &&
        weir_sketch_max(sk, &max) == WEIR_OK) {
        need(weir_sketch_is_exact(sk) ? WEIR_OK : WEIR_EFORMAT, "statistics");
        printf("exact %.17g %.17g %.17g ", weir_sketch_sum(sk), min, max);
    }
    const bool histogram = codec_of(format) >= WEIR_CODEC_OTLP_EXP;
    if (histogram)
        printf("scale %d ", (int)weir_mapping_scale(weir_sketch_mapping(sk)));
    printf("zeros %.17g", (double)wr_bins_zero(sk) * 0x1p-20);
    if (histogram)
        printf(" count %.17g", (double)weir_sketch_weight(sk) * 0x1p-20);
    print_bins(sk, WR_BINS_POSITIVE, '+');
    print_bins(sk, WR_BINS_NEGATIVE, '-');
    printf("\n");
    weir_sketch_free(sk);
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0) {
        char *save = NULL;
        const char *const verb = strtok_r(line, " \n", &save);
        if (strcmp(verb, "write") == 0)
            write_case(&save);
        else
            read_case(&save);
    }
    free(line);
    return 0;
}
