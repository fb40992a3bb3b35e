//! Tools for ACT: components that export `act:tools/tool-provider`.
//!
//! Both functions are asynchronous, arguments and metadata are CBOR, and a result is a list or a
//! stream of events. A stream is read until it ends, an event is an error, or the result is longer
//! than the limit on the output; the rest of the guest's work then ends with the call.

mod cbor;
mod events;
mod manifest;
mod sessions;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use kitbag_base::ByteSize;
use kitbag_base::json::{self, JsonBudget};
use kitbag_contract::{Annotations, Description, ErrorInfo, Limits, Outcome, ToolDescription};
use kitbag_engine::{DescribeResult, InvalidComponent, is_act};
use serde_json::Value;
use tokio::sync::oneshot;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentType, InstancePre, Lift, Linker, Source,
    StreamConsumer, StreamReader, StreamResult,
};
use wasmtime::{Store, StoreContextMut, Trap};

use self::events::{ActError, Events, LocalizedString, Metadata, ToolEvent, error_info};
pub use self::manifest::act_manifest;
use self::sessions::{Session, Sessions};
use super::{Parameters, instantiate};
use crate::call::state::State;
use crate::component::support::SUPPORT;

/// Number of events that are copied from the guest at once.
const CHUNK_EVENTS: usize = 16;

/// The functions of a component for ACT.
pub(crate) struct Act {
    list_tools: ComponentExportIndex,
    call_tool: ComponentExportIndex,
    sessions: Option<Sessions>,
}

/// The parameters of `call-tool`: the name, the arguments and the metadata.
type CallParameters = (String, Vec<u8>, Metadata);

#[derive(ComponentType, Lift)]
#[component(record)]
struct ToolDefinition {
    name: String,
    description: LocalizedString,
    #[component(name = "parameters-schema")]
    parameters_schema: String,
    metadata: Metadata,
}

#[derive(ComponentType, Lift)]
#[component(record)]
struct ListToolsResponse {
    #[expect(dead_code, reason = "part of the interface")]
    metadata: Metadata,
    tools: Vec<ToolDefinition>,
}

#[derive(ComponentType, Lift)]
#[component(variant)]
enum ToolResult {
    #[component(name = "immediate")]
    Immediate(Vec<ToolEvent>),
    #[component(name = "streaming")]
    Streaming(StreamReader<ToolEvent>),
}

impl Act {
    /// Finds the functions of a component.
    pub(crate) fn of(component: &Component) -> Result<Self, InvalidComponent> {
        let (engine, ty) = (component.engine(), component.component_type());
        let name = ty.exports(engine).map(|(name, _)| name).find(|name| is_act(name));
        let instance = name.and_then(|name| component.get_export_index(None, name));
        let function = |name: &str| component.get_export_index(Some(&instance?), name);
        match (function("list-tools"), function("call-tool")) {
            (Some(list_tools), Some(call_tool)) => {
                Ok(Self { list_tools, call_tool, sessions: Sessions::of(component) })
            }
            _ => Err(InvalidComponent::Compile(
                "`act:tools/tool-provider` lacks `list-tools` or `call-tool`".into(),
            )),
        }
    }

    pub(crate) fn link(&self, _: &mut Linker<State>) -> wasmtime::Result<()> {
        Ok(())
    }

    /// Returns the memory of the result.
    pub(crate) fn host_bytes(&self, limits: &Limits) -> ByteSize {
        ByteSize::bytes(result_bytes(limits.output) as u64)
    }

    pub(crate) fn description(&self, _: &Component) -> Option<Description> {
        None
    }

    /// Asks the component for its tools, without metadata.
    pub(crate) async fn describe(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
    ) -> wasmtime::Result<DescribeResult> {
        type Listed = (Result<ListToolsResponse, ActError>,);
        let instance = instantiate(store, pre).await?;
        let list = instance.get_typed_func::<(Metadata,), Listed>(&mut *store, &self.list_tools)?;
        let (listed,) = list.call_async(&mut *store, (Metadata::new(),)).await?;
        let mut tools = match listed.map_err(|error| error_info(error).message).and_then(tools) {
            Ok(tools) => tools,
            Err(error) => return Ok(DescribeResult::Unusable(error)),
        };
        if let Some(sessions) = &self.sessions
            && let Err(error) = sessions.describe(store, &instance, &mut tools).await?
        {
            return Ok(DescribeResult::Unusable(error));
        }
        let description = Description { tools, ..Description::default() };
        let text = serde_json::to_vec(&description)?;
        Ok(DescribeResult::read(&text, &SUPPORT))
    }

    pub(crate) async fn run(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
        parameters: &Parameters<'_>,
    ) -> wasmtime::Result<Outcome> {
        let mut arguments: Value = match serde_json::from_str(parameters.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Outcome::Error(ErrorInfo::new(error.to_string()))),
        };
        let instance = instantiate(store, pre).await?;
        let session = match &self.sessions {
            Some(sessions) => match sessions.open(store, &instance, &mut arguments).await? {
                Ok(session) => session,
                Err(error) => return Ok(Outcome::Error(error)),
            },
            None => None,
        };
        let metadata = session.as_ref().map(Session::metadata).unwrap_or_default();
        let arguments = cbor::encode(&arguments);
        let call = instance
            .get_typed_func::<CallParameters, (ToolResult,)>(&mut *store, &self.call_tool)?;
        let received = Arc::new(Mutex::new(Events::new(result_bytes(parameters.output))));
        let events = Arc::clone(&received);
        let parameters = (parameters.name.to_owned(), arguments, metadata);
        let ended = store.run_concurrent(async move |accessor| -> wasmtime::Result<()> {
            match call.call_concurrent(accessor, parameters).await? {
                (ToolResult::Immediate(list),) => accessor.with(|mut access| {
                    let reports = access.data_mut().reporting();
                    let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
                    for event in list {
                        events.add(event, reports);
                    }
                }),
                (ToolResult::Streaming(stream),) => {
                    let (done, is_done) = oneshot::channel();
                    let collector = Collector { events, _done: done };
                    accessor.with(|access| stream.pipe(access, collector))?;
                    // Fails when the collector is dropped.
                    let _ = is_done.await;
                }
            }
            Ok(())
        });
        let ended = ended.await.flatten();
        let events = {
            let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *received, Events::new(0))
        };
        match (ended, &self.sessions, session) {
            // A failure after the last event that matters does not matter, except at the deadline.
            (Err(error), ..) if is_interrupt(&error) || !events.is_complete() => {
                return Err(error);
            }
            (Ok(()), Some(sessions), Some(session)) => {
                let closed = sessions.close(store, &instance, session).await;
                // Closing is a courtesy to the component.
                if let Some(error) = closed.err().filter(is_interrupt) {
                    return Err(error);
                }
            }
            _ => {}
        }
        Ok(events.into_outcome())
    }
}

/// Returns true if the guest was interrupted, because the time or the call ended.
fn is_interrupt(error: &wasmtime::Error) -> bool {
    matches!(error.downcast_ref(), Some(Trap::Interrupt))
}

/// Returns the length up to which a result is kept: longer than the output, so that the truncated
/// result states that it was longer.
fn result_bytes(output: ByteSize) -> usize {
    output.as_usize().saturating_mul(2)
}

/// Receives the events of a stream.
struct Collector {
    events: Arc<Mutex<Events>>,
    /// Dropped with the collector, when the stream ends.
    _done: oneshot::Sender<()>,
}

impl StreamConsumer<State> for Collector {
    type Item = ToolEvent;

    fn poll_consume(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut store: StoreContextMut<'_, State>,
        mut source: Source<'_, ToolEvent>,
        _: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let mut chunk = Vec::with_capacity(CHUNK_EVENTS);
        source.read(&mut store, &mut chunk)?;
        let reports = store.data_mut().reporting();
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = chunk.into_iter().all(|event| events.add(event, reports));
        Poll::Ready(Ok(if is_open { StreamResult::Completed } else { StreamResult::Dropped }))
    }
}

/// Converts the list of tools.
fn tools(listed: ListToolsResponse) -> Result<Vec<ToolDescription>, String> {
    let tool = |tool: ToolDefinition| {
        let ToolDefinition { name, description, parameters_schema, metadata } = tool;
        let schema = json::parse(parameters_schema.as_bytes(), JsonBudget::DESCRIPTION);
        let schema = schema.map_err(|error| {
            format!("the schema of `{}` is not usable: {error}", kitbag_base::text::shown(&name))
        })?;
        let flag = |key: &str| {
            let entry = metadata.iter().find(|(name, _)| name == key);
            entry.and_then(|(_, value)| cbor::flag(value))
        };
        let annotations = Annotations {
            read_only_hint: flag("std:read-only"),
            destructive_hint: flag("std:destructive"),
            idempotent_hint: flag("std:idempotent"),
            open_world_hint: None,
        };
        Ok(ToolDescription {
            name,
            description: Some(description.into_text()),
            input_schema: Some(schema),
            annotations: (annotations != Annotations::default()).then_some(annotations),
            ..ToolDescription::default()
        })
    };
    listed.tools.into_iter().map(tool).collect()
}
