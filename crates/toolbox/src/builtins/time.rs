//! The host's part of the tools for dates and times: the local time zone.

use std::fmt::Write as _;

use kitbag_base::text::shown;
use kitbag_config::{ConfiguredTool, ToolSource};
use kitbag_contract::Limits;
use serde_json::{Map, Value};

use crate::builtins::adapter::{Adapter, AdapterRefusal, Additions};
use crate::registry::ToolboxState;

/// The tools that use the local zone.
const TOOLS: [&str; 5] = ["now", "parse_time", "convert_time", "add_time", "time_between"];

/// The tools whose description names the zone: one for the current time, one for conversion to
/// other zones.
const NAMING: [&str; 2] = ["now", "convert_time"];

/// The argument with which the host passes the zone.
const ZONE_KEY: &str = "_zone";

pub(crate) struct Time;

impl Adapter for Time {
    fn describe(&self, state: &ToolboxState, tool: &ConfiguredTool, description: &mut String) {
        let config = &state.config;
        let ToolSource::Builtin { name } = &tool.source.value else { return };
        if let Some(zone) = &config.toolsets.zone
            && NAMING.contains(&name.value.as_str())
        {
            let _ = write!(description, " Local zone: {}.", shown(&zone.value));
        }
    }

    fn own_arguments(&self) -> &'static [&'static str] {
        &[ZONE_KEY]
    }

    fn prepare(
        &self,
        state: &ToolboxState,
        _: &Map<String, Value>,
        _: &Limits,
    ) -> Result<Additions, AdapterRefusal> {
        let zone = state.config.toolsets.zone.as_ref();
        let arguments = zone.map(|zone| (ZONE_KEY.to_owned(), zone.value.as_str().into()));
        Ok(Additions { arguments: arguments.into_iter().collect(), ..Additions::default() })
    }
}

/// Returns true if a tool is one for dates and times, under any name.
pub(crate) fn is_time(source: &ToolSource) -> bool {
    matches!(source, ToolSource::Builtin { name } if TOOLS.contains(&name.value.as_str()))
}
