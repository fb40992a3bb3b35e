//! Reads the configuration: `config.toml` and the manifests of tools.
//!
//! [`load`] reads the files, merges the layers, checks everything that can be checked without
//! opening a component, and records the origin of each value. It prints nothing. It receives the
//! environment, the command line and the home directory from its caller, in [`Sources`].
//!
//! From the weakest layer to the strongest: built-in defaults, manifests beside the tools, the user
//! config, `.kitbag/config.toml` of the workspace, `KITBAG_*` variables, flags. Tables are merged
//! key by key; any other value, including an array, is replaced as a whole.
//!
//! Ceilings bound the limits: a limit above its ceiling in a file of a workspace is an error. Only
//! the user config can raise or lower a ceiling, under `[ceiling]`. Ceilings do not apply to the
//! user config, variables and flags. If `[ceiling.grants]` names a kind of grants, grants of that
//! kind in the files of a workspace, such as environment variables, take effect only within it.
//!
//! The files of a workspace take effect once a person trusts their requests, which a record in the
//! state directory confirms (`kitbag_state::trust`). Until then only settings that restrict access
//! take effect, and [`Config::workspace_trust`] has the reason. After an edit, tools and topics
//! that request more than was trusted are off: see [`Config::review`]. If another user can change
//! the configuration of a workspace, it is not read at all, and [`Config::ignored`] has the reason;
//! `[trust]` in the user config names the workspaces that take effect despite that. `kitbag-host`
//! runs the tools.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # std::fs::create_dir(directory.path().join(".kitbag"))?;
//! # std::fs::write(
//! #     directory.path().join(".kitbag/config.toml"),
//! #     "[tools.learn.limits]\ntime = \"5s\"\n",
//! # )?;
//! use kitbag_config::{Sources, load};
//!
//! let config = load(&Sources {
//!     start: directory.path().to_owned(),
//!     builtins: &["learn".into()],
//!     ..Sources::default()
//! })?;
//! let time = &config.tools["learn"].limits.time;
//! assert_eq!(time.value.as_secs(), 5);
//! assert_eq!(time.origin.to_string(), ".kitbag/config.toml:2:8");
//! # Ok(())
//! # }
//! ```

mod advise;
mod config;
mod format;
mod layers;
mod read;
mod report;
mod resolve;
mod trust;

pub use advise::audience::Audience;
pub use advise::path_refusal::PathRefusal;
pub use advise::places::{FileAdvice, GrantAdvice, GrantLine, GrantPlace, PathAdvice};
pub use config::rows::Row;
pub use config::{
    AcceptedSigner, Audit, AuditSync, BytesTool, CommandTemplate, ComponentCall, Config,
    ConfiguredGrants, ConfiguredServer, ConfiguredTool, Discovery, DiscoveryMode, IgnoredWorkspace,
    LeakAllowance, LocalTool, LockedDownload, LockedManifest, LockedServer, LockedTool,
    NameResolution, NamedContent, Network, Output, Parameter, ParameterType, Parameters, Person,
    PersonName, PersonNameError, Recorded, RecordedServer, Registries, RegistryRule, RootFile,
    ScreenAction, Screening, ScriptTool, Secret, SecretStore, SecretStoreKind, ServerTool,
    Template, ToolApproval, ToolRate, ToolSource, Topic, Trust, USER_SKILLS, WORKSPACE_SKILLS,
    address_words, confinement_words, secret_destinations, server_tool_name, set_secret_command,
};
pub use format::parse::dismantle;
pub use format::schema::{json_schema, json_schema_text};
pub use kitbag_fs_guard::Distrust;
pub use layers::limits::{EffectiveLimits, HigherLimit, LIMITS, LimitFlags, LimitSet, LimitSpec};
pub use layers::origin::{Origin, Sourced};
pub use layers::path::settled;
pub use layers::toolsets::{Disabled, OFF_BY_DEFAULT, TOOLSETS, Toolsets};
pub use read::file::{Layer, MAX_BYTES as FILE_BYTES, SourceFile};
pub use read::lock::{Lock, check_definitions};
pub use read::sources::{
    BuiltinTool, CallGrants, ComponentTool, PYTHON, Proposal, ScriptFile, Sources, TRUST_VARIABLE,
    TrustSource, VARIABLES, Variables,
};
pub use report::{Broken, ConfigErrors, Diagnostic, DiagnosticKind, Excerpt};
pub use resolve::read_grant;
pub use trust::review::{TrustChange, TrustChanges, TrustReview, TrustSubject};
pub use trust::workspace::{
    TrustedBy, UntrustedReason, UntrustedWorkspace, WorkspaceContent, WorkspacePattern,
    WorkspaceTrust,
};

use std::path::PathBuf;
use std::sync::Arc;

use kitbag_state::trust::{TrustRecord, TrustStore};

use read::Reading;
use report::Report;

/// Reads, merges and checks the whole configuration.
///
/// # Errors
///
/// [`ConfigErrors`] holds all mistakes that were found in one pass. If a file is not valid TOML,
/// the combination of the layers is not checked, because the content of that file is unknown.
pub fn load(sources: &Sources<'_>) -> Result<Config, ConfigErrors> {
    match load_lenient(sources) {
        (_, Some(errors)) => Err(errors),
        (config, None) => Ok(config.expect(NO_CONFIG)),
    }
}

/// Reads the configuration like [`load`], but a mistake in the files of a workspace disables only
/// the tool, the topic or the table that contains it. [`Config::broken`] lists these pieces.
///
/// A mistake never removes a restriction from a tool: a tool that an unreadable piece may restrict
/// is off ([`Disabled::Unrestricted`]). In an untrusted workspace such pieces are omitted, and turn
/// no tool off.
///
/// # Errors
///
/// [`ConfigErrors`] holds the mistakes in variables, in flags, and, unless
/// [`Sources::isolates_own`] is set, in the user config.
pub fn load_isolated(sources: &Sources<'_>) -> Result<Config, ConfigErrors> {
    let (config, report) = read(sources);
    report.finish_isolated(sources.isolates_own)?;
    Ok(config.expect(NO_CONFIG))
}

/// A configuration is returned unless there is no workspace.
const NO_CONFIG: &str = "what keeps a configuration from being made is reported";

/// Reads the configuration like [`load`], but returns the valid part of a faulty configuration
/// together with the mistakes.
///
/// Omits the same pieces as [`load_isolated`]. Use it to report all mistakes at once.
pub fn load_lenient(sources: &Sources<'_>) -> (Option<Config>, Option<ConfigErrors>) {
    let (config, report) = read(sources);
    (config, report.finish().err())
}

/// Reads, merges and checks everything, again if the workspace turns out to be untrusted.
fn read(sources: &Sources<'_>) -> (Option<Config>, Report) {
    let (mut config, mut report) = attempt(sources, Reading::Found);
    if let Some(found) = &mut config
        && let Err(untrusted) = review_edits(found, sources, &report)
    {
        (config, report) = attempt(sources, Reading::Untrusted(untrusted));
    }
    let config = config.map(|mut config| {
        config.pin_components();
        config
    });
    (config, report)
}

/// Compares an edited workspace with its trusted version, and turns off tools and topics that
/// request more.
///
/// # Errors
///
/// The workspace is not trusted: its trusted version is no longer known.
fn review_edits(
    config: &mut Config,
    sources: &Sources<'_>,
    report: &Report,
) -> Result<(), UntrustedWorkspace> {
    let is_asked = sources.trust == TrustSource::Asked;
    let record = match &config.workspace_trust {
        WorkspaceTrust::Trusted(TrustedBy::Record(record)) => Arc::clone(record),
        // The removed files may have held a restriction.
        WorkspaceTrust::Nothing if sources.trust == TrustSource::Recorded => {
            match config.record_of_nothing() {
                Some(record) => record,
                None => return Ok(()),
            }
        }
        WorkspaceTrust::Trusted(TrustedBy::Question) => match config.record_before() {
            Some(record) => record,
            None => return Ok(()),
        },
        _ => return Ok(()),
    };
    if config.review.is_none() && config.named_places() == record.places {
        return Ok(());
    }
    // The files are as they were trusted, so the mistake comes from a link.
    let is_text_trusted = config.review.is_none() && config.workspace_trust.record().is_some();
    if is_text_trusted && report.has_problem() {
        return Err(UntrustedWorkspace::edited(&config.root.value, Vec::new()));
    }
    match trusted(&record, sources) {
        Some(trusted) if is_asked => drop(config.compare_with(&trusted, &record)),
        Some(trusted) => config.keep_to(&trusted, &record),
        // A workspace without files requests nothing.
        None if is_asked || !config.workspace_trust.is_trusted() => config.review = None,
        None => {
            let edits = config.review.take().unwrap_or_default().files;
            return Err(UntrustedWorkspace::edited(&config.root.value, edits));
        }
    }
    Ok(())
}

/// Resolves the trusted version of the configuration under the present circumstances. `None`: its
/// files are not stored, or cannot be understood.
fn trusted(record: &Arc<TrustRecord>, sources: &Sources<'_>) -> Option<Config> {
    let texts = TrustStore::new(&sources.state.as_ref()?.value).texts(record).ok()??;
    let (config, report) = attempt(sources, Reading::Trusted(record, &texts));
    // A restriction that cannot be read would be missing.
    if report.has_problem_of_files() { None } else { config }
}

/// Returns the canonical path of the workspace, regardless of the content of its files.
///
/// # Errors
///
/// [`ConfigErrors`] if the named workspace does not exist.
pub fn find_workspace(sources: &Sources<'_>) -> Result<PathBuf, ConfigErrors> {
    let mut report = Report::default();
    let workspace = read::workspace(sources, &mut report);
    report.finish()?;
    Ok(workspace.expect("one that is not there is reported").canonical)
}

fn attempt(sources: &Sources<'_>, reading: Reading<'_>) -> (Option<Config>, Report) {
    let mut report = Report::default();
    let overrides = resolve::overrides(sources, &mut report);
    let config = read::workspace(sources, &mut report).map(|workspace| {
        let read = read::read(workspace, sources, reading, &mut report);
        if !read.is_complete {
            report.is_incomplete_from_here();
        }
        resolve::resolve(read, &overrides, sources, &mut report)
    });
    (config, report)
}
