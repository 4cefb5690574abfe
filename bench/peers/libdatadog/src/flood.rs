// SPDX-License-Identifier: Apache-2.0
//! Peer of the benches adversarial, resource, peer and additional: eight threads that add spans to
//! one concentrator behind a mutex, as a host has to, since adding needs it exclusively. It has no
//! inbox: every span is taken, and the thread waits for its turn.
//!
//! The span is the cheapest that can be added: fields, no map of tags. Limits are its defaults.

use std::fmt::Write as _;
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use libdd_trace_stats::span_concentrator::{CardinalityLimitConfig, SpanConcentrator, StatSpan};

use crate::{fail, Rng};

const PRODUCERS: usize = 8;
const LABELS: u32 = 1 << 20;
const CLOCK_EVERY: u32 = 64;
const FLUSH_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq)]
enum Workload {
    Adversarial,
    Resource,
    Peer,
    Additional,
}

/// The strings keep their room from span to span.
struct FloodSpan {
    service: String,
    operation: String,
    resource: String,
    first_key: &'static str,
    first: String,
    second: String,
    start: i64,
    duration: i64,
    error: bool,
    top_level: bool,
}

impl FloodSpan {
    fn new(w: Workload) -> Self {
        let additional = w == Workload::Additional;
        FloodSpan {
            service: "svc".into(),
            operation: "op".into(),
            resource: "res".into(),
            first_key: if additional {
                "region"
            } else {
                "peer.hostname"
            },
            first: "localhost".into(),
            second: String::new(),
            start: 0,
            duration: 0,
            error: false,
            top_level: false,
        }
    }

    /// The span of that number, as in bench/flood.c.
    fn next(&mut self, w: Workload, number: u32, rng: &mut Rng) {
        fn join(text: &mut String, prefix: &str, number: u32) {
            text.clear();
            let _ = write!(text, "{prefix}{number}"); // a String takes everything
        }
        let s = number.wrapping_mul(0x9E37_79B1);
        if w == Workload::Adversarial {
            join(&mut self.service, "svc-", s & 0xFFFF);
            join(&mut self.operation, "op-", s >> 8 & 0x3FFFF);
        }
        if w == Workload::Adversarial || w == Workload::Resource {
            join(&mut self.resource, "res-", (s ^ 0x5A5A5A) & 0xFFFFF);
        }
        if w == Workload::Adversarial || w == Workload::Peer {
            join(&mut self.first, "host-", s >> 12 & 0x7FFF);
        }
        if w == Workload::Additional {
            join(&mut self.first, "region-", s >> 4 & 0xFFFF);
            join(&mut self.second, "tenant-", s >> 16);
        }
        self.error = w != Workload::Additional && number & 7 == 0;
        self.top_level = w == Workload::Additional || number & 3 == 0;
        self.duration = 1 + (rng.next() & 0x3FFF_FFFF) as i64;
    }
}

impl<'a> StatSpan<'a> for FloodSpan {
    fn service(&'a self) -> &'a str {
        &self.service
    }

    fn resource(&'a self) -> &'a str {
        &self.resource
    }

    fn name(&'a self) -> &'a str {
        &self.operation
    }

    fn r#type(&'a self) -> &'a str {
        "web"
    }

    fn start(&'a self) -> i64 {
        self.start
    }

    fn duration(&'a self) -> i64 {
        self.duration
    }

    fn is_error(&'a self) -> bool {
        self.error
    }

    fn is_trace_root(&'a self) -> bool {
        false
    }

    fn is_measured(&'a self) -> bool {
        true
    }

    fn is_partial_snapshot(&'a self) -> bool {
        false
    }

    fn has_top_level(&'a self) -> bool {
        self.top_level
    }

    fn get_meta(&'a self, key: &str) -> Option<&'a str> {
        match key {
            "span.kind" => Some("client"),
            "http.status_code" => Some("200"),
            "tenant_id" if !self.second.is_empty() => Some(&self.second),
            _ if key == self.first_key => Some(&self.first),
            _ => None,
        }
    }

    fn get_metrics(&'a self, _key: &str) -> Option<f64> {
        None
    }
}

/// A line of its own for each, so that no two threads write to the same.
#[repr(align(128))]
#[derive(Default)]
struct Counter(AtomicU64);

struct Shared {
    workload: Workload,
    concentrator: Mutex<SpanConcentrator>,
    published: [Counter; PRODUCERS],
    stop: AtomicBool,
    start: Barrier,
    end: Barrier,
}

fn now_ns() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as i64)
}

/// What the scheduler says of this thread.
fn thread_cpu_ns() -> u64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| fail("no /proc/thread-self/schedstat"))
}

fn produce(shared: &Shared, index: usize) {
    let mut span = FloodSpan::new(shared.workload);
    let mut rng = Rng(index as u64);
    let mut number = 0u32;
    let mut count = 0u64;
    let mut now = 0;
    loop {
        shared.start.wait();
        while !shared.stop.load(Relaxed) {
            if number % CLOCK_EVERY == 0 {
                now = now_ns();
            }
            span.next(shared.workload, number, &mut rng);
            span.start = now - span.duration;
            number = number.wrapping_add(1);
            match shared.concentrator.lock() {
                Ok(mut c) => c.add_span(&span),
                Err(_) => fail("a thread failed"),
            }
            count += 1;
            shared.published[index].0.store(count, Relaxed);
        }
        shared.end.wait();
    }
}

impl Shared {
    fn published(&self) -> u64 {
        self.published.iter().map(|c| c.0.load(Relaxed)).sum()
    }

    /// As its exporter would: to the bytes of a body. Returns the hits in it.
    fn flush(&self, force: bool) -> u64 {
        let flushed = match self.concentrator.lock() {
            Ok(mut c) => c.flush(SystemTime::now(), force),
            Err(_) => fail("a thread failed"),
        };
        let buckets = flushed.all_buckets();
        match rmp_serde::encode::to_vec_named(&buckets) {
            Ok(body) => std::hint::black_box(body.len()),
            Err(_) => fail("not written"),
        };
        buckets.iter().flat_map(|b| &b.stats).map(|g| g.hits).sum()
    }

    fn labels_ns(&self) -> f64 {
        let mut span = FloodSpan::new(self.workload);
        let mut rng = Rng(1);
        let from = thread_cpu_ns();
        for number in 0..LABELS {
            span.next(self.workload, number, &mut rng);
            std::hint::black_box(&span);
        }
        (thread_cpu_ns() - from) as f64 / f64::from(LABELS)
    }

    fn round(&self, seconds: u64) -> String {
        let labels = self.labels_ns();
        let before = self.published();
        self.stop.store(false, Relaxed);
        let from = Instant::now();
        self.start.wait();
        let mut hits = 0;
        let mut taken = vec![];
        let (mut at, mut last) = (from, before);
        let mut flushed = from;
        for second in 1..=seconds {
            let due = from + Duration::from_secs(second);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let (now, sum) = (Instant::now(), self.published());
            taken.push((sum - last) as f64 / (now - at).as_secs_f64());
            (at, last) = (now, sum);
            if now - flushed >= FLUSH_EVERY {
                hits += self.flush(false);
                flushed = now;
            }
        }
        self.stop.store(true, Relaxed);
        self.end.wait();
        let spent = from.elapsed().as_secs_f64();
        hits += self.flush(true);
        let published = self.published() - before;
        if published != hits {
            fail(&format!("published {published}, in rows {hits}"));
        }
        taken.sort_by(f64::total_cmp);
        format!(
            "{{\"spans_per_s\":{:.0},\"published_per_s\":{:.0},\"dropped_share\":0,\"labels_ns\":{labels:.2},\"flatness\":{:.4}}}",
            hits as f64 / spent,
            published as f64 / spent,
            taken[0] / taken[taken.len() / 2]
        )
    }
}

fn concentrator(w: Workload) -> SpanConcentrator {
    let kinds = ["client", "server", "producer", "consumer"];
    let (peer_tags, additional) = match w {
        Workload::Additional => (vec![], vec!["region".to_string(), "tenant_id".to_string()]),
        _ => (vec!["peer.hostname".to_string()], vec![]),
    };
    SpanConcentrator::new(
        Duration::from_secs(10),
        SystemTime::now(),
        kinds.map(String::from).to_vec(),
        peer_tags,
        Some(CardinalityLimitConfig::default()),
        additional,
    )
}

/// Reads a number of seconds a line and answers each by a line of JSON.
pub fn flood(workload: &str) {
    let workload = match workload {
        "adversarial" => Workload::Adversarial,
        "resource" => Workload::Resource,
        "peer" => Workload::Peer,
        "additional" => Workload::Additional,
        _ => fail("no such workload"),
    };
    let shared = Arc::new(Shared {
        workload,
        concentrator: Mutex::new(concentrator(workload)),
        published: Default::default(),
        stop: AtomicBool::new(false),
        start: Barrier::new(PRODUCERS + 1),
        end: Barrier::new(PRODUCERS + 1),
    });
    for index in 0..PRODUCERS {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || produce(&shared, index));
    }
    for line in std::io::stdin().lock().lines() {
        match line.ok().and_then(|l| l.parse().ok()) {
            Some(seconds) if seconds > 0 => println!("{}", shared.round(seconds)),
            _ => fail("not a number of seconds"),
        }
    }
}
