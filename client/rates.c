/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rates: see rates.h. The text is read twice: once to know that it is whole and how many rates it
 * has, once to fill them in. Keys are decoded behind the array, in the same block.
 */
#include "rates.h"

#include "json.h"

#include <string.h>

enum { RATES_MAX = 10000, NAME_BYTES = 32 };

struct filler {
    struct weir_client_rate *rates; /* NULL: only count */
    size_t count;
    char *text; /* where keys go */
    size_t text_left;
};

static bool take_rate(struct wr_json *j, bool *first, struct filler *f)
{
    size_t len = 0;
    double rate = 0;
    if (!wr_json_member(j, first, f->text, f->text_left, &len))
        return false;
    const char c = wr_json_peek(j);
    if (c != '-' && (c < '0' || c > '9'))
        return wr_json_skip(j); /* no rate */
    if (!wr_json_number(j, &rate))
        return false;
    if (!(rate >= 0 && rate <= 1) || f->count == RATES_MAX)
        return true;
    if (f->rates) {
        f->rates[f->count] =
            (struct weir_client_rate){.key = {.ptr = f->text, .len = len}, .rate = rate};
        f->text += len + 1;
        f->text_left -= len + 1;
    }
    f->count++;
    return true;
}

/* false: not an object, or broken. An object without rate_by_service has no rates. */
static bool read_rates(struct weir_bytes text, struct filler *f, bool *ret_present)
{
    struct wr_json j = wr_json_begin(text);
    char name[NAME_BYTES];
    size_t len;
    bool first = true;
    *ret_present = false;
    if (!wr_json_enter(&j, '{'))
        return false;
    while (wr_json_member(&j, &first, name, sizeof name, &len)) {
        if (*ret_present || strcmp(name, "rate_by_service") != 0 || wr_json_peek(&j) != '{') {
            (void)wr_json_skip(&j);
            continue;
        }
        bool first_rate = true;
        *ret_present = wr_json_enter(&j, '{');
        while (take_rate(&j, &first_rate, f)) {
        }
    }
    return wr_json_done(&j);
}

static bool remember(struct wr_rates *r, const struct weir_client_response *answer)
{
    char *const copy = wr_client_copy(r->alloc, answer->body);
    if (!copy)
        return false;
    wr_client_free(r->alloc, r->last, r->last_len + 1);
    r->last = copy;
    r->last_len = answer->body.len;
    r->version[0] = 0;
    if (answer->rates_version.len > 0 && answer->rates_version.len < sizeof r->version) {
        memcpy(r->version, answer->rates_version.ptr, answer->rates_version.len);
        r->version[answer->rates_version.len] = 0;
    }
    return true;
}

static bool is_same(const struct wr_rates *r, const struct weir_client_response *answer)
{
    if (answer->rates_version.len > 0 && wr_bytes_are(answer->rates_version, r->version))
        return true;
    return r->last && answer->body.len == r->last_len &&
           memcmp(answer->body.ptr, r->last, r->last_len) == 0;
}

enum wr_rates_result wr_rates_take(struct wr_rates *r, const struct weir_client_response *answer,
                                   void (*fn)(void *ctx, const struct weir_client_rate *rates,
                                              size_t count),
                                   void *ctx)
{
    bool present;
    struct filler count = {.rates = NULL};
    /* An empty answer, and "OK" of agents of old, are no rates. */
    if (answer->body.len == 0 || is_same(r, answer))
        return WR_RATES_SAME;
    if (!read_rates(answer->body, &count, &present))
        return WR_RATES_REFUSED;
    if (!present)
        return WR_RATES_SAME;
    /* A decoded key is shorter than its text, quotes and colon included. */
    const size_t table = (count.count + 1) * sizeof(struct weir_client_rate);
    const size_t size = table + answer->body.len;
    char *const block = wr_client_alloc(r->alloc, size);
    if (!block || !remember(r, answer)) {
        wr_client_free(r->alloc, block, size);
        return WR_RATES_REFUSED;
    }
    struct filler fill = {.rates = (struct weir_client_rate *)(void *)block,
                          .text = block + table,
                          .text_left = answer->body.len};
    (void)read_rates(answer->body, &fill, &present);
    if (fn)
        fn(ctx, fill.rates, fill.count);
    wr_client_free(r->alloc, block, size);
    return WR_RATES_CHANGED;
}

void wr_rates_done(struct wr_rates *r)
{
    wr_client_free(r->alloc, r->last, r->last_len + 1);
    r->last = NULL;
    r->last_len = 0;
}
