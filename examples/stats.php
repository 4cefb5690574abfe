<?php
// SPDX-License-Identifier: Apache-2.0
//
// Span statistics from PHP by FFI: the host drives the shard with weir_stats_poll.
//
//   php stats.php libweir.so
declare(strict_types=1);

const ONE = 1 << 20; // WEIR_WEIGHT_ONE
const LABELS_MAX = 64;

$weir = FFI::cdef(<<<'C'
struct weir_bytes { const char *ptr; size_t len; };
struct weir_source { struct weir_bytes lang; uint32_t flags; int64_t now_ns; };
struct weir_span {
    struct weir_bytes service, name, resource, type;
    uint64_t trace_id_hi, trace_id, span_id, parent_id;
    int64_t start_ns, duration_ns;
    uint64_t weight;
    uint8_t kind, flags;
    uint64_t present;
    const void *slots;
    size_t raw_offset, raw_bytes;
};
struct weir_row { uint64_t hits, errors, top_level; const void *ok, *error; };
struct weir_label { struct weir_bytes name, value; };
struct head { int64_t start_ns, for_ns; uint32_t shard, flags; size_t rows; uint64_t counts[64]; };
const char *weir_strerror(int err);
int weir_stats_new(const void *opts, void **ret_stats);
void weir_stats_free(void *stats);
int weir_stats_producer(void *stats, void **ret_producer);
int weir_stats_publish(void *producer, const struct weir_source *source,
                       const struct weir_span *spans, size_t count);
int weir_stats_identity_new(void *stats, const struct weir_source *source,
                            const struct weir_span *span, void **ret_identity);
int weir_stats_publish_identity(void *producer, void *identity, int64_t end_ns,
                                int64_t duration_ns, uint32_t flags, uint64_t weight);
size_t weir_stats_poll(void *stats, int64_t wall_ns, int64_t mono_ns);
void weir_stats_seal_all(void *stats, int64_t wall_ns, int64_t mono_ns);
void *weir_stats_take_batch(void *stats);
void weir_batch_get_info(const void *batch, struct head *ret_info);
void weir_batch_get_row(const void *batch, size_t row, struct weir_row *ret_row);
size_t weir_batch_get_labels(const void *batch, size_t row, struct weir_label *labels, size_t cap);
void weir_batch_release(void *batch);
C, $argv[1] ?? 'libweir.so.0');

function check(FFI $weir, int $error): void
{
    if ($error !== 0) {
        fwrite(STDERR, 'stats: ' . $weir->weir_strerror($error) . "\n");
        exit(1);
    }
}

/* The bytes must live as long as what borrows them: keep what this returns. */
function set(FFI\CData $bytes, string $text): FFI\CData
{
    $raw = FFI::new('char[' . max(1, strlen($text)) . ']');
    FFI::memcpy($raw, $text, strlen($text));
    $bytes->ptr = FFI::addr($raw[0]);
    $bytes->len = strlen($text);
    return $raw;
}

function text(FFI\CData $bytes): string
{
    return $bytes->len > 0 ? FFI::string($bytes->ptr, $bytes->len) : '';
}

$now = 1800000000 * 10 ** 9;
$stats = $weir->new('void *');
$producer = $weir->new('void *');
$orders = $weir->new('void *');
check($weir, $weir->weir_stats_new(null, FFI::addr($stats)));
$weir->weir_stats_poll($stats, $now, 0);
check($weir, $weir->weir_stats_producer($stats, FFI::addr($producer)));

$source = $weir->new('struct weir_source');
$source->now_ns = $now;
$span = $weir->new('struct weir_span');
$kept = [set($span->service, 'shop'), set($span->name, 'http.request'),
         set($span->resource, 'GET /users')];
$span->trace_id = 1;
$span->span_id = 1;
$span->kind = 2;
$span->start_ns = $now;
$span->duration_ns = 3000000;
for ($i = 0; $i < 3; $i++) {
    $span->flags = $i === 2 ? 1 : 0;
    check($weir, $weir->weir_stats_publish($producer, FFI::addr($source), FFI::addr($span), 1));
}

$kept[] = set($span->resource, 'GET /orders');
check($weir, $weir->weir_stats_identity_new($stats, FFI::addr($source), FFI::addr($span),
                                            FFI::addr($orders)));
for ($i = 0; $i < 5; $i++) {
    check($weir, $weir->weir_stats_publish_identity($producer, $orders, $now, 2000000, 0, 0));
}

$weir->weir_stats_seal_all($stats, $now, 0);
$head = $weir->new('struct head');
$row = $weir->new('struct weir_row');
$labels = $weir->new('struct weir_label[' . LABELS_MAX . ']');
while (($batch = $weir->weir_stats_take_batch($stats)) !== null) {
    $weir->weir_batch_get_info($batch, FFI::addr($head));
    for ($i = 0; $i < $head->rows; $i++) {
        $weir->weir_batch_get_row($batch, $i, FFI::addr($row));
        $count = $weir->weir_batch_get_labels($batch, $i, FFI::addr($labels[0]), LABELS_MAX);
        for ($k = 0; $k < $count; $k++) {
            if (text($labels[$k]->name) === 'span_name') {
                printf("%s: %d spans, %d errors\n", text($labels[$k]->value),
                       intdiv($row->hits, ONE), intdiv($row->errors, ONE));
            }
        }
    }
    $weir->weir_batch_release($batch);
}
$weir->weir_stats_free($stats);
