// SPDX-License-Identifier: Apache-2.0
//! Peer of the benches `aggregate` and `decode`: libdatadog's span concentrator and its MessagePack
//! decoders on the work that our benches do. A call is one round: one JSON line on stdout.
//!
//!   libdatadog hot SETS SEED SPANS       add_span over the label sets and the order of bench/spans.c
//!   libdatadog decode v04|v05|v1 DIR TIMES SPANS
//!                                        every file of DIR, with SPANS in all, decoded TIMES times
//!
//! Ends with 1 where it did other work than asked: spans lost, keys collapsed, bytes not decoded.

use std::hint::black_box;
use std::process::exit;
use std::time::{Duration, Instant, UNIX_EPOCH};

use libdd_trace_stats::span_concentrator::{CardinalityLimitConfig, SpanConcentrator};
use libdd_trace_utils::msgpack_decoder;
use libdd_trace_utils::span::v04::SpanSlice;

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
    let from_slice: fn(&[u8]) -> usize = match form {
        "v04" => |body| match msgpack_decoder::v04::from_slice(body) {
            Ok((traces, _)) => black_box(&traces).iter().map(Vec::len).sum(),
            Err(e) => fail(&e.to_string()),
        },
        "v05" => |body| match msgpack_decoder::v05::from_slice(body) {
            Ok((traces, _)) => black_box(&traces).iter().map(Vec::len).sum(),
            Err(e) => fail(&e.to_string()),
        },
        "v1" => |body| match msgpack_decoder::v1::from_slice(body) {
            Ok((payload, _)) => black_box(&payload).chunks.iter().map(|c| c.spans.len()).sum(),
            Err(e) => fail(&e.to_string()),
        },
        _ => fail("decodes v04, v05 and v1"),
    };
    let mut spans = 0usize;
    let from = Instant::now();
    for _ in 0..times {
        for body in &bodies {
            spans += from_slice(black_box(body));
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
        _ => fail("usage: libdatadog hot SETS SEED SPANS | decode v04|v05|v1 DIR TIMES SPANS"),
    }
}
