/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_client: what an agent answers to the client, and the cutting of a payload in two. An answer
 * is read within its bounds and twice the same; halves hold what the whole held.
 *
 * Input: a byte (0 /info, 1 rates, 2 a payload of v0.4, 3 of v0.5), then the text.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "rates.h"
#include "split.h"

static struct weir_alloc alloc; /* the heap */

static void on_rates(void *ctx, const struct weir_client_rate *rates, size_t count)
{
    size_t *const seen = ctx;
    for (size_t i = 0; i < count; i++) {
        FZ_CHECK(rates[i].rate >= 0 && rates[i].rate <= 1);
        FZ_CHECK(rates[i].key.ptr[rates[i].key.len] == 0);
        *seen += rates[i].key.len;
    }
}

static void try_info(struct weir_bytes text)
{
    static struct wr_info a;
    static struct wr_info b;
    const bool ok = wr_info_parse(text, &a);
    FZ_CHECK(wr_info_parse(text, &b) == ok);
    FZ_CHECK(memcmp(&a.agent, &b.agent, sizeof a.agent) == 0);
    FZ_CHECK(a.agent.peer_tag_count <= WEIR_CLIENT_PEER_TAGS_MAX);
    for (size_t i = 0; i < a.agent.peer_tag_count; i++)
        FZ_CHECK(strlen(a.peer_tags[i]) > 0);
    (void)wr_info_is_recent(a.agent.version);
}

static void try_rates(struct weir_bytes text)
{
    struct wr_rates r = {.alloc = &alloc};
    const struct weir_client_response answer = {.body = text};
    size_t seen = 0;
    const enum wr_rates_result result = wr_rates_take(&r, &answer, on_rates, &seen);
    FZ_CHECK(seen <= text.len);
    if (result == WR_RATES_CHANGED)
        FZ_CHECK(wr_rates_take(&r, &answer, on_rates, &seen) == WR_RATES_SAME);
    wr_rates_done(&r);
}

static void try_split(struct weir_bytes body, uint32_t version)
{
    struct wr_item *halves[2];
    struct wr_item *const item = wr_item_new(&alloc, body);
    FZ_CHECK(item != NULL);
    item->version = version;
    if (wr_split(&alloc, item, halves)) {
        FZ_CHECK(halves[0]->traces >= 1 && halves[1]->traces >= halves[0]->traces);
        FZ_CHECK(halves[0]->len + halves[1]->len <= 2 * item->len + 10);
        for (int i = 0; i < 2; i++) {
            struct wr_item *quarters[2];
            if (wr_split(&alloc, halves[i], quarters)) {
                FZ_CHECK(quarters[0]->traces + quarters[1]->traces == halves[i]->traces);
                FZ_CHECK(quarters[0]->spans + quarters[1]->spans == halves[i]->spans);
                wr_item_free(&alloc, quarters[0]);
                wr_item_free(&alloc, quarters[1]);
            } else {
                FZ_CHECK(halves[i]->traces == 1);
            }
            wr_item_free(&alloc, halves[i]);
        }
    }
    wr_item_free(&alloc, item);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size);
    alloc = wr_client_alloc_or_default(alloc);
    const uint32_t what = fz_below(&in, 4);
    uint8_t *const exact = fz_copy(in.at, in.left);
    const struct weir_bytes text = {(const char *)exact, in.left};
    if (what == 0)
        try_info(text);
    else if (what == 1)
        try_rates(text);
    else
        try_split(text, what == 2 ? WEIR_TRACE_V04 : WEIR_TRACE_V05);
    free(exact);
    return 0;
}
