/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_sketch: see the header. */
#include "cli/inspect_sketch.h"

#include "cli/sketch_report.h"

#include <weir/codec.h>

static const double quantiles[] = {0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1};

static int put(const struct inspect_opts *opts, const struct inspect_body *body,
               const struct weir_sketch *sk, struct query_buf *out)
{
    const struct sketch_report what = {.quantiles = quantiles,
                                       .quantile_count = sizeof quantiles / sizeof *quantiles,
                                       .rows = 20,
                                       .bins = opts->bins};
    const char *const name = weir_codec_name(opts->codec);
    if (opts->json) {
        query_buf_put_format(out, "{\"format\":\"%s\",\"payload_bytes\":%zu,", name,
                             body->bytes.len);
        const int r = cli_sketch_report_json(out, sk, &what);
        query_buf_put_text(out, "}\n");
        return r;
    }
    query_buf_put_format(out, "%s, %zu bytes\n\n", name, body->bytes.len);
    return cli_sketch_report_text(out, sk, &what);
}

static int decode(const struct inspect_opts *opts, const struct inspect_body *body,
                  struct weir_sketch *sk, FILE *err)
{
    struct weir_mapping *m = NULL;
    struct weir_where where = {0};
    int r = opts->alpha > 0 ? weir_mapping_log(NULL, opts->alpha, &m) : WEIR_OK;
    if (r == WEIR_OK) {
        const struct weir_codec_opts o = {
            .struct_size = sizeof o, .mapping = m, .flags = opts->ceil ? WEIR_CODEC_CEIL : 0};
        r = weir_codec_decode(opts->codec, &o, body->bytes.ptr, body->bytes.len, sk, &where);
    }
    weir_mapping_unref(m);
    if (r != WEIR_OK)
        (void)fprintf(err, "weir inspect: refused at byte %zu: %s\n", where.offset,
                      where.reason ? where.reason : weir_strerror(r));
    return r;
}

int cli_inspect_sketch(const struct inspect_opts *opts, const struct inspect_body *body,
                       struct query_buf *out, FILE *err)
{
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .grid = WEIR_GRID_VALUE, .max_bins = 32768};
    struct weir_sketch *sk;
    int r = weir_sketch_new(&o, &sk);
    if (r == WEIR_OK) {
        r = decode(opts, body, sk, err);
        if (r == WEIR_OK)
            r = put(opts, body, sk, out);
        weir_sketch_free(sk);
    }
    return r == WEIR_OK ? 0 : 1;
}
