/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect: reads a body, walks it by the library's decoder and engine, prints. No network, no
 * store: nothing is changed anywhere.
 *
 * Threads: one. Memory: heap; the body is at most http.max-body-size, the text OUT_MAX_BYTES.
 */
#include "cli/inspect.h"

#include "cli/inspect_body.h"
#include "cli/inspect_print.h"
#include "cli/inspect_sketch.h"
#include "cli/inspect_walk.h"
#include "config/config.h"
#include "plat/plat.h"

#include <string.h>
#include <unistd.h>

#define DEFAULT_FILE "/etc/weir/weir.yaml"
#define OUT_MAX_BYTES ((size_t)1024 * 1024 * 1024)

static int fail(FILE *err, const char *what)
{
    (void)fprintf(err, "weir inspect: %s\n", what);
    return 1;
}

/* The body is there. */
static int inspect_body(const struct inspect_opts *opts, const struct config *config,
                        const struct inspect_body *body, struct query_buf *out, FILE *err)
{
    if (opts->format == INSPECT_SKETCH)
        return cli_inspect_sketch(opts, body, out, err);
    struct inspect_guess guess = {.format = opts->format};
    if (guess.format == INSPECT_AUTO)
        guess = cli_inspect_guess(body->bytes);
    if (guess.format == INSPECT_AUTO) {
        (void)fprintf(err, "weir inspect: the format is not known: %s; --format says which\n",
                      guess.how);
        return 1;
    }
    const struct inspect_title title = {.path = opts->path, .body = body, .how = guess.how};
    struct inspect x;
    const int r = cli_inspect_walk(&x, opts, config, guess.format, body->bytes, plat_wall_ns());
    int status = x.err ? 1 : 0;
    if (r != WEIR_OK)
        status = fail(err, weir_strerror(r));
    else if (opts->json)
        cli_inspect_print_json(&x, &title, out);
    else
        cli_inspect_print_text(&x, &title, out);
    cli_inspect_done(&x);
    return status;
}

static int inspect_file(const struct inspect_opts *opts, const struct config *config,
                        struct query_buf *out, FILE *err)
{
    struct inspect_body body;
    char why[INSPECT_WHY_BYTES];
    const size_t max = (size_t)config->http_max_body_size;
    const int r = cli_inspect_body_read(opts->path, opts->hex, max, &body, why);
    const int status = r == 0 ? inspect_body(opts, config, &body, out, err) : fail(err, why);
    cli_inspect_body_done(&body);
    return status;
}

int cli_inspect_run(struct inspect_opts *opts, char *const *env, struct query_buf *out, FILE *err)
{
    struct config *config = NULL;
    struct config_error error;
    /* The agent's file may be for the agent's user alone. */
    const struct config_input input = {.argc = opts->setting_count,
                                       .argv = opts->settings,
                                       .env = env,
                                       .default_file =
                                           access(DEFAULT_FILE, R_OK) == 0 ? DEFAULT_FILE : NULL};
    if (config_load(&input, &config, &error) != 0) {
        (void)fprintf(err, "weir inspect: %s\n", error.text);
        return 2;
    }
    const int checked = cli_stats_opts_check(config);
    int status = 2;
    if (checked != WEIR_OK)
        (void)fprintf(err, "weir inspect: aggregation.peer-tags and aggregation.dimensions: %s\n",
                      weir_strerror(checked));
    else
        status = inspect_file(opts, config, out, err);
    config_free(config);
    return status;
}

int cli_inspect(int argc, char **argv)
{
    struct inspect_opts opts;
    if (!cli_inspect_opts_parse(argc, argv, &opts, stderr)) {
        (void)fputs("weir inspect --help says more.\n", stderr);
        return 2;
    }
    if (opts.help) {
        cli_inspect_opts_help(stdout);
        return 0;
    }
    struct query_buf out;
    query_buf_init(&out, OUT_MAX_BYTES);
    int status = cli_inspect_run(&opts, environ, &out, stderr);
    if (out.err)
        status = fail(stderr, weir_strerror(out.err));
    else if (out.len && (fwrite(out.ptr, 1, out.len, stdout) != out.len || fflush(stdout) != 0))
        status = fail(stderr, "standard output cannot be written");
    query_buf_done(&out);
    return status;
}
