//! Configuration: `config.toml`, the manifests of tools, and what they amount
//! to.
//!
//! [`load`] reads the files, merges the layers, checks everything that can be
//! checked without opening a component, and says of each value where it came
//! from. It prints nothing, and knows of the environment, the command line and
//! the home directory only what its caller hands over in [`Sources`].
//!
//! From the weakest layer to the strongest: built-in defaults, manifests beside
//! the tools, the person's own `config.toml`, `.kitbag/config.toml` of the
//! workspace, `KITBAG_*` variables, flags. Tables are merged key by key; any
//! other value, and an array as a whole, is replaced.
//!
//! Limits are bound by a ceiling: what the files of a workspace ask for above it
//! is an error. Only the person's own file raises or lowers it, under
//! `[ceiling]`, and neither that file nor variables nor flags are bound by it. What the
//! files of a workspace grant of the user's own, such as variables of the environment,
//! counts only within `[ceiling.grants]`, where that names its kind.
//!
//! A workspace's files take effect once a person trusts what they ask for, which a record in the
//! state directory says (`kitbag_state::trust`); until then only settings that restrict access take
//! effect, and [`Config::workspace_trust`] has the reason. After an edit, what asks for more than
//! was trusted is off: see [`Config::review`]. The configuration of a workspace that another user can
//! change is not read at all, and [`Config::ignored`] says why; `[trust]` in the person's own
//! file names the workspaces that count all the same. Running tools is left to `kitbag-host`.
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
    Audit, AuditSync, BytesTool, Config, ConfiguredGrants, ConfiguredTool, IgnoredWorkspace,
    LeakAllowance, LocalTool, LockedManifest, LockedTool, NameResolution, Network, Output,
    Parameter, ParameterType, Parameters, Recorded, RootFile, ScreenAction, Screening, ScriptTool,
    Secret, SecretStore, SecretStoreKind, ToolApproval, ToolRate, ToolSource, Topic, Trust,
    secret_destinations, set_secret_command,
};
pub use format::parse::dismantle;
pub use format::schema::{json_schema, json_schema_text};
pub use kitbag_fs_guard::Distrust;
pub use layers::limits::{EffectiveLimits, HigherLimit, LIMITS, LimitFlags, LimitSet, LimitSpec};
pub use layers::origin::{Origin, Sourced};
pub use layers::path::settled;
pub use layers::toolsets::{Disabled, OFF_BY_DEFAULT, TOOLSETS, Toolsets};
pub use read::file::{Layer, MAX_BYTES as FILE_BYTES, SourceFile};
pub use read::lock::Lock;
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

/// Reads, merges and checks everything that is configured.
///
/// # Errors
///
/// [`ConfigErrors`] holds all that is wrong, as far as it could be found in one
/// go. Where a file is not even TOML, how the layers fit together is not
/// checked, since what that file was to say is not known.
pub fn load(sources: &Sources<'_>) -> Result<Config, ConfigErrors> {
    match load_lenient(sources) {
        (_, Some(errors)) => Err(errors),
        (config, None) => Ok(config.expect(NO_CONFIG)),
    }
}

/// As [`load`], but a mistake in the files of a workspace spoils no more than the tool, the topic
/// or the table that it is in: [`Config::broken`] names these pieces.
///
/// A tool runs with no fewer restrictions than without the mistake: one that a piece restricts
/// which cannot be read is off ([`Disabled::Unrestricted`]). In a workspace that is not trusted
/// such pieces are left out, and no tool is off for them.
///
/// # Errors
///
/// [`ConfigErrors`] holds what is wrong with the user's own file, unless
/// [`Sources::isolates_own`], with variables and with flags.
pub fn load_isolated(sources: &Sources<'_>) -> Result<Config, ConfigErrors> {
    let (config, report) = read(sources);
    report.finish_isolated(sources.isolates_own)?;
    Ok(config.expect(NO_CONFIG))
}

/// A configuration is made unless there is no workspace.
const NO_CONFIG: &str = "what keeps a configuration from being made is reported";

/// As [`load`], but returns what can be made out of a faulty configuration
/// along with what is wrong with it.
///
/// What is faulty is left out as by [`load_isolated`]. For reporting everything that is wrong at
/// once.
pub fn load_lenient(sources: &Sources<'_>) -> (Option<Config>, Option<ConfigErrors>) {
    let (config, report) = read(sources);
    (config, report.finish().err())
}

/// Reads, merges and checks everything, once it is known whether the workspace is trusted.
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

/// Compares an edited workspace with what a person trusted, and turns off what asks for more.
///
/// # Errors
///
/// The workspace is not trusted: what was trusted is not known any more.
fn review_edits(
    config: &mut Config,
    sources: &Sources<'_>,
    report: &Report,
) -> Result<(), UntrustedWorkspace> {
    let is_asked = sources.trust == TrustSource::Asked;
    let record = match &config.workspace_trust {
        WorkspaceTrust::Trusted(TrustedBy::Record(record)) => Arc::clone(record),
        // Files that are gone can have held a restriction.
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
    // A mistake that a link makes is not one of the text, which is as it was trusted.
    let is_text_trusted = config.review.is_none() && config.workspace_trust.record().is_some();
    if is_text_trusted && report.has_problem() {
        return Err(UntrustedWorkspace::edited(&config.root.value, Vec::new()));
    }
    match trusted(&record, sources) {
        Some(trusted) if is_asked => drop(config.compare_with(&trusted, &record)),
        Some(trusted) => config.keep_to(&trusted, &record),
        // Without files nothing is asked for.
        None if is_asked || !config.workspace_trust.is_trusted() => config.review = None,
        None => {
            let edits = config.review.take().unwrap_or_default().files;
            return Err(UntrustedWorkspace::edited(&config.root.value, edits));
        }
    }
    Ok(())
}

/// The configuration that a person trusted, as it would be now. `None`: its texts are not kept,
/// or cannot be understood.
fn trusted(record: &Arc<TrustRecord>, sources: &Sources<'_>) -> Option<Config> {
    let texts = TrustStore::new(&sources.state.as_ref()?.value).texts(record).ok()??;
    let (config, report) = attempt(sources, Reading::Trusted(record, &texts));
    // A restriction that cannot be read would be missing.
    if report.has_problem_of_files() { None } else { config }
}

/// Where the workspace is, without links, whatever its files hold.
///
/// # Errors
///
/// [`ConfigErrors`] where the one that was named is not there.
pub fn find_workspace(sources: &Sources<'_>) -> Result<PathBuf, ConfigErrors> {
    let mut report = Report::default();
    let workspace = read::workspace(sources, &mut report);
    report.finish()?;
    Ok(workspace.expect("one that is not there is reported").canonical)
}

/// Reads, merges and checks everything.
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
