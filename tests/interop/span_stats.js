// SPDX-License-Identifier: Apache-2.0
'use strict'

// span_stats.js FOLDER: the span-stats processor of dd-trace in FOLDER/node_modules. A line of standard input is a list
// of spans as its formatter leaves them; the line of the answer is the list of rows that it would send.

const path = require('node:path')
const readline = require('node:readline')

const home = path.resolve(process.argv[2], 'node_modules', 'dd-trace')
const { SpanStatsProcessor } = require(path.join(home, 'packages/dd-trace/src/span_stats.js'))
const { DDSketch } = require(path.join(home, 'vendor/dist/@datadog/sketches-js'))

function summary (bytes) {
  const sketch = DDSketch.fromProto(bytes)
  return sketch.count === 0 ? [0] : [sketch.count, ...[0.5, 0.9, 0.99].map(q => sketch.getValueAtQuantile(q))]
}

function row (g) {
  return {
    name: g.Name, service: g.Service, resource: g.Resource, type: g.Type, kind: g.SpanKind, status: g.HTTPStatusCode,
    synthetics: g.Synthetics, source: g.srv_src, method: g.HTTPMethod, endpoint: g.HTTPEndpoint, grpc: g.GRPCStatusCode,
    hits: g.Hits, errors: g.Errors, top: g.TopLevelHits, duration: g.Duration,
    ok: summary(g.OkSummary), error: summary(g.ErrorSummary),
  }
}

function rows (spans) {
  const processor = new SpanStatsProcessor({
    stats: { DD_TRACE_STATS_COMPUTATION_ENABLED: true, interval: 10 }, hostname: '127.0.0.1', port: 9, tags: {},
  })
  let sent
  processor.exporter = { export (payload) { sent = payload } }
  for (const span of spans) processor.onSpanFinished(span)
  processor.forceFlush()
  clearInterval(processor.timer)
  return sent.Stats.flatMap(bucket => bucket.Stats.map(row))
}

readline.createInterface({ input: process.stdin }).on('line', line => {
  console.log(JSON.stringify(rows(JSON.parse(line))))
})
