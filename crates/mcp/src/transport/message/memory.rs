//! Memory that messages reserve while they are handled.

use std::sync::LazyLock;

use kitbag_base::json;
use kitbag_host::{Account, MemoryBudget, Reservation};

/// Memory of a message in addition to its values: its task, its spans, its map entries.
pub(crate) const MESSAGE_BYTES: u64 = 4 << 10;

/// Returns the maximum memory of a parsed message in bytes.
pub(crate) fn cost(text: &[u8]) -> u64 {
    MESSAGE_BYTES + json::cost(text)
}

/// Maximum size of a message that still gets memory after large messages have used theirs.
pub(crate) const SMALL_BYTES: u64 = 256 << 10;

/// Account for large messages, which leave memory for small ones of any client.
static LARGE: LazyLock<Account> = LazyLock::new(|| Account::of_tool("large messages"));

/// Reserves memory for a message. `None` if none is available now.
pub(crate) fn reserve(messages: &MemoryBudget, bytes: u64) -> Option<Reservation> {
    let mut reservation = messages.reserve(0)?;
    grow(&mut reservation, bytes).then_some(reservation)
}

/// Reserves more memory for a message. Returns `false` if none is available now.
pub(crate) fn grow(reservation: &mut Reservation, bytes: u64) -> bool {
    match reservation.bytes().saturating_add(bytes) > SMALL_BYTES {
        true => reservation.grow_for(&LARGE, bytes),
        false => reservation.grow(bytes),
    }
}
