//! The command line of kitbag: one file per command in `commands/`, the format of errors in
//! `error.rs`, exit codes in `exit.rs`.

#[cfg(test)]
mod command_reference;
mod commands;
mod console;
mod environment;
mod error;
#[cfg(all(test, feature = "serve"))]
mod error_reference;
mod exit;
mod files;
mod labels;
#[cfg(feature = "serve")]
mod log;
mod suggestion;
mod sys;
mod version;

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use signal_hook::consts::SIGXFSZ;

use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// Run tools for language models, each in a sandbox with only the access granted to it
#[derive(Debug, Parser)]
#[command(
    name = "kitbag",
    version,
    propagate_version = true,
    after_help = format!("{}\n\n{}", environment::help(), exit::HELP),
    max_term_width = 100,
)]
struct Cli {
    #[command(flatten)]
    global: commands::Global,
    #[command(subcommand)]
    command: Command,
}

/// The commands. Their help is here and not on their arguments, which are built only for the command
/// that is called.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Call a tool and print its answer
    ///
    /// `key=value` is converted to the type in the tool's schema, and a repeated key makes a list.
    /// `key:=value` is JSON. `key=@FILE` is the text of a file, `key:=@FILE` the JSON in it,
    /// `key=@-` standard input, and `key=@@…` a string that begins with `@`.
    Run(commands::tools::run::Args),
    /// Run a Python script in a sandbox, with its arguments as variables
    ///
    /// A header declares the arguments: comments between the lines `# /// kitbag` and `# ///`. A
    /// script in .kitbag/scripts is also a tool of that name.
    Script(commands::tools::script::Args),
    /// Serve the tools over MCP, the Model Context Protocol
    ///
    /// By default on standard input and output, for one client that starts kitbag: Claude, Cursor,
    /// VS Code and others. With --http, for any number of clients that connect to
    /// http://ADDRESS/mcp.
    #[cfg(feature = "serve")]
    Serve(commands::server::serve::Args),
    /// List the tools by toolset: their access, and why a tool is off
    ///
    /// The command compiles and runs no tool.
    List(commands::tools::list::Args),
    /// Show a tool: its arguments, grants and limits, and the source of each
    Describe(commands::tools::describe::Args),
    /// Show whether a tool may reach something, and the line that would allow it
    ///
    /// The command runs no tool. It makes the same decision as a call, and names the grant.
    Why(commands::tools::why::Args),
    /// Add a tool: review its requests, record its component, and grant access
    ///
    /// kitbag shows the requests with their risks and asks you. The component is copied to
    /// .kitbag/tools. A component with a different digest does not run until `kitbag update`
    /// accepts it.
    Add(commands::consent::add::Args),
    /// Review the changes of an added tool, and record them
    ///
    /// A tool whose component, description or schema differs from the recorded one is off until you
    /// accept the difference.
    Update(commands::consent::update::Args),
    /// Remove an added tool
    Remove(commands::consent::remove::Args),
    /// Find tools in an index
    ///
    /// An index is a JSON file, or an artifact in a registry that contains it. The first search
    /// records the digest of an artifact.
    Search(commands::registry::search::Args),
    /// Push a component to a registry, and sign it
    ///
    /// The artifact has the layout of the CNCF for Wasm, which other programs also read. The command
    /// prints the digest, which pins the artifact.
    Push(commands::registry::push::Args),
    /// Sign in to a remote MCP server, with a browser
    ///
    /// The tokens are in the secret store. kitbag sends them to this server only, refreshes them
    /// when they expire, and revokes them with `kitbag logout`.
    #[cfg(feature = "servers")]
    Login(commands::consent::login::Args),
    /// Revoke and delete the sign-in to a remote MCP server
    #[cfg(feature = "servers")]
    Logout(commands::consent::logout::Args),
    /// Write a built-in tool as a local tool
    ///
    /// The command writes the component, and a manifest with its grants. In .kitbag/tools, the
    /// default, the copy replaces the built-in.
    Eject(commands::tools::eject::Args),
    /// Show the imports, exports and requirements of a component
    ///
    /// The command compiles and runs no code. The exit code shows whether kitbag can run the
    /// component.
    Inspect(commands::tools::inspect::Args),
    /// Check the configuration and load every tool; report all mistakes
    ///
    /// Tools are compiled if necessary, and run without grants only to describe themselves. Tools
    /// that wait for `kitbag trust` are skipped and named. A name in `learned`, `disabled` or
    /// `[serve] tools` without a match is a warning.
    Check(commands::tools::check::Args),
    /// Create a project for a tool: its source, cases and grants
    ///
    /// The project builds as it is, and its tool reads a file, asks a question and makes a request.
    /// The new directory is a workspace that you trust.
    New(commands::author::new::Args),
    /// Build a project and install its tool in the workspace
    ///
    /// kitbag finds the language by the files of the project, and runs the compiler of that language
    /// with your rights. The component is copied to .kitbag/tools. In a workspace that you trust,
    /// it runs immediately.
    Build(commands::author::build::Args),
    /// Build a project, run its cases and show differences
    ///
    /// A case is a call and its expected answer, in cases.txt or in files in cases/. The tool
    /// reads only the files of its case, and its requests are answered only with the responses of
    /// its case: no connection is opened.
    Test(commands::author::test::Args),
    /// Build a project and run its cases after each change
    Dev(commands::author::dev::Args),
    /// Check the installation, and print what to paste into a bug report
    ///
    /// Each check is a line with `ok`, `warning` or `error`, and the way out: directories and their
    /// permissions, the configuration, the kernel and its limits, the cache, a call of a tool,
    /// trust, secrets, `PATH`, and the entries of MCP clients. No values, tokens or lines of files
    /// are printed. `kitbag --version --verbose` prints only the build.
    Doctor(commands::doctor::Args),
    /// Print the block of knowledge for a system prompt
    ///
    /// The block has the learned documents, and lists the topics from which more can be loaded. It
    /// is empty if neither is configured.
    Prompt(commands::print::prompt::Args),
    /// Print tool definitions in the format of a model API
    ///
    /// Definitions are sorted by name. Parts of a schema that the format cannot express are
    /// reported on standard error. kitbag still checks every call against the tool's own schema.
    Export(commands::print::export::Args),
    /// Print or write the configuration of an MCP client for `kitbag serve`
    ///
    /// An entry in a file of the workspace, which may be shared, has no paths: it runs `kitbag serve`
    /// from PATH. An entry in your own file has the paths of this binary and of the workspace. The
    /// path of the client's file is printed on standard error. Without --write no file is changed.
    #[cfg(feature = "serve")]
    McpConfig(commands::server::mcp_config::Args),
    /// Move the MCP servers of a client to kitbag, and put kitbag in their place
    ///
    /// kitbag shows what each server runs and asks you. Servers of the user's file are moved to your
    /// user config, servers of a file in the workspace to .kitbag/config.toml. Values that look like
    /// secrets are stored instead of written. Servers that kitbag cannot run stay where they are,
    /// with the reason. --undo restores all files.
    #[cfg(feature = "serve")]
    Import(commands::server::import::Args),
    /// Give people who share a server their own tokens, or remove them
    ///
    /// Each person is a caller of `kitbag serve --http` with their own memory, rates, approvals,
    /// tools, and name in the audit log. The tokens are in `[serve.tokens]` of your user config.
    #[cfg(feature = "serve")]
    Token(commands::server::token::Args),
    /// Review the requests of the workspace, and trust its content
    ///
    /// Before that its tools do not run, and only settings that restrict access take effect. Later
    /// requests are shown as a difference and need your consent again.
    Trust(commands::consent::trust::Args),
    /// Store secrets for tools, and set their destinations
    ///
    /// A tool never receives a value: kitbag adds it to requests to the destinations of the secret.
    /// Values are encrypted; the destinations are in your user config.
    Secret(commands::data::secret::Args),
    /// Show past calls and their outcomes, and verify the log
    ///
    /// The audit log has a line for each call, in the state directory. Configure it in `[audit]` of
    /// your user config.
    Audit(commands::data::audit::Args),
    /// List or clear the data that tools store between calls
    ///
    /// Each tool with a grant of `storage` has a separate store in each workspace.
    Storage(commands::data::storage::Args),
    /// Export the data of the `memory` tools to a file, or import a file
    ///
    /// The files can be read and edited by hand.
    Memory(commands::data::memory::Args),
    /// Publish the workspace to the workers and front ends of a cluster, over NATS
    ///
    /// kitbag shows the requests as `kitbag trust` does, and asks you. The configuration, the lock
    /// file, scripts and components are signed with your key. Machines accept them from you only,
    /// and never an older version.
    #[cfg(feature = "nats")]
    Publish(commands::cluster::publish::Args),
    /// Run tools for the front ends of a cluster, over NATS
    ///
    /// The worker loads the newest snapshot that a person published, and takes a newer one without
    /// a restart. Front ends are `kitbag serve --nats`.
    #[cfg(feature = "nats")]
    Worker(commands::cluster::worker::Args),
    /// List the workers of a cluster: their state, load, roots and versions
    #[cfg(feature = "nats")]
    Workers(commands::cluster::workers::Args),
    /// Show the configuration in effect, or its JSON Schema
    Config(commands::print::config::Args),
    /// Show or clear the cache of compiled tools
    ///
    /// Clearing is safe: a tool is compiled again by its next call.
    Cache(commands::data::cache::Args),
    /// Print the completions for a shell
    Completions(commands::print::completions::Args),
    /// Print a page of the manual
    Man(commands::print::man::Args),
}

fn main() -> ExitCode {
    // Must run before any thread starts.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    sys::bound_allocator();
    #[cfg(feature = "compiler")]
    if std::env::args_os().nth(1).is_some_and(|first| first == kitbag::host::COMPILE_COMMAND) {
        return compile();
    }
    // A handler that does nothing turns a write beyond `RLIMIT_FSIZE` into an error. Without a
    // handler the signal ends the process.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    if let Some(as_json) = version::is_asked(std::env::args_os().skip(1)) {
        let printed = version::print(as_json);
        return printed.map_or_else(|error| fail(&error, as_json), |()| Exit::Done).into();
    }
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error).into(),
    };
    // A panic is a bug in kitbag and has its own exit code.
    let exit = catch_unwind(AssertUnwindSafe(|| run(cli))).unwrap_or(Exit::Bug);
    commands::end_servers();
    exit.into()
}

fn parse() -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Runs the compiler process that another kitbag process started.
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
        Command::Search(args) => args.run(global),
        Command::Push(args) => args.run(global),
        #[cfg(feature = "servers")]
        Command::Login(args) => args.run(&global),
        #[cfg(feature = "servers")]
        Command::Logout(args) => args.run(&global),
        Command::Eject(args) => args.run(global),
        Command::Inspect(args) => args.run(&global),
        Command::Check(args) => args.run(global),
        Command::New(args) => args.run(global),
        Command::Build(args) => args.run(&global),
        Command::Test(args) => args.run(&global),
        Command::Dev(args) => args.run(&global),
        Command::Doctor(args) => args.run(&global),
        Command::Prompt(args) => args.run(global),
        Command::Export(args) => args.run(global),
        #[cfg(feature = "serve")]
        Command::McpConfig(args) => args.run(global),
        #[cfg(feature = "serve")]
        Command::Import(args) => args.run(global),
        #[cfg(feature = "serve")]
        Command::Token(args) => args.run(&global),
        Command::Trust(args) => args.run(global),
        Command::Secret(args) => args.run(global),
        Command::Audit(args) => args.run(global),
        Command::Storage(args) => args.run(global),
        Command::Memory(args) => args.run(global),
        #[cfg(feature = "nats")]
        Command::Publish(args) => args.run(global),
        #[cfg(feature = "nats")]
        Command::Worker(args) => args.run(global),
        #[cfg(feature = "nats")]
        Command::Workers(args) => args.run(global),
        Command::Config(args) => args.run(global),
        Command::Cache(args) => args.run(&global),
        Command::Completions(args) => args.run(Cli::command()),
        Command::Man(args) => args.run(Cli::command()),
    };
    match result {
        Ok(Exit::Done) => Exit::Done,
        Ok(exit) => match sys::shortage() {
            None => exit,
            // The failure is already reported; this is the reason.
            Some(limit) => {
                output::note(&CliError::OpenFiles { limit, source: None }.report());
                if exit == Exit::ToolError { exit } else { Exit::Limit }
            }
        },
        Err(error) => fail(&error.or_open_files(), as_json),
    }
}

/// Prints the output of the command-line parser: requested help, or an error.
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
    // The message may repeat what a person typed, or a string from another program.
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
    // The parser stopped before it could read this option.
    if std::env::args_os().any(|argument| argument == "--json") {
        // The first paragraph; the usage follows.
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

/// Reports an error: on standard output for a program, on standard error for a person.
fn fail(error: &CliError, as_json: bool) -> Exit {
    let exit = error.exit();
    let printed = if as_json { output::json(&error.json()) } else { Ok(()) };
    output::note(&error.report());
    match (printed, exit) {
        // A program that reads standard output can only rely on the exit code.
        (Err(unwritten), exit) if exit != Exit::Output => fail(&unwritten, false),
        _ => exit,
    }
}
