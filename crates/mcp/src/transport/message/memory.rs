//! Memory that messages reserve while they are handled.

use std::sync::LazyLock;

use kitbag_base::json;
use kitbag_host::{Account, MemoryBudget, Reservation};

/// What a message costs besides its values: its task, its spans, its place in maps.
pub(crate) const MESSAGE_BYTES: u64 = 4 << 10;

/// The memory that a message may take when it has been read, in bytes.
pub(crate) fn cost(text: &[u8]) -> u64 {
    MESSAGE_BYTES + json::cost(text)
}

/// The largest message for which there is memory while large ones have used up theirs.
pub(crate) const SMALL_BYTES: u64 = 256 << 10;

/// Account for large messages, which leave memory for small ones of any client.
static LARGE: LazyLock<Account> = LazyLock::new(|| Account::of_tool("large messages"));

/// Reserves memory for a message. `None` if there is none now.
pub(crate) fn reserve(messages: &MemoryBudget, bytes: u64) -> Option<Reservation> {
    let mut reservation = messages.reserve(0)?;
    grow(&mut reservation, bytes).then_some(reservation)
}

/// Reserves more memory for a message. False if there is none now.
pub(crate) fn grow(reservation: &mut Reservation, bytes: u64) -> bool {
    match reservation.bytes().saturating_add(bytes) > SMALL_BYTES {
        true => reservation.grow_for(&LARGE, bytes),
        false => reservation.grow(bytes),
    }
}
