//! `[ceiling.grants]` of the user's own file: what a workspace can grant at most.
//!
//! A kind that is not named there is not limited, once the workspace is trusted. `filesystem`
//! and `config` have no ceiling: what a person trusts shows the directories outside of the
//! workspace.

use kitbag_policy::HttpGrants;
use kitbag_policy::tools::ToolGrants as CallableTools;

use super::{environment, http, secrets, storage, tools};
use crate::config::ToolGrants;
use crate::error::Report;
use crate::file::{Layer, SourceFile};
use crate::format::ConfigFile;
use crate::origin::Sourced;
use crate::problem::Problem;
use crate::resolve::resolver::Resolver;
use crate::written::At;

/// What the user's own file says.
pub(in crate::resolve) fn grant_ceiling(
    configs: &[(&SourceFile, &ConfigFile)],
    report: &mut Report,
) -> ToolGrants {
    let mut ceiling = ToolGrants::default();
    let own = configs.iter().find(|(file, _)| file.layer() == Layer::User);
    let own =
        own.and_then(|(file, config)| Some(config.ceiling.as_ref()?.grants.as_ref()?.at(file)));
    let Some(own) = own else { return ceiling };
    if let Some(http) = own.inner(|grants| grants.http.as_ref()) {
        ceiling.set(|grants| &mut grants.http, http::ceiling(http, report));
    }
    if let Some(env) = own.inner(|grants| grants.env.as_ref()) {
        ceiling.set(|grants| &mut grants.variables, environment::ceiling(env, report));
    }
    if let Some(names) = own.inner(|grants| grants.secrets.as_ref()) {
        ceiling.set(|grants| &mut grants.secrets, secrets::ceiling(names, report));
    }
    if let Some(storage) = own.inner(|grants| grants.storage.as_ref()) {
        ceiling.set(|grants| &mut grants.storage, storage::ceiling(storage, report));
    }
    if let Some(names) = own.inner(|grants| grants.tools.as_ref()) {
        ceiling.set(|grants| &mut grants.tools, tools::ceiling(names, report));
    }
    ceiling
}

/// Who decides what a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::resolve) enum Code {
    /// kitbag, the user or the program: it is built in, named in the user's own file, or
    /// brought by the program.
    Own,
    /// The workspace, which holds or names its component, or says for which built-in its name
    /// stands.
    Workspace,
}

/// What the user's own file grants a tool of a kind, where a workspace's file takes the place
/// of it: what it grants of that counts, too. A component of the workspace has nothing of it.
pub(super) fn own_of<'a, T>(weaker: &[At<'a, T>], code: Code) -> Option<At<'a, T>> {
    let is_own = |at: &&At<'a, T>| at.file.layer() == Layer::User && code == Code::Own;
    weaker.iter().find(is_own).copied()
}

/// What is said where a workspace's file takes the place of the user's own grants of a kind,
/// and something of it does not count.
pub(super) fn replaces<T, U>(
    kind: &'static str,
    effective: At<'_, T>,
    own: Option<At<'_, U>>,
) -> Option<Sourced<Problem>> {
    let own = Box::new(own?.origin());
    Some(effective.sourced(Problem::ReplacesOwnGrants { kind, own }))
}

impl ToolGrants {
    /// A ceiling that names every kind, and lets nothing be granted.
    pub(in crate::resolve) fn nothing() -> Self {
        let mut nothing = Self::default();
        nothing.set(|grants| &mut grants.http, Sourced::default(HttpGrants::default()));
        nothing.set(|grants| &mut grants.variables, Sourced::default(Vec::new()));
        nothing.set(|grants| &mut grants.secrets, Sourced::default(Vec::new()));
        nothing.set(|grants| &mut grants.storage, Sourced::default(None));
        nothing.set(|grants| &mut grants.tools, Sourced::default(CallableTools::None));
        nothing
    }
}

impl Resolver<'_> {
    /// Why an entry of a tool's grants does not count, if so: a workspace has written it, or
    /// the component that would get it, and it is within neither the ceiling nor what the
    /// user's own file grants the tool. Without a ceiling of its kind, what a workspace has
    /// written counts where that is trusted.
    ///
    /// `kind` is the key of its kind, and `setting` what allows it under `[ceiling.grants]`, in
    /// TOML.
    pub(super) fn beyond_ceiling<T: ?Sized>(
        &self,
        entry: At<'_, T>,
        code: Code,
        is_within: bool,
        (kind, setting): (&str, String),
    ) -> Option<Sourced<Problem>> {
        let is_own = entry.file.layer() == Layer::User && code == Code::Own;
        let has_ceiling = self.workspace_ceiling.has(kind);
        // What the user grants a name of their own is not for the code of a workspace.
        let is_trusted = self.trust.is_trusted() && entry.file.layer() != Layer::User;
        if is_own || is_within || (is_trusted && !has_ceiling) {
            return None;
        }
        if self.is_untrusted() {
            return Some(entry.sourced(Problem::UntrustedGrant));
        }
        let file = self.own_file.map(Into::into);
        let ceiling = has_ceiling.then(|| Box::new(self.grant_ceiling.origin_of(kind).clone()));
        Some(entry.sourced(Problem::BeyondGrantCeiling { ceiling, setting, file }))
    }
}
