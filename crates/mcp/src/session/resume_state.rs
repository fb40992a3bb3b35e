//! Calls that wait for an answer after calling other tools.
//!
//! The server keeps the outcomes of the nested calls under an id that resumes the call once:
//! completed calls are not repeated, and their outcomes are not sent to the client.

use kitbag_host::{Account, StatePool};
use kitbag_toolbox::InnerCalls;

use crate::session::state_codec::Binding;

/// Keeps the nested calls of a call for at most one hour. Returns the id for [`take`].
///
/// # Errors
///
/// If no memory is left, or the system cannot provide random bytes.
pub(crate) fn keep(
    pool: &StatePool,
    account: &Account,
    inner: InnerCalls,
    binding: &Binding,
) -> Result<String, String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| error.to_string())?;
    let id = format!("{:032x}", u128::from_le_bytes(random));
    let bytes = inner.size() as u64;
    let kept = pool.keep(account, &pool_id(&id, binding), bytes, inner);
    kept.map(|()| id).map_err(|error| error.to_string())
}

/// Takes the nested calls of the same call.
///
/// # Errors
///
/// If they have expired, or belong to another call.
pub(crate) fn take(pool: &StatePool, id: &str, binding: &Binding) -> Result<InnerCalls, String> {
    match pool.take::<InnerCalls>(&pool_id(id, binding)) {
        Some(inner) => Ok(inner),
        None => {
            Err("the call cannot be resumed: this server keeps its state for at most an hour, \
                     for the same name and arguments, until it is resumed or the client has many \
                     other calls open; make the call again from the start"
                .into())
        }
    }
}

/// Includes the binding: a request of another caller or call neither takes nor removes the state.
fn pool_id(id: &str, binding: &Binding) -> String {
    format!("call/{id}/{binding}")
}
