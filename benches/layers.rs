//! The cost that each layer adds to a warm call: wasmtime alone, kitbag's host with all its
//! protections, and the toolbox, which checks arguments against a schema.
//!
//! `cargo bench --bench layers` calls a tool that answers with its arguments, on each layer in
//! turn, and prints the median of each and its ratio to wasmtime alone. Compare the ratio; absolute
//! times depend on the machine.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kitbag::contract::{Action, Limits};
use kitbag::host::{Call, ComponentSource, RunContext};
use kitbag::{Kitbag, Outcome};
use kitbag_contract::bindings::{RunParameters, RunResult, types};
use serde_json::json;
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{Config, Enabled, Engine, PoolingAllocationConfig, Store};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};

use crate::support::workspace::{Workspace, guest, local_tool};
use crate::support::{call as call_toolbox, median, time};

const ROUNDS: usize = 60;

fn main() {
    let workspace = Workspace::new(&local_tool("echo"));
    let echo = guest("echo");
    let alone = Alone::new(&echo);
    let builder = Kitbag::builder()
        .workspace(workspace.root())
        .places(workspace.places())
        .trust_workspace(true);
    let kitbag = builder.build().unwrap();
    let host = kitbag.toolbox().host();
    let context = RunContext::default();
    let component =
        host.component(&ComponentSource::File(echo.into()), &Limits::default(), &context).unwrap();

    println!("{:14} {:>16} {:>22} {:>22}", "echo of", "wasmtime alone", "host", "toolbox");
    for (bytes, calls) in [(100, 500), (10_000, 200), (100_000, 50), (1_000_000, 20)] {
        let arguments = json!({ "text": "x".repeat(bytes) });
        let call = Call {
            name: "echo".into(),
            function: None,
            action: Action::Run,
            arguments: arguments.to_string(),
            answers: "{}".into(),
            grants: Arc::default(),
            guard: Arc::default(),
            secrets: Default::default(),
            storage: None,
            tools: None,
            limits: Limits::default(),
        };
        let mut times: [Vec<Duration>; 3] = Default::default();
        for _ in 0..ROUNDS {
            times[0].push(each(calls, || alone.call(&call.arguments)));
            times[1].push(each(calls, || {
                let completion = host.call_blocking(&component, &call, &context);
                assert!(matches!(completion.result, Ok(Outcome::Success(_))), "{completion:?}");
            }));
            // Created beforehand, since the caller provides them.
            let mut arguments = vec![arguments.clone(); calls].into_iter();
            times[2].push(each(calls, || {
                call_toolbox(&kitbag, "echo", arguments.next().unwrap());
            }));
        }
        let [alone, host, toolbox] = times.map(|mut times| median(&mut times));
        let ratio = |time: Duration| {
            format!("{time:.1?} = {:.2} x", time.as_secs_f64() / alone.as_secs_f64())
        };
        let alone = format!("{alone:.1?}");
        println!("{bytes:>12} B {alone:>16} {:>22} {:>22}", ratio(host), ratio(toolbox));
    }
}

/// Returns the time of one of this many calls.
fn each(calls: usize, call: impl FnMut()) -> Duration {
    time(|| std::iter::repeat_with(call).take(calls).for_each(drop)) / calls as u32
}

/// A call in wasmtime alone: a store, a WASI context without any rights, and an instance from a
/// pool that is configured like kitbag's. No deadline, cancellation or limits.
struct Alone(InstancePre<State>);

struct State(WasiCtx, ResourceTable);

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.0, table: &mut self.1 }
    }
}

impl Alone {
    fn new(component: &Path) -> Self {
        let mut pool = PoolingAllocationConfig::new();
        pool.linear_memory_keep_resident(4 << 20)
            .table_keep_resident(1 << 16)
            .total_memories(100)
            .pagemap_scan(Enabled::Auto);
        let mut config = Config::new();
        config.allocation_strategy(pool).concurrency_support(false);
        let engine = Engine::new(&config).unwrap();
        let component = Component::from_file(&engine, component).unwrap();
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker).unwrap();
        Self(linker.instantiate_pre(&component).unwrap())
    }

    fn call(&self, arguments: &str) {
        let state = State(WasiCtx::builder().build(), ResourceTable::new());
        let mut store = Store::new(self.0.engine(), state);
        let instance = self.0.instantiate(&mut store).unwrap();
        let run = instance.get_typed_func::<RunParameters<'_>, RunResult>(&mut store, "run");
        let context = types::Context { root: "/".into(), action: types::Action::Run };
        let parameters = (context, "echo", arguments, "{}");
        let (outcome,) = run.unwrap().call(&mut store, parameters).unwrap();
        assert!(matches!(outcome, types::Outcome::Success(_)));
    }
}
