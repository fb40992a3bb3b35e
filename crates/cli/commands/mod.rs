//! One file per command, in a folder per subject. The doc comments of the arguments are the help
//! text.

pub(crate) mod author;
#[cfg(feature = "nats")]
pub(crate) mod cluster;
pub(crate) mod consent;
pub(crate) mod data;
pub(crate) mod doctor;
pub(crate) mod print;
pub(crate) mod registry;
#[cfg(feature = "serve")]
pub(crate) mod server;
pub(crate) mod tools;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kitbag::audit::Auditor;
use kitbag::base::ByteSize;
use kitbag::base::text::{alternatives, printable};
use kitbag::base::{parse_duration, parse_fuel, parse_requests, parse_tool_calls};
use kitbag::config::{CallGrants, LimitFlags, Origin, Sourced, TrustSource, with_limits};
use kitbag::contract::ToolName;
use kitbag::host::CacheProblem;
use kitbag::{Builder, Kitbag, Places, Toolbox};

use crate::console::listener::Screen;
use crate::console::output;
use crate::error::CliError;

/// Options of every command.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// Use this workspace [default: the nearest parent directory with `.kitbag`, otherwise with
    /// `.git`]
    #[arg(long, short = 'w', global = true, value_name = "DIR", help_heading = "Global options")]
    workspace: Option<PathBuf>,
    /// Trust any content of the workspace, for this process: for CI and throw-away machines
    #[arg(long, global = true, help_heading = "Global options")]
    trust_workspace: bool,
    /// Print JSON on standard output
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
}

macro_rules! value {
    (S) => {
        ByteSize
    };
    (T) => {
        Duration
    };
    ($number:ident) => {
        u64
    };
}

macro_rules! value_name {
    (S) => {
        "SIZE"
    };
    (T) => {
        "DURATION"
    };
    ($number:ident) => {
        "N"
    };
}

macro_rules! default {
    () => {
        "not counted"
    };
    ($default:literal) => {
        $default
    };
}

macro_rules! define {
    ([$($function:ident)*] $($key:ident: $param:ident $map:ident $form:ident,
       $variable:literal $parse:expr, $untrusted:expr, [$($default:literal)?],
       $help:literal, $($file_help:literal),*;)*) => {
        // Limits for every tool, instead of the configured ones. No doc comment, which clap would
        // take for the command's.
        #[derive(Clone, Copy, Debug, Default, clap::Args)]
        pub(crate) struct LimitArgs {
            $(#[arg(
                long,
                value_name = value_name!($param),
                value_parser = $parse,
                help = concat!(
                    $help, " [default: as configured, otherwise ", default!($($default)?), "]"
                )
            )]
            $key: Option<value!($param)>,)*
        }

        impl From<LimitArgs> for LimitFlags {
            fn from(limits: LimitArgs) -> Self {
                Self { $($key: limits.$key),* }
            }
        }
    };
}

with_limits!(define);

// Grants of a tool for one call. No doc comment, as above.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GrantArgs {
    /// Add a grant for this call: `http=https://a.example/**`, `http={ url =
    /// "https://a.example/**", methods = ["POST"] }`, `env=NAME`, `storage=1MiB`,
    /// `tools=ALIAS=TOOL` or `tools=caller`. `[ceiling.grants]` of your user config limits the
    /// kinds that it names
    #[arg(long = "grant", value_name = "KIND=GRANT")]
    grants: Vec<String>,
}

// A tool, by its name or by the path of its component. No doc comment, as above.
#[derive(Debug, clap::Args)]
pub(crate) struct ToolArg {
    /// The name of the tool, as `kitbag list` shows it, or the path of a component (`FILE.wasm`, or
    /// any path with `/`) or of a script (`FILE.py`)
    tool: String,
    /// Select this tool of a component with several
    #[arg(long = "tool", value_name = "NAME")]
    own: Option<String>,
}

impl ToolArg {
    /// Returns the words that name the tool on a command line.
    pub(crate) fn as_typed(&self) -> Vec<String> {
        let own = self.own.iter().flat_map(|own| ["--tool".to_owned(), own.clone()]);
        [self.tool.clone()].into_iter().chain(own).collect()
    }

    /// Returns the path of the component, if the argument is a path.
    fn path(&self) -> Option<&Path> {
        let tool = &*self.tool;
        (tool.ends_with(".wasm") || tool.contains('/')).then_some(Path::new(tool))
    }

    /// Returns the path of the script, if the argument is a script.
    fn script(&self) -> Option<&Path> {
        let path = Path::new(&self.tool);
        path.extension().is_some_and(|extension| extension == "py").then_some(path)
    }

    /// Reads the configuration and the name of the tool. If the tool is given by the path of its
    /// component, adds it.
    pub(crate) fn kitbag(
        self,
        global: &Global,
        limits: LimitArgs,
    ) -> Result<(&'static Kitbag, String), CliError> {
        self.kitbag_with(global, limits, GrantArgs::default())
    }

    pub(crate) fn kitbag_with(
        self,
        global: &Global,
        limits: LimitArgs,
        grants: GrantArgs,
    ) -> Result<(&'static Kitbag, String), CliError> {
        let one_tool = |is: &str| {
            let tool = &self.tool;
            match self.own {
                None => Ok(()),
                Some(_) => Err(CliError::Usage(format!(
                    "`--tool` chooses a tool of a component; `{tool}` is {is}"
                ))),
            }
        };
        if let Some(path) = self.script() {
            one_tool("a script")?;
            return script_kitbag(path, global, limits, grants);
        }
        let Some(path) = self.path() else {
            one_tool("the name of a tool already")?;
            let builder = global.builder().limits(limits.into());
            return Ok((built(grants.add_to(builder, &self.tool))?, self.tool));
        };
        // The advice for a missing component of the configuration does not apply here.
        path.metadata().map_err(|source| CliError::Read { path: self.tool.clone(), source })?;
        let name = match &self.own {
            Some(own) => ToolName::new(&**own)
                .map_err(|error| CliError::Usage(format!("`--tool {own}`: {error}")))?,
            None => name_of(path),
        };
        let builder = global.builder().limits(limits.into()).component_file(name.clone(), path);
        let kitbag = built(grants.add_to(builder, name.as_str()))?;
        let names = |events| kitbag.toolbox().with_events(events).names_in_component(name.as_str());
        let names = Screen::during(global.json, names)?;
        let is_there = |own: &String| names.is_empty() || names.contains(own);
        match &self.own {
            Some(own) if !is_there(own) => Err(CliError::Usage(format!(
                "`{}` has no tool `{own}`; its tools are {}",
                self.tool,
                alternatives(&names)
            ))),
            None if names.len() > 1 => Err(CliError::Usage(format!(
                "`{}` has several tools: choose {} with `--tool`",
                self.tool,
                alternatives(&names)
            ))),
            _ => Ok((kitbag, name.to_string())),
        }
    }
}

/// Reads the configuration, adds a script as a tool, and returns the tool's name.
pub(crate) fn script_kitbag(
    path: &Path,
    global: &Global,
    limits: LimitArgs,
    grants: GrantArgs,
) -> Result<(&'static Kitbag, String), CliError> {
    let unreadable = |source| CliError::Read { path: path.to_string_lossy().into(), source };
    path.metadata().map_err(unreadable)?;
    let name = name_of(path);
    let builder = global.builder().limits(limits.into()).script_file(name.clone(), path);
    Ok((built(grants.add_to(builder, name.as_str()))?, name.to_string()))
}

impl GrantArgs {
    fn add_to(self, builder: Builder, tool: &str) -> Builder {
        match self.grants.is_empty() {
            true => builder,
            false => {
                let (tool, grants) = (tool.to_owned(), self.grants);
                builder.call_grants(CallGrants { tool, grants })
            }
        }
    }
}

/// Derives a tool name from a file name, replacing invalid characters.
fn name_of(path: &Path) -> ToolName {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = stem.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    let name: String = name.chars().take(ToolName::MAX_LEN).collect();
    let fallback = || ToolName::new("tool").expect("a constant in the right form");
    ToolName::new(name).unwrap_or_else(|_| fallback())
}

/// Builds a toolbox for one call, and warns of problems.
///
/// The toolbox is leaked: the process ends with the command, and the system frees memory faster.
fn built(builder: Builder) -> Result<&'static Kitbag, CliError> {
    let kitbag = builder.single_call().build()?;
    let config = kitbag.toolbox().config();
    // An invalid rule for another workspace's tool is not relevant here.
    for broken in &config.broken {
        let level = if broken.is_own { "error" } else { "warning" };
        output::note(&printable(&format!("{level}: {broken}")).to_string());
    }
    let mistyped = config.absent.iter().filter(|absent| absent.hint.is_some());
    for warning in config.warnings.iter().chain(mistyped) {
        output::warn(&warning.to_string());
    }
    if let Some(ignored) = &config.ignored {
        output::warn(&ignored.to_string());
    }
    if let Some(notice) = config.trust_notice() {
        output::warn(&notice.to_string());
    }
    let kitbag: &'static Kitbag = Box::leak(Box::new(kitbag));
    built_kitbags().push(kitbag);
    Ok(kitbag)
}

/// Ends the MCP servers that the command started, at most within `SERVERS_END`: their temporary
/// directories would remain.
pub(crate) fn end_servers() {
    const SERVERS_END: Duration = Duration::from_secs(3);
    let kitbags = std::mem::take(&mut *built_kitbags());
    for kitbag in kitbags {
        kitbag.toolbox().end_servers(SERVERS_END);
    }
}

/// Returns the toolboxes that the command built.
fn built_kitbags() -> MutexGuard<'static, Vec<&'static Kitbag>> {
    static BUILT: Mutex<Vec<&'static Kitbag>> = Mutex::new(Vec::new());
    BUILT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the effective limits. Those of a workspace apply only as far as it is trusted.
fn limits_now(global: &Global) -> Result<kitbag::host::Limits, CliError> {
    let kitbag = global.builder().single_call().build()?;
    Ok(kitbag.toolbox().config().limits.limits())
}

/// Builds the configuration without a workspace. Ignores mistakes in the workspace and in the
/// user's own file.
fn nowhere(global: &Global) -> Result<&'static Kitbag, CliError> {
    built(global.builder().workspace("/").isolate_own())
}

impl Global {
    /// Starts to build a toolbox for many calls, from these options and the environment.
    fn builder(&self) -> Builder {
        let mut places = Places::from_environment(std::env::vars_os());
        if let Some(root) = &self.workspace {
            places.workspace =
                Some(Sourced { value: root.clone(), origin: Origin::flag("--workspace") });
        }
        // This binary, even if its file was replaced. Without `/proc` it cannot be started, and
        // components are compiled in this process.
        let program: Option<PathBuf> = match cfg!(target_os = "linux") {
            true => Some("/proc/self/exe".into()),
            false => std::env::current_exe().ok(),
        };
        let builder = Kitbag::builder().places(places);
        let builder = match self.trust_workspace {
            true => builder.trust(TrustSource::Said(Sourced {
                value: true,
                origin: Origin::flag("--trust-workspace"),
            })),
            false => builder,
        };
        match program {
            Some(program) => builder.compiler(program),
            None => builder,
        }
    }

    pub(crate) fn home() -> Option<PathBuf> {
        Places::from_environment(std::env::vars_os()).home
    }

    /// Returns the path of the user config, which need not exist.
    fn own_file() -> Option<PathBuf> {
        let places = Places::from_environment(std::env::vars_os());
        let usual = places.config_dir.map(|directory| directory.join("config.toml"));
        places.user_file.or(usual)
    }

    fn kitbag(&self, limits: LimitArgs) -> Result<&'static Kitbag, CliError> {
        built(self.builder().limits(limits.into()))
    }
}

/// Warns that a tool's own description cannot be used, and that the command continues without it.
fn warn_description(tool: &str, problem: &str) {
    let text = format!("the description of `{tool}` cannot be used: {problem}");
    output::warn(&text);
}

/// Warns that calls are not in the audit log.
fn warn_unlogged(toolbox: &Toolbox) {
    if let Some(problem) = toolbox.auditor().and_then(Auditor::problem) {
        output::warn(&format!("the call is not in the audit log: {problem}"));
    }
}

/// Warns of problems with the cache; the call continues without it.
fn warn(problems: &[CacheProblem]) {
    for problem in problems {
        output::warn(&problem.to_string());
    }
}
