//! Snapshots: components whose memory is already as their own initialisation leaves it.
//!
//! A guest with an expensive start exports [`INITIALIZE`]. It runs once, here, and the component
//! that is embedded has the resulting memory as its data.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use kitbag_engine::{Metering, config};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, Instance, Lift, Linker, Resource, ResourceAny, ResourceType, Val, WasmList,
};
use wasmtime::error::Context as _;
use wasmtime::{Engine, OptLevel, Result, Store, StoreContextMut, bail};
use wasmtime_wizer::{ComponentInstanceState, Wizer};

/// The function that prepares a guest. Its snapshot still exports it, and the host never calls it.
pub(crate) const INITIALIZE: &str = "initialize";

/// The number and the byte that replace random ones.
const RANDOM: (u64, u8) = (0x5DEE_CE66_D1CE_4E5B, 0x5B);

/// Runs [`INITIALIZE`] of a component and returns the component with the resulting memory.
///
/// The bytes depend on the component alone: imports that would describe this machine have fixed
/// answers (see [`answer`]), and all other imports end the initialisation.
///
/// # Errors
///
/// If the initialisation fails, with the text that the component wrote to its standard error.
pub(crate) fn snapshot(component: &[u8]) -> Result<Vec<u8>> {
    let mut wizer = Wizer::new();
    // Wizer would remove the function of the module and not that of the component.
    wizer.init_func(INITIALIZE).keep_init_func(true);
    let mut settings = config(Metering::Off);
    // The code runs for a second.
    settings.enable_compiler(true).cranelift_opt_level(OptLevel::None);
    let engine = Engine::new(&settings)?;
    let (context, instrumented) = wizer.instrument_component(component)?;
    let instrumented = Component::new(&engine, instrumented)?;
    let mut store = Store::new(&engine, Vec::new());
    store.set_epoch_deadline(u64::MAX / 2);
    let instance = linker(&engine, &instrumented)?.instantiate(&mut store, &instrumented)?;
    let initialize = instance.get_typed_func::<(), ()>(&mut store, INITIALIZE)?;
    let initialized = initialize.call(&mut store, ());
    let output = String::from_utf8_lossy(store.data()).into_owned();
    initialized.with_context(|| output.clone())?;
    if !output.is_empty() {
        // The component would keep the handle of the stream.
        bail!("the initialisation writes `{output}`");
    }
    let mut state = State { store, instance };
    let snapshot = pin!(wizer.snapshot_component(&context, &mut state));
    match snapshot.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(snapshot) => snapshot,
        Poll::Pending => bail!("the state of the component cannot be read"),
    }
}

/// Defines every import of a component.
fn linker(engine: &Engine, component: &Component) -> Result<Linker<Vec<u8>>> {
    let mut linker = Linker::new(engine);
    for (name, import) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(interface) = import.ty else { continue };
        let mut instance = linker.instance(name)?;
        let name = name.split_once('@').map_or(name, |(name, _version)| name);
        for (function, item) in interface.exports(engine) {
            let path = format!("{name}.{function}");
            match item.ty {
                ComponentItem::ComponentFunc(_) => {
                    instance.func_new(function, move |store, _, arguments, results| {
                        results[0] = answer(&path, store, arguments)?;
                        Ok(())
                    })?;
                }
                ComponentItem::Resource(_) => {
                    instance.resource(function, ResourceType::host::<()>(), |_, _| Ok(()))?;
                }
                _ => {}
            }
        }
    }
    Ok(linker)
}

/// Answers the component's call of an import. Nothing is granted or configured, it is the beginning
/// of 1970, and each random number is the same.
fn answer(path: &str, mut store: StoreContextMut<'_, Vec<u8>>, arguments: &[Val]) -> Result<Val> {
    let done = |value: Option<Val>| Val::Result(Ok(value.map(Box::new)));
    let (number, byte) = RANDOM;
    Ok(match (path, arguments) {
        (
            "wasi:cli/environment.get-environment"
            | "wasi:cli/environment.get-arguments"
            | "wasi:filesystem/preopens.get-directories",
            _,
        ) => Val::List(Vec::new()),
        (
            "wasi:cli/environment.initial-cwd"
            | "wasi:cli/terminal-stderr.get-terminal-stderr"
            | "wasi:cli/terminal-stdout.get-terminal-stdout",
            _,
        ) => Val::Option(None),
        ("wasi:clocks/monotonic-clock.now", _) => Val::U64(0),
        ("wasi:clocks/wall-clock.now", _) => Val::Record(vec![
            ("seconds".to_owned(), Val::U64(0)),
            ("nanoseconds".to_owned(), Val::U32(0)),
        ]),
        ("wasi:random/insecure-seed.insecure-seed", _) => {
            Val::Tuple(vec![Val::U64(number), Val::U64(number)])
        }
        ("wasi:random/random.get-random-u64", _) => Val::U64(number),
        ("wasi:random/random.get-random-bytes", [Val::U64(length)]) => {
            Val::List((0..*length).map(|_| Val::U8(byte)).collect())
        }
        ("wasi:cli/stderr.get-stderr" | "wasi:cli/stdout.get-stdout", _) => {
            let stream = Resource::<()>::new_own(0);
            Val::Resource(ResourceAny::try_from_resource(stream, store)?)
        }
        ("wasi:io/streams.[method]output-stream.check-write", _) => done(Some(Val::U64(4096))),
        (
            "wasi:io/streams.[method]output-stream.write"
            | "wasi:io/streams.[method]output-stream.blocking-write-and-flush",
            [_, Val::List(bytes)],
        ) => {
            let bytes = bytes.iter().filter_map(|byte| match byte {
                Val::U8(byte) => Some(*byte),
                _ => None,
            });
            store.data_mut().extend(bytes);
            done(None)
        }
        ("wasi:io/streams.[method]output-stream.blocking-flush", _) => done(None),
        _ => bail!("`{path}` is not available while a component is initialised"),
    })
}

/// An initialised component.
struct State {
    store: Store<Vec<u8>>,
    instance: Instance,
}

impl State {
    /// Calls a function that Wizer has added.
    fn call<R: Lift + Send + Sync + 'static>(&mut self, interface: &str, function: &str) -> R {
        let Self { store, instance } = self;
        let interface = instance.get_export_index(&mut *store, None, interface);
        let function = instance.get_export_index(&mut *store, interface.as_ref(), function);
        let function = function.expect("Wizer exports it");
        let function = instance.get_typed_func::<(), (R,)>(&mut *store, function);
        let function = function.expect("Wizer exports it with this type");
        function.call(store, ()).expect("it reads the state").0
    }
}

impl ComponentInstanceState for State {
    async fn call_func_ret_list_u8(
        &mut self,
        instance: &str,
        func: &str,
        contents: impl FnOnce(&[u8]) + Send,
    ) {
        let memory: WasmList<u8> = self.call(instance, func);
        contents(memory.as_le_slice(&self.store));
    }

    async fn call_func_ret_s32(&mut self, instance: &str, func: &str) -> i32 {
        self.call(instance, func)
    }

    async fn call_func_ret_s64(&mut self, instance: &str, func: &str) -> i64 {
        self.call(instance, func)
    }

    async fn call_func_ret_f32(&mut self, instance: &str, func: &str) -> u32 {
        self.call::<f32>(instance, func).to_bits()
    }

    async fn call_func_ret_f64(&mut self, instance: &str, func: &str) -> u64 {
        self.call::<f64>(instance, func).to_bits()
    }
}
