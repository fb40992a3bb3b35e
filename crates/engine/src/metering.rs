//! Counting of instructions.

use kitbag_contract::Limits;

/// The metering of a component: it may count the instructions that it runs.
///
/// Counting must be compiled in, so it needs a separate engine and artifact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Metering {
    /// Instructions are not counted.
    #[default]
    Off,
    /// Each instruction consumes fuel, and without fuel the call ends.
    Fuel,
}

impl Metering {
    /// Returns the metering that calls with these limits need.
    pub fn of(limits: &Limits) -> Self {
        if limits.fuel.is_some() { Self::Fuel } else { Self::Off }
    }
}
