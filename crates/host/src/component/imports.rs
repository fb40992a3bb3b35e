//! The interfaces that a component may import.
//!
//! One table has the name of each interface, its purpose and its link function. Each component
//! gets a linker with exactly the interfaces that it imports, so it can reach nothing else.

use kitbag_base::ByteSize;
use kitbag_contract::VERSION;
use kitbag_contract::bindings as contract;
use kitbag_policy::http::NO_NETWORK;
use wasmtime::Engine;
use wasmtime::component::Linker;
use wasmtime::component::types::{Component, ComponentItem};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, random, sockets};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView};
use wasmtime_wasi::{ResourceTable, WasiView};
use wasmtime_wasi_http::WasiHttp;
use wasmtime_wasi_http::p2::bindings::http;
use wasmtime_wasi_io::bindings::wasi::io;

use crate::call::random::BoundedRandom;
use crate::call::report::Reporting;
use crate::call::state::State;
use crate::grants::filesystem::GuardedFilesystem;
use crate::grants::sockets::RefusedSockets;
use crate::grants::{HTTP_BYTES, ToolCalling, add_handler_to_linker};
#[cfg(feature = "storage")]
use crate::grants::{STORAGE_BYTES, add_atomics, add_batch, add_store};

type Add = fn(&mut Linker<State>) -> wasmtime::Result<()>;

/// The contract's interface for reports of a tool.
const REPORTS: &str = "kitbag:tool/host";

/// The contract's interface for calling other tools.
const TOOLS: &str = "kitbag:tool/tools";

/// The interface for configuration values. It has not been released, so one version is offered.
const CONFIG: &str = "wasi:config/store";
const CONFIG_VERSION: &str = "0.2.0-rc.1";

/// Prefix of the storage interfaces. They are unreleased like [`CONFIG`], so one version is
/// offered.
const STORAGE: &str = "wasi:keyvalue/";
const STORAGE_VERSION: &str = "0.2.0-draft";

/// The interfaces that kitbag offers: name, purpose, link function.
const OFFERED: &[(&str, &str, Add)] = &[
    (REPORTS, "log, progress, and content other than text", |l| {
        contract::host::add_to_linker::<_, Reporting>(l, State::reporting)
    }),
    (TOOLS, "calls of granted tools", |l| {
        contract::tools::add_to_linker::<_, ToolCalling>(l, State::tools)
    }),
    ("wasi:cli/environment", "granted variables, no arguments", |l| {
        cli::environment::add_to_linker::<_, WasiCli>(l, State::cli)
    }),
    ("wasi:cli/exit", "ends the call with an error", |l| {
        cli::exit::add_to_linker::<_, WasiCli>(l, State::cli)
    }),
    ("wasi:cli/stdin", "empty", |l| cli::stdin::add_to_linker::<_, WasiCli>(l, State::cli)),
    ("wasi:cli/stdout", "captured; shown by `run --verbose` only", |l| {
        cli::stdout::add_to_linker::<_, WasiCli>(l, State::cli)
    }),
    ("wasi:cli/stderr", "captured; shown by `run --verbose`, and its end in errors", |l| {
        cli::stderr::add_to_linker::<_, WasiCli>(l, State::cli)
    }),
    ("wasi:cli/terminal-input", "no terminal", |l| {
        cli::terminal_input::add_to_linker::<_, WasiCli>(l, State::cli)
    }),
    ("wasi:cli/terminal-output", "no terminal", |l| {
        cli::terminal_output::add_to_linker::<_, WasiCli>(l, State::cli)
    }),
    ("wasi:cli/terminal-stdin", "no terminal", |l| {
        cli::terminal_stdin::add_to_linker::<_, WasiCli>(l, State::cli)
    }),
    ("wasi:cli/terminal-stdout", "no terminal", |l| {
        cli::terminal_stdout::add_to_linker::<_, WasiCli>(l, State::cli)
    }),
    ("wasi:cli/terminal-stderr", "no terminal", |l| {
        cli::terminal_stderr::add_to_linker::<_, WasiCli>(l, State::cli)
    }),
    ("wasi:clocks/monotonic-clock", "elapsed time", |l| {
        clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(l, State::clocks)
    }),
    ("wasi:clocks/wall-clock", "date and time", |l| {
        clocks::wall_clock::add_to_linker::<_, WasiClocks>(l, State::clocks)
    }),
    (CONFIG, "granted configuration values", |l| {
        wasmtime_wasi_config::add_to_linker(l, State::config)
    }),
    ("wasi:filesystem/preopens", "granted directories", |l| {
        filesystem::preopens::add_to_linker::<_, GuardedFilesystem>(l, State::guarded)
    }),
    ("wasi:filesystem/types", "files in granted directories", |l| {
        filesystem::types::add_to_linker::<_, GuardedFilesystem>(l, State::guarded)
    }),
    ("wasi:http/outgoing-handler", "requests that a grant allows", add_handler_to_linker),
    ("wasi:http/types", "requests that a grant allows", |l| {
        let options = http::types::LinkOptions::default();
        http::types::add_to_linker::<_, WasiHttp>(l, &options, State::http)
    }),
    ("wasi:io/error", "streams", |l| io::error::add_to_linker::<_, Table>(l, State::table)),
    ("wasi:io/poll", "streams", |l| io::poll::add_to_linker::<_, Table>(l, State::table)),
    ("wasi:io/streams", "streams", |l| io::streams::add_to_linker::<_, Table>(l, State::table)),
    #[cfg(feature = "storage")]
    ("wasi:keyvalue/atomics", "stored data of the tool, if granted", |l| {
        add_atomics(l, State::storage)
    }),
    #[cfg(feature = "storage")]
    ("wasi:keyvalue/batch", "stored data of the tool, if granted", |l| {
        add_batch(l, State::storage)
    }),
    #[cfg(feature = "storage")]
    ("wasi:keyvalue/store", "stored data of the tool, if granted", |l| {
        add_store(l, State::storage)
    }),
    ("wasi:random/random", "random bytes", |l| {
        random::random::add_to_linker::<_, BoundedRandom>(l, State::random)
    }),
    ("wasi:random/insecure", "random bytes", |l| {
        random::insecure::add_to_linker::<_, BoundedRandom>(l, State::random)
    }),
    ("wasi:random/insecure-seed", "random bytes", |l| {
        random::insecure_seed::add_to_linker::<_, WasiRandom>(l, |state| state.ctx().ctx.random())
    }),
    // Offered so that a component which only links them runs; every address and every name is
    // refused.
    ("wasi:sockets/instance-network", NO_NETWORK, |l| {
        sockets::instance_network::add_to_linker::<_, WasiSockets>(l, State::sockets)
    }),
    ("wasi:sockets/ip-name-lookup", NO_NETWORK, |l| {
        sockets::ip_name_lookup::add_to_linker::<_, RefusedSockets>(l, State::noted_sockets)
    }),
    ("wasi:sockets/network", NO_NETWORK, |l| {
        let options = sockets::network::LinkOptions::default();
        sockets::network::add_to_linker::<_, WasiSockets>(l, &options, State::sockets)
    }),
    ("wasi:sockets/tcp", NO_NETWORK, |l| {
        sockets::tcp::add_to_linker::<_, WasiSockets>(l, State::sockets)
    }),
    ("wasi:sockets/tcp-create-socket", NO_NETWORK, |l| {
        sockets::tcp_create_socket::add_to_linker::<_, RefusedSockets>(l, State::noted_sockets)
    }),
    ("wasi:sockets/udp", NO_NETWORK, |l| {
        sockets::udp::add_to_linker::<_, WasiSockets>(l, State::sockets)
    }),
    ("wasi:sockets/udp-create-socket", NO_NETWORK, |l| {
        sockets::udp_create_socket::add_to_linker::<_, RefusedSockets>(l, State::noted_sockets)
    }),
];

/// The version of WASI offered; a later patch release also matches.
const WASI: semver::Version = semver::Version::new(0, 2, 0);

/// Returns the purpose of an import, or `None` if it is not offered.
pub(crate) fn offered(import: &str) -> Option<&'static str> {
    find(import).map(|(_, gives, _)| *gives)
}

/// Returns the host memory that a call needs for the interfaces that its component imports, in
/// addition to what every call needs.
pub(crate) fn host_bytes(engine: &Engine, component: &Component) -> ByteSize {
    let imports =
        |package: &str| component.imports(engine).any(|(name, _)| name.starts_with(package));
    let http = if imports("wasi:http/") { HTTP_BYTES.as_u64() } else { 0 };
    #[cfg(feature = "storage")]
    let storage = if imports(STORAGE) { STORAGE_BYTES.as_u64() } else { 0 };
    #[cfg(not(feature = "storage"))]
    let storage = 0;
    ByteSize::bytes(http + storage)
}

/// Links the imports that kitbag offers.
///
/// Other imports are skipped: types need no definition, and instantiation reports any missing
/// function.
pub(crate) fn link(linker: &mut Linker<State>, component: &Component) -> wasmtime::Result<()> {
    let engine = linker.engine().clone();
    let used = component.imports(&engine).filter(|(_, import)| !is_types(&engine, &import.ty));
    for (_, _, add) in used.filter_map(|(name, _)| find(name)) {
        add(linker)?;
    }
    Ok(())
}

fn is_types(engine: &Engine, import: &ComponentItem) -> bool {
    let ComponentItem::ComponentInstance(instance) = import else { return false };
    instance.exports(engine).all(|(_, export)| matches!(export.ty, ComponentItem::Type(_)))
}

fn find(import: &str) -> Option<&'static (&'static str, &'static str, Add)> {
    let (name, version) = import.split_once('@')?;
    let fits = match name {
        REPORTS | TOOLS => version == VERSION,
        CONFIG => version == CONFIG_VERSION,
        name if name.starts_with(STORAGE) => version == STORAGE_VERSION,
        _ => {
            let version = semver::Version::parse(version).ok()?;
            version.major == WASI.major && version.minor == WASI.minor
        }
    };
    OFFERED.iter().find(|(offered, ..)| fits && *offered == name)
}

struct Table;

impl wasmtime::component::HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_patch_releases_of_wasi_0_2_are_offered() {
        let check = |import: &str, expected: Option<&str>| assert_eq!(offered(import), expected);
        check("wasi:cli/stdin@0.2.0", Some("empty"));
        check("wasi:cli/stdin@0.2.99", Some("empty"));
        check("wasi:cli/stdin@0.3.0", None);
        check("wasi:cli/stdin@1.2.0", None);
        check("wasi:cli/stdin", None);
        check("wasi:config/store@0.2.0-rc.1", Some("granted configuration values"));
        check("wasi:config/store@0.2.0-draft", None);
        check("wasi:config/store@0.2.0", None);
        #[cfg(feature = "storage")]
        for interface in ["atomics", "batch", "store"] {
            let name = format!("{STORAGE}{interface}");
            let gives = Some("stored data of the tool, if granted");
            check(&format!("{name}@0.2.0-draft"), gives);
            check(&format!("{name}@0.2.0-draft2"), None);
            check(&format!("{name}@0.2.0"), None);
        }
        check("wasi:keyvalue/watcher@0.2.0-draft", None);
        check("wasi:http/outgoing-handler@0.2.0", Some("requests that a grant allows"));
        check("wasi:http/outgoing-handler@0.3.0", None);
        check("acme:cli/stdin@0.2.0", None);
    }

    #[test]
    fn one_version_of_the_contract_interface_is_offered() {
        assert!(offered(&format!("{REPORTS}@{VERSION}")).is_some());
        assert!(REPORTS.starts_with(kitbag_contract::PACKAGE));
        for import in ["kitbag:tool/host", "kitbag:tool/host@0.1.1", "kitbag:tool/host@0.2.0"] {
            assert_eq!(offered(import), None, "{import}");
        }
    }
}
