//! Metrics for Prometheus and traces for OpenTelemetry.

pub(crate) mod metrics;
#[cfg(feature = "otlp")]
pub(crate) mod otlp;
pub(crate) mod trace;
#[cfg(feature = "otlp")]
pub(crate) mod trace_context;
