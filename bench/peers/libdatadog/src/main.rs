// SPDX-License-Identifier: Apache-2.0
//! Peer of the benches `aggregate`, `decode`, `encode` and those of `flood.rs`: libdatadog's span concentrator, its
//! MessagePack decoders and encoders on the work that our benches do. A call is one round: one JSON
//! line on stdout.
//!
//!   libdatadog hot SETS SEED SPANS       add_span over the label sets and the order of bench/spans.c
//!   libdatadog decode v04|v05|v1 DIR TIMES SPANS
//!                                        every file of DIR, with SPANS in all, decoded TIMES times
//!   libdatadog encode v04|v05|v1 FORM TIMES
//!                                        the list of bench/encode.c, encoded TIMES times; FORM is
//!                                        plain, enriched, origin or enriched_origin
//!
//!   libdatadog flood WORKLOAD            answers a line of its input at a time, see flood.rs
//!
//!   libdatadog rows FILE                 not a bench: the rows of the spans of a v0.4 body, a JSON
//!                                        line each, for tests/interop/stats_test.py
//!   libdatadog spans v04|v05|v1 FILE     not a bench: the spans of a body, for tests/interop/trace_test.py
//!
//! Ends with 1 where it did other work than asked: spans lost, keys collapsed, bytes not decoded.

mod flood;
mod spans;

use std::hint::black_box;
use std::process::exit;
use std::time::{Duration, Instant, UNIX_EPOCH};

use libdd_trace_stats::span_concentrator::{CardinalityLimitConfig, SpanConcentrator};
use libdd_trace_utils::msgpack_decoder;
use libdd_trace_utils::msgpack_encoder;
use libdd_trace_utils::span::v04::SpanSlice;
use libdd_trace_utils::span::{v05, v1, SliceData};

/// Spans drawn beforehand, not in the figure: as many as in bench/aggregate.c.
const BURST: usize = 128;
const T0_S: u64 = 1_800_000_000;

fn fail(what: &str) -> ! {
    eprintln!("libdatadog: {what}");
    exit(1)
}

/// SplitMix64, and what bench/bench.c draws from it.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let a = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        b ^ (b >> 31)
    }

    fn latency_ns(&mut self) -> i64 {
        let mut normal = -6.0f64;
        for _ in 0..12 {
            normal += (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        }
        (5e6 * normal.exp()) as i64
    }
}

#[derive(Clone, Copy, Default)]
struct Draw {
    set: usize,
    duration_ns: i64,
    error: i32,
}

fn draw(rng: &mut Rng, sets: usize) -> Draw {
    let set = (rng.next() % sets as u64) as usize;
    let duration_ns = rng.latency_ns();
    Draw {
        set,
        duration_ns,
        error: (rng.next() % 8 == 0) as i32,
    }
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// The ten labels of bench_labels_new(): four are fields of a span here, six are tags.
fn label_sets(count: usize) -> Vec<SpanSlice<'static>> {
    (0..count)
        .map(|i| {
            let mut span = SpanSlice {
                service: leak(format!("service-{:02}", i % 32)).into(),
                name: "http.request".into(),
                resource: leak(format!("GET /api/v1/items/{i:05}/detail")).into(),
                r#type: "http".into(),
                trace_id: 1,
                span_id: 2,
                parent_id: 1,
                ..Default::default()
            };
            let peer = leak(format!("peer-{:02}.internal", i % 16));
            for (key, value) in [
                ("env", "prod"),
                ("span.kind", "client"),
                ("http.status_code", "200"),
                ("http.method", "GET"),
                ("http.route", "/api/v1/items/:id/detail"),
                ("peer.service", peer),
            ] {
                span.meta.insert(key.into(), value.into());
            }
            span
        })
        .collect()
}

/// Limits out of the way: all label sets get a row of their own, as with ours.
fn concentrator(now: Duration) -> SpanConcentrator {
    let limits = CardinalityLimitConfig {
        whole_key_limit: 1 << 24,
        resource_limit: 1 << 23,
        http_endpoint_limit: 1 << 23,
        peer_tags_limit: 1 << 23,
        additional_tags_limit: 1 << 23,
    };
    let kinds = ["client", "server", "producer", "consumer"]
        .map(String::from)
        .to_vec();
    let peer_tags = vec!["peer.service".to_string()];
    SpanConcentrator::new(
        Duration::from_secs(10),
        UNIX_EPOCH + now,
        kinds,
        peer_tags,
        Some(limits),
        vec![],
    )
}

fn add(
    c: &mut SpanConcentrator,
    labels: &mut [SpanSlice<'static>],
    rng: &mut Rng,
    spans: usize,
) -> Duration {
    let end_ns = T0_S as i64 * 1_000_000_000 + 1;
    let mut spent = Duration::ZERO;
    for _ in 0..spans / BURST {
        let mut burst = [Draw::default(); BURST];
        burst.fill_with(|| draw(rng, labels.len()));
        let from = Instant::now();
        for d in &burst {
            let span = &mut labels[d.set];
            span.duration = d.duration_ns;
            span.start = end_ns - d.duration_ns;
            span.error = d.error;
            c.add_span(black_box(&*span));
        }
        spent += from.elapsed();
    }
    spent
}

fn hot(sets: usize, seed: u64, spans: usize) {
    let spans = spans / BURST * BURST;
    let now = Duration::from_secs(T0_S);
    let mut labels = label_sets(sets);
    let mut c = concentrator(now);
    let mut rng = Rng(seed);
    let warm = spans / 2 / BURST * BURST;
    add(&mut c, &mut labels, &mut rng, warm); // keys and sketches grow here
    let spent = add(&mut c, &mut labels, &mut rng, spans);
    let (mut rows, mut hits) = (0usize, 0u64);
    for bucket in c.flush(UNIX_EPOCH + now, true).all_buckets() {
        rows += bucket.stats.len();
        hits += bucket.stats.iter().map(|g| g.hits).sum::<u64>();
    }
    if rows != sets || hits != (warm + spans) as u64 {
        fail(&format!("{rows} rows with {hits} hits: not the same work"));
    }
    println!(
        "{{\"ns_per_span\":{:.3}}}",
        spent.as_nanos() as f64 / spans as f64
    );
}

fn decode(form: &str, dir: &str, times: usize, expected: usize) {
    let mut bodies = vec![];
    for entry in std::fs::read_dir(dir)
        .unwrap_or_else(|e| fail(&format!("{dir}: {e}")))
        .flatten()
    {
        bodies.push(std::fs::read(entry.path()).unwrap_or_else(|e| fail(&e.to_string())));
    }
    let decoded = |body: &[u8]| -> Result<usize, String> {
        let grouped = match form {
            "v04" => msgpack_decoder::v04::from_slice,
            "v05" => msgpack_decoder::v05::from_slice,
            "v1" => {
                let (payload, _) =
                    msgpack_decoder::v1::from_slice(body).map_err(|e| e.to_string())?;
                return Ok(black_box(&payload)
                    .chunks
                    .iter()
                    .map(|c| c.spans.len())
                    .sum());
            }
            _ => fail("decodes v04, v05 and v1"),
        };
        let (traces, _) = grouped(body).map_err(|e| e.to_string())?;
        Ok(black_box(&traces).iter().map(Vec::len).sum())
    };
    let mut spans = 0usize;
    let from = Instant::now();
    for _ in 0..times {
        for body in &bodies {
            spans += decoded(black_box(body)).unwrap_or_else(|e| fail(&e));
        }
    }
    let spent = from.elapsed();
    if spans == 0 || spans != times * expected {
        fail(&format!("{spans} spans: not the same work"));
    }
    println!(
        "{{\"ns_per_span\":{:.3}}}",
        spent.as_nanos() as f64 / spans as f64
    );
}

/// The list of bench/encode.c. Tags are de-duplicated beforehand: its encoders would else do it on
/// every call, where its exporter does it once.
fn list(form: &str) -> Vec<SpanSlice<'static>> {
    let enriched = form.starts_with("enriched");
    let origin = form.ends_with("origin");
    (0..1000u64)
        .map(|i| {
            let mut span = SpanSlice {
                service: "service".into(),
                name: "operation".into(),
                resource: "resource".into(),
                r#type: "type".into(),
                trace_id: u128::from(i + 1),
                span_id: 1001 + i,
                start: T0_S as i64 * 1_000_000_000,
                duration: 1_000_000 + i as i64 * 977,
                ..Default::default()
            };
            span.meta.insert("thread.name".into(), "main".into());
            if origin {
                span.meta.insert("_dd.origin".into(), "some-origin".into());
            }
            span.metrics.insert("_sampling_priority_v1".into(), 1.0);
            span.metrics.insert("_dd.top_level".into(), 1.0);
            span.metrics.insert("thread.id".into(), 1.0);
            if enriched {
                span.meta
                    .insert("some-tag-key".into(), "some-tag-value".into());
                span.metrics.insert("some-metric-key".into(), 1.0);
            }
            span.meta.dedup();
            span.metrics.dedup();
            span
        })
        .collect()
}

/// The list as spans of its own v1.0 types.
fn native_v1(spans: &[SpanSlice<'static>]) -> v1::TracerPayload<SliceData<'static>> {
    let spans = spans
        .iter()
        .map(|s| {
            let texts = s.meta.iter().filter(|(k, _)| k.as_ref() != "_dd.origin");
            let texts = texts.map(|(k, v)| (k.clone(), v1::AttributeValue::String(v.clone())));
            let numbers = s
                .metrics
                .iter()
                .map(|(k, v)| (k.clone(), v1::AttributeValue::Float(*v)));
            let mut span = v1::Span::<SliceData<'static>> {
                service: s.service.clone(),
                name: s.name.clone(),
                resource: s.resource.clone(),
                r#type: s.r#type.clone(),
                span_id: s.span_id,
                start: s.start,
                duration: s.duration,
                attributes: texts.chain(numbers).collect::<Vec<_>>().into(),
                ..Default::default()
            };
            span.attributes.dedup();
            span
        })
        .collect();
    let chunk = v1::TraceChunk {
        trace_id: [1; 16],
        priority: Some(1),
        spans,
        ..Default::default()
    };
    v1::TracerPayload {
        language_name: "c".into(),
        chunks: vec![chunk],
        ..Default::default()
    }
}

fn spans_per_s(times: usize, mut round: impl FnMut()) -> f64 {
    for _ in 0..times / 4 {
        round();
    }
    let from = Instant::now();
    for _ in 0..times {
        round();
    }
    1000.0 * times as f64 / from.elapsed().as_secs_f64()
}

/// Where it has two ways, both are timed, and the better one is said.
fn encode(version: &str, form: &str, times: usize) {
    let spans = list(form);
    let traces = vec![spans];
    let mut buf = vec![0u8; 4 << 20];
    let mut best = 0f64;
    match version {
        "v04" => {
            best = best.max(spans_per_s(times, || {
                let mut out = &mut buf[..];
                msgpack_encoder::v04::write_to_slice_from_v04(&mut out, black_box(&traces))
                    .unwrap_or_else(|_| fail("not written"));
                black_box(out.len());
            }));
            best = best.max(spans_per_s(times, || {
                black_box(msgpack_encoder::v04::to_vec_from_v04(black_box(&traces)));
            }));
        }
        "v05" => {
            best = best.max(spans_per_s(times, || {
                let mut dict = Default::default();
                let converted: Vec<Vec<v05::Span>> = black_box(&traces)
                    .iter()
                    .map(|t| {
                        t.iter()
                            .map(|s| {
                                v05::from_v04_span(s, &mut dict)
                                    .unwrap_or_else(|_| fail("not converted"))
                            })
                            .collect()
                    })
                    .collect();
                let mut out = Vec::with_capacity(buf.len());
                rmp_serde::encode::write(&mut out, &(dict, converted))
                    .unwrap_or_else(|_| fail("not written"));
                black_box(out.len());
            }));
        }
        "v1" => {
            let payload = native_v1(&traces[0]);
            best = best.max(spans_per_s(times, || {
                let mut out = &mut buf[..];
                msgpack_encoder::v1::write_to_slice_from_v1(&mut out, black_box(&payload))
                    .unwrap_or_else(|_| fail("not written"));
                black_box(out.len());
            }));
        }
        _ => fail("encodes v04, v05 and v1"),
    }
    println!("{{\"spans_per_s\":{best:.0}}}");
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn list_of(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|t| quoted(t)).collect();
    format!("[{}]", all.join(","))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Limits out of the way, peer tags and dimensions as the test has them.
fn rows(file: &str) {
    let body = std::fs::read(file).unwrap_or_else(|e| fail(&format!("{file}: {e}")));
    let (traces, _) =
        msgpack_decoder::v04::from_slice(&body).unwrap_or_else(|e| fail(&e.to_string()));
    let kinds = ["client", "server", "producer", "consumer"]
        .map(String::from)
        .to_vec();
    let limits = CardinalityLimitConfig {
        whole_key_limit: 1 << 24,
        resource_limit: 1 << 23,
        http_endpoint_limit: 1 << 23,
        peer_tags_limit: 1 << 23,
        additional_tags_limit: 1 << 23,
    };
    let now = UNIX_EPOCH + Duration::from_secs(T0_S);
    let mut c = SpanConcentrator::new(
        Duration::from_secs(10),
        now,
        kinds,
        vec!["peer.hostname".into(), "peer.service".into()],
        Some(limits),
        vec!["region".into()],
    );
    for span in traces.iter().flatten() {
        c.add_span(span);
    }
    for bucket in c.flush(now, true).all_buckets() {
        for g in &bucket.stats {
            println!(
                "{{\"name\":{},\"service\":{},\"resource\":{},\"type\":{},\"kind\":{},\"status\":{},\"synthetics\":{},\"root\":{},\"peer_tags\":{},\"more\":{},\"source\":{},\"method\":{},\"endpoint\":{},\"grpc\":{},\"hits\":{},\"errors\":{},\"top\":{},\"duration\":{},\"ok\":\"{}\",\"error\":\"{}\"}}",
                quoted(&g.name),
                quoted(&g.service),
                quoted(&g.resource),
                quoted(&g.r#type),
                quoted(&g.span_kind),
                g.http_status_code,
                g.synthetics,
                g.is_trace_root,
                list_of(&g.peer_tags),
                list_of(&g.additional_metric_tags),
                quoted(&g.service_source),
                quoted(&g.http_method),
                quoted(&g.http_endpoint),
                quoted(&g.grpc_status_code),
                g.hits,
                g.errors,
                g.top_level_hits,
                g.duration,
                hex(&g.ok_summary),
                hex(&g.error_summary)
            );
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| {
        args[i]
            .parse::<u64>()
            .unwrap_or_else(|_| fail("not a number"))
    };
    match args.first().map(String::as_str) {
        Some("hot") if args.len() == 4 => hot(number(1) as usize, number(2), number(3) as usize),
        Some("decode") if args.len() == 5 => {
            decode(&args[1], &args[2], number(3) as usize, number(4) as usize)
        }
        Some("encode") if args.len() == 4 => encode(&args[1], &args[2], number(3) as usize),
        Some("flood") if args.len() == 2 => flood::flood(&args[1]),
        Some("rows") if args.len() == 2 => rows(&args[1]),
        Some("spans") if args.len() == 3 => spans::print(&args[1], &args[2]),
        _ => fail("usage: libdatadog hot SETS SEED SPANS | decode VERSION DIR TIMES SPANS | encode VERSION FORM TIMES | flood WORKLOAD | rows FILE | spans VERSION FILE"),
    }
}
