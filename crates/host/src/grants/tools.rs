//! Calls of other tools: the interface `tools` of the contract.
//!
//! What a guest asks goes through a [`ToolPort`] to the code that awaits its call, which
//! decides and calls: this crate knows no other tool.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kitbag_base::ByteSize;
use kitbag_contract::bindings::{tools, types};
use kitbag_contract::{Content, ErrorInfo};
use tokio::sync::{mpsc, oneshot};
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::async_trait;
use wasmtime_wasi_io::poll::{DynPollable, Pollable, subscribe};

use crate::call::refusals::{Refusals, RefusedKind};
use crate::call::replay::Replay;

/// What a call needs in order to call other tools.
#[derive(Clone, Debug)]
pub struct ToolCalls {
    /// Where the calls go to.
    pub port: ToolPort,
    /// What each run of the call reads alike, so that it makes the same calls again.
    pub replay: Replay,
}

/// Where what one run asks of other tools goes to.
#[derive(Clone, Debug)]
pub struct ToolPort {
    sender: mpsc::UnboundedSender<NestedRequest>,
    /// The bytes of the answers that the guest has not taken.
    untaken: Arc<AtomicUsize>,
}

/// The most that the answers take which the guest has not taken.
const UNTAKEN_BYTES: usize = 16 << 20;

/// The memory that the host takes for what a call asks of other tools: answers that the
/// guest has not taken, those that are kept for its next run, and the arguments of calls that
/// wait, run or ask.
pub(crate) const TOOLS_BYTES: ByteSize = ByteSize::mib(40);

/// What a guest asks, in its order. What is dropped is answered with an error.
pub type NestedRequests = mpsc::UnboundedReceiver<NestedRequest>;

/// What a guest asks of other tools.
#[derive(Debug)]
pub enum NestedRequest {
    /// The tools that it can call.
    List {
        /// Takes them.
        reply: oneshot::Sender<Vec<CallableTool>>,
    },
    /// A tool that it can call.
    Find {
        /// The name that the guest has for the tool. Untrusted.
        alias: String,
        /// Takes it, if there is one.
        reply: oneshot::Sender<Option<CallableTool>>,
    },
    /// A call.
    Start {
        /// The name that the guest has for the tool. Untrusted.
        alias: String,
        /// What should be a JSON object. Untrusted.
        arguments: String,
        /// Takes the end of the call, or why it does not begin. It is closed where the
        /// guest no longer waits.
        reply: oneshot::Sender<ToolStart>,
    },
}

/// The end of a call that was started, which is to come, or why it was not started.
pub type ToolStart = Result<oneshot::Receiver<PendingAnswer>, ErrorInfo>;

/// An answer on its way to the guest, which counts until it is taken.
#[derive(Debug)]
pub struct PendingAnswer {
    answer: ToolAnswer,
    bytes: usize,
    untaken: Arc<AtomicUsize>,
}

/// The end of a call.
pub type ToolAnswer = Result<ToolSuccess, ErrorInfo>;

/// What a call that succeeded came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSuccess {
    /// The result as a model would read it.
    pub text: String,
    /// The result as the JSON of the tool's output schema.
    pub structured: Option<String>,
    /// What the tool gave besides.
    pub content: Vec<Content>,
}

/// A tool that a guest can call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallableTool {
    /// The name that the guest has for it.
    pub alias: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: String,
    /// The JSON Schema of its structured results.
    pub output_schema: Option<String>,
}

impl ToolPort {
    /// A port, and what comes through it.
    pub fn new() -> (Self, NestedRequests) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { sender, untaken: Arc::default() }, receiver)
    }

    /// Holds an answer for the guest; an error in its place where too much waits.
    pub fn hold(&self, mut answer: ToolAnswer) -> PendingAnswer {
        let mut bytes = answer.as_ref().map_or(0, ToolSuccess::size);
        if self.untaken.load(Ordering::Relaxed).saturating_add(bytes) > UNTAKEN_BYTES {
            answer = Err(ErrorInfo::new(format!(
                "the answers that wait to be taken would have more than {} MiB; finish the calls \
                 that were started before",
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
    /// How many bytes it has.
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
    /// `None` where there is no grant.
    pub(crate) port: &'a Option<ToolPort>,
    pub(crate) refusals: &'a mut Refusals,
}

impl HasData for ToolCalling {
    type Data<'a> = ToolsView<'a>;
}

enum Pending {
    Runs(oneshot::Receiver<PendingAnswer>),
    Ended(PendingAnswer),
    /// It was taken, or the calling tool ends.
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

/// The resource of the bindings, which is a `Pending` in the table.
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
                Err(ErrorInfo::new("the answer of this call was taken before").into())
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
            self.refusals.note(RefusedKind::Lookup, &alias, "grant");
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
                self.refusals.note(RefusedKind::Tool, &alias, "grant");
                Err(ErrorInfo::new("the tool is granted no other tools"))
            }
        }
    }
}

fn gone() -> ErrorInfo {
    ErrorInfo::new("the call was not made: the calling tool ends")
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
