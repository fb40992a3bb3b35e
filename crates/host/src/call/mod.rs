//! One call: a fresh store and a fresh instance, both discarded at the end.

pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod guest_exit;
pub(crate) mod input;
pub(crate) mod native;
pub(crate) mod random;
pub(crate) mod refusals;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod state;
pub(crate) mod truncate;

use std::sync::Arc;
use std::time::{Duration, Instant};

use kitbag_base::json::JsonBudget;
use kitbag_base::{ARGUMENTS_BYTES, ByteSize};
use kitbag_contract::{Action, Content, Context, ErrorInfo, LimitKind, Limits, LogLevel, Outcome};
use kitbag_engine::{DescribeResult, INSTANCE_BYTES, Metering};
use kitbag_fs_guard::Guard;
use kitbag_http::{Account, Client, FailedConnection, RequestRecord};
use kitbag_policy::Grants;
use kitbag_secrets::Secrets;
use tokio::sync::SemaphorePermit;
use wasmtime::component::InstancePre;
use wasmtime::{Engine, Store, UpdateDeadline};

use crate::call::capture::CapturedOutput;
use crate::call::context::RunContext;
use crate::call::guest_exit::GuestExit;
use crate::call::refusals::{LOOKUP, Refusals, RefusedAccess};
use crate::call::report::{Emitted, Reports};
use crate::call::state::{State, Stdio};
use crate::call::truncate::truncate_outcome;
use crate::component::Component;
use crate::component::imports;
use crate::description::NotNow;
use crate::error::CallError;
use crate::grants::filesystem::FileActivity;
use crate::grants::{GrantContext, HeldSecrets, TOOLS_BYTES, ToolCalls, ToolStorage};
use crate::lanes::{Entry, Parameters};
use crate::limits::{HANDLES, exceeded, host_data};
use crate::schedule::budget::{MemoryBudget, Reservation};
use crate::schedule::threads::give_way;
use crate::schedule::timer::{Cancellation, Timer};

/// Time limit for a component to describe itself, which it does by returning a constant.
const DESCRIBE_TIME: Duration = Duration::from_secs(2);

/// One call of a component and the resources that it holds.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name under which the tool was called.
    pub name: String,
    /// The component's own name of the tool. `None`: the name under which it was called.
    pub function: Option<String>,
    /// The requested action. Grants are withheld for [`Action::FormatArguments`].
    pub action: Action,
    /// A JSON object that matches the tool's input schema.
    pub arguments: String,
    /// A JSON object with the answers received, keyed by question.
    pub answers: String,
    /// The tool's grants.
    pub grants: Arc<Grants>,
    /// Files that the tool must not change, regardless of its grants.
    pub guard: Arc<Guard>,
    /// Source of the values of the tool's secrets.
    pub secrets: Arc<Secrets>,
    /// Storage that persists between calls, if granted.
    pub storage: Option<ToolStorage>,
    /// Limits on the resources of the call.
    pub limits: Limits,
    /// Access to other tools. `None` if the tool may not call any.
    pub tools: Option<ToolCalls>,
}

/// Number of names that [`Completion::sought_tools`] keeps.
pub const SOUGHT_TOOLS: usize = 5;

/// The outcome of a call, with its output and usage.
#[derive(Debug)]
pub struct Completion {
    /// The tool's outcome, or why there is none.
    pub result: Result<Outcome, CallError>,
    /// Content that the tool emitted in addition to its text, in order; its total size is within
    /// the output limit. Empty unless the outcome is a success or an error. Untrusted.
    pub emitted: Vec<Content>,
    /// The tool's standard output. Untrusted.
    pub stdout: CapturedOutput,
    /// The tool's standard error. Untrusted.
    pub stderr: CapturedOutput,
    /// Refused accesses to files, HTTP and storage, with the grants that would allow them: at most
    /// five of each kind.
    pub refused: Vec<RefusedAccess>,
    /// Failed connections of HTTP requests, at most five.
    pub failed_connections: Vec<FailedConnection>,
    /// Records of HTTP requests, at most a hundred.
    pub requests: Vec<RequestRecord>,
    /// Number of further requests without a record.
    pub more_requests: u64,
    /// All refusals, as written to the audit log.
    pub refusals: Refusals,
    /// Files and directories that the tool touched.
    pub touched: FileActivity,
    /// True if the tool looked for directories and was granted none.
    pub misses_directories: bool,
    /// True if the tool called another tool without a grant.
    pub misses_tools: bool,
    /// Names of tools that the tool looked up and did not find, at most five. Untrusted.
    pub sought_tools: Vec<String>,
    /// True if the tool tried to use a socket, which no grant allows.
    pub tried_sockets: bool,
    /// Resources that the call used.
    pub usage: Usage,
}

/// Resources that a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time from the start of the call to its end.
    pub elapsed: Duration,
    /// Linear memory of all instances at the end.
    pub memory: ByteSize,
    /// Size of the answer before truncation, in bytes.
    pub output_bytes: u64,
    /// Size of the emitted content, accepted or refused, in bytes.
    pub emitted_bytes: u64,
    /// Number of instructions executed, if [`Limits::fuel`] enables counting. The same input gives
    /// the same number on any machine, unless the tool reads the clock or random bytes.
    pub fuel: Option<u64>,
}

/// Runs one call on the thread that polls it.
///
/// # Errors
///
/// Returns an error if the guest was not reached. Any later failure is in the completion.
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
    let of_lane = component.entry().host_bytes(&call.limits).as_u64();
    let besides = ByteSize::bytes(component.host_bytes().as_u64() + of_lane + tools);
    let account = &context.account_of(&call.name);
    let _memory = reserve(memory, account, &call.limits, besides, context).await?;
    let start = Instant::now();
    if call.arguments.len().max(call.answers.len()) > ARGUMENTS_BYTES {
        return Err(exceeded(LimitKind::Arguments, &call.limits));
    }
    let none = Arc::default();
    let (grants, reports) = match call.action {
        Action::Run => (&call.grants, Reports::new(context.events.clone(), call.limits.output)),
        // Formatting the arguments of a call reports nothing.
        Action::FormatArguments => (&none, Reports::default()),
    };
    let stdio = Stdio::new(component.entry().output_bytes(&call.limits));
    let (tool, guard, secrets) = (&*call.name, &call.guard, &call.secrets);
    let (storage, tools) = (call.storage.as_ref(), call.tools.as_ref());
    let tools = tools.filter(|_| call.action == Action::Run);
    let granting = GrantContext { tool, account, grants, guard, client, secrets, storage, tools };
    let limits = Limits { time: context.time(call.limits.time), ..call.limits };
    let state = State::new(granting, &limits, &stdio, reports)?;
    let parameters = Parameters {
        context: Context { root: grants.root().to_owned(), action: call.action },
        name: own_name(component, call),
        arguments: &call.arguments,
        answers: &call.answers,
        output: call.limits.output,
    };
    let guest = async |store: &mut Store<State>| {
        component.entry().run(store, component.instance(), &parameters).await
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
        Ok(mut outcome) => {
            if let Outcome::Error(error) = &mut outcome {
                name_limit(error, ended.refused, &call.limits);
            }
            // Masked before truncation, so that no value is cut in two.
            ended.secrets.mask_outcome(&mut outcome);
            let (outcome, output_bytes) = truncate_outcome(outcome, call.limits.output.as_usize());
            usage.output_bytes = output_bytes;
            Ok(outcome)
        }
        Err(exit) => Err(exit.into_error(ended.refused, &call.limits, &stderr)),
    };
    for warning in warnings {
        context.events.log(LogLevel::Warning, &warning);
    }
    usage.elapsed = start.elapsed();
    // Emitted content accompanies an answer: a question has none yet, and a failure has none at
    // all.
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
        sought_tools: ended.sought_tools,
        tried_sockets: ended.tried_sockets,
        usage,
    })
}

/// Returns the component's own name of the called tool. A component of another host with one tool
/// may be configured under any name.
fn own_name<'a>(component: &'a Component, call: &'a Call) -> &'a str {
    let tools = component.description().map_or(&[][..], |description| &description.tools);
    match (&call.function, tools) {
        (Some(function), _) => function,
        (None, [only]) if component.lane().is_foreign() && !only.name.is_empty() => &only.name,
        (None, _) => &call.name,
    }
}

/// Adds the limit to the error of a guest that was refused memory or a file write and then
/// returned an error of its own: the guest does not know the limit.
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

/// Asks a component for its description, without grants.
pub(crate) async fn describe(
    timer: &Timer,
    metering: Metering,
    entry: &Entry,
    instance: &InstancePre<State>,
    memory: &MemoryBudget,
) -> Result<DescribeResult, NotNow> {
    // A UTF-16 string takes two bytes for each byte counted later.
    const HOST_DATA: usize = 2 * JsonBudget::DESCRIPTION.bytes;
    let fuel = match metering {
        Metering::Off => None,
        Metering::Fuel => Some(u64::MAX),
    };
    let limits = Limits { time: DESCRIBE_TIME, fuel, ..Limits::default() };
    let stdio = Stdio::new(None);
    let (grants, guard) = (&Arc::default(), &Arc::default());
    let (client, secrets) = (&Client::default(), &Arc::default());
    let (storage, tools) = (None, None);
    let account = &Account::of_tool(DESCRIBING);
    let granting =
        GrantContext { tool: "", account, grants, guard, client, secrets, storage, tools };
    let state = State::new(granting, &limits, &stdio, Reports::default());
    let state = state.map_err(|error| NotNow(error.to_string()))?;
    let of_imports = imports::host_bytes(instance.engine(), &instance.component().component_type());
    let of_lane = entry.host_bytes(&limits);
    let besides = ByteSize::bytes(of_imports.as_u64() + of_lane.as_u64());
    let (engine, context) = (instance.engine(), RunContext::default());
    let reserved = reserve(memory, account, &limits, besides, &context).await;
    let _memory = reserved.map_err(|error| NotNow(error.to_string()))?;
    let ended = run_guest(timer, engine, state, &limits, &context.cancellation, async |store| {
        store.set_hostcall_fuel(HOST_DATA);
        entry.describe(store, instance).await
    });
    let ended = ended.await.map_err(|error| NotNow(error.to_string()))?;
    match ended.result {
        Ok(described) => Ok(described),
        Err(GuestExit::Stopped(_)) => Err(NotNow("it did not answer in time".into())),
        Err(exit) => {
            // The alternative is the host's fault, such as too little address space for the
            // memory.
            let has_room = ended.is_instantiated || exit.is_of_guest() || ended.refused.is_some();
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
    /// Creates the completion of a call that was answered for the tool, without running it.
    pub fn answered(outcome: Outcome) -> Self {
        Self::unrun(Ok(outcome))
    }

    /// Creates the completion of a call that ended before the guest ran.
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
            sought_tools: Vec::new(),
            tried_sockets: false,
            usage: Usage::default(),
        }
    }
}

/// How long a call waits for memory that other calls have reserved.
const MEMORY_TIME: Duration = Duration::from_secs(60);

/// The account's tool name for components that describe themselves.
const DESCRIBING: &str = "";

/// Memory that a call with access to other tools reserves for one nested call, so that calls which
/// hold memory never wait for each other.
const INNER_BYTES: ByteSize = ByteSize::mib(128);

/// Memory held for one call.
enum CallMemory<'a> {
    Reserved {
        _reservation: Reservation,
    },
    /// Memory that the outermost call has reserved for a nested call.
    OfOuter {
        _permit: SemaphorePermit<'a>,
    },
}

/// Reserves the memory that a call may take, before its time begins: memory of the guest and its
/// instances, copies of its data in the host, and memory for the interfaces that its component
/// imports.
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
    /// The limit that the guest reached last, even if the guest recovered.
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
    sought_tools: Vec<String>,
    tried_sockets: bool,
    is_instantiated: bool,
}

/// Runs a guest until it returns, fails or has to end.
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
                // The epoch is also bumped for other calls, and to yield to a call that waits for
                // a processor.
                give_way();
                UpdateDeadline::Continue(1)
            })
        }
    });
    let result = tokio::select! {
        biased;
        // A guest that waits in a host call (a sleep or a stream) executes no code that could
        // check the epoch.
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
    let misses_tools = store.data().refused_calls.kept.iter().any(|it| it.reason != LOOKUP);
    let (tried_sockets, is_instantiated) =
        (store.data().tried_sockets, store.data().is_instantiated);
    let emitted = store.data_mut().reports.take_emitted();
    let granted = store.data_mut().granted();
    let refused_accesses = granted.take_refused();
    let misses_directories = granted.directories.is_missed();
    let failed_connections = granted.http.take_unconnected();
    let requests = granted.http.records();
    let request_warnings = granted.http.take_warnings();
    let mut refusals = granted.take_refusals();
    let touched = granted.directories.take_touched();
    let secrets = granted.secrets.clone();
    refusals.append(std::mem::take(&mut store.data_mut().refused_calls));
    refusals.kept.iter_mut().for_each(|refusal| secrets.mask(&mut refusal.target));
    let sought = refusals.kept.iter().filter(|refusal| refusal.reason == LOOKUP);
    let sought_tools = sought.map(|refusal| refusal.target.clone()).take(SOUGHT_TOOLS).collect();
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
        sought_tools,
        tried_sockets,
        is_instantiated,
    })
}
