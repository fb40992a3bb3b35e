//! One call: a fresh store and a fresh instance, and nothing of either that survives.

pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod guest_exit;
pub(crate) mod native;
pub(crate) mod random;
pub(crate) mod refusals;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod state;
pub(crate) mod truncate;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kitbag_base::json::JsonBudget;
use kitbag_base::{ARGUMENTS_BYTES, ByteSize};
use kitbag_contract::bindings::{RunParameters, RunResult};
use kitbag_contract::{Action, Content, Context, ErrorInfo, LimitKind, Limits, LogLevel, Outcome};
use kitbag_engine::{DescribeResult, INSTANCE_BYTES, Metering};
use kitbag_fs_guard::Guard;
use kitbag_http::{Account, Client, FailedConnection, RequestRecord};
use kitbag_policy::Grants;
use kitbag_secrets::Secrets;
use tokio::sync::SemaphorePermit;
use wasmtime::component::{ComponentExportIndex, InstancePre};
use wasmtime::{Engine, Store, UpdateDeadline};

use crate::call::capture::CapturedOutput;
use crate::call::context::RunContext;
use crate::call::guest_exit::GuestExit;
use crate::call::refusals::{Refusals, RefusedAccess, RefusedKind};
use crate::call::report::{Emitted, Reports};
use crate::call::state::{State, Stdio};
use crate::call::truncate::truncate_outcome;
use crate::component::Component;
use crate::component::imports;
use crate::component::support::SUPPORT;
use crate::description::NotNow;
use crate::error::CallError;
use crate::grants::filesystem::FileActivity;
use crate::grants::{GrantContext, HeldSecrets, TOOLS_BYTES, ToolCalls, ToolStorage};
use crate::limits::{HANDLES, exceeded, host_data};
use crate::schedule::budget::{MemoryBudget, Reservation};
use crate::schedule::threads::give_way;
use crate::schedule::timer::{Cancellation, Timer};

/// How long a component may take to describe itself, which is to answer with a
/// constant.
const DESCRIBE_TIME: Duration = Duration::from_secs(2);

/// What is asked of a component, and what it holds meanwhile.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name under which the tool was called.
    pub name: String,
    /// What is asked for. With [`Action::FormatArguments`] the grants are not
    /// given.
    pub action: Action,
    /// A JSON object that fits the tool's input schema.
    pub arguments: String,
    /// A JSON object with the answers so far, by question.
    pub answers: String,
    /// What the tool may reach.
    pub grants: Arc<Grants>,
    /// What it does not change, whatever it was granted.
    pub guard: Arc<Guard>,
    /// Where the values of its secrets come from.
    pub secrets: Arc<Secrets>,
    /// Where it keeps something between calls, if it is granted that. `None`: nowhere.
    pub storage: Option<ToolStorage>,
    /// What the call may use up.
    pub limits: Limits,
    /// What it needs in order to call other tools. `None`: it calls none.
    pub tools: Option<ToolCalls>,
}

/// How a call ended and what it took.
#[derive(Debug)]
pub struct Completion {
    /// What the tool answered, or why it did not.
    pub result: Result<Outcome, CallError>,
    /// What the tool gave besides its text, in its order: all of it together is
    /// within the output limit. Empty where the tool did not answer with success
    /// or an error. Untrusted.
    pub emitted: Vec<Content>,
    /// What the tool printed to its standard output. Untrusted.
    pub stdout: CapturedOutput,
    /// What the tool printed to its standard error. Untrusted.
    pub stderr: CapturedOutput,
    /// Files, requests over HTTP and uses of storage that the tool was refused, with what would
    /// allow them: at most five of each kind.
    pub refused: Vec<RefusedAccess>,
    /// The connections for its requests that could not be made, at most five of them.
    pub failed_connections: Vec<FailedConnection>,
    /// What became of its requests over HTTP, of a hundred at most.
    pub requests: Vec<RequestRecord>,
    /// How many more of these there were.
    pub more_requests: u64,
    /// All that the tool was refused, as the audit log has it.
    pub refusals: Refusals,
    /// The files and directories that the tool touched.
    pub touched: FileActivity,
    /// Whether the tool looked for directories and was granted none.
    pub misses_directories: bool,
    /// Whether the tool called another one that no grant lets it call.
    pub misses_tools: bool,
    /// Whether the tool tried to use a socket, which no grant gives.
    pub tried_sockets: bool,
    /// What the call took.
    pub usage: Usage,
}

/// What a call took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// From the start of the call to its end.
    pub elapsed: Duration,
    /// The linear memory of all its instances at the end.
    pub memory: ByteSize,
    /// The size of the answer before it was cut, in bytes.
    pub output_bytes: u64,
    /// The size of what it wanted to give besides, taken or refused, in bytes.
    pub emitted_bytes: u64,
    /// The instructions it ran, where [`Limits::fuel`] has them counted: the
    /// same for the same input on any machine, as far as the tool asks neither
    /// the clock nor for random bytes.
    pub fuel: Option<u64>,
}

/// Runs one call on the thread that polls it.
///
/// # Errors
///
/// Where the guest was not reached. How it ended otherwise is in the completion.
pub(crate) async fn run(
    timer: &Timer,
    component: &Component,
    call: &Call,
    context: &RunContext,
    memory: &MemoryBudget,
    client: &Client,
) -> Result<Completion, CallError> {
    let tools = match &call.tools {
        Some(_) => TOOLS_BYTES.as_u64() + INNER_BYTES.as_u64(),
        None => 0,
    };
    let besides = ByteSize::bytes(component.host_bytes().as_u64() + tools);
    let account = &context.account_of(&call.name);
    let _memory = reserve(memory, account, &call.limits, besides, context).await?;
    let start = Instant::now();
    if call.arguments.len().max(call.answers.len()) > ARGUMENTS_BYTES {
        return Err(exceeded(LimitKind::Arguments, &call.limits));
    }
    let none = Arc::default();
    let (grants, reports) = match call.action {
        Action::Run => (&call.grants, Reports::new(context.events.clone(), call.limits.output)),
        // Rendering a call reports nothing.
        Action::FormatArguments => (&none, Reports::default()),
    };
    let stdio = Stdio::default();
    let (tool, guard, secrets) = (&*call.name, &call.guard, &call.secrets);
    let (storage, tools) = (call.storage.as_ref(), call.tools.as_ref());
    let tools = tools.filter(|_| call.action == Action::Run);
    let granting = GrantContext { tool, account, grants, guard, client, secrets, storage, tools };
    let limits = Limits { time: context.time(call.limits.time), ..call.limits };
    let state = State::new(granting, &limits, &stdio, reports)?;
    let seen = Context { root: grants.root().to_owned(), action: call.action };
    let parameters = (seen.into(), &*call.name, &*call.arguments, &*call.answers);
    let guest = async |store: &mut Store<State>| {
        let instance = component.instance().instantiate_async(&mut *store).await?;
        let run = instance
            .get_typed_func::<RunParameters<'_>, RunResult>(&mut *store, component.run())?;
        Ok(run.call_async(&mut *store, parameters).await?.0)
    };
    context.events.started();
    let ended =
        run_guest(timer, component.engine(), state, &limits, &context.cancellation, guest).await?;
    let mut usage = Usage {
        memory: ended.memory,
        emitted_bytes: ended.emitted.total_bytes,
        fuel: ended.fuel,
        ..Usage::default()
    };
    let stderr = ended.secrets.mask_printed(stdio.err.captured());
    let warnings = ended.request_warnings;
    let result = match ended.result {
        Ok(outcome) => {
            Outcome::try_from(outcome).map_err(CallError::Contract).map(|mut outcome| {
                if let Outcome::Error(error) = &mut outcome {
                    name_limit(error, ended.refused, &call.limits);
                }
                // Before it is cut, so that no value is cut in two.
                ended.secrets.mask_outcome(&mut outcome);
                let (outcome, output_bytes) =
                    truncate_outcome(outcome, call.limits.output.as_usize());
                usage.output_bytes = output_bytes;
                outcome
            })
        }
        Err(exit) => Err(exit.into_error(ended.refused, &call.limits, &stderr)),
    };
    for warning in warnings {
        context.events.log(LogLevel::Warning, &warning);
    }
    usage.elapsed = start.elapsed();
    // It goes with an answer: there is none yet where the tool asks, and none at
    // all where it broke off.
    let emitted = match result {
        Ok(Outcome::Success(_) | Outcome::Error(_)) => ended.emitted.items,
        Ok(Outcome::NeedsInput(_)) | Err(_) => Vec::new(),
    };
    let stdout = ended.secrets.mask_printed(stdio.out.captured());
    Ok(Completion {
        result,
        emitted,
        stdout,
        stderr,
        refused: ended.refused_accesses,
        failed_connections: ended.failed_connections,
        requests: ended.requests.0,
        more_requests: ended.requests.1,
        refusals: ended.refusals,
        touched: ended.touched,
        misses_directories: ended.misses_directories,
        misses_tools: ended.misses_tools,
        tried_sockets: ended.tried_sockets,
        usage,
    })
}

/// Adds the limit to the error of a guest that was refused memory, or a write to a file, and
/// answered with an error of its own: it does not know the limit.
fn name_limit(error: &mut ErrorInfo, refused: Option<LimitKind>, limits: &Limits) {
    let (kind, about): (_, &[&str]) = match refused {
        Some(LimitKind::Memory) => (LimitKind::Memory, &["memory", "alloc"]),
        Some(LimitKind::Written) => (LimitKind::Written, &["writ", "disk", "space", "i/o"]),
        _ => return,
    };
    let words = error.message.to_lowercase();
    if about.iter().any(|word| words.contains(word)) {
        error.message.push_str("; ");
        error.message.push_str(&exceeded(kind, limits).to_string());
    }
}

/// Asks a component what it says of itself. It holds no grants meanwhile.
pub(crate) async fn describe(
    timer: &Timer,
    metering: Metering,
    instance: &InstancePre<State>,
    export: &ComponentExportIndex,
    memory: &MemoryBudget,
) -> Result<DescribeResult, NotNow> {
    // A text in UTF-16 has two bytes for each that is counted later.
    const HOST_DATA: usize = 2 * JsonBudget::DESCRIPTION.bytes;
    let fuel = match metering {
        Metering::Off => None,
        Metering::Fuel => Some(u64::MAX),
    };
    let limits = Limits { time: DESCRIBE_TIME, fuel, ..Limits::default() };
    let stdio = Stdio::default();
    let (grants, guard) = (&Arc::default(), &Arc::default());
    let (client, secrets) = (&Client::default(), &Arc::default());
    let (storage, tools) = (None, None);
    let account = &Account::of_tool(DESCRIBING);
    let granting =
        GrantContext { tool: "", account, grants, guard, client, secrets, storage, tools };
    let state = State::new(granting, &limits, &stdio, Reports::default());
    let state = state.map_err(|error| NotNow(error.to_string()))?;
    let is_instantiated = Cell::new(false);
    let besides = imports::host_bytes(instance.engine(), &instance.component().component_type());
    let (engine, context) = (instance.engine(), RunContext::default());
    let reserved = reserve(memory, account, &limits, besides, &context).await;
    let _memory = reserved.map_err(|error| NotNow(error.to_string()))?;
    let ended = run_guest(timer, engine, state, &limits, &context.cancellation, async |store| {
        store.set_hostcall_fuel(HOST_DATA);
        let instance = instance.instantiate_async(&mut *store).await?;
        is_instantiated.set(true);
        let describe = instance.get_typed_func::<(), (String,)>(&mut *store, export)?;
        Ok(describe.call_async(&mut *store, ()).await?.0)
    });
    let ended = ended.await.map_err(|error| NotNow(error.to_string()))?;
    match ended.result {
        Ok(text) => Ok(DescribeResult::read(text.as_bytes(), &SUPPORT)),
        Err(GuestExit::Stopped(_)) => Err(NotNow("it did not answer in time".into())),
        Err(exit) => {
            // Such as too little address space for its memory.
            let has_room = is_instantiated.get() || exit.is_of_guest() || ended.refused.is_some();
            let error = exit.into_error(ended.refused, &limits, &stdio.err.captured());
            match error {
                CallError::Limit { kind: LimitKind::HostData, .. } => {
                    let limit = ByteSize::bytes(JsonBudget::DESCRIPTION.bytes as u64);
                    Ok(DescribeResult::Unusable(format!("it has more than the limit of {limit}")))
                }
                CallError::Limit { .. } => Ok(DescribeResult::Unusable(error.to_string())),
                error if has_room => Ok(DescribeResult::Unusable(error.to_string())),
                error => Err(NotNow(error.to_string())),
            }
        }
    }
}

impl Completion {
    /// A call that was answered for the tool, without running it.
    pub fn answered(outcome: Outcome) -> Self {
        Self::unrun(Ok(outcome))
    }

    /// A call that ended before the guest ran.
    pub(crate) fn failed(error: CallError) -> Self {
        Self::unrun(Err(error))
    }

    fn unrun(result: Result<Outcome, CallError>) -> Self {
        Self {
            result,
            emitted: Vec::new(),
            stdout: CapturedOutput::default(),
            stderr: CapturedOutput::default(),
            refused: Vec::new(),
            failed_connections: Vec::new(),
            requests: Vec::new(),
            more_requests: 0,
            refusals: Refusals::default(),
            touched: FileActivity::default(),
            misses_directories: false,
            misses_tools: false,
            tried_sockets: false,
            usage: Usage::default(),
        }
    }
}

/// How long a call waits for memory that others have reserved.
const MEMORY_TIME: Duration = Duration::from_secs(60);

/// The tool that is charged for components that describe themselves.
const DESCRIBING: &str = "";

/// What a call that calls others reserves for one of them, so that calls which hold memory
/// never wait for each other's.
const INNER_BYTES: ByteSize = ByteSize::mib(128);

/// Memory that is held for one call, in either way.
enum CallMemory<'a> {
    Reserved {
        _reservation: Reservation,
    },
    /// What the outermost call has reserved for one inside it.
    OfOuter {
        _permit: SemaphorePermit<'a>,
    },
}

/// Reserves the memory that a call may take, before its time begins: that of the guest,
/// of its instances, of the copy of what it hands over, and what the interfaces that its
/// component imports take besides.
async fn reserve<'a>(
    memory: &MemoryBudget,
    account: &Account,
    limits: &Limits,
    besides: ByteSize,
    context: &'a RunContext,
) -> Result<CallMemory<'a>, CallError> {
    let besides = host_data(limits).as_u64() + INSTANCE_BYTES.as_u64() + besides.as_u64();
    let bytes = limits.memory.as_u64().saturating_add(besides);
    if let Some(reservation) = memory.reserve_for(account, bytes) {
        return Ok(CallMemory::Reserved { _reservation: reservation });
    }
    let of_outer = async {
        match &context.inner_memory {
            Some(inner) if bytes <= INNER_BYTES.as_u64() => inner.acquire().await.ok(),
            Some(_) | None => None,
        }
    };
    tokio::select! {
        biased;
        () = context.cancellation.cancelled() => Err(CallError::Cancelled),
        Some(permit) = of_outer => Ok(CallMemory::OfOuter { _permit: permit }),
        waited = tokio::time::timeout(MEMORY_TIME, memory.wait_for(account, bytes)) => match waited {
            Ok(Some(reservation)) => Ok(CallMemory::Reserved { _reservation: reservation }),
            Ok(None) => Err(CallError::BeyondMemory {
                needed: ByteSize::bytes(bytes),
                memory: memory.size().unwrap_or_default(),
            }),
            Err(_) => Err(CallError::MemoryBusy { retry_after: MEMORY_TIME }),
        },
    }
}

struct GuestRun<T> {
    result: Result<T, GuestExit>,
    memory: ByteSize,
    fuel: Option<u64>,
    /// The limit that the guest met last, whatever came of it.
    refused: Option<LimitKind>,
    emitted: Emitted,
    refused_accesses: Vec<RefusedAccess>,
    failed_connections: Vec<FailedConnection>,
    requests: (Vec<RequestRecord>, u64),
    refusals: Refusals,
    touched: FileActivity,
    request_warnings: Vec<String>,
    secrets: HeldSecrets,
    misses_directories: bool,
    misses_tools: bool,
    tried_sockets: bool,
}

/// Runs a guest until it returns, breaks off, or has to end.
async fn run_guest<T>(
    timer: &Timer,
    engine: &Engine,
    state: State,
    limits: &Limits,
    cancellation: &Cancellation,
    guest: impl AsyncFnOnce(&mut Store<State>) -> wasmtime::Result<T>,
) -> Result<GuestRun<T>, CallError> {
    let watched =
        timer.watch(Some(engine), limits.time, cancellation).map_err(CallError::internal)?;
    let watch = watched.watch();
    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_hostcall_fuel(host_data(limits).as_usize());
    store.set_max_component_handles(HANDLES);
    if let Some(fuel) = limits.fuel {
        store.set_fuel(fuel).map_err(CallError::internal)?;
    }
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback({
        let watch = watch.clone();
        move |_| {
            Ok(if watch.reason().is_some() {
                UpdateDeadline::Interrupt
            } else {
                // It is bumped for another call, or for one that waits for a processor.
                give_way();
                UpdateDeadline::Continue(1)
            })
        }
    });
    let result = tokio::select! {
        biased;
        // A guest that waits in a host call, a sleep or a stream, runs no
        // code that could look at the epoch.
        reason = watch.ended() => Err(GuestExit::Stopped(reason)),
        result = guest(&mut store) => result.map_err(|error| match watch.reason() {
            Some(reason) => GuestExit::Stopped(reason),
            None => GuestExit::Failed(error),
        }),
    };
    let limiter = &store.data().limiter;
    let memory = ByteSize::bytes(limiter.memory_used() as u64);
    let refused = limiter.refused().or(store.data().quota.refused());
    let fuel = limits.fuel.map(|fuel| fuel.saturating_sub(store.get_fuel().unwrap_or(0)));
    let misses_tools = store.data().refused_calls.has(RefusedKind::Tool);
    let tried_sockets = store.data().tried_sockets;
    let emitted = store.data_mut().reports.take_emitted();
    let granted = store.data_mut().granted();
    let files = granted.directories.take_refused().into_iter().map(RefusedAccess::File);
    let misses_directories = granted.directories.is_missed();
    let http = granted.http.take_refused().into_iter().map(RefusedAccess::Request);
    let failed_connections = granted.http.take_unconnected();
    let requests = granted.http.records();
    let request_warnings = granted.http.take_warnings();
    let storage = granted.take_refused_storage().into_iter().map(RefusedAccess::Storage);
    let refused_accesses = files.chain(http).chain(storage).collect();
    let mut refusals = granted.take_refusals();
    let touched = granted.directories.take_touched();
    let secrets = granted.secrets.clone();
    refusals.append(std::mem::take(&mut store.data_mut().refused_calls));
    refusals.kept.iter_mut().for_each(|refusal| secrets.mask(&mut refusal.target));
    Ok(GuestRun {
        result,
        memory,
        fuel,
        refused,
        emitted,
        refused_accesses,
        failed_connections,
        requests,
        refusals,
        touched,
        request_warnings,
        secrets,
        misses_directories,
        misses_tools,
        tried_sockets,
    })
}
