/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sketch: reads numbers into one sketch and prints what it then knows. No network, no store.
 *
 * Threads: one. Memory: one sketch, whatever the input; the text OUT_MAX_BYTES.
 */
#include "cli/sketch.h"

#include "cli/sketch_input.h"
#include "cli/sketch_report.h"
#include "plat/plat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/codec.h>

#define OUT_MAX_BYTES ((size_t)64 * 1024 * 1024)

static int fail(FILE *err, const char *what)
{
    (void)fprintf(err, "weir sketch: %s\n", what);
    return 1;
}

static int make_sketch(const struct sketch_opts *opts, struct weir_sketch **ret_sketch)
{
    struct weir_mapping *m;
    int r = opts->alpha > 0 ? weir_mapping_log(NULL, opts->alpha, &m)
                            : weir_mapping_base2(NULL, opts->scale, &m);
    if (r != WEIR_OK)
        return r;
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .grid = WEIR_GRID_VALUE, .max_bins = opts->limit, .mapping = m};
    r = weir_sketch_new(&o, ret_sketch);
    weir_mapping_unref(m); /* the sketch holds it */
    return r;
}

static bool tell_refused(const struct sketch_input *in, FILE *err)
{
    bool any = false;
    for (unsigned i = 0; i < SKETCH_REFUSED_COUNT; i++) {
        if (!in->refused[i])
            continue;
        any = true;
        (void)fprintf(err, "weir sketch: line %" PRIu64 " %s", in->first_refused[i],
                      cli_sketch_refused_text((enum sketch_refused)i));
        if (in->refused[i] > 1)
            (void)fprintf(err, ", nor is %" PRIu64 " more taken", in->refused[i] - 1);
        (void)fputc('\n', err);
    }
    return any;
}

static void put_refused(struct query_buf *out, const struct sketch_input *in)
{
    static const char *const names[] = {"column", "number", "finite", "weight", "total", "long"};
    query_buf_put_format(out, ",\"lines\":%" PRIu64 ",\"passed_over\":%" PRIu64 ",\"refused\":{",
                         in->lines, in->passed_over);
    for (unsigned i = 0; i < SKETCH_REFUSED_COUNT; i++)
        query_buf_put_format(out, "%s\"%s\":%" PRIu64, i ? "," : "", names[i], in->refused[i]);
    query_buf_put_char(out, '}');
}

static int put_encoded(const struct sketch_opts *opts, const struct weir_sketch *sk,
                       struct query_buf *out)
{
    const size_t cap = weir_codec_encode_bound(opts->codec, NULL, sk);
    size_t n = 0;
    uint8_t *const bytes = malloc(cap ? cap : 1);
    if (!bytes)
        return WEIR_ENOMEM;
    const int r = weir_codec_encode(opts->codec, NULL, sk, bytes, cap, &n);
    for (size_t i = 0; r == WEIR_OK && opts->hex && i < n; i++)
        query_buf_put_format(out, "%02x", bytes[i]);
    if (r == WEIR_OK && opts->hex)
        query_buf_put_char(out, '\n');
    else if (r == WEIR_OK)
        query_buf_put(out, (const char *)bytes, n);
    free(bytes);
    return r;
}

static int put_result(const struct sketch_opts *opts, const struct weir_sketch *sk,
                      const struct sketch_input *in, struct query_buf *out)
{
    const struct sketch_report what = {
        .quantiles = opts->quantiles, .quantile_count = opts->quantile_count, .rows = opts->rows};
    if (opts->encode)
        return put_encoded(opts, sk, out);
    if (!opts->json)
        return cli_sketch_report_text(out, sk, &what);
    query_buf_put_char(out, '{');
    const int r = cli_sketch_report_json(out, sk, &what);
    put_refused(out, in);
    query_buf_put_text(out, "}\n");
    return r;
}

static int run_file(const struct sketch_opts *opts, FILE *from, struct query_buf *out, FILE *err,
                    FILE *progress)
{
    struct weir_sketch *sk;
    struct sketch_input in;
    int r = make_sketch(opts, &sk);
    if (r != WEIR_OK)
        return fail(err, weir_strerror(r));
    r = cli_sketch_read(from, opts, sk, &in, progress);
    int status = 0;
    if (r == -1) {
        (void)fprintf(err, "weir sketch: %s: %s\n", opts->path, plat_strerror(errno));
        status = 1;
    } else {
        if (r == WEIR_OK)
            r = put_result(opts, sk, &in, out);
        if (r == WEIR_EVERSION || r == WEIR_EINVAL)
            status = fail(err, "that encoding cannot say this sketch: another --scale or --alpha, "
                               "or another --to");
        else if (r != WEIR_OK)
            status = fail(err, weir_strerror(r));
        if (tell_refused(&in, err))
            status = 1;
    }
    weir_sketch_free(sk);
    return status;
}

int cli_sketch_run(const struct sketch_opts *opts, FILE *in, struct query_buf *out, FILE *err,
                   FILE *progress)
{
    if (strcmp(opts->path, "-") == 0)
        return run_file(opts, in, out, err, progress);
    FILE *const file = fopen(opts->path, "re");
    if (!file) {
        (void)fprintf(err, "weir sketch: %s: %s\n", opts->path, plat_strerror(errno));
        return 1;
    }
    const int status = run_file(opts, file, out, err, progress);
    (void)fclose(file);
    return status;
}

int cli_sketch(int argc, char **argv)
{
    struct sketch_opts opts;
    if (!cli_sketch_opts_parse(argc, argv, &opts, stderr)) {
        (void)fputs("weir sketch --help says more.\n", stderr);
        return 2;
    }
    if (opts.help) {
        cli_sketch_opts_help(stdout);
        return 0;
    }
    if (strcmp(opts.path, "-") == 0 && isatty(STDIN_FILENO))
        (void)fputs("weir sketch: reading numbers from the terminal until ^D\n", stderr);
    struct query_buf out;
    query_buf_init(&out, OUT_MAX_BYTES);
    int status = cli_sketch_run(&opts, stdin, &out, stderr, isatty(STDERR_FILENO) ? stderr : NULL);
    if (out.err)
        status = fail(stderr, weir_strerror(out.err));
    else if (out.len && (fwrite(out.ptr, 1, out.len, stdout) != out.len || fflush(stdout) != 0))
        status = fail(stderr, "standard output cannot be written");
    query_buf_done(&out);
    return status;
}
