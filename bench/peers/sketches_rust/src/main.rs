// SPDX-License-Identifier: Apache-2.0
//! Peers of the bench `sketch` (Rust crates): sketches-ddsketch, libdd-ddsketch, tdigest and the
//! KLL sketch of datasketches.
//!
//!   sketches_rust KIND DIR   reads names of cases, a line each, and answers each by a line of JSON
//!                            {"CASE":number}, or {} where it has no such thing; ends with the input
//!
//! KIND is ddsketch, libdd, tdigest or kll. DIR holds values.f64, series30k.u32 and series1m.u32,
//! as bench/sketch.c writes them. CPU time of the thread; everything is done once before the clock
//! starts. Bytes in memory are those asked of the allocator, and the struct.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::io::BufRead;
use std::process::exit;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use datasketches::common::SearchCriteria::Inclusive;
use datasketches::kll::{KllFloat, KllSketch};

const PASS: usize = 250_000;
const FILL_PASSES: usize = 28;
const PASSES_1M: usize = 8; // full ones would need 4 GB
const CLEARED: usize = 256;
const CLEARED_SAMPLES: usize = 1000;
const LONG_ENOUGH_NS: f64 = 5e6;
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];

/// Bytes that are held. One thread: no need of atomic additions.
static HELD: AtomicI64 = AtomicI64::new(0);
struct Counting;

fn held(change: i64) {
    HELD.store(HELD.load(Relaxed) + change, Relaxed);
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        held(layout.size() as i64);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        held(-(layout.size() as i64));
        System.dealloc(at, layout)
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        held(size as i64 - layout.size() as i64);
        System.realloc(at, layout, size)
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

extern "C" {
    fn clock_gettime(clock: i32, ret: *mut [i64; 2]) -> i32;
}

const CLOCK_THREAD_CPUTIME_ID: i32 = 3;

fn now_ns() -> f64 {
    let mut t = [0i64; 2];
    unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t[0] as f64 * 1e9 + t[1] as f64
}

fn fail(what: &str) -> ! {
    eprintln!("sketches_rust: {what}");
    exit(1)
}

/// Nanoseconds a call: once untimed, then until it has taken long enough.
fn time_calls(mut body: impl FnMut()) -> f64 {
    body();
    let mut calls = 1;
    loop {
        let from = now_ns();
        for _ in 0..calls {
            body();
        }
        let spent = now_ns() - from;
        if spent >= LONG_ENOUGH_NS {
            return spent / calls as f64;
        }
        calls *= 2;
    }
}

/// What a library can do; every loop is compiled for its type.
trait Sketch: Sized + Clone {
    const MILLION: bool = false; // a million of them fit
    fn new() -> Self;
    fn add(&mut self, value: f64);
    /// After the last value, before the first question.
    fn settle(&mut self) {}
    fn merge(self, _other: &Self) -> Option<Self> {
        None
    }
    fn quantile(&self, _q: f64) -> Option<f64> {
        None
    }
    fn quantiles(&self) -> f64 {
        QUANTILES
            .iter()
            .map(|q| self.quantile(*q).unwrap_or(0.0))
            .sum()
    }
    fn clear(&mut self) -> bool {
        false
    }
    fn encode(&self) -> Option<Vec<u8>> {
        None
    }
    fn decode(_bytes: &[u8]) -> bool {
        false
    }
    /// Consumes it, as one of them will have it.
    fn encode_proto(self) -> Option<Vec<u8>> {
        None
    }
}

#[derive(Clone)]
struct Dd(sketches_ddsketch::DDSketch);

impl Sketch for Dd {
    const MILLION: bool = true;
    fn new() -> Self {
        Dd(sketches_ddsketch::DDSketch::new(
            sketches_ddsketch::Config::defaults(),
        ))
    }
    fn add(&mut self, value: f64) {
        self.0.add(value)
    }
    fn merge(mut self, other: &Self) -> Option<Self> {
        self.0.merge(&other.0).ok()?;
        Some(self)
    }
    fn quantile(&self, q: f64) -> Option<f64> {
        self.0.quantile(q).ok().flatten()
    }
    fn encode(&self) -> Option<Vec<u8>> {
        Some(self.0.to_java_bytes())
    }
    fn decode(bytes: &[u8]) -> bool {
        black_box(sketches_ddsketch::DDSketch::from_java_bytes(bytes)).is_ok()
    }
}

#[derive(Clone)]
struct Libdd(libdd_ddsketch::DDSketch);

impl Sketch for Libdd {
    const MILLION: bool = true;
    fn new() -> Self {
        Libdd(Default::default())
    }
    fn add(&mut self, value: f64) {
        if self.0.add(value).is_err() {
            fail("libdd takes no such value")
        }
    }
    fn encode_proto(self) -> Option<Vec<u8>> {
        Some(self.0.encode_to_vec())
    }
}

#[derive(Clone)]
struct Td(tdigest::TDigest);

impl Sketch for Td {
    fn new() -> Self {
        Td(tdigest::TDigest::new_with_size(100))
    }
    fn add(&mut self, value: f64) {
        self.0.push(value)
    }
    fn settle(&mut self) {
        self.0.flush()
    }
    fn merge(self, other: &Self) -> Option<Self> {
        Some(Td(tdigest::TDigest::merge_digests(vec![
            self.0,
            other.0.clone(),
        ])))
    }
    fn quantile(&self, q: f64) -> Option<f64> {
        self.0.estimate_quantile(q)
    }
    fn quantiles(&self) -> f64 {
        self.0.quantiles(&QUANTILES).iter().flatten().sum()
    }
}

#[derive(Clone)]
struct Kll(KllSketch<KllFloat<f64>>);

impl Sketch for Kll {
    fn new() -> Self {
        Kll(KllSketch::new(200).unwrap_or_else(|_| fail("no KLL with k = 200")))
    }
    fn add(&mut self, value: f64) {
        match KllFloat::<f64>::new(value) {
            Ok(v) => self.0.update(v),
            Err(_) => fail("KLL takes no such value"),
        }
    }
    fn merge(mut self, other: &Self) -> Option<Self> {
        self.0.merge(&other.0).ok()?;
        Some(self)
    }
    fn quantile(&self, q: f64) -> Option<f64> {
        self.0
            .quantile(q, Inclusive)
            .ok()
            .flatten()
            .map(|v| v.into_inner())
    }
    fn quantiles(&self) -> f64 {
        match self.0.quantiles(&QUANTILES, Inclusive) {
            Ok(Some(all)) => all.into_iter().map(|v| v.into_inner()).sum(),
            _ => fail("no quantiles"),
        }
    }
    fn clear(&mut self) -> bool {
        self.0.reset();
        true
    }
    fn encode(&self) -> Option<Vec<u8>> {
        Some(self.0.serialize())
    }
    fn decode(bytes: &[u8]) -> bool {
        black_box(KllSketch::<KllFloat<f64>>::deserialize(bytes)).is_ok()
    }
}

struct Run<S> {
    values: Vec<f64>,
    series_30k: Vec<u32>,
    series_1m: Vec<u32>,
    hot: S,
    full: S,
    many: Vec<S>,
    pass: usize,
    few: bool, // the many were filled by one pass
}

impl<S: Sketch> Run<S> {
    fn new(dir: &str) -> Self {
        let read = |name: &str| {
            std::fs::read(format!("{dir}/{name}")).unwrap_or_else(|e| fail(&e.to_string()))
        };
        let series = |name: &str| {
            read(name)
                .chunks_exact(4)
                .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
                .collect()
        };
        let values: Vec<f64> = read("values.f64")
            .chunks_exact(8)
            .map(|c| f64::from_le_bytes(c.try_into().unwrap_or_default()))
            .collect();
        Run {
            hot: S::new(),
            full: filled(&values),
            series_30k: series("series30k.u32"),
            series_1m: series("series1m.u32"),
            values,
            many: vec![],
            pass: 0,
            few: false,
        }
    }

    /// A quarter of the values, turned at each start over: no series gets the same ones again. A
    /// million of them do, every other time, so that they are done with growing.
    fn insert_pass(&mut self) {
        let n = self.values.len();
        let (series, pass) = if self.many.len() == 1_000_000 {
            (&self.series_1m, self.pass % PASSES_1M)
        } else {
            (&self.series_30k, self.pass)
        };
        let from = pass * PASS % n;
        let mut k = (from + pass * PASS / n * 104_729) % n;
        for at in &series[from..from + PASS] {
            self.many[*at as usize].add(self.values[k]);
            k = if k + 1 < n { k + 1 } else { 0 };
        }
        self.pass += 1;
    }

    fn time_pass(&mut self) -> Option<f64> {
        let from = now_ns();
        self.insert_pass();
        Some((now_ns() - from) / PASS as f64)
    }

    fn fresh(&mut self, count: usize) {
        self.many = vec![];
        self.many = (0..count).map(|_| S::new()).collect();
        self.pass = 0;
    }

    fn random(&mut self, count: usize, passes: usize) -> Option<f64> {
        if self.many.len() != count || self.few {
            self.fresh(count);
        }
        self.few = false;
        while self.pass < passes {
            self.insert_pass();
        }
        self.time_pass()
    }

    /// Cleared, or new where they cannot be.
    fn random_list(&mut self) -> Option<f64> {
        if self.many.len() != 30_000 || !S::new().clear() {
            self.fresh(30_000);
        } else {
            self.many.iter_mut().for_each(|s| {
                s.clear();
            });
        }
        self.few = true;
        self.time_pass()
    }

    fn clear(&self) -> Option<f64> {
        if !S::new().clear() {
            return None;
        }
        let mut all: Vec<S> = (0..CLEARED).map(|_| S::new()).collect();
        let (mut spent, mut rounds) = (0.0, 0);
        while rounds < 8 {
            for (s, values) in all.iter_mut().zip(self.values.chunks(CLEARED_SAMPLES)) {
                values.iter().for_each(|v| s.add(*v));
            }
            let from = now_ns();
            all.iter_mut().for_each(|s| {
                s.clear();
            });
            spent += now_ns() - from;
            rounds += 1;
        }
        Some(spent / (rounds * CLEARED) as f64)
    }

    fn merge(&self) -> Option<f64> {
        let mut to = Some(self.full.clone().merge(&self.full)?);
        Some(time_calls(|| {
            to = to.take().and_then(|s| s.merge(&self.full));
        }))
    }

    /// Copies are made before the clock starts.
    fn encode_proto(&self) -> Option<f64> {
        self.full.clone().encode_proto()?;
        let copies: Vec<S> = (0..1000).map(|_| self.full.clone()).collect();
        let count = copies.len() as f64;
        let from = now_ns();
        for s in copies {
            black_box(s.encode_proto());
        }
        Some((now_ns() - from) / count)
    }

    fn time(&mut self, name: &str) -> Option<f64> {
        let n = self.values.len() as f64;
        match name {
            "insert_hot" => {
                let (hot, values) = (&mut self.hot, &self.values);
                let pass = time_calls(|| values.iter().for_each(|v| hot.add(*v)));
                Some(pass / n)
            }
            "insert_random_30k" => self.random(30_000, FILL_PASSES),
            "insert_random_30k_list" => self.random_list(),
            "insert_random_1m" if S::MILLION => self.random(1_000_000, PASSES_1M),
            "merge" => self.merge(),
            "p99" => {
                self.full.quantile(0.99)?;
                Some(time_calls(|| {
                    black_box(self.full.quantile(0.99));
                }))
            }
            "quantiles_4" => {
                self.full.quantile(0.99)?;
                Some(time_calls(|| {
                    black_box(self.full.quantiles());
                }))
            }
            "clear" => self.clear(),
            "encode_compact" => {
                self.full.encode()?;
                Some(time_calls(|| {
                    black_box(self.full.encode());
                }))
            }
            "decode_compact" => {
                let bytes = self.full.encode()?;
                Some(time_calls(|| {
                    if !S::decode(&bytes) {
                        fail("does not decode");
                    }
                }))
            }
            "encode_proto" => self.encode_proto(),
            _ => None,
        }
    }

    fn bytes(&self, name: &str, samples: usize) -> String {
        let before = HELD.load(Relaxed);
        let s: S = filled(&self.values[..samples]);
        let memory = HELD.load(Relaxed) - before + size_of::<S>() as i64;
        let mut line = format!("{{\"{name}\":{memory}");
        for (key, bytes) in [("compact", s.encode()), ("proto", s.encode_proto())] {
            if let Some(bytes) = bytes {
                line += &format!(",\"{key}\":{}", bytes.len());
            }
        }
        line + "}"
    }

    fn answer(&mut self, name: &str) -> String {
        match name {
            "bytes_100" => self.bytes(name, 100),
            "bytes_1000" => self.bytes(name, 1000),
            "bytes_1m" => self.bytes(name, self.values.len()),
            _ => match self.time(name) {
                Some(value) => format!("{{\"{name}\":{value:.3}}}"),
                None => "{}".to_string(),
            },
        }
    }
}

fn filled<S: Sketch>(values: &[f64]) -> S {
    let mut s = S::new();
    values.iter().for_each(|v| s.add(*v));
    s.settle();
    s
}

fn run<S: Sketch>(dir: &str) {
    let mut run = Run::<S>::new(dir);
    for name in std::io::stdin().lock().lines() {
        let name = name.unwrap_or_else(|e| fail(&e.to_string()));
        println!("{}", run.answer(&name));
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ddsketch", dir] => run::<Dd>(dir),
        ["libdd", dir] => run::<Libdd>(dir),
        ["tdigest", dir] => run::<Td>(dir),
        ["kll", dir] => run::<Kll>(dir),
        _ => fail("usage: sketches_rust ddsketch|libdd|tdigest|kll DIR"),
    }
}
