// SPDX-License-Identifier: Apache-2.0
//
// Span statistics in a C++ program: the instance in a unique_ptr, the batches taken by hand.
//
//   c++ -std=c++17 stats.cpp $(pkg-config --cflags --libs weir) -o stats && ./stats
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <weir/stats.h>

namespace {

struct stats_deleter {
    void operator()(weir_stats *s) const { weir_stats_free(s); }
};
struct batch_deleter {
    void operator()(weir_batch *b) const { weir_batch_release(b); }
};
using stats_ptr = std::unique_ptr<weir_stats, stats_deleter>;
using batch_ptr = std::unique_ptr<weir_batch, batch_deleter>;

void check(int error)
{
    if (error)
        throw std::runtime_error(weir_strerror(error));
}

weir_bytes text(const char *s)
{
    return {s, std::strlen(s)};
}

void print(const weir_batch *batch)
{
    weir_batch_info info;
    weir_batch_get_info(batch, &info);
    for (std::size_t i = 0; i < info.rows; i++) {
        weir_row row;
        weir_label labels[WEIR_LABELS_MAX];
        weir_batch_get_row(batch, i, &row);
        const std::size_t n = weir_batch_get_labels(batch, i, labels, WEIR_LABELS_MAX);
        for (std::size_t k = 0; k < n; k++) {
            if (std::string(labels[k].name.ptr, labels[k].name.len) == "span_name")
                std::printf("%.*s: %llu spans, %llu errors\n", int(labels[k].value.len),
                            labels[k].value.ptr,
                            static_cast<unsigned long long>(row.hits / WEIR_WEIGHT_ONE),
                            static_cast<unsigned long long>(row.errors / WEIR_WEIGHT_ONE));
        }
    }
}

} // namespace

int main()
try {
    weir_stats *made = nullptr;
    check(weir_stats_new(nullptr, &made));
    const stats_ptr stats(made);
    const std::int64_t now = 1800000000000000000;
    (void)weir_stats_poll(stats.get(), now, 0);

    weir_producer *producer = nullptr; // the thread's; it goes with the instance
    check(weir_stats_producer(stats.get(), &producer));
    weir_source source = {};
    source.now_ns = now;
    weir_span span = {};
    span.service = text("shop");
    span.name = text("http.request");
    span.resource = text("GET /users");
    span.trace_id = 1;
    span.span_id = 1;
    span.kind = WEIR_KIND_SERVER;
    span.start_ns = now;
    span.duration_ns = 3000000;
    for (int i = 0; i < 3; i++) {
        span.flags = i == 2 ? WEIR_SPAN_ERROR : 0;
        check(weir_stats_publish(producer, &source, &span, 1));
    }

    span.resource = text("GET /orders");
    weir_stats_identity *orders = nullptr;
    check(weir_stats_identity_new(stats.get(), &source, &span, &orders));
    for (int i = 0; i < 5; i++)
        check(weir_stats_publish_identity(producer, orders, now, 2000000, 0, 0));

    weir_stats_seal_all(stats.get(), now, 0);
    while (batch_ptr batch{weir_stats_take_batch(stats.get())})
        print(batch.get());
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "stats: %s\n", e.what());
    return 1;
}
