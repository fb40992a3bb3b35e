//! Span data for OpenTelemetry only: the client's trace, and content.

use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes a span part of the trace that the client sent, if any.
pub(crate) fn set_parent<'a>(span: &Span, carried: impl Fn(&str) -> Option<&'a str>) {
    let carried = ["traceparent", "tracestate"].map(|name| (name, carried(name)));
    let parent =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &Carried(carried));
    if parent.span().span_context().is_valid() {
        // Fails only if no layer listens. No parent is needed then.
        let _ = span.set_parent(parent);
    }
}

struct Carried<'a>([(&'static str, Option<&'a str>); 2]);

impl Extractor for Carried<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == key)?.1
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }
}

pub(crate) fn set_json(span: &Span, key: &'static str, value: &impl serde::Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => span.set_attribute(key, text),
        Err(error) => tracing::warn!("`{key}` is omitted from a span: {error}"),
    }
}
