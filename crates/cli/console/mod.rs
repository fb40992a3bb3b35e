//! Input and output of the process: the terminal, standard streams and signals.

pub(crate) mod consent;
pub(crate) mod input;
pub(crate) mod interrupt;
pub(crate) mod listener;
pub(crate) mod output;
pub(crate) mod tool_content;
