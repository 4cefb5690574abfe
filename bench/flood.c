/* SPDX-License-Identifier: Apache-2.0 */
/* flood: see flood.h. */
#include "flood.h"

#include <stdlib.h>
#include <string.h>

static const struct flood_workload workloads[] = {
    {.name = "adversarial",
     .about = "Eight threads flood the library with labels that hardly ever repeat.",
     .peer_tags = {"peer.hostname"},
     .peer_tag_count = 1,
     .service = true,
     .resource = true,
     .host = true},
    {.name = "resource",
     .about = "Eight threads flood the library with 1,048,576 resources.",
     .peer_tags = {"peer.hostname"},
     .peer_tag_count = 1,
     .resource = true},
    {.name = "peer",
     .about = "Eight threads flood the library with 32,768 peer hosts.",
     .peer_tags = {"peer.hostname"},
     .peer_tag_count = 1,
     .host = true},
    {.name = "additional",
     .about = "Eight threads flood the library with values of two additional tags.",
     .dimensions = {"region", "tenant_id"},
     .dimension_count = 2,
     .additional = true},
};

const struct flood_workload *flood_find(const char *name)
{
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        if (strcmp(workloads[i].name, name) == 0)
            return &workloads[i];
    }
    return NULL;
}

/* The number written behind the prefix; dst has room for it and 7 digits. Returns the length. */
static uint32_t join(char *dst, const char *prefix, size_t prefix_len, uint32_t number)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    memcpy(dst, prefix, prefix_len);
    const size_t digits = 1u + (number > 9) + (number > 99) + (number > 999) + (number > 9999) +
                          (number > 99999) + (number > 999999);
    size_t at = prefix_len + digits;
    while (number > 9) {
        memcpy(dst + (at -= 2), pairs + 2 * (number % 100), 2);
        number /= 100;
    }
    if (at > prefix_len)
        dst[prefix_len] = (char)('0' + number);
    return (uint32_t)(prefix_len + digits);
}

static void put(struct flood_span *f, size_t slot, const char *text, uint32_t len)
{
    f->slots[slot] = (struct weir_value){.type = WEIR_VALUE_BYTES, .len = len, .v = {.ptr = text}};
    f->span.present |= UINT64_C(1) << slot;
}

static size_t slot_of(const struct weir_stats *st, const char *name)
{
    const struct weir_tag_match *const m =
        weir_tags_find(weir_stats_tags(st), name, (uint32_t)strlen(name));
    if (!m)
        abort();
    return m->slot;
}

static struct weir_bytes bytes(const char *text, size_t len)
{
    return (struct weir_bytes){.ptr = text, .len = len};
}

void flood_span_init(struct flood_span *f, const struct flood_workload *w,
                     const struct weir_stats *st)
{
    *f = (struct flood_span){.span = {.service = bytes("svc", 3),
                                      .name = bytes("op", 2),
                                      .resource = bytes("res", 3),
                                      .type = bytes("web", 3),
                                      .trace_id = 1,
                                      .span_id = 1,
                                      .parent_id = 2,
                                      .kind = WEIR_KIND_CLIENT}};
    f->span.slots = f->slots;
    put(f, WEIR_TAG_HTTP_STATUS, "200", 3);
    f->slots[WEIR_TAG_MEASURED] = (struct weir_value){.type = WEIR_VALUE_INT, .v = {.i = 1}};
    f->slots[WEIR_TAG_TOP_LEVEL] = f->slots[WEIR_TAG_MEASURED];
    f->span.present |= UINT64_C(1) << WEIR_TAG_MEASURED;
    if (w->additional) {
        f->first_slot = slot_of(st, "region");
        f->second_slot = slot_of(st, "tenant_id");
    } else {
        f->first_slot = slot_of(st, "peer.hostname");
        put(f, f->first_slot, "localhost", 9);
    }
}

/* The constants are the reference benchmark's: Fibonacci hashing spreads the numbers. */
void flood_next(struct flood_span *f, const struct flood_workload *w, uint32_t number,
                struct bench_rng *rng)
{
    const uint32_t s = number * UINT32_C(0x9E3779B1);
    struct weir_span *const span = &f->span;
    if (w->service) {
        span->service = bytes(f->service, join(f->service, "svc-", 4, s & 0xFFFF));
        span->name = bytes(f->operation, join(f->operation, "op-", 3, s >> 8 & 0x3FFFF));
    }
    if (w->resource)
        span->resource = bytes(f->resource, join(f->resource, "res-", 4, (s ^ 0x5A5A5A) & 0xFFFFF));
    if (w->host)
        put(f, f->first_slot, f->first, join(f->first, "host-", 5, s >> 12 & 0x7FFF));
    if (w->additional) {
        put(f, f->first_slot, f->first, join(f->first, "region-", 7, s >> 4 & 0xFFFF));
        put(f, f->second_slot, f->second, join(f->second, "tenant-", 7, s >> 16));
    }
    const bool error = !w->additional && (number & 7) == 0;
    const bool top_level = w->additional || (number & 3) == 0;
    span->flags = error ? WEIR_SPAN_ERROR : 0;
    const uint64_t top_bit = UINT64_C(1) << WEIR_TAG_TOP_LEVEL;
    span->present = top_level ? span->present | top_bit : span->present & ~top_bit;
    span->duration_ns = 1 + (int64_t)(bench_next(rng) & 0x3FFFFFFF);
}
