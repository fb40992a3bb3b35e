//! Imports with which a component uses sockets, which no grant gives.

/// The interfaces with which a guest begins to use sockets.
const BEGINNINGS: [&str; 3] = [
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp-create-socket",
];

/// Whether a component with this import uses sockets.
pub(super) fn is_use(import: &str) -> bool {
    import.split('@').next().is_some_and(|name| BEGINNINGS.contains(&name))
}
