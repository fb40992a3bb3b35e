//! The tools that `tools/list` of a server contains, and the size of answers.

use kitbag_base::ByteSize;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::layers::origin::Sourced;

/// How a server offers many tools and large results.
#[derive(Clone, Debug, PartialEq)]
pub struct Discovery {
    /// How tools are offered. Default: [`DiscoveryMode::Auto`].
    pub mode: Sourced<DiscoveryMode>,
    /// The tokens of all definitions up to which [`DiscoveryMode::Auto`] lists every tool. Default:
    /// [`TOOL_TOKENS`](Self::TOOL_TOKENS).
    pub tool_tokens: Sourced<u64>,
    /// The names and globs of the tools that are listed in any case. Default: none.
    pub pinned: Sourced<Vec<String>>,
    /// The size of text above which the result of a call is kept, and its start is sent. Default:
    /// [`RESULT_SIZE`](Self::RESULT_SIZE).
    pub result_size: Sourced<ByteSize>,
}

/// How a server offers its tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum DiscoveryMode {
    /// Lists all tools if their definitions fit into `tool_tokens`; otherwise as `search`.
    #[default]
    Auto,
    /// Lists all tools.
    All,
    /// Lists the pinned tools, `find_tools` and `call_tool`.
    Search,
}

impl Discovery {
    /// The default of `tool_tokens`: about 8 % of a context of 200,000 tokens, and more than the
    /// definitions of all built-ins.
    pub const TOOL_TOKENS: u64 = 16_000;
    /// The default of `result_size`, more than `read_file` returns by default.
    pub const RESULT_SIZE: ByteSize = ByteSize::bytes(64 << 10);
    /// The minimum of `result_size`: several times the start that is sent.
    pub const LEAST_RESULT_SIZE: ByteSize = ByteSize::bytes(8 << 10);
}

impl DiscoveryMode {
    /// Returns the value as it is written in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::All => "all",
            Self::Search => "search",
        }
    }
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            mode: Sourced::default(DiscoveryMode::default()),
            tool_tokens: Sourced::default(Self::TOOL_TOKENS),
            pinned: Sourced::default(Vec::new()),
            result_size: Sourced::default(Self::RESULT_SIZE),
        }
    }
}
