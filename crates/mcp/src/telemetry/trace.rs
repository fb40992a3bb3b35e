//! A span for each request, named according to OpenTelemetry's conventions for MCP.
//!
//! Source: <https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/>.

use rmcp::model::{CallToolResponse, ErrorCode};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tracing::field::Empty;
use tracing::{Instrument, Span};

/// The target of the spans, which the exporter filters by.
#[cfg(feature = "otlp")]
pub(crate) const TARGET: &str = module_path!();

/// The subject of a request.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    Tool(&'a str),
    Prompt(&'a str),
    Resource(&'a str),
    Nothing,
}

/// The span of a request. It holds arguments and results only if the server was started with a flag
/// that includes them.
pub(crate) struct Trace(Span);

impl Trace {
    pub(crate) fn begin(
        method: &'static str,
        target: Target<'_>,
        context: &RequestContext<RoleServer>,
    ) -> Self {
        let (tool, prompt, uri) = match target {
            Target::Tool(name) => (Some(name), None, None),
            Target::Prompt(name) => (None, Some(name), None),
            Target::Resource(uri) => (None, None, Some(uri)),
            Target::Nothing => (None, None, None),
        };
        let http = || context.extensions.get::<http::request::Parts>();
        let header = |name: &str| http()?.headers.get(name)?.to_str().ok();
        // Computed only if a subscriber records the span.
        let span = tracing::debug_span!(
            "request",
            otel.name = match tool.or(prompt) {
                Some(name) => format!("{method} {name}"),
                None => method.to_owned(),
            },
            otel.kind = "server",
            otel.status_code = Empty,
            mcp.method.name = method,
            mcp.protocol.version = context.protocol_version().map(display),
            mcp.session.id = header("mcp-session-id"),
            mcp.resource.uri = uri,
            jsonrpc.request.id = %context.id,
            gen_ai.operation.name = tool.map(|_| "execute_tool"),
            gen_ai.tool.name = tool,
            gen_ai.prompt.name = prompt,
            network.transport = if http().is_some() { "tcp" } else { "pipe" },
            error.type = Empty,
            rpc.response.status_code = Empty,
        );
        // The context in the message is closer than the context of its transport.
        #[cfg(feature = "otlp")]
        if !span.is_disabled() {
            crate::telemetry::trace_context::set_parent(&span, |name| {
                context.meta.get(name).and_then(|value| value.as_str()).or_else(|| header(name))
            });
        }
        Self(span)
    }

    /// Runs the request in its span, and records its result.
    ///
    /// The future is boxed: the protocol library moves a request's handler several times, and the
    /// handler is as large as the largest request.
    pub(crate) fn run<T>(
        &self,
        work: impl Future<Output = Result<T, ErrorData>>,
    ) -> impl Future<Output = Result<T, ErrorData>> {
        let work = Box::pin(work);
        async move {
            if self.0.is_disabled() {
                return work.await;
            }
            let result = work.instrument(self.0.clone()).await;
            if let Err(error) = &result {
                let ErrorCode(code) = error.code;
                self.0.record("rpc.response.status_code", code.to_string());
                self.fail(&code.to_string());
            }
            result
        }
    }

    pub(crate) fn tool_result(&self, response: &CallToolResponse) {
        if let CallToolResponse::Complete(result) = response
            && result.is_error == Some(true)
        {
            self.fail("tool_error");
        }
    }

    fn fail(&self, kind: &str) {
        self.0.record("error.type", kind);
        self.0.record("otel.status_code", "ERROR");
    }

    /// Records the arguments or the result of a call in its span.
    #[cfg(feature = "otlp")]
    pub(crate) fn content(&self, key: &'static str, content: &impl serde::Serialize) {
        crate::telemetry::trace_context::set_json(&self.0, key, content);
    }
}
