//! Exports spans to an OpenTelemetry collector over OTLP.

use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::registry::LookupSpan;

/// Maximum time that the process waits at its end for unsent spans.
const FLUSH_TIME: Duration = Duration::from_millis(300);

/// Path of spans below the address of a collector.
const PATH: &str = "/v1/traces";

/// Sends the server's spans to a collector in the background.
///
/// Dropping it sends the remaining spans within 300 ms.
pub struct Otlp(SdkTracerProvider);

/// The reason why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The address is invalid.
    #[error("`{0}` is not the address of a collector, such as http://localhost:4318")]
    Address(String),
    /// A standard OpenTelemetry variable has an invalid value.
    #[error("the export of spans cannot be set up")]
    Setup(#[from] ExporterBuildError),
}

impl Otlp {
    /// Sends spans to the collector at `address`, such as `http://localhost:4318`, without TLS. By
    /// default the standard OpenTelemetry variables (such as `OTEL_EXPORTER_OTLP_ENDPOINT`)
    /// determine the address; their default is `http://localhost:4318`.
    ///
    /// # Errors
    ///
    /// If the address or a variable is invalid. A collector that does not answer is reported
    /// through `tracing` when spans are sent.
    pub fn new(address: Option<&str>) -> Result<Self, OtlpError> {
        let exporter = SpanExporter::builder().with_http();
        let exporter = match address {
            Some(address) => exporter.with_endpoint(endpoint(address)?),
            None => exporter,
        };
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let mut resource = Resource::builder().with_attribute(version);
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("kitbag");
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter.build()?)
            .build();
        Ok(Self(provider))
    }

    /// Returns the layer that forwards the server's spans.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        OpenTelemetryLayer::new(self.0.tracer("kitbag"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_filter(
                filter_fn(|of| of.is_span() && of.target() == crate::telemetry::trace::TARGET)
                    .with_max_level_hint(LevelFilter::DEBUG),
            )
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown_with_timeout(FLUSH_TIME) {
            tracing::warn!("the last spans were not sent: {error}");
        }
    }
}

fn endpoint(address: &str) -> Result<String, OtlpError> {
    let uri = address.parse::<Uri>().ok();
    match uri.filter(|uri| uri.scheme() == Some(&Scheme::HTTP) && uri.query().is_none()) {
        Some(_) => Ok(format!("{}{PATH}", address.trim_end_matches('/'))),
        None => Err(OtlpError::Address(address.to_owned())),
    }
}
