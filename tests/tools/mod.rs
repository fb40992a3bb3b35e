//! Tools: the built-in ones, one module each, and what all tools share.

mod builtins;
mod cases;
mod code_mode;
mod coercions;
mod faults;
mod host_paths;
mod memory;
mod other_tools;
mod paths;
mod per_call;
mod reports;
mod scripts;
mod short_errors;
mod storage;
mod temporary;

/// Declares a module for each built-in tool: one without tests does not compile.
macro_rules! tests_of_tools {
    ($($tool:ident)*) => { $(mod $tool;)* };
}

kitbag::for_each_tool!(tests_of_tools);
