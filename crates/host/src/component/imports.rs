//! The interfaces that a component may import.
//!
//! [`OFFERED`] has the name of each interface, its purpose and its link function. Each component
//! gets a linker with exactly the interfaces that it imports, so it can reach nothing else.

use kitbag_base::ByteSize;
use kitbag_contract::VERSION;
use kitbag_contract::bindings as contract;
use kitbag_engine::Lane;
use kitbag_policy::http::NO_NETWORK;
use wasmtime::Engine;
use wasmtime::component::Linker;
use wasmtime::component::types::{Component, ComponentItem};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings::{cli, clocks, random, sockets};
use wasmtime_wasi::p3::bindings as p3;
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView};
use wasmtime_wasi::{ResourceTable, WasiView};
use wasmtime_wasi_io::bindings::wasi::io;

use crate::call::input::Environment;
use crate::call::random::BoundedRandom;
use crate::call::report::Reporting;
use crate::call::state::State;
use crate::grants;
use crate::grants::sockets::RefusedSockets;
use crate::interface::{Interface, Interfaces, Version};
use crate::lanes;

/// The contract's interface for reports of a tool.
const REPORTS: &str = "kitbag:tool/host";

/// The interfaces that kitbag offers: those of every call, and those of each kind of grants.
const OFFERED: &[Interfaces] = &[
    Interfaces {
        version: Version::Exactly(VERSION),
        bytes: ByteSize::bytes(0),
        list: &[(REPORTS, "log, progress, and content other than text", |l| {
            contract::host::add_to_linker::<_, Reporting>(l, State::reporting)
        })],
    },
    BASE,
    ASYNC_BASE,
    grants::config::INTERFACES,
    grants::filesystem::INTERFACES,
    grants::filesystem::ASYNC_INTERFACES,
    grants::http::INTERFACES,
    grants::http::ASYNC_INTERFACES,
    #[cfg(feature = "storage")]
    grants::storage::INTERFACES,
    grants::tools::INTERFACES,
];

/// The interfaces of WASI that need no grant or grant nothing.
const BASE: Interfaces = Interfaces::of_wasi(&[
    ("wasi:cli/environment", "granted variables; the arguments of a command", |l| {
        cli::environment::add_to_linker::<_, Environment>(l, State::environment)
    }),
    ("wasi:cli/exit", "ends the call with an error", |l| {
        cli::exit::add_to_linker::<_, WasiCli>(l, State::cli)
    }),
    ("wasi:cli/stdin", "the input of a command; otherwise empty", |l| {
        cli::stdin::add_to_linker::<_, WasiCli>(l, State::cli)
    }),
    ("wasi:cli/stdout", "the result of a command; otherwise shown by `run --verbose` only", |l| {
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
    ("wasi:io/error", "streams", |l| io::error::add_to_linker::<_, Table>(l, State::table)),
    ("wasi:io/poll", "streams", |l| io::poll::add_to_linker::<_, Table>(l, State::table)),
    ("wasi:io/streams", "streams", |l| io::streams::add_to_linker::<_, Table>(l, State::table)),
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
]);

/// The interfaces of WASI 0.3 that need no grant or grant nothing. Only components in the engine for
/// asynchronous functions import them.
const ASYNC_BASE: Interfaces = Interfaces {
    version: Version::Wasi3,
    ..Interfaces::of_wasi(&[
        ("wasi:cli/environment", "granted variables; the arguments of a command", |l| {
            p3::cli::environment::add_to_linker::<_, Environment>(l, State::environment)
        }),
        ("wasi:cli/exit", "ends the call with an error", |l| {
            p3::cli::exit::add_to_linker::<_, WasiCli>(l, State::cli)
        }),
        ("wasi:cli/stdin", "the input of a command; otherwise empty", |l| {
            p3::cli::stdin::add_to_linker::<_, WasiCli>(l, State::cli)
        }),
        ("wasi:cli/stdout", "captured; shown by `run --verbose` only", |l| {
            p3::cli::stdout::add_to_linker::<_, WasiCli>(l, State::cli)
        }),
        ("wasi:cli/stderr", "captured; shown by `run --verbose`, and its end in errors", |l| {
            p3::cli::stderr::add_to_linker::<_, WasiCli>(l, State::cli)
        }),
        ("wasi:cli/terminal-input", "no terminal", |l| {
            p3::cli::terminal_input::add_to_linker::<_, WasiCli>(l, State::cli)
        }),
        ("wasi:cli/terminal-output", "no terminal", |l| {
            p3::cli::terminal_output::add_to_linker::<_, WasiCli>(l, State::cli)
        }),
        ("wasi:cli/terminal-stdin", "no terminal", |l| {
            p3::cli::terminal_stdin::add_to_linker::<_, WasiCli>(l, State::cli)
        }),
        ("wasi:cli/terminal-stdout", "no terminal", |l| {
            p3::cli::terminal_stdout::add_to_linker::<_, WasiCli>(l, State::cli)
        }),
        ("wasi:cli/terminal-stderr", "no terminal", |l| {
            p3::cli::terminal_stderr::add_to_linker::<_, WasiCli>(l, State::cli)
        }),
        ("wasi:clocks/types", "elapsed time", |l| {
            p3::clocks::types::add_to_linker::<_, WasiClocks>(l, State::clocks)
        }),
        ("wasi:clocks/monotonic-clock", "elapsed time", |l| {
            p3::clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(l, State::clocks)
        }),
        ("wasi:clocks/system-clock", "date and time", |l| {
            p3::clocks::system_clock::add_to_linker::<_, WasiClocks>(l, State::clocks)
        }),
        ("wasi:random/random", "random bytes", |l| {
            p3::random::random::add_to_linker::<_, BoundedRandom>(l, State::random)
        }),
        ("wasi:random/insecure", "random bytes", |l| {
            p3::random::insecure::add_to_linker::<_, BoundedRandom>(l, State::random)
        }),
        ("wasi:random/insecure-seed", "random bytes", |l| {
            p3::random::insecure_seed::add_to_linker::<_, WasiRandom>(l, |state| {
                state.ctx().ctx.random()
            })
        }),
        // The context of each call refuses to create a socket and to look up a name.
        ("wasi:sockets/types", NO_NETWORK, |l| {
            p3::sockets::types::add_to_linker::<_, WasiSockets>(l, State::used_sockets)
        }),
        ("wasi:sockets/ip-name-lookup", NO_NETWORK, |l| {
            p3::sockets::ip_name_lookup::add_to_linker::<_, WasiSockets>(l, State::used_sockets)
        }),
    ])
};

/// Returns the purpose of an import of a tool in this lane, or `None` if it is not offered.
pub(crate) fn offered(lane: Lane, import: &str) -> Option<&'static str> {
    let shared = find(import).map(|(_, gives, _)| *gives);
    shared.or_else(|| lanes::offered(lane, import))
}

/// Returns the host memory that a call needs for the interfaces that its component imports, in
/// addition to what every call needs.
pub(crate) fn host_bytes(engine: &Engine, component: &Component) -> ByteSize {
    let is_used = |interfaces: &&Interfaces| {
        let mut imports = component.imports(engine).filter_map(|(name, _)| name.split_once('@'));
        imports.any(|(name, version)| {
            interfaces.version.includes(version) && interfaces.named(name).is_some()
        })
    };
    let used = OFFERED.iter().filter(is_used);
    ByteSize::bytes(used.map(|interfaces| interfaces.bytes.as_u64()).sum())
}

/// Links the imports that kitbag offers.
///
/// Other imports are skipped: types need no definition, and instantiation reports any missing
/// function.
pub(crate) fn link(linker: &mut Linker<State>, component: &Component) -> wasmtime::Result<()> {
    let engine = linker.engine().clone();
    let used = component.imports(&engine).filter(|(_, import)| !is_types(&engine, &import.ty));
    for (_, _, link) in used.filter_map(|(name, _)| find(name)) {
        link(linker)?;
    }
    Ok(())
}

fn is_types(engine: &Engine, import: &ComponentItem) -> bool {
    let ComponentItem::ComponentInstance(instance) = import else { return false };
    instance.exports(engine).all(|(_, export)| matches!(export.ty, ComponentItem::Type(_)))
}

fn find(import: &str) -> Option<&'static Interface> {
    let (name, version) = import.split_once('@')?;
    let offered = OFFERED.iter().filter(|interfaces| interfaces.version.includes(version));
    offered.filter_map(|interfaces| interfaces.named(name)).next()
}

struct Table;

impl wasmtime::component::HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_releases_of_wasi_are_offered() {
        let check =
            |import: &str, expected: Option<&str>| assert_eq!(offered(Lane::Run, import), expected);
        check("wasi:cli/stdin@0.2.0", Some("the input of a command; otherwise empty"));
        check("wasi:cli/stdin@0.2.99", Some("the input of a command; otherwise empty"));
        check("wasi:cli/stdin@0.3.0", Some("the input of a command; otherwise empty"));
        check("wasi:cli/stdin@0.3.1", None);
        check("wasi:cli/stdin@0.3.0-rc-2026-01-06", None);
        check("wasi:io/poll@0.3.0", None);
        check("wasi:cli/stdin@1.2.0", None);
        check("wasi:cli/stdin", None);
        check("wasi:config/store@0.2.0-rc.1", Some("granted configuration values"));
        check("wasi:config/store@0.2.0-draft", None);
        check("wasi:config/store@0.2.0", None);
        #[cfg(feature = "storage")]
        for interface in ["atomics", "batch", "store"] {
            let name = format!("wasi:keyvalue/{interface}");
            let gives = Some("stored data of the tool, if granted");
            check(&format!("{name}@0.2.0-draft"), gives);
            check(&format!("{name}@0.2.0-draft2"), None);
            check(&format!("{name}@0.2.0"), None);
        }
        check("wasi:keyvalue/watcher@0.2.0-draft", None);
        check("wasi:http/outgoing-handler@0.2.0", Some("requests that a grant allows"));
        check("wasi:http/outgoing-handler@0.3.0", None);
        check("wasi:http/client@0.3.0", Some("requests that a grant allows"));
        check("wasi:http/client@0.2.0", None);
        check("acme:cli/stdin@0.2.0", None);
    }

    #[test]
    fn each_kind_has_the_interfaces_that_use_it() {
        for kind in kitbag_policy::KINDS.iter().filter(|kind| is_built(kind)) {
            let Some(prefix) = kind.imports else { continue };
            let mut offered = OFFERED.iter().flat_map(|interfaces| interfaces.list);
            assert!(offered.any(|(name, ..)| name.starts_with(prefix)), "{}", kind.key);
        }
    }

    /// Returns false for storage in a build without it.
    fn is_built(kind: &kitbag_policy::KindInfo) -> bool {
        cfg!(feature = "storage") || kind.key != kitbag_policy::StorageGrant::KEY
    }

    #[test]
    fn one_version_of_the_contract_interface_is_offered() {
        assert!(offered(Lane::Run, &format!("{REPORTS}@{VERSION}")).is_some());
        assert!(REPORTS.starts_with(kitbag_contract::PACKAGE));
        for import in ["kitbag:tool/host", "kitbag:tool/host@0.1.1", "kitbag:tool/host@0.2.0"] {
            assert_eq!(offered(Lane::Run, import), None, "{import}");
        }
    }
}
