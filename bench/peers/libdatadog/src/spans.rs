// SPDX-License-Identifier: Apache-2.0

//! The verb `spans`: a body as its decoders see it, a line of JSON a span, for tests/interop/trace_test.py.

use std::collections::BTreeMap;

use libdd_trace_utils::msgpack_decoder;
use libdd_trace_utils::span::v04::SpanSlice;
use libdd_trace_utils::span::{v1, SliceData};

use crate::{fail, hex, quoted};

type Attribute<'a> = v1::AttributeValue<SliceData<'a>>;

fn object<'a>(pairs: impl Iterator<Item = (&'a str, String)>) -> String {
    // Of a key that is there twice the last one counts, as it does to its own encoders.
    let last: BTreeMap<&str, String> = pairs.collect();
    let all: Vec<String> = last
        .iter()
        .map(|(k, v)| format!("{}:{v}", quoted(k)))
        .collect();
    format!("{{{}}}", all.join(","))
}

fn float(d: f64) -> String {
    // With a point or an exponent, as a float is told from an integer.
    format!("{d:?}")
}

fn attribute(v: &Attribute) -> String {
    match v {
        v1::AttributeValue::String(s) => quoted(s),
        v1::AttributeValue::Bool(b) => b.to_string(),
        v1::AttributeValue::Float(d) => float(*d),
        v1::AttributeValue::Int(i) => i.to_string(),
        v1::AttributeValue::Bytes(b) => format!("{{\"bytes\":\"{}\"}}", hex(b)),
        v1::AttributeValue::Array(l) => {
            let all: Vec<String> = l.iter().map(attribute).collect();
            format!("[{}]", all.join(","))
        }
        _ => fail("an attribute of another type"),
    }
}

fn v04(trace: usize, s: &SpanSlice) {
    println!(
        "{{\"trace\":{trace},\"service\":{},\"name\":{},\"resource\":{},\"type\":{},\"trace_id\":{},\"span_id\":{},\"parent_id\":{},\"start\":{},\"duration\":{},\"error\":{},\"meta\":{},\"metrics\":{},\"meta_struct\":{},\"links\":{},\"events\":{}}}",
        quoted(&s.service),
        quoted(&s.name),
        quoted(&s.resource),
        quoted(&s.r#type),
        s.trace_id,
        s.span_id,
        s.parent_id,
        s.start,
        s.duration,
        s.error,
        object(s.meta.iter().map(|(k, v)| (k.as_ref(), quoted(v)))),
        object(s.metrics.iter().map(|(k, v)| (k.as_ref(), float(*v)))),
        object(s.meta_struct.iter().map(|(k, v)| (k.as_ref(), quoted(&hex(v))))),
        s.span_links.len(),
        s.span_events.len(),
    );
}

fn v1_link(l: &v1::SpanLink<SliceData>) -> String {
    format!(
        "{{\"trace_id\":\"{}\",\"span_id\":{},\"tracestate\":{},\"flags\":{},\"attributes\":{}}}",
        hex(&l.trace_id),
        l.span_id,
        quoted(&l.tracestate),
        l.flags,
        object(l.attributes.iter().map(|(k, v)| (k.as_ref(), attribute(v)))),
    )
}

fn v1_event(e: &v1::SpanEvent<SliceData>) -> String {
    format!(
        "{{\"time\":{},\"name\":{},\"attributes\":{}}}",
        e.time_unix_nano,
        quoted(&e.name),
        object(e.attributes.iter().map(|(k, v)| (k.as_ref(), attribute(v)))),
    )
}

fn v1_span(trace: usize, chunk: &v1::TraceChunk<SliceData>, s: &v1::Span<SliceData>) {
    let links: Vec<String> = s.span_links.iter().map(v1_link).collect();
    let events: Vec<String> = s.span_events.iter().map(v1_event).collect();
    println!(
        "{{\"trace\":{trace},\"trace_id\":\"{}\",\"priority\":{},\"origin\":{},\"mechanism\":{},\"chunk\":{},\"service\":{},\"name\":{},\"resource\":{},\"type\":{},\"span_id\":{},\"parent_id\":{},\"start\":{},\"duration\":{},\"error\":{},\"kind\":{},\"env\":{},\"version\":{},\"component\":{},\"attributes\":{},\"links\":[{}],\"events\":[{}]}}",
        hex(&chunk.trace_id),
        chunk.priority.unwrap_or(-128),
        quoted(&chunk.origin),
        chunk.sampling_mechanism.unwrap_or(0),
        object(chunk.attributes.iter().map(|(k, v)| (k.as_ref(), attribute(v)))),
        quoted(&s.service),
        quoted(&s.name),
        quoted(&s.resource),
        quoted(&s.r#type),
        s.span_id,
        s.parent_id,
        s.start,
        s.duration,
        s.error,
        quoted(s.span_kind.as_meta_str()),
        quoted(&s.env),
        quoted(&s.version),
        quoted(&s.component),
        object(s.attributes.iter().map(|(k, v)| (k.as_ref(), attribute(v)))),
        links.join(","),
        events.join(","),
    );
}

fn v1_payload(body: &[u8]) {
    let (p, _) = msgpack_decoder::v1::from_slice(body).unwrap_or_else(|e| fail(&e.to_string()));
    let texts = [
        p.container_id,
        p.language_name,
        p.language_version,
        p.tracer_version,
        p.runtime_id,
        p.env,
        p.hostname,
        p.app_version,
    ];
    println!(
        "{{\"header\":[{}],\"attributes\":{}}}",
        texts.map(|t| quoted(&t)).join(","),
        object(p.attributes.iter().map(|(k, v)| (k.as_ref(), attribute(v)))),
    );
    for (i, chunk) in p.chunks.iter().enumerate() {
        for span in &chunk.spans {
            v1_span(i, chunk, span);
        }
    }
}

pub fn print(version: &str, file: &str) {
    let body = std::fs::read(file).unwrap_or_else(|e| fail(&format!("{file}: {e}")));
    let decoded = match version {
        "v04" => msgpack_decoder::v04::from_slice(&body),
        "v05" => msgpack_decoder::v05::from_slice(&body),
        "v1" => return v1_payload(&body),
        _ => fail("decodes v04, v05 and v1"),
    };
    let (traces, _) = decoded.unwrap_or_else(|e| fail(&e.to_string()));
    for (i, trace) in traces.iter().enumerate() {
        for span in trace {
            v04(i, span);
        }
    }
}
