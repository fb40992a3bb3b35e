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

#[derive(Debug, Subcommand)]
enum Command {
    Run(commands::run::Args),
    Serve(commands::serve::Args),
    List(commands::list::Args),
    Describe(commands::describe::Args),
    Inspect(commands::inspect::Args),
    Check(commands::check::Args),
    Prompt(commands::prompt::Args),
    Export(commands::export::Args),
    McpConfig(commands::mcp_config::Args),
    Config(commands::config::Args),
    Cache(commands::cache::Args),
    Completions(commands::completions::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Asking for help is no error; clap knows where each belongs.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let _ = error.print();
            return exit.into();
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
