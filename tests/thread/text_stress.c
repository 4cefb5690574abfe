/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that encode the same texts, each with an encoder of its own: what another one's
 * dictionary left in a text is never taken for one's own. Under TSan: that place is the only thing
 * they share.
 */
#include "t.h"

#include <pthread.h>
#include <string.h>
#include <weir/trace.h>

enum { WORKERS = 4, TEXTS = 20, ROUNDS = 400 };

struct worker {
    struct weir_text *const *texts;
    size_t first; /* each begins elsewhere, so that the same text has other places */
    uint64_t wrong;
    pthread_t thread;
};

/* Spans over all texts, from one on, in both versions with strings by reference. */
static void encode(struct weir_trace_encoder *e, const struct worker *w,
                   const struct weir_str *strings)
{
    for (size_t i = 0; i < TEXTS; i++) {
        const size_t k = (w->first + i) % TEXTS;
        const struct weir_trace_span s = {.service = strings[k],
                                          .name = strings[(k * 7) % TEXTS],
                                          .resource = strings[(k + 1) % TEXTS]};
        const struct weir_trace t = {.spans = &s, .span_count = 1};
        T_OK(weir_trace_add(e, &t));
    }
}

static struct weir_trace_encoder *encoder(uint32_t version)
{
    const struct weir_trace_opts o = {.struct_size = sizeof o, .version = version};
    struct weir_trace_encoder *e = NULL;
    T_OK(weir_trace_encoder_new(&o, &e));
    return e;
}

static void *work(void *arg)
{
    struct worker *const w = arg;
    struct weir_str shared[TEXTS];
    struct weir_str plain[TEXTS]; /* the same contents: the same payload must come of them */
    for (size_t i = 0; i < TEXTS; i++) {
        const struct weir_bytes b = weir_text_get_bytes(w->texts[i]);
        shared[i] = weir_str_text(w->texts[i]);
        plain[i] = weir_str_utf8(b.ptr, (uint32_t)b.len);
    }
    static const uint32_t versions[] = {WEIR_TRACE_V05, WEIR_TRACE_V1};
    for (size_t v = 0; v < 2; v++) {
        struct weir_trace_encoder *const a = encoder(versions[v]);
        struct weir_trace_encoder *const b = encoder(versions[v]);
        encode(b, w, plain);
        struct weir_bytes want;
        T_OK(weir_trace_payload(b, &want));
        for (int round = 0; round < ROUNDS; round++) {
            struct weir_bytes got;
            encode(a, w, shared);
            T_OK(weir_trace_payload(a, &got));
            w->wrong += got.len != want.len || memcmp(got.ptr, want.ptr, want.len) != 0;
            weir_trace_clear(a);
        }
        weir_trace_encoder_free(a);
        weir_trace_encoder_free(b);
    }
    return NULL;
}

TEST(threads_that_encode_the_same_texts_do_not_mistake_each_others_places)
{
    struct weir_text *texts[TEXTS];
    for (size_t i = 0; i < TEXTS; i++) {
        char name[16];
        const int n = snprintf(name, sizeof name, "text-%zu", i);
        T_OK(weir_text_new(NULL, name, (size_t)n, &texts[i]));
    }
    struct worker workers[WORKERS];
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.texts = texts, .first = i * 5};
        T_EQ_I64(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        T_EQ_I64(pthread_join(workers[i].thread, NULL), 0);
        T_EQ_U64(workers[i].wrong, 0);
    }
    for (size_t i = 0; i < TEXTS; i++)
        weir_text_free(texts[i]);
}
