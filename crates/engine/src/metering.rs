//! Whether instructions are counted.

use kitbag_contract::Limits;

/// Whether a component counts the instructions it runs.
///
/// Counting has to be compiled in, so it takes an engine and an artifact of its
/// own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Metering {
    /// It does not.
    #[default]
    Off,
    /// Each instruction takes fuel, and without fuel the call ends.
    Fuel,
}

impl Metering {
    /// What calls with these limits need.
    pub fn of(limits: &Limits) -> Self {
        if limits.fuel.is_some() { Self::Fuel } else { Self::Off }
    }
}
