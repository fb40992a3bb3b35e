//! `kitbag memory`.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use kitbag::base::ByteSize;
use kitbag::config::{Config, ToolSource};
use kitbag::contract::ToolName;
use kitbag::policy::{Access, DirectoryGrant, GuestPath};
use kitbag::{
    CallContext, CallOutcome, Caller, EventSink, Invocation, Outcome, Toolbox, ToolboxError,
};
use serde_json::{Map, Value, json};

use crate::commands::tools::run::tool_error;
use crate::commands::{Global, LimitArgs, warn, warn_unlogged};
use crate::console::interrupt::Interrupt;
use crate::console::listener::Screen;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// Maximum size of an imported file.
const FILE_BYTES: ByteSize = ByteSize::mib(64);

/// Directory of the file in the component.
const DIRECTORY: &str = "/import";
const FILE: &str = "file";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag memory export > memory.md
  kitbag memory export --format json > memory.json
  kitbag memory import memory.md")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// The caller whose memory it is, as `kitbag storage list` shows it after `memory/`, such as
    /// `client/http` [default: you]
    #[arg(long, global = true, value_name = "CALLER", value_parser = caller)]
    caller: Option<Caller>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print all memories and tasks
    Export {
        /// The format [default: markdown]
        #[arg(long, value_enum)]
        format: Option<Format>,
    },
    /// Import memories and tasks from a file: all of them, or none if there is a mistake
    ///
    /// Entries are added or changed, never removed. A second import of the same file changes
    /// nothing.
    Import {
        /// The file, or `-` for standard input
        file: String,
        /// The format [default: JSON for a name that ends in .json, otherwise Markdown]
        #[arg(long, value_enum)]
        format: Option<Format>,
    },
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Markdown,
    /// For programs
    Json,
}

fn caller(text: &str) -> Result<Caller, String> {
    Caller::from_storage_name(text).ok_or_else(|| {
        "it starts with `user/`, `client/`, `person/` or `program/`; `kitbag storage list` shows it \
         after `memory/`"
            .to_owned()
    })
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let as_json = global.json;
        // A person's request needs more than a model's.
        let limits = LimitArgs {
            memory: Some(ByteSize::mib(1024)),
            output: Some(ByteSize::mib(512)),
            ..LimitArgs::default()
        };
        let toolbox = global.kitbag(limits)?.toolbox();
        match self.command {
            Command::Export { format } => {
                let format =
                    format.unwrap_or(if as_json { Format::Json } else { Format::Markdown });
                let arguments = Map::from_iter([format.argument()]);
                let tool = configured(toolbox.config(), "list_memories");
                let export = Invocation::command(tool, "memory/export", arguments, Vec::new());
                match call(toolbox, export, self.caller, as_json)? {
                    Ok(text) => output::untrusted(&text)?,
                    Err(exit) => return Ok(exit),
                }
            }
            Command::Import { file, format } => {
                let is_json = Path::new(&file).extension().is_some_and(|it| it == "json");
                let format =
                    format.unwrap_or(if is_json { Format::Json } else { Format::Markdown });
                let copy = copy(&file)?;
                let arguments = Map::from_iter([
                    format.argument(),
                    ("name".to_owned(), file.into()),
                    ("path".to_owned(), format!("{DIRECTORY}/{FILE}").into()),
                ]);
                let failed = |source| CliError::Read { path: "the copied file".into(), source };
                let host = copy.path().canonicalize().map_err(failed)?;
                let guest = GuestPath::new(DIRECTORY).expect("a constant in the right form");
                let (access, include) = (Access::ReadOnly, Vec::new());
                let directory = DirectoryGrant {
                    host,
                    guest,
                    access,
                    identity: None,
                    include,
                    protected: None,
                };
                let tool = configured(toolbox.config(), "remember");
                let import = Invocation::command(tool, "memory/import", arguments, vec![directory]);
                match call(toolbox, import, self.caller, as_json)? {
                    Ok(answer) => tell(&answer, as_json)?,
                    Err(exit) => return Ok(exit),
                }
            }
        }
        Ok(Exit::Done)
    }
}

impl Format {
    fn argument(self) -> (String, Value) {
        let name = match self {
            Self::Markdown => "markdown",
            Self::Json => "json",
        };
        ("format".to_owned(), name.into())
    }
}

/// Calls the component. `Err`: the call failed, and the failure was already reported.
fn call(
    toolbox: &Toolbox,
    invocation: Invocation,
    owner: Option<Caller>,
    as_json: bool,
) -> Result<Result<String, Exit>, CliError> {
    let interrupt = Interrupt::take_over();
    let screen = Arc::new(Screen::of_call(false, as_json, &interrupt));
    let caller = Caller::this_user();
    let context = CallContext::new(caller.clone())
        .with_owner(owner.unwrap_or(caller))
        .with_events(EventSink::new(Arc::<Screen>::clone(&screen)))
        .with_cancellation(interrupt.cancellation().clone());
    let ended = toolbox.call_blocking(invocation, context, &mut kitbag::toolbox::NoAnswers);
    screen.clear();
    warn_unlogged(toolbox);
    let completed = match ended? {
        CallOutcome::Completed(completed) => completed,
        CallOutcome::Suspended(open) => return Err(CliError::Question(Box::new(open.question))),
        CallOutcome::Refused(never) => match never {},
    };
    warn(&completed.problems.cache);
    if let Some(cut) = &completed.cut {
        return Err(CliError::Usage(format!("the stored data is too large for one file: {cut}")));
    }
    match completed.completion.result {
        Ok(Outcome::Success(content)) => Ok(Ok(content)),
        Ok(Outcome::Error(error)) => {
            if as_json {
                output::json(&json!({ "outcome": "error", "error": error }))?;
            }
            output::note(&tool_error(&error));
            Ok(Err(Exit::ToolError))
        }
        Ok(Outcome::NeedsInput(question)) => Err(CliError::Question(Box::new(question))),
        Err(error) => Err(ToolboxError::Call(error).into()),
    }
}

fn configured(config: &Config, builtin: &str) -> ToolName {
    let tools = config.tools.values().filter(
        |tool| matches!(&tool.source.value, ToolSource::Builtin { name } if name.value == builtin),
    );
    let tool = tools.max_by_key(|tool| tool.is_enabled());
    match tool {
        Some(tool) => tool.name.clone(),
        // The call reports that the built-in is not part of this binary.
        None => ToolName::new(builtin).expect("a constant in the right form"),
    }
}

/// Copies a file into a separate directory, and grants the directory to the component.
fn copy(file: &str) -> Result<tempfile::TempDir, CliError> {
    let failed = |source| CliError::Read { path: file.to_owned(), source };
    let mut content = Vec::new();
    let most = FILE_BYTES.as_u64() + 1;
    match file {
        "-" => io::stdin().lock().take(most).read_to_end(&mut content),
        file => fs::File::open(file).and_then(|it| it.take(most).read_to_end(&mut content)),
    }
    .map_err(failed)?;
    if content.len() as u64 > FILE_BYTES.as_u64() {
        return Err(CliError::Usage(format!(
            "`{file}` is larger than {FILE_BYTES}, the limit of an import; split it"
        )));
    }
    let directory = tempfile::Builder::new().prefix("kitbag-").tempdir().map_err(failed)?;
    let mut written = fs::File::create_new(directory.path().join(FILE)).map_err(failed)?;
    written.write_all(&content).map_err(failed)?;
    Ok(directory)
}

fn tell(answer: &str, as_json: bool) -> Result<(), CliError> {
    let imported: Value = serde_json::from_str(answer).unwrap_or_default();
    if as_json {
        return output::json(&imported);
    }
    let count = |key: &str| imported[key].as_u64().unwrap_or_default();
    output::note(&format!(
        "{} added, {} changed, {} unchanged",
        count("added"),
        count("changed"),
        count("unchanged")
    ));
    Ok(())
}
