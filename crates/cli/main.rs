//! The command line of kitbag: one file per command in `commands/`, how errors
//! read in `error.rs`, what the process ends with in `exit.rs`.

mod commands;
mod console;
mod environment;
mod error;
mod exit;
mod files;
#[cfg(feature = "serve")]
mod log;
mod suggestion;
mod sys;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use signal_hook::consts::SIGXFSZ;

use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// Runs tools for language models, each in a sandbox that holds only what was
/// granted to it.
#[derive(Debug, Parser)]
#[command(
    name = "kitbag",
    version,
    propagate_version = true,
    after_help = format!("{}\n\n{}", environment::HELP, exit::HELP),
    max_term_width = 100,
)]
struct Cli {
    #[command(flatten)]
    global: commands::Global,
    #[command(subcommand)]
    command: Command,
}

/// The commands. What they say of themselves stands here, and not on their
/// arguments: those are put together for the command that is called only.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Call a tool and print what it answers
    ///
    /// An argument `key=value` becomes the type that the tool's schema says, and a
    /// key given twice becomes a list; `key:=value` is JSON as it stands. `key=@FILE` is
    /// the text of a file, `key:=@FILE` the JSON in it, `key=@-` standard input, and
    /// `key=@@…` a text that begins with `@`.
    Run(commands::tools::run::Args),
    /// Run a script of Python in a sandbox, with arguments as its variables
    ///
    /// A header says which arguments it takes: comments between the lines `# /// kitbag`
    /// and `# ///`. A script in .kitbag/scripts is a tool by its name.
    Script(commands::tools::script::Args),
    /// Serve the tools over MCP, the Model Context Protocol
    ///
    /// On standard input and output, for one client that starts kitbag itself:
    /// Claude, Cursor, VS Code and any other. With --http, for any number of clients
    /// that connect to http://ADDRESS/mcp.
    #[cfg(feature = "serve")]
    Serve(commands::server::serve::Args),
    /// List the tools by toolset: what each may reach, which are off, and why
    ///
    /// Nothing is compiled and nothing runs.
    List(commands::tools::list::Args),
    /// Show a tool: its arguments, grants and limits, and where each came from
    Describe(commands::tools::describe::Args),
    /// Say whether a tool may reach something, by which grant, and what would allow it
    ///
    /// Nothing runs. The same check decides while a tool runs.
    Why(commands::tools::why::Args),
    /// Add a tool: its component, what was recorded of it, and what it is granted
    ///
    /// Its requests are shown with their risks, and you are asked. The component is copied to .kitbag/tools; from then on another one under its name does not
    /// run.
    Add(commands::consent::add::Args),
    /// Show what has changed of a tool since it was added, and record that
    ///
    /// A tool whose component, description or schema is another one than was recorded runs
    /// again once you have agreed to the difference.
    Update(commands::consent::update::Args),
    /// Remove a tool that was added
    Remove(commands::consent::remove::Args),
    /// Write a built-in tool as a local one: its component, and a manifest with its grants
    ///
    /// In .kitbag/tools, the default, it takes the place of the built-in.
    Eject(commands::tools::eject::Args),
    /// Read a component: what it imports and exports, and what it would need
    ///
    /// Nothing runs and nothing is compiled. The exit code says whether kitbag can
    /// run it.
    Inspect(commands::tools::inspect::Args),
    /// Read all configuration, load every tool, and report everything that is wrong
    ///
    /// Tools are compiled where they have to be, and nothing of yours runs but what they
    /// say of themselves, with no grants. A name in `learned`, `disabled` or `[serve] tools`
    /// that matches nothing is a warning.
    Check(commands::tools::check::Args),
    /// Print the block of knowledge for a system prompt
    ///
    /// It holds what is configured as learned, and tells of the topics from which
    /// more can be learned. Without either it is empty.
    Prompt(commands::print::prompt::Args),
    /// Print the definitions of tools as a model interface takes them
    ///
    /// They are sorted by name. What a format cannot express of a tool's arguments
    /// is reported on standard error; kitbag checks every call against the tool's
    /// own schema all the same.
    Export(commands::print::export::Args),
    /// Print what a client's configuration has to say to use `kitbag serve`, or write it
    ///
    /// It names this binary, by the path that it was called by, and the workspace. Where
    /// it goes is said on standard error; nothing is written without --write.
    #[cfg(feature = "serve")]
    McpConfig(commands::server::mcp_config::Args),
    /// Show what the workspace requests, and trust that content
    ///
    /// Until then its tools do not run, and of its configuration only what narrows counts.
    /// Whatever changes is asked about again, as a difference.
    Trust(commands::consent::trust::Args),
    /// Keep secrets for tools, and say where each may go
    ///
    /// A tool never gets a value: kitbag adds it to the requests for the places of the
    /// secret. Values are kept encrypted; your user config says where they go.
    Secret(commands::data::secret::Args),
    /// Show what was called and what became of it, and verify that the log is whole
    ///
    /// The audit log has a line for each call, in the state directory. `[audit]` in your own
    /// config.toml sets it.
    Audit(commands::data::audit::Args),
    /// Show what tools keep between their calls, or remove it
    ///
    /// Each tool with a grant of `storage` has a place of its own in each workspace.
    Storage(commands::data::storage::Args),
    /// Write what the tools of `memory` keep to a file, or read it from one
    ///
    /// The files are for people to read and mend.
    Memory(commands::data::memory::Args),
    /// Show the configuration in effect, or the schema of its file
    Config(commands::print::config::Args),
    /// Show what is kept of compiled tools, or remove it
    ///
    /// Removing it is always safe: a tool is compiled again when it is next called.
    Cache(commands::data::cache::Args),
    /// Print the completions for a shell
    Completions(commands::print::completions::Args),
    /// Print a page of the manual
    Man(commands::print::man::Args),
}

fn main() -> ExitCode {
    // Before anything starts a thread.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    sys::bound_allocator();
    #[cfg(feature = "compiler")]
    if std::env::args_os().nth(1).is_some_and(|first| first == kitbag::host::COMPILE_COMMAND) {
        return compile();
    }
    // With a handler, which does nothing, a write beyond `RLIMIT_FSIZE` is an error;
    // without one the signal ends the process.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error).into(),
    };
    // Anything that panics is our bug, and says so in its exit code.
    match catch_unwind(AssertUnwindSafe(|| run(cli))) {
        Ok(exit) => exit.into(),
        Err(_) => Exit::Bug.into(),
    }
}

fn parse() -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Is the process that another one has started to compile a component.
#[cfg(feature = "compiler")]
fn compile() -> ExitCode {
    match kitbag::host::compile_worker(std::env::args_os().skip(2)) {
        Ok(()) => Exit::Done.into(),
        Err(reason) => {
            output::note(&reason);
            Exit::Usage.into()
        }
    }
}

fn run(cli: Cli) -> Exit {
    let Cli { global, command } = cli;
    let as_json = global.json;
    let result = match command {
        Command::Run(args) => args.run(global),
        Command::Script(args) => args.run(global),
        #[cfg(feature = "serve")]
        Command::Serve(args) => args.run(global),
        Command::List(args) => args.run(global),
        Command::Describe(args) => args.run(global),
        Command::Why(args) => args.run(global),
        Command::Add(args) => args.run(global),
        Command::Update(args) => args.run(global),
        Command::Remove(args) => args.run(global),
        Command::Eject(args) => args.run(global),
        Command::Inspect(args) => args.run(&global),
        Command::Check(args) => args.run(global),
        Command::Prompt(args) => args.run(global),
        Command::Export(args) => args.run(global),
        #[cfg(feature = "serve")]
        Command::McpConfig(args) => args.run(global),
        Command::Trust(args) => args.run(global),
        Command::Secret(args) => args.run(global),
        Command::Audit(args) => args.run(global),
        Command::Storage(args) => args.run(global),
        Command::Memory(args) => args.run(global),
        Command::Config(args) => args.run(global),
        Command::Cache(args) => args.run(&global),
        Command::Completions(args) => args.run(Cli::command()),
        Command::Man(args) => args.run(Cli::command()),
    };
    match result {
        Ok(Exit::Done) => Exit::Done,
        Ok(exit) => match sys::shortage() {
            None => exit,
            // What failed has been said; this is why.
            Some(limit) => {
                output::note(&CliError::OpenFiles { limit, source: None }.report());
                if exit == Exit::ToolError { exit } else { Exit::Limit }
            }
        },
        Err(error) => fail(&error.or_open_files(), as_json),
    }
}

/// Prints what the parser of the command line has to say: help that was asked for, or
/// what is wrong.
fn explain(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        return match error.print().and_then(|()| io::stdout().flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                fail(&CliError::Output(error), false)
            }
            _ => Exit::Done,
        };
    }
    let text = error.render().to_string();
    // It repeats what was typed, or what a program put there.
    output::note(&text);
    let words: Vec<_> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut kitbag = Cli::command();
    // Arguments of commands exist once they are built.
    kitbag.build();
    let hint = suggestion::hint(error.kind(), &words, &kitbag);
    if let Some(hint) = &hint {
        output::note(hint);
    }
    // The parser has not got as far as to say whether this was given.
    if std::env::args_os().any(|argument| argument == "--json") {
        // The first paragraph; how to call it right follows.
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let paragraph = text.split("\n\n").next().unwrap_or_default();
        let mut message = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(hint) = hint {
            message.push_str(&format!("; {hint}"));
        }
        if let Err(error) = output::json(&CliError::Usage(message).json()) {
            return fail(&error, false);
        }
    }
    Exit::Usage
}

/// Reports an error, to a program on standard output and to a person on
/// standard error.
fn fail(error: &CliError, as_json: bool) -> Exit {
    let exit = error.exit();
    let printed = if as_json { output::json(&error.json()) } else { Ok(()) };
    output::note(&error.report());
    match (printed, exit) {
        // A program that reads standard output has nothing to go by but the exit code.
        (Err(unwritten), exit) if exit != Exit::Output => fail(&unwritten, false),
        _ => exit,
    }
}
