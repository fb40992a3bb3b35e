//! Calls of other tools: the interface `tools` of the contract.
//!
//! A [`ToolPort`] sends the guest's requests to the code that awaits its call. That code decides
//! and makes the calls: this crate knows no other tool.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kitbag_base::ByteSize;
use kitbag_contract::bindings::{tools, types};
use kitbag_contract::{Content, ErrorInfo, VERSION};
use kitbag_policy::ToolGrants;
use tokio::sync::{mpsc, oneshot};
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::async_trait;
use wasmtime_wasi_io::poll::{DynPollable, Pollable, subscribe};

use crate::call::refusals::{LOOKUP, Refusals};
use crate::call::replay::Replay;
use crate::call::state::State;
use crate::interface::{Interfaces, Version};

/// Access of a call to other tools.
#[derive(Clone, Debug)]
pub struct ToolCalls {
    /// Destination of the requests.
    pub port: ToolPort,
    /// Clocks and random numbers, replayed so that each run makes the same calls.
    pub replay: Replay,
}

/// Destination of one run's requests to other tools.
#[derive(Clone, Debug)]
pub struct ToolPort {
    sender: mpsc::UnboundedSender<NestedRequest>,
    /// Size of the answers that the guest has not taken, in bytes.
    untaken: Arc<AtomicUsize>,
}

/// Maximum total size of the answers that the guest has not taken.
const UNTAKEN_BYTES: usize = 16 << 20;

/// Host memory for calls of other tools: answers that the guest has not taken, answers kept for
/// its next run, and the arguments of calls that wait, run or ask.
pub(crate) const TOOLS_BYTES: ByteSize = ByteSize::mib(40);

/// Their memory depends on the grant: see [`TOOLS_BYTES`].
pub(crate) const INTERFACES: Interfaces = Interfaces {
    version: Version::Exactly(VERSION),
    bytes: ByteSize::bytes(0),
    list: &[("kitbag:tool/tools", "calls of granted tools", |l| {
        tools::add_to_linker::<_, ToolCalling>(l, State::tools)
    })],
};

/// Requests of a guest, in order. A dropped request is answered with an error.
pub type NestedRequests = mpsc::UnboundedReceiver<NestedRequest>;

/// A request of a guest concerning other tools.
#[derive(Debug)]
pub enum NestedRequest {
    /// Lists the tools that the guest may call.
    List {
        /// Receives the tools.
        reply: oneshot::Sender<Vec<CallableTool>>,
    },
    /// Looks up one tool that the guest may call.
    Find {
        /// The guest's name for the tool. Untrusted.
        alias: String,
        /// Receives the tool, if it exists.
        reply: oneshot::Sender<Option<CallableTool>>,
    },
    /// Calls a tool.
    Start {
        /// The guest's name for the tool. Untrusted.
        alias: String,
        /// Should be a JSON object. Untrusted.
        arguments: String,
        /// Receives the pending answer, or why the call did not start. Closed if the guest no
        /// longer waits.
        reply: oneshot::Sender<ToolStart>,
    },
}

/// The pending answer of a call, or why the call was not started.
pub type ToolStart = Result<oneshot::Receiver<PendingAnswer>, ErrorInfo>;

/// An answer for the guest, whose size is counted until the guest takes it.
#[derive(Debug)]
pub struct PendingAnswer {
    answer: ToolAnswer,
    bytes: usize,
    untaken: Arc<AtomicUsize>,
}

/// The outcome of a call.
pub type ToolAnswer = Result<ToolSuccess, ErrorInfo>;

/// The result of a successful call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSuccess {
    /// The result as text for a model.
    pub text: String,
    /// The result as JSON that matches the tool's output schema.
    pub structured: Option<String>,
    /// Content that the tool emitted in addition to its text.
    pub content: Vec<Content>,
}

/// A tool that a guest may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallableTool {
    /// The guest's name for the tool.
    pub alias: String,
    /// Description of the tool.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: String,
    /// JSON Schema of the structured result.
    pub output_schema: Option<String>,
}

impl ToolPort {
    /// Creates a port and its receiver.
    pub fn new() -> (Self, NestedRequests) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { sender, untaken: Arc::default() }, receiver)
    }

    /// Holds an answer for the guest, or an error if the answers not taken are too large.
    pub fn hold(&self, mut answer: ToolAnswer) -> PendingAnswer {
        let mut bytes = answer.as_ref().map_or(0, ToolSuccess::size);
        if self.untaken.load(Ordering::Relaxed).saturating_add(bytes) > UNTAKEN_BYTES {
            answer = Err(ErrorInfo::new(format!(
                "the unread answers of nested calls would exceed {} MiB; finish earlier calls \
                 first",
                UNTAKEN_BYTES >> 20
            )));
            bytes = 0;
        }
        self.untaken.fetch_add(bytes, Ordering::Relaxed);
        PendingAnswer { answer, bytes, untaken: Arc::clone(&self.untaken) }
    }

    async fn list(&self) -> Option<Vec<CallableTool>> {
        let (reply, listed) = oneshot::channel();
        self.sender.send(NestedRequest::List { reply }).ok()?;
        listed.await.ok()
    }

    async fn find(&self, alias: String) -> Option<CallableTool> {
        let (reply, found) = oneshot::channel();
        self.sender.send(NestedRequest::Find { alias, reply }).ok()?;
        found.await.ok()?
    }

    async fn start(&self, alias: String, arguments: String) -> Option<ToolStart> {
        let (reply, started) = oneshot::channel();
        self.sender.send(NestedRequest::Start { alias, arguments, reply }).ok()?;
        started.await.ok()
    }
}

impl ToolSuccess {
    /// Returns the size of the answer in bytes.
    pub fn size(&self) -> usize {
        let structured = self.structured.as_ref().map_or(0, String::len);
        self.text.len() + structured + self.content.iter().map(Content::size).sum::<usize>()
    }
}

impl PendingAnswer {
    fn take(mut self) -> ToolAnswer {
        std::mem::replace(&mut self.answer, Ok(ToolSuccess::default()))
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.untaken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Names the data behind the interface for the linker.
pub(crate) struct ToolCalling;

pub(crate) struct ToolsView<'a> {
    pub(crate) table: &'a mut ResourceTable,
    /// `None` without a grant.
    pub(crate) port: &'a Option<ToolPort>,
    pub(crate) refusals: &'a mut Refusals,
}

impl HasData for ToolCalling {
    type Data<'a> = ToolsView<'a>;
}

enum Pending {
    Runs(oneshot::Receiver<PendingAnswer>),
    Ended(PendingAnswer),
    /// The answer was taken, or the calling tool ends.
    Over,
}

impl Pending {
    async fn end(&mut self) {
        if let Self::Runs(answer) = self {
            *self = answer.await.map_or(Self::Over, Self::Ended);
        }
    }
}

#[async_trait]
impl Pollable for Pending {
    async fn ready(&mut self) {
        self.end().await;
    }
}

/// Converts the resource of the bindings to a `Pending` in the table.
fn held(resource: &Resource<tools::Pending>) -> Resource<Pending> {
    Resource::new_borrow(resource.rep())
}

impl tools::HostPending for ToolsView<'_> {
    fn subscribe(
        &mut self,
        pending: Resource<tools::Pending>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        subscribe(self.table, held(&pending))
    }

    async fn finish(
        &mut self,
        pending: Resource<tools::Pending>,
    ) -> wasmtime::Result<Result<tools::Answer, types::ErrorInfo>> {
        let pending = self.table.get_mut(&held(&pending))?;
        pending.end().await;
        Ok(match std::mem::replace(pending, Pending::Over) {
            Pending::Ended(answer) => written(answer.take()),
            Pending::Runs(_) | Pending::Over => {
                Err(ErrorInfo::new("the answer of this call was already taken").into())
            }
        })
    }

    fn drop(&mut self, pending: Resource<tools::Pending>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Pending>::new_own(pending.rep()))?;
        Ok(())
    }
}

impl tools::Host for ToolsView<'_> {
    async fn list(&mut self) -> wasmtime::Result<Vec<tools::ToolInfo>> {
        let Some(port) = self.port else { return Ok(Vec::new()) };
        let tools = port.list().await.unwrap_or_default();
        Ok(tools.into_iter().map(info).collect())
    }

    async fn find(&mut self, alias: String) -> wasmtime::Result<Option<tools::ToolInfo>> {
        let Some(port) = self.port else {
            self.refusals.note(ToolGrants::KEY, &alias, LOOKUP);
            return Ok(None);
        };
        Ok(port.find(alias).await.map(info))
    }

    async fn start(
        &mut self,
        alias: String,
        arguments: String,
    ) -> wasmtime::Result<Result<Resource<tools::Pending>, types::ErrorInfo>> {
        Ok(match self.begin(alias, arguments).await {
            Ok(answer) => {
                let pending = self.table.push(Pending::Runs(answer))?;
                Ok(Resource::new_own(pending.rep()))
            }
            Err(error) => Err(error.into()),
        })
    }

    async fn call(
        &mut self,
        alias: String,
        arguments: String,
    ) -> wasmtime::Result<Result<tools::Answer, types::ErrorInfo>> {
        Ok(match self.begin(alias, arguments).await {
            Ok(answer) => written(answer.await.map_or_else(|_| Err(gone()), PendingAnswer::take)),
            Err(error) => Err(error.into()),
        })
    }
}

impl ToolsView<'_> {
    async fn begin(&mut self, alias: String, arguments: String) -> ToolStart {
        match self.port {
            Some(port) => port.start(alias, arguments).await.unwrap_or_else(|| Err(gone())),
            None => {
                self.refusals.note(ToolGrants::KEY, &alias, "grant");
                Err(ErrorInfo::new("the tool has no grant to call other tools"))
            }
        }
    }
}

fn gone() -> ErrorInfo {
    ErrorInfo::new("the call was not made: the calling tool is ending")
}

fn written(answer: ToolAnswer) -> Result<tools::Answer, types::ErrorInfo> {
    match answer {
        Ok(ToolSuccess { text, structured, content }) => {
            let content = content.into_iter().map(Into::into).collect();
            Ok(tools::Answer { text, structured, content })
        }
        Err(error) => Err(error.into()),
    }
}

fn info(tool: CallableTool) -> tools::ToolInfo {
    let CallableTool { alias, description, input_schema, output_schema } = tool;
    tools::ToolInfo { alias, description, input_schema, output_schema }
}
