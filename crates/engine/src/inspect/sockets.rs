//! Imports through which a component uses sockets, which cannot be granted.

/// The interfaces that start the use of sockets.
const BEGINNINGS: [&str; 4] = [
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/tcp-create-socket",
    // WASI 0.3.
    "wasi:sockets/types",
    "wasi:sockets/udp-create-socket",
];

/// Returns true if a component with this import uses sockets.
pub(super) fn is_use(import: &str) -> bool {
    import.split('@').next().is_some_and(|name| BEGINNINGS.contains(&name))
}
