//! The command line of kitbag: one file per command in `commands/`, how errors
//! read in `error.rs`, what the process ends with in `exit.rs`.

mod commands;
mod emitted;
mod error;
mod exit;
mod interrupt;
mod listener;
mod output;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::CliError;
use crate::exit::Exit;

/// Runs tools for language models, each in a sandbox that holds only what was
/// granted to it.
#[derive(Debug, Parser)]
#[command(
    name = "kitbag",
    version,
    propagate_version = true,
    after_help = exit::HELP,
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
    /// key given twice becomes a list; `key:=value` is JSON as it stands.
    Run(commands::run::Args),
    /// Serve the tools over MCP, the Model Context Protocol
    ///
    /// On standard input and output, for one client that starts kitbag itself:
    /// Claude, Cursor, VS Code and any other. With --http, for any number of clients
    /// that connect to http://ADDRESS/mcp.
    Serve(commands::serve::Args),
    /// List the tools: name, source, one line
    ///
    /// Nothing is compiled and nothing runs.
    List(commands::list::Args),
    /// Show a tool: its arguments, grants and limits, and where each came from
    Describe(commands::describe::Args),
    /// Read a component: what it imports and exports, and what it would need
    ///
    /// Nothing runs and nothing is compiled. The exit code says whether kitbag can
    /// run it.
    Inspect(commands::inspect::Args),
    /// Read all configuration, load every tool, and report everything that is wrong
    ///
    /// Tools are compiled where they have to be, and nothing of them runs but what
    /// they say of themselves, with no grants.
    Check(commands::check::Args),
    /// Print the block of knowledge for a system prompt
    ///
    /// It holds what is configured as learned, and tells of the topics from which
    /// more can be learned. Without either it is empty.
    Prompt(commands::prompt::Args),
    /// Print the definitions of tools as a model interface takes them
    ///
    /// They are sorted by name. What a format cannot express of a tool's arguments
    /// is reported on standard error; kitbag checks every call against the tool's
    /// own schema all the same.
    Export(commands::export::Args),
    /// Print what a client's configuration has to say to start `kitbag serve`
    ///
    /// It names this binary and the workspace by their absolute paths. Where it goes
    /// is said on standard error; nothing is written.
    McpConfig(commands::mcp_config::Args),
    /// Show the configuration in effect, or the schema of its file
    Config(commands::config::Args),
    /// Show what is kept of compiled tools, or remove it
    ///
    /// Removing it is always safe: a tool is compiled again when it is next called.
    Cache(commands::cache::Args),
    /// Print the completions for a shell
    Completions(commands::completions::Args),
    /// Print a page of the manual
    Man(commands::man::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Asking for help is no error; clap knows where each belongs.
            if error.use_stderr() {
                // It repeats what was typed, or what a program put there.
                output::note(&error.render().to_string());
                return Exit::Usage.into();
            }
            let _ = error.print();
            return Exit::Done.into();
        }
    };
    // Anything that panics is our bug, and says so in its exit code.
    match catch_unwind(AssertUnwindSafe(|| run(cli))) {
        Ok(exit) => exit.into(),
        Err(_) => Exit::Bug.into(),
    }
}

fn run(cli: Cli) -> Exit {
    let Cli { global, command } = cli;
    let as_json = global.json;
    let result = match command {
        Command::Run(args) => args.run(global),
        Command::Serve(args) => args.run(global),
        Command::List(args) => args.run(global),
        Command::Describe(args) => args.run(global),
        Command::Inspect(args) => args.run(&global),
        Command::Check(args) => args.run(global),
        Command::Prompt(args) => args.run(global),
        Command::Export(args) => args.run(global),
        Command::McpConfig(args) => args.run(global),
        Command::Config(args) => args.run(global),
        Command::Cache(args) => args.run(&global),
        Command::Completions(args) => args.run(),
        Command::Man(args) => args.run(),
    };
    result.unwrap_or_else(|error| fail(&error, as_json))
}

/// Reports an error, to a program on standard output and to a person on
/// standard error.
fn fail(error: &CliError, as_json: bool) -> Exit {
    let exit = error.exit();
    if as_json {
        // If this fails too, the report below still says what the matter was.
        let _ = output::json(&error.json());
    }
    output::note(&error.report());
    exit
}
