//! Limits as a file has them, and their ceilings.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Deserialize;

use super::grants::CeilingGrantsConfig;
use crate::file::SourceFile;
use crate::limit_set::LimitSet;
use crate::written::{At, Written};

/// What one call may use up.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Limits")]
pub(crate) struct LimitsConfig {
    /// Memory of the call: a number and a unit, such as `64MiB`.
    #[schemars(extend("default" = "64MiB"))]
    pub(crate) memory: Option<Written<String>>,
    /// Time from start to end: a number and a unit, such as `30s` or `500ms`.
    #[schemars(extend("default" = "30s"))]
    pub(crate) time: Option<Written<String>>,
    /// Size of what the tool answers: a number and a unit, such as `1MiB`.
    #[schemars(extend("default" = "1MiB"))]
    pub(crate) output: Option<Written<String>>,
    /// Size of what the tool writes to files in a call: a number and a unit, such as
    /// `1GiB`. Each file, directory or link that it creates counts 4 KiB.
    #[schemars(extend("default" = "1GiB"))]
    pub(crate) written: Option<Written<String>>,
    /// Requests over HTTP of the call, with each hop of a redirect: a positive integer, such
    /// as `100`.
    #[schemars(extend("default" = 50))]
    pub(crate) requests: Option<Written<NonZeroU64>>,
    /// Calls of other tools of the call: a positive integer, such as `100`.
    #[schemars(extend("default" = 20))]
    pub(crate) tool_calls: Option<Written<NonZeroU64>>,
    /// WebAssembly instructions of the call, counted the same on every machine:
    /// a positive integer, such as `1000000`. Default: they are not counted.
    pub(crate) fuel: Option<Written<NonZeroU64>>,
    /// Time for compiling the tool's component, where that has to be done: a number and
    /// a unit, such as `5m`. It does not count towards `time`.
    #[schemars(extend("default" = "1m"))]
    pub(crate) compile: Option<Written<String>>,
}

/// What the files of a workspace may set a limit to, and grant, at most.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Ceilings")]
pub(crate) struct CeilingConfig {
    /// Memory of the call: a number and a unit, such as `64MiB`.
    #[schemars(extend("default" = "64MiB"))]
    pub(crate) memory: Option<Written<String>>,
    /// Time from start to end: a number and a unit, such as `30s` or `500ms`.
    #[schemars(extend("default" = "30s"))]
    pub(crate) time: Option<Written<String>>,
    /// Size of what the tool answers: a number and a unit, such as `1MiB`.
    #[schemars(extend("default" = "1MiB"))]
    pub(crate) output: Option<Written<String>>,
    /// Size of what the tool writes to files in a call: a number and a unit, such as
    /// `1GiB`. Each file, directory or link that it creates counts 4 KiB.
    #[schemars(extend("default" = "1GiB"))]
    pub(crate) written: Option<Written<String>>,
    /// Requests over HTTP of the call, with each hop of a redirect: a positive integer, such
    /// as `100`.
    #[schemars(extend("default" = 50))]
    pub(crate) requests: Option<Written<NonZeroU64>>,
    /// Calls of other tools of the call: a positive integer, such as `100`.
    #[schemars(extend("default" = 20))]
    pub(crate) tool_calls: Option<Written<NonZeroU64>>,
    /// WebAssembly instructions of the call: a positive integer, such as `1000000`.
    /// Also the budget of a tool that has none. Default: no ceiling.
    pub(crate) fuel: Option<Written<NonZeroU64>>,
    /// Time for compiling the tool's component, where that has to be done: a number and
    /// a unit, such as `5m`. It does not count towards `time`.
    #[schemars(extend("default" = "1m"))]
    pub(crate) compile: Option<Written<String>>,
    /// What the files and components of a trusted workspace can be granted of what is yours,
    /// at most. A kind that is not named here is not limited.
    pub(crate) grants: Option<Written<CeilingGrantsConfig>>,
}

/// Limits, or ceilings, as a file says them.
pub(crate) type WrittenLimits<'a> = LimitSet<
    Option<At<'a, String>>,
    Option<At<'a, String>>,
    Option<At<'a, NonZeroU64>>,
    Option<At<'a, NonZeroU64>>,
>;

impl LimitsConfig {
    /// What a file says of each limit.
    pub(crate) fn at<'a>(&'a self, file: &'a SourceFile) -> WrittenLimits<'a> {
        let Self { memory, time, output, written, requests, tool_calls, fuel, compile } = self;
        written_at(
            LimitSet { memory, time, output, written, requests, tool_calls, fuel, compile },
            file,
        )
    }
}

impl CeilingConfig {
    /// What a file says of the ceiling of each limit.
    pub(crate) fn limits<'a>(&'a self, file: &'a SourceFile) -> WrittenLimits<'a> {
        let Self { memory, time, output, written, requests, tool_calls, fuel, compile, grants: _ } =
            self;
        written_at(
            LimitSet { memory, time, output, written, requests, tool_calls, fuel, compile },
            file,
        )
    }
}

/// What a file says of a limit that is written as a text, and as a number.
type Text<'a> = &'a Option<Written<String>>;

type Number<'a> = &'a Option<Written<NonZeroU64>>;

/// Limits with the file that they stand in.
fn written_at<'a>(
    limits: LimitSet<Text<'a>, Text<'a>, Number<'a>, Number<'a>>,
    mut file: &'a SourceFile,
) -> WrittenLimits<'a> {
    limits.map(
        &mut file,
        |file, _, text| Some(text.as_ref()?.at(file)),
        |file, _, text| Some(text.as_ref()?.at(file)),
        |file, _, number| Some(number.as_ref()?.at(file)),
        |file, _, number| Some(number.as_ref()?.at(file)),
    )
}
