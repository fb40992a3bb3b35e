//! A running server.

use std::net::SocketAddr;
use std::time::Duration;

use kitbag::mcp::check_health;

use super::check::{Check, Status};

/// Maximum time for each step of the check. Containers usually allow more for the whole check.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn check(address: SocketAddr) -> Check {
    let (status, text) = match check_health(address, PATIENCE) {
        Ok(()) => (Status::Ok, format!("it answers at {address}")),
        Err(error) => (Status::Error, format!("no server of kitbag answers at {address}: {error}")),
    };
    Check::new("server", status, text)
}
