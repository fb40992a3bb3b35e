//! A toolbox for programs that give tools to a language model.
//!
//! A tool is a WebAssembly component in a sandbox that can reach only what was granted. Some tools
//! are part of this library, others are files named in a workspace's `.kitbag/config.toml`; both
//! are called the same way.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # std::fs::create_dir_all(directory.path().join(".kitbag"))?;
//! # std::fs::create_dir_all(directory.path().join("notes"))?;
//! # std::fs::write(directory.path().join("notes/rules.md"), "Be kind.\n")?;
//! # std::fs::write(
//! #     directory.path().join(".kitbag/config.toml"),
//! #     "[knowledge.team]\nsubjects = \"notes\"\n",
//! # )?;
//! # let workspace = directory.path();
//! use kitbag::{Kitbag, Outcome};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let kitbag = Kitbag::builder().workspace(workspace).build()?;
//! let arguments = json!({ "topic": "team", "subjects": "rules" });
//! let outcome = kitbag.call("learn", arguments).await?;
//! assert_eq!(outcome, Outcome::Success("Be kind.\n".into()));
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! The library prints nothing. It reads only the environment variables that set the cache
//! directory, unless [`Builder::places`] provides more.

mod assembly;
mod builder;
mod builtins;
mod callback;
mod kitbag;
mod places;
#[cfg(feature = "servers")]
mod program_servers;
mod proposal;
mod requests;
mod secret_sources;
#[cfg(feature = "servers")]
mod server_pool;
#[cfg(feature = "servers")]
mod sign_in_store;
mod tool_config;
mod trust_question;

pub use self::assembly::BuildError;
pub use self::builder::Builder;
pub use self::kitbag::Kitbag;
pub use self::places::Places;
#[cfg(feature = "servers")]
pub use self::program_servers::AddServerError;
#[cfg(feature = "store")]
pub use self::secret_sources::open_store;
pub use self::secret_sources::{PASSPHRASE_VARIABLE, secret_sources};
#[cfg(feature = "servers")]
pub use self::sign_in_store::sign_in_store;
pub use self::tool_config::ToolConfig;
pub use self::trust_question::{TrustQuestion, TrustQuestionError};
pub use kitbag_base as base;
pub use kitbag_config::{self as config, Config, ConfigErrors};
pub use kitbag_contract::{
    self as contract, Answer, AnswerError, AnswerType, Content, ErrorInfo, LogLevel, Outcome,
    Progress, Question,
};
pub use kitbag_host::{
    self as host, Cancellation, ClientOptions, Compiling, Completion, Concurrency, EventSink,
    Listener,
};
#[cfg(feature = "serve")]
pub use kitbag_mcp as mcp;
pub use kitbag_policy as policy;
pub use kitbag_secrets as secrets;
#[cfg(feature = "store")]
pub use kitbag_secrets::store as secret_store;
#[cfg(feature = "servers")]
pub use kitbag_servers as servers;
pub use kitbag_state::audit;
pub use kitbag_state::trust;
pub use kitbag_toolbox::{
    self as toolbox, Arguments, CallContext, CallOutcome, Caller, FrontEnd, Invocation, NativeCall,
    NativeTool, NoAnswers, Reply, Summary, Tool, Toolbox, ToolboxError,
};

/// Compiles the Rust code of the page on embedding.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct EmbeddingPage;
