//! Snapshots of components, as the build script makes them.

#[path = "../../crates/kitbag/build/snapshot.rs"]
mod initialised;

use kitbag_engine::{Metering, config};
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

use self::initialised::snapshot;

/// A component whose initialisation counts its runs and stores what an import returns.
fn component(interface: &str, function: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
            (import "{interface}@0.2.6" (instance $system
                (export "{function}" (func (result u64)))))
            (core func $ask (canon lower (func $system "{function}")))
            (core module $module
                (import "" "ask" (func $ask (result i64)))
                (memory 1)
                (func (export "initialize")
                    (i64.store (i32.const 8) (i64.add (i64.load (i32.const 8)) (i64.const 1)))
                    (i64.store (i32.const 16) (call $ask)))
                (func (export "runs") (result i64) (i64.load (i32.const 8)))
                (func (export "answer") (result i64) (i64.load (i32.const 16))))
            (core instance $instance (instantiate $module
                (with "" (instance (export "ask" (func $ask))))))
            (func (export "initialize") (canon lift (core func $instance "initialize")))
            (func (export "runs") (result u64) (canon lift (core func $instance "runs")))
            (func (export "answer") (result u64) (canon lift (core func $instance "answer"))))"#
    );
    wat::parse_str(text).unwrap()
}

/// Calls the functions of a new instance in which nothing else runs.
fn read(component: &[u8], names: [&str; 2]) -> [u64; 2] {
    let mut settings = config(Metering::Off);
    let engine = Engine::new(settings.enable_compiler(true)).unwrap();
    let component = Component::new(&engine, component).unwrap();
    let mut linker = Linker::new(&engine);
    linker.define_unknown_imports_as_traps(&component).unwrap();
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(1);
    let instance = linker.instantiate(&mut store, &component).unwrap();
    names.map(|name| {
        let function = instance.get_typed_func::<(), (u64,)>(&mut store, name).unwrap();
        function.call(&mut store, ()).unwrap().0
    })
}

#[test]
fn a_snapshot_starts_after_its_initialisation() {
    let random = component("wasi:random/random", "get-random-u64");
    let clock = component("wasi:clocks/monotonic-clock", "now");
    assert_eq!(read(&snapshot(&clock).unwrap(), ["runs", "answer"]), [1, 0]);
    let [runs, first] = read(&snapshot(&random).unwrap(), ["runs", "answer"]);
    assert_eq!(runs, 1);
    // A constant, not a random number.
    assert_eq!(first, 0x5DEE_CE66_D1CE_4E5B);
    assert_eq!(snapshot(&random).unwrap(), snapshot(&random).unwrap());
}

#[test]
fn an_initialisation_cannot_read_the_build_machine() {
    let clock = component("wasi:clocks/monotonic-clock", "subscribe");
    let error = format!("{:#}", snapshot(&clock).unwrap_err());
    let expected =
        "`wasi:clocks/monotonic-clock.subscribe` is not available while a component is initialised";
    assert!(error.contains(expected), "{error}");
}
