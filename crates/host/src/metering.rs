//! Whether instructions are counted.

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
