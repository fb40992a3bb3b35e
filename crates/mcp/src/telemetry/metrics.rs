//! Metrics of the server in the Prometheus format.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Metrics of calls and refused requests.
pub(crate) struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    duration: Histogram,
    running: Gauge,
    refused: Family<RefusedLabels, Counter>,
    sessions: Gauge,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    tool: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RefusedLabels {
    why: &'static str,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("kitbag");
        let calls = Family::default();
        registry.register("calls", "Calls that have ended", calls.clone());
        // From 0.1 ms to a little over 30 s.
        let duration = Histogram::new(exponential_buckets(0.0001, 2.0, 19));
        registry.register("call_duration_seconds", "How long calls took", duration.clone());
        let running = Gauge::default();
        registry.register("calls_running", "Calls that run or wait", running.clone());
        let refused = Family::default();
        registry.register("requests_refused", "Requests that were refused", refused.clone());
        let sessions = Gauge::default();
        registry.register("sessions", "Sessions that are open", sessions.clone());
        Self { registry, calls, duration, running, refused, sessions }
    }

    /// Counts the start of a call. The call counts as running until the result is dropped.
    pub(crate) fn begin(&self) -> impl Drop + use<> {
        self.running.inc();
        Running(self.running.clone())
    }

    /// Counts the end of a call. `tool` is the name of an existing tool.
    pub(crate) fn ended(&self, tool: &str, outcome: &'static str, took: Duration) {
        self.calls.get_or_create(&CallLabels { tool: tool.to_owned(), outcome }).inc();
        self.duration.observe(took.as_secs_f64());
    }

    pub(crate) fn refused(&self, why: &'static str) {
        self.refused.get_or_create(&RefusedLabels { why }).inc();
    }

    pub(crate) fn text(&self, sessions: usize) -> String {
        self.sessions.set(i64::try_from(sessions).unwrap_or(i64::MAX));
        let mut text = String::new();
        let _ = encode(&mut text, &self.registry);
        text
    }
}

struct Running(Gauge);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dec();
    }
}
