//! State of one call while its guest runs.

use std::sync::Arc;
use std::time::Instant;

use kitbag_contract::{Limits, STDIO_BYTES};
use wasmtime_wasi::cli::WasiCliCtxView;
use wasmtime_wasi::filesystem::WasiFilesystemCtxView;
use wasmtime_wasi::sockets::WasiSocketsCtxView;
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::WasiHttpCtxView;

use crate::call::capture::Capture;
use crate::call::input::{EnvironmentView, Input};
use crate::call::random::Bounded;
use crate::call::refusals::Refusals;
use crate::call::report::Reports;
use crate::error::CallError;
use crate::grants::filesystem::{FilesystemView, Quota};
use crate::grants::sockets::SocketsView;
use crate::grants::{GrantContext, HeldGrants, ToolCalls, ToolPort, ToolsView};
use crate::lanes;
use crate::limits::HANDLES;
use crate::schedule::limiter::Limiter;

pub(crate) struct State {
    wasi: WasiCtx,
    granted: HeldGrants,
    table: ResourceTable,
    pub(crate) limiter: Limiter,
    pub(crate) quota: Arc<Quota>,
    pub(crate) reports: Reports,
    /// `None` if the call has no grant for other tools.
    tools: Option<ToolPort>,
    /// Calls of other tools that were refused here for lack of a grant.
    pub(crate) refused_calls: Refusals,
    pub(crate) tried_sockets: bool,
    pub(crate) core: lanes::core::Output,
    pub(crate) plugin: lanes::plugin::Session,
    pub(crate) skill: lanes::skill::Session,
    /// The arguments of a command, its name first. Empty for other tools.
    pub(crate) arguments: Vec<String>,
    pub(crate) input: Input,
    pub(crate) stdio: Stdio,
    /// True once the component is instantiated.
    pub(crate) is_instantiated: bool,
}

/// The standard output and standard error of a guest.
#[derive(Clone)]
pub(crate) struct Stdio {
    pub(crate) out: Capture,
    pub(crate) err: Capture,
}

impl Stdio {
    /// Creates the streams. `output_bytes` are kept of standard output, by default as many as of
    /// standard error.
    pub(crate) fn new(output_bytes: Option<usize>) -> Self {
        let out = Capture::new(output_bytes.unwrap_or(STDIO_BYTES));
        Self { out, err: Capture::new(STDIO_BYTES) }
    }
}

impl State {
    pub(crate) fn new(
        granting: GrantContext<'_>,
        limits: &Limits,
        stdio: &Stdio,
        mut reports: Reports,
    ) -> Result<Self, CallError> {
        let mut wasi = WasiCtx::builder();
        let input = Input::default();
        // A call has its own thread, so its file operations may block it.
        wasi.allow_blocking_current_thread(true)
            .stdin(input.clone())
            .stdout(stdio.out.clone())
            .stderr(stdio.err.clone());
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES);
        let limiter = Limiter::new(limits.memory.as_usize());
        let until = Instant::now().checked_add(limits.time);
        let granted = HeldGrants::open(granting, limits, until, &mut wasi)?;
        reports.mask_with(&granted.secrets);
        if let Some(ToolCalls { replay, .. }) = granting.tools {
            replay.begin(&mut wasi);
            reports.go_on(replay);
        }
        let tools = granting.tools.map(|calls| calls.port.clone());
        let refused_calls = Refusals::default();
        let quota = Arc::new(Quota::new(limits.written));
        Ok(Self {
            wasi: wasi.build(),
            granted,
            table,
            limiter,
            quota,
            reports,
            tools,
            refused_calls,
            tried_sockets: false,
            core: lanes::core::Output::default(),
            plugin: lanes::plugin::Session::default(),
            skill: lanes::skill::Session::default(),
            arguments: Vec::new(),
            input,
            stdio: stdio.clone(),
            is_instantiated: false,
        })
    }

    pub(crate) fn granted(&mut self) -> &mut HeldGrants {
        &mut self.granted
    }

    /// Returns the grants, and the table of the guest's handles.
    #[cfg(feature = "storage")]
    pub(crate) fn granted_and_table(&mut self) -> (&mut HeldGrants, &mut ResourceTable) {
        (&mut self.granted, &mut self.table)
    }

    pub(crate) fn guarded(&mut self) -> FilesystemView<'_> {
        let wasi = WasiFilesystemCtxView { ctx: self.wasi.filesystem(), table: &mut self.table };
        FilesystemView { wasi, granted: &mut self.granted.directories, quota: &self.quota }
    }

    pub(crate) fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.granted.http.view(&mut self.table)
    }

    pub(crate) fn tools(&mut self) -> ToolsView<'_> {
        let Self { table, tools: port, refused_calls: refusals, .. } = self;
        ToolsView { table, port, refusals }
    }

    pub(crate) fn environment(&mut self) -> EnvironmentView<'_> {
        let wasi = WasiCliCtxView { ctx: self.wasi.cli(), table: &mut self.table };
        EnvironmentView { wasi, arguments: &self.arguments }
    }

    pub(crate) fn noted_sockets(&mut self) -> SocketsView<'_> {
        let wasi = WasiSocketsCtxView { ctx: self.wasi.sockets(), table: &mut self.table };
        SocketsView { wasi, tried: &mut self.tried_sockets }
    }

    /// Returns the sockets for an interface of WASI 0.3 whose functions all use a socket.
    pub(crate) fn used_sockets(&mut self) -> WasiSocketsCtxView<'_> {
        self.tried_sockets = true;
        WasiSocketsCtxView { ctx: self.wasi.sockets(), table: &mut self.table }
    }

    pub(crate) fn random(&mut self) -> Bounded<'_> {
        Bounded(self.wasi.random())
    }

    pub(crate) fn reporting(&mut self) -> &mut Reports {
        &mut self.reports
    }

    pub(crate) fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}
