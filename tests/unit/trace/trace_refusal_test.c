/* SPDX-License-Identifier: Apache-2.0 */
/* What the encoders refuse, and that a refusal leaves no trace. */
#include "trace_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST(options_outside_their_range_are_refused)
{
    struct weir_trace_encoder *e = NULL;
    struct weir_trace_opts o = {.struct_size = sizeof o, .version = 7};
    T_ERR(weir_trace_encoder_new(&o, &e), WEIR_EINVAL);
    o.version = WEIR_TRACE_V05;
    o.struct_size = 0;
    T_ERR(weir_trace_encoder_new(&o, &e), WEIR_EINVAL);
    o.struct_size = sizeof o;
    o.max_bytes = SIZE_MAX;
    T_ERR(weir_trace_encoder_new(&o, &e), WEIR_EINVAL);
    T_TRUE(!e);
    T_OK(weir_trace_encoder_new(NULL, &e));
    weir_trace_encoder_free(e);
    weir_trace_encoder_free(NULL);
}

static uint64_t traces_in(const struct weir_trace_encoder *e)
{
    struct weir_trace_counts c;
    weir_trace_get_counts(e, &c);
    return c.traces;
}

TEST(a_span_that_lies_about_itself_is_refused)
{
    static const uint32_t versions[] = {WEIR_TRACE_V04, WEIR_TRACE_V05, WEIR_TRACE_V1};
    for (size_t i = 0; i < 3; i++) {
        struct weir_trace_encoder *const e = fixture_encoder(versions[i], 0);
        struct weir_trace_tag tag = fixture_text("k", "v");
        struct weir_trace_span s = {.tags = &tag, .tag_count = 1};
        tag.value.type = WEIR_TRACE_ARRAY; /* not of a span's tag */
        T_ERR(fixture_add(e, &s, 1), WEIR_EINVAL);
        tag.value.type = 77;
        T_ERR(fixture_add(e, &s, 1), WEIR_EINVAL);
        tag = fixture_text("k", "v");
        tag.value.v.str.kind = 3;
        T_ERR(fixture_add(e, &s, 1), WEIR_EINVAL);
        tag = fixture_text("k", "v");
        tag.key = weir_str_text(NULL);
        T_ERR(fixture_add(e, &s, 1), WEIR_EINVAL);
        tag.key = weir_str_utf16(NULL, 1);
        T_ERR(fixture_add(e, &s, 1), WEIR_EINVAL);
        s.tags = NULL;
        T_ERR(fixture_add(e, &s, 1), WEIR_EINVAL);
        s.tags = &tag;
        tag = fixture_text("k", "v");
        tag.value.v.str = weir_str_text(NULL);
        T_ERR(fixture_add(e, &s, 1), WEIR_EINVAL);
        s.tag_count = 0;
        s.kind = 6;
        T_ERR(fixture_add(e, &s, 1), WEIR_EINVAL);
        s.kind = 5;
        s.http_status = 99;
        T_ERR(fixture_add(e, &s, 1), WEIR_EINVAL);
        s.http_status = 599;
        T_OK(fixture_add(e, &s, 1));
        T_ERR(fixture_add(e, NULL, 1), WEIR_EINVAL);
        T_EQ_U64(traces_in(e), 1);
        weir_trace_encoder_free(e);
    }
}

/* A copy of what the encoder holds now. */
static uint8_t *snapshot(struct weir_trace_encoder *e, size_t *ret_bytes)
{
    struct weir_bytes p;
    T_OK(weir_trace_payload(e, &p));
    uint8_t *const copy = malloc(p.len);
    T_TRUE(copy);
    memcpy(copy, p.ptr, p.len);
    *ret_bytes = p.len;
    return copy;
}

static void check_bound(uint32_t version)
{
    struct t_rng r = t_rng(t_seed() + version);
    struct fixture_span *const f = calloc(1, sizeof *f);
    for (int round = 0; round < 30; round++) {
        fixture_random(&r, f, 20, false);
        struct weir_trace_encoder *e = fixture_encoder(version, 0);
        T_OK(fixture_add(e, &f->span, 1));
        size_t exact = 0;
        free(snapshot(e, &exact));
        weir_trace_encoder_free(e);
        e = fixture_encoder(version, exact);
        T_OK(fixture_add(e, &f->span, 1)); /* fills it to the byte */
        size_t before = 0;
        uint8_t *const want = snapshot(e, &before);
        T_EQ_U64(before, exact);
        T_ERR(fixture_add(e, &f->span, 1), WEIR_EFULL);
        size_t after = 0;
        uint8_t *const got = snapshot(e, &after);
        T_EQ_BYTES(got, after, want, before);
        free(want);
        free(got);
        weir_trace_encoder_free(e);
        e = fixture_encoder(version, exact - 1);
        T_ERR(fixture_add(e, &f->span, 1), WEIR_EFULL);
        T_EQ_U64(traces_in(e), 0);
        weir_trace_encoder_free(e);
    }
    free(f);
}

TEST(the_bound_is_exact_to_the_byte_and_a_refusal_leaves_the_payload_as_it_was)
{
    check_bound(WEIR_TRACE_V04);
    check_bound(WEIR_TRACE_V05);
    check_bound(WEIR_TRACE_V1);
}

/* Add traces under refusals; what was taken must be exactly what is read back. */
static void check_rollback(uint32_t version)
{
    struct t_rng r = t_rng(t_seed() + 10 + version);
    struct fixture_span *const f = calloc(FIXTURE_SPANS_MAX, sizeof *f);
    struct weir_trace_span taken[FIXTURE_SPANS_MAX];
    struct weir_trace_encoder *const e = fixture_encoder(version, 16000);
    for (int payload = 0; payload < 10; payload++) {
        size_t count = 0;
        int refused = 0;
        for (size_t i = 0; i < FIXTURE_SPANS_MAX; i++) {
            fixture_random(&r, &f[i], 40, i & 1);
            const int err = fixture_add(e, &f[i].span, 1);
            T_TRUE(err == WEIR_OK || err == WEIR_EFULL);
            if (err)
                refused++;
            else
                taken[count++] = f[i].span;
        }
        T_TRUE(refused > 0 && count > 0);
        struct weir_bytes p;
        T_OK(weir_trace_payload(e, &p));
        T_TRUE(p.len <= 16000);
        fixture_check(version, p, taken, count, 1);
        weir_trace_clear(e);
    }
    weir_trace_encoder_free(e);
    free(f);
}

TEST(a_trace_that_did_not_fit_leaves_nothing_in_the_dictionary)
{
    check_rollback(WEIR_TRACE_V04);
    check_rollback(WEIR_TRACE_V05);
    check_rollback(WEIR_TRACE_V1);
}

struct oom_ctx {
    uint32_t version;
    struct fixture_span *f;
};

/* After a refused allocation the same call, repeated with memory, must give the whole payload. */
static int encode_all(const struct weir_alloc *a, void *ctx)
{
    const struct oom_ctx *const c = ctx;
    const struct weir_trace_opts o = {
        .struct_size = sizeof o, .alloc = *a, .version = c->version, .max_bytes = 1 << 20};
    struct weir_trace_encoder *e = NULL;
    int err = weir_trace_encoder_new(&o, &e);
    if (err)
        return err;
    struct weir_trace_span taken[FIXTURE_SPANS_MAX];
    size_t count = 0;
    int first_err = WEIR_OK;
    for (size_t i = 0; i < FIXTURE_SPANS_MAX; i++) {
        err = fixture_add(e, &c->f[i].span, 1);
        if (err) {
            T_ERR(err, WEIR_ENOMEM);
            first_err = err;
        } else {
            taken[count++] = c->f[i].span;
        }
    }
    T_EQ_U64(traces_in(e), count);
    struct weir_bytes p;
    err = weir_trace_payload(e, &p);
    if (!err)
        fixture_check(c->version, p, taken, count, 1);
    weir_trace_encoder_free(e);
    return first_err ? first_err : err;
}

TEST(each_refused_allocation_costs_its_trace_and_no_other)
{
    struct fixture_span *const f = calloc(FIXTURE_SPANS_MAX, sizeof *f);
    struct t_rng r = t_rng(t_seed() + 20);
    for (size_t i = 0; i < FIXTURE_SPANS_MAX; i++)
        fixture_random(&r, &f[i], 60, i & 1);
    t_each_oom(encode_all, &(struct oom_ctx){.version = WEIR_TRACE_V04, .f = f});
    t_each_oom(encode_all, &(struct oom_ctx){.version = WEIR_TRACE_V05, .f = f});
    t_each_oom(encode_all, &(struct oom_ctx){.version = WEIR_TRACE_V1, .f = f});
    free(f);
}
