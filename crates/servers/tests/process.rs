//! Starting, ending and confining servers.
//!
//! The servers are this program, with an attack in a variable. Each attack first succeeds without
//! confinement. Confined servers are tested with and without namespaces, and if the tests run as
//! root, again as an ordinary user.

#![cfg(target_os = "linux")]

#[path = "process/attacks.rs"]
mod attacks;
#[path = "process/confined.rs"]
mod confined;
#[path = "process/life.rs"]
mod life;
#[path = "process/world.rs"]
mod world;

/// Performs the attack of a server; not a test.
#[test]
fn attacker() {
    if let Ok(attack) = std::env::var(attacks::VARIABLE) {
        attacks::perform(&attack);
    }
}

/// Starts a server as kitbag does, and waits; not a test.
#[test]
fn host() {
    if std::env::var_os(life::HOST).is_some() {
        life::host();
    }
}
