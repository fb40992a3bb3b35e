//! The part of the component model that a component needs.

/// The part of the component model that a component needs.
///
/// Each part has an engine of its own, so that most components do not pay for what they do not use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Model {
    /// Functions that return before the next one is called, as in WASI 0.2.
    #[default]
    Basic,
    /// Asynchronous functions, streams and futures, as in WASI 0.3.
    Async,
}

impl Model {
    /// Every part.
    pub const ALL: [Self; 2] = [Self::Basic, Self::Async];
}
