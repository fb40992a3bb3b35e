//! The tests of the whole: the real binary and the real library.
//!
//! One module per tool and per subject; `support` is the harness. Reading the
//! files under `snapshots/` is reviewing behaviour.

mod support;

mod add;
mod add_attacks;
mod add_trusted;
mod advice;
mod approval;
mod audit;
mod audit_coverage;
mod broken;
mod builtins;
mod bytes;
mod calls;
mod code_mode;
mod coercions;
mod command_line;
mod component_files;
mod definitions;
mod documentation;
mod escapes;
mod faults;
mod first_hour;
mod fuzzing;
mod host_paths;
mod house;
mod http_clients;
mod importing;
mod killed;
mod library;
mod local_tools;
mod marks;
mod masking;
mod mcp_config;
mod memory;
mod native;
mod other_tools;
mod output;
mod paths;
mod per_call;
mod pins;
mod reports;
mod save;
mod scripts;
mod secret_requests;
mod secrets;
mod sections;
mod serve;
mod short_errors;
mod snapshots;
mod storage;
mod temporary;
mod tools_page;
mod trust;
mod trusting;
mod values;
mod why;

/// Declares a module for each built-in tool: one without tests does not compile.
macro_rules! tests_of_tools {
    ($($tool:ident)*) => { $(mod $tool;)* };
}

kitbag::for_each_tool!(tests_of_tools);
