//! Numbers that cannot be guessed.

use crate::error::ToolboxError;

/// Returns a number that cannot be guessed, in hexadecimal.
///
/// # Errors
///
/// [`ToolboxError::Random`].
pub(crate) fn number() -> Result<String, ToolboxError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| ToolboxError::Random(error.to_string()))?;
    Ok(format!("{:032x}", u128::from_le_bytes(random)))
}
