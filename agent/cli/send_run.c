/* SPDX-License-Identifier: Apache-2.0 */
/* send_run: see send_run.h. */
#include "cli/send_run.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "plat/plat.h"
#include "wire/pb_read.h"

/* With a rate a request goes out ten times a second, so that the stream is even. */
#define REQUESTS_PER_SECOND 10.0
/* A pause is cut so that a signal that came just before it is seen soon. */
#define PAUSE_MAX_NS 100000000
#define PROGRESS_EVERY_NS 1000000000
/* How far past its end a run that was held up may catch up: a tenth of it, a second at least. */
#define OVERTIME_PART 10
#define OVERTIME_MIN_NS 1000000000

/* The field of a message with this tag, the last one; false: none, or no protobuf. */
static bool find_field(const uint8_t *at, size_t n, uint32_t tag, struct wr_pb_field *ret)
{
    struct wr_pb pb = wr_pb_init(at, n);
    const uint8_t *const end = at + n;
    bool found = false;
    while (at < end) {
        struct wr_pb_field f;
        at = wr_pb_field(&pb, at, end, &f);
        if (!at)
            return false;
        if (f.tag == tag) {
            *ret = f;
            found = true;
        }
    }
    return found;
}

/* ExportTraceServiceResponse { partial_success = 1 { rejected_spans = 1; error_message = 2 } } */
uint64_t cli_send_otlp_rejected(struct weir_bytes body)
{
    struct wr_pb_field partial;
    struct wr_pb_field rejected;
    if (body.len == 0 ||
        !find_field((const uint8_t *)body.ptr, body.len, WR_PB_TAG(1, WR_PB_LEN), &partial))
        return 0;
    if (partial.u == 0 ||
        !find_field(partial.ptr, (size_t)partial.u, WR_PB_TAG(1, WR_PB_VARINT), &rejected))
        return 0;
    return rejected.u;
}

static void make_request(const struct send_run *r, struct send_request *request)
{
    const struct send_opts *const o = r->opts;
    request->gzipped = o->gzip;
    if (o->protocol == SEND_OTLP) {
        request->method = "POST";
        request->path = "/v1/traces";
        request->content_type = "application/x-protobuf";
    } else {
        request->method = "PUT";
        request->path = o->protocol == SEND_V05 ? "/v0.5/traces" : "/v0.4/traces";
        request->content_type = "application/msgpack";
    }
}

static int encode_batch(struct send_run *r, size_t want, struct weir_bytes *ret_body)
{
    cli_send_encoder_begin(r->encoder, plat_wall_ns());
    for (size_t n = 0; n < want;) {
        const size_t left = want - n;
        const size_t max = left < SEND_TRACE_SPANS_MAX ? left : SEND_TRACE_SPANS_MAX;
        const size_t count = cli_send_workload_trace(r->workload, r->spans + n, max);
        const int err = cli_send_encoder_add(r->encoder, r->spans + n, count);
        if (err)
            return err;
        n += count;
    }
    return cli_send_encoder_finish(r->encoder, ret_body);
}

/* A 200 that says some spans were rejected does not say which: their fate is unknown. */
static void look_for_rejected(const struct send_run *r, struct send_answer *answer)
{
    if (r->opts->protocol != SEND_OTLP || answer->outcome != SEND_TAKEN)
        return;
    const uint64_t rejected = cli_send_otlp_rejected(answer->body);
    if (rejected == 0)
        return;
    answer->outcome = SEND_UNKNOWN;
    (void)snprintf(answer->error, sizeof answer->error, "/v1/traces rejected %llu spans",
                   (unsigned long long)rejected);
}

static int book(struct send_run *r, size_t spans, size_t bytes, const struct send_answer *answer)
{
    struct send_totals *const t = &r->totals;
    if (answer->outcome != SEND_TAKEN && !t->first_error[0])
        memcpy(t->first_error, answer->error, sizeof t->first_error);
    switch (answer->outcome) {
    case SEND_TAKEN:
        t->spans += spans;
        t->traces += cli_send_encoder_traces(r->encoder);
        t->requests++;
        t->bytes += bytes;
        return cli_send_ledger_add(r->ledger, r->spans, spans);
    case SEND_REFUSED:
        t->refused_spans += spans;
        t->refused_requests++;
        break;
    case SEND_NEVER:
        t->never_spans += spans;
        t->never_requests++;
        break;
    case SEND_UNKNOWN:
        t->unknown_spans += spans;
        t->unknown_requests++;
        break;
    }
    return WEIR_OK;
}

static bool failed(const struct send_totals *t)
{
    return t->refused_requests || t->never_requests || t->unknown_requests;
}

static int send_batch(struct send_run *r, size_t want)
{
    struct weir_bytes body;
    int err = encode_batch(r, want, &body);
    if (err)
        return err;
    char trace_count[48];
    (void)snprintf(trace_count, sizeof trace_count, "X-Datadog-Trace-Count: %llu",
                   (unsigned long long)cli_send_encoder_traces(r->encoder));
    static const char version[] = "Datadog-Meta-Tracer-Version: " WEIR_VERSION_STRING;
    const char *const datadog[] = {"Datadog-Meta-Lang: c", version,
                                   "Datadog-Client-Computed-Top-Level: true", trace_count, NULL};
    struct send_request request = {.body = body,
                                   .headers = r->opts->protocol == SEND_OTLP ? NULL : datadog};
    make_request(r, &request);
    struct send_answer answer;
    cli_send_transport_do(r->transport, &request, &answer);
    look_for_rejected(r, &answer);
    err = book(r, want, body.len, &answer);
    return err;
}

static void show_progress(const struct send_run *r, int64_t elapsed_ns, bool last)
{
    if (!r->progress)
        return;
    const struct send_totals *const t = &r->totals;
    const double s = (double)elapsed_ns * 1e-9;
    const unsigned long long not_taken =
        0ULL + t->refused_spans + t->never_spans + t->unknown_spans;
    (void)fprintf(r->progress, "%s%6.1f s  %llu spans  %.0f/s  %llu not taken%s",
                  r->progress_is_terminal ? "\r" : "", s, (unsigned long long)t->spans,
                  s > 0 ? (double)t->spans / s : 0, not_taken,
                  r->progress_is_terminal && !last ? "" : "\n");
    (void)fflush(r->progress);
}

static void pause_ns(int64_t ns)
{
    if (ns > PAUSE_MAX_NS)
        ns = PAUSE_MAX_NS;
    if (ns < 1000)
        ns = 1000;
    const struct timespec ts = {.tv_sec = 0, .tv_nsec = ns};
    (void)nanosleep(&ts, NULL); /* EINTR: the loop looks at the clock anyway */
}

struct pace {
    uint64_t planned; /* spans of the whole run */
    uint64_t batch;
    uint64_t made; /* taken or not */
};

static struct pace make_pace(const struct send_opts *o)
{
    struct pace p = {.planned = cli_send_opts_spans(o), .batch = o->batch};
    if (p.planned == 0)
        p.planned = o->check ? o->check_max_samples : UINT64_MAX;
    const double even = o->rate / REQUESTS_PER_SECOND;
    if (o->rate > 0 && (double)p.batch > even)
        p.batch = even < 1 ? 1 : (uint64_t)even;
    return p;
}

/* How many spans to send now. 0: none yet, and *ret_pause_ns is how long, or 0: the end. */
static size_t due_now(const struct send_opts *o, const struct pace *p, int64_t elapsed_ns,
                      int64_t *ret_pause_ns)
{
    *ret_pause_ns = 0;
    const uint64_t left = p->planned - p->made;
    const uint64_t want = left < p->batch ? left : p->batch;
    const bool time_up = o->for_ns && elapsed_ns >= o->for_ns;
    if (o->rate <= 0)
        return time_up ? 0 : (size_t)want;
    const int64_t part_ns = o->for_ns / OVERTIME_PART;
    const int64_t overtime_ns = part_ns > OVERTIME_MIN_NS ? part_ns : OVERTIME_MIN_NS;
    if (time_up && elapsed_ns - o->for_ns >= overtime_ns)
        return 0;
    const double due = o->rate * ((double)elapsed_ns / 1e9);
    if (time_up || due >= (double)(p->made + want))
        return (size_t)want;
    const double at_ns = (double)(p->made + want) / o->rate * 1e9;
    *ret_pause_ns = (int64_t)(at_ns < 9e18 ? at_ns : 9e18) - elapsed_ns;
    if (*ret_pause_ns < 1)
        *ret_pause_ns = 1;
    return 0;
}

static int loop(struct send_run *r, struct pace *p, int64_t start_ns)
{
    const struct send_opts *const o = r->opts;
    int64_t shown_ns = 0;
    while (!*r->stop && p->made < p->planned) {
        const int64_t elapsed_ns = plat_mono_ns() - start_ns;
        if (elapsed_ns - shown_ns >= PROGRESS_EVERY_NS) {
            show_progress(r, elapsed_ns, false);
            shown_ns = elapsed_ns;
        }
        int64_t wait_ns = 0;
        const size_t want = due_now(o, p, elapsed_ns, &wait_ns);
        if (want == 0 && wait_ns == 0)
            break;
        if (want == 0) {
            pause_ns(wait_ns);
            continue;
        }
        const int err = send_batch(r, want);
        if (err)
            return err;
        p->made += want;
        if (failed(&r->totals) && !o->keep_going)
            break;
    }
    return WEIR_OK;
}

int cli_send_run(struct send_run *r)
{
    const struct send_opts *const o = r->opts;
    struct pace p = make_pace(o);
    r->totals = (struct send_totals){.begin_ns = plat_wall_ns()};
    const int64_t start_ns = plat_mono_ns();
    const int err = loop(r, &p, start_ns);
    r->totals.took_ns = plat_mono_ns() - start_ns;
    r->totals.stopped = *r->stop != 0;
    const bool counted = cli_send_opts_spans(o) != 0;
    r->totals.at_max_samples = !counted && o->check && p.made == p.planned;
    if (counted && !r->totals.stopped && !failed(&r->totals))
        r->totals.behind_spans = p.planned - p.made;
    show_progress(r, r->totals.took_ns, true);
    return err;
}
