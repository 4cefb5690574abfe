/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer: one function a level of the JSON.
 *
 * Threads: see the header. Memory: see the header.
 */
#include "answer.h"

#include <string.h>

static void put_quoted_double(struct query_buf *buf, double value)
{
    query_buf_put_char(buf, '"');
    query_buf_put_double(buf, value);
    query_buf_put_char(buf, '"');
}

static void put_metric(struct query_buf *buf, const struct query_sample *sample)
{
    query_buf_put_text(buf, "\"metric\":{");
    for (size_t i = 0; i < sample->label_count; i++) {
        const struct weir_label *const label = &sample->labels[i];
        if (i)
            query_buf_put_char(buf, ',');
        query_buf_put_json_string(buf, label->name.ptr, label->name.len);
        query_buf_put_char(buf, ':');
        query_buf_put_json_string(buf, label->value.ptr, label->value.len);
    }
    query_buf_put_char(buf, '}');
}

struct bins {
    struct query_buf *buf;
    const struct query_sample *sample;
    bool some;
    double bound; /* the last upper bound, mostly the next lower one, and its text */
    size_t at;
    size_t len;
};

static void put_lower(struct bins *bins, double lower)
{
    char text[40]; /* a copy: the buffer may move when it grows */
    if (!bins->some || bins->bound != lower || bins->len > sizeof text || bins->buf->err) {
        put_quoted_double(bins->buf, lower);
        return;
    }
    memcpy(text, bins->buf->ptr + bins->at, bins->len);
    query_buf_put(bins->buf, text, bins->len);
}

static void put_upper(struct bins *bins, double upper)
{
    bins->at = bins->buf->len;
    put_quoted_double(bins->buf, upper);
    bins->len = bins->buf->len - bins->at;
    bins->bound = upper;
}

/* The first number says which bounds belong to the bucket: 0 (lower, upper], 1 [lower, upper),
 * 3 both. */
static void put_bin(void *ctx, double lower, double upper, uint64_t weight)
{
    struct bins *const bins = ctx;
    const char kind = upper > 0 ? '0' : lower < 0 ? '1' : '3';
    query_buf_put_text(bins->buf, bins->some ? ",[" : "[");
    query_buf_put_char(bins->buf, kind);
    query_buf_put_char(bins->buf, ',');
    put_lower(bins, lower);
    query_buf_put_char(bins->buf, ',');
    put_upper(bins, upper);
    query_buf_put_char(bins->buf, ',');
    put_quoted_double(bins->buf, query_scaled(bins->sample, query_weight(weight)));
    query_buf_put_char(bins->buf, ']');
    bins->some = true;
}

static void put_histogram(struct query_buf *buf, const struct query_sample *sample)
{
    const struct weir_sketch *const sketch = sample->sketch;
    query_buf_put_text(buf, "{\"count\":");
    put_quoted_double(buf, query_scaled(sample, query_weight(weir_sketch_weight(sketch))));
    query_buf_put_text(buf, ",\"sum\":");
    put_quoted_double(buf, query_scaled(sample, weir_sketch_sum(sketch)));
    query_buf_put_text(buf, ",\"buckets\":[");
    struct bins bins = {.buf = buf, .sample = sample};
    weir_sketch_bins(sketch, put_bin, &bins);
    query_buf_put_text(buf, "]}");
}

static void put_sample(struct query_buf *buf, const struct query_sample *sample, int64_t time_ms)
{
    query_buf_put_char(buf, '{');
    put_metric(buf, sample);
    query_buf_put_text(buf, sample->sketch ? ",\"histogram\":[" : ",\"value\":[");
    query_buf_put_time(buf, time_ms);
    query_buf_put_char(buf, ',');
    if (sample->sketch)
        put_histogram(buf, sample);
    else
        put_quoted_double(buf, sample->value);
    query_buf_put_text(buf, "]}");
}

static void put_value(struct query_buf *buf, const struct query_value *value, size_t count,
                      int64_t time_ms)
{
    if (value->type == QUERY_TYPE_VECTOR) {
        query_buf_put_text(buf, "{\"resultType\":\"vector\",\"result\":[");
        for (size_t i = 0; i < count && !buf->err; i++) {
            if (i)
                query_buf_put_char(buf, ',');
            put_sample(buf, &value->vector.samples[i], time_ms);
        }
        query_buf_put_text(buf, "]}");
        return;
    }
    const bool string = value->type == QUERY_TYPE_STRING;
    query_buf_put_format(buf, "{\"resultType\":\"%s\",\"result\":[", string ? "string" : "scalar");
    query_buf_put_time(buf, time_ms);
    query_buf_put_char(buf, ',');
    if (string) {
        query_buf_put_json_string(buf, value->string.ptr, value->string.len);
    } else {
        /* Prometheus writes scalars without exponents, and samples with them. */
        query_buf_put_char(buf, '"');
        query_buf_put_plain_double(buf, value->scalar);
        query_buf_put_char(buf, '"');
    }
    query_buf_put_text(buf, "]}");
}

static void put_notes(struct query_buf *buf, const struct query_note *notes, bool warnings,
                      bool truncated)
{
    bool some = false;
    const char *const begin = warnings ? ",\"warnings\":[" : ",\"infos\":[";
    for (const struct query_note *note = notes; note; note = note->next) {
        if (note->warning != warnings)
            continue;
        query_buf_put_text(buf, some ? "," : begin);
        query_buf_put_json_string(buf, note->text.ptr, note->text.len);
        some = true;
    }
    if (truncated) {
        query_buf_put_text(buf, some ? "," : begin);
        query_buf_put_text(buf, "\"results truncated due to limit\"");
        some = true;
    }
    if (some)
        query_buf_put_char(buf, ']');
}

void query_answer_put(const struct query_eval *eval, const struct query_value *value, size_t limit,
                      struct query_buf *buf)
{
    const size_t all = value->type == QUERY_TYPE_VECTOR ? value->vector.count : 0;
    const size_t count = limit && limit < all ? limit : all;
    query_buf_put_text(buf, "{\"status\":\"success\",\"data\":");
    put_value(buf, value, count, eval->time_ms);
    put_notes(buf, eval->notes, true, count < all);
    put_notes(buf, eval->notes, false, false);
    query_buf_put_char(buf, '}');
}

int query_error_status(enum query_error_type type)
{
    switch (type) {
    case QUERY_ERROR_BAD_DATA:
        return 400;
    case QUERY_ERROR_EXECUTION:
        return 422;
    case QUERY_ERROR_INTERNAL:
        break;
    }
    return 500;
}

static const char *error_name(enum query_error_type type)
{
    switch (type) {
    case QUERY_ERROR_BAD_DATA:
        return "bad_data";
    case QUERY_ERROR_EXECUTION:
        return "execution";
    case QUERY_ERROR_INTERNAL:
        break;
    }
    return "internal";
}

void query_answer_put_error(enum query_error_type type, const char *text, size_t len,
                            struct query_buf *buf)
{
    query_buf_put_format(buf,
                         "{\"status\":\"error\",\"errorType\":\"%s\",\"error\":", error_name(type));
    query_buf_put_json_string(buf, text, len);
    query_buf_put_char(buf, '}');
}
