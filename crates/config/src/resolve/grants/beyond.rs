//! Grants of a workspace beyond the ceiling, which do not take effect.

use kitbag_contract::ToolName;
use kitbag_policy::Kind;

use crate::config::ConfiguredGrants;
use crate::format::span::At;
use crate::read::file::Layer;
use crate::read::sources::BuiltinTool;
use crate::report::text::own_file;
use crate::report::{Diagnostic, DiagnosticKind, Problem};
use crate::resolve::context::Context;

/// The owner of a tool's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// kitbag, the user or the embedding program: the tool is built in, named in the user config,
    /// or provided by the program.
    Own,
    /// The workspace, which contains or names the component, or selects the built-in for the name.
    Workspace,
}

/// The tool that gets grants.
#[derive(Clone, Copy)]
pub(crate) struct Grantee<'a> {
    pub(crate) name: &'a ToolName,
    /// The built-in whose declaration is the default.
    pub(crate) builtin: Option<&'a BuiltinTool<'a>>,
    pub(crate) code: Code,
    /// `true` opens host directories, and warns.
    pub(crate) is_enabled: bool,
}

/// A kind of grants with its layers: only the strongest layer takes effect.
pub(super) struct Layered<'a, T, R> {
    pub(super) effective: At<'a, T>,
    /// The user's own grants, if a workspace replaces them: the workspace's grants within them take
    /// effect. The code of a workspace has no such grants.
    pub(super) own: Option<(At<'a, T>, R)>,
}

/// Selects the strongest layer. Weaker layers must also be valid, so `read` reads them.
pub(super) fn layered<'a, T, R>(
    mut layers: Vec<At<'a, T>>,
    code: Code,
    mut read: impl FnMut(At<'a, T>) -> R,
) -> Option<Layered<'a, T, R>> {
    let effective = layers.pop()?;
    let mut own = None;
    for weaker in layers {
        let read = read(weaker);
        if weaker.file.layer() == Layer::User && code == Code::Own && own.is_none() {
            own = Some((weaker, read));
        }
    }
    Some(Layered { effective, own })
}

/// Decides which entries of a kind take effect.
pub(super) struct Entries<'a, 'g> {
    pub(super) context: &'a Context<'a>,
    pub(super) grantee: Grantee<'a>,
    pub(super) kind: &'static str,
    pub(super) grants: &'g mut ConfiguredGrants,
    is_complete: bool,
}

impl<'a, 'g> Entries<'a, 'g> {
    pub(super) fn new(
        context: &'a Context<'a>,
        grantee: Grantee<'a>,
        kind: &'static str,
        grants: &'g mut ConfiguredGrants,
    ) -> Self {
        Self { context, grantee, kind, grants, is_complete: true }
    }

    /// Returns whether an entry takes effect; if not, a warning gives the reason. Without a ceiling
    /// of the kind, the entries of a trusted workspace take effect.
    ///
    /// `is_within`: the entry is within the ceiling or the user's own grants. `name` is the name
    /// that a request uses, and `one` is the entry as the only grant of the kind.
    pub(super) fn takes_effect<T: ?Sized>(
        &mut self,
        entry: At<'_, T>,
        is_within: bool,
        name: Option<&str>,
        one: &dyn Kind,
    ) -> bool {
        match self.beyond_ceiling(entry, is_within, one) {
            None => true,
            Some(beyond) => {
                self.omit(name, beyond);
                false
            }
        }
    }

    /// Omits an entry, and warns of it. `name` is the name that a request uses.
    pub(super) fn omit(&mut self, name: Option<&str>, beyond: Diagnostic) {
        self.is_complete = false;
        match name {
            Some(name) => self.leave_out(name, beyond),
            None => self.warn(beyond),
        }
    }

    pub(super) fn leave_out(&mut self, name: &str, problem: Diagnostic) {
        self.grants.leave_out(self.kind, name, &problem);
        self.warn(problem);
    }

    /// Warns of a grant, if the tool is enabled.
    pub(super) fn warn(&mut self, diagnostic: Diagnostic) {
        self.grants.warnings.extend(self.grantee.is_enabled.then_some(diagnostic));
    }

    /// Warns if the workspace replaces the user's own grants and some of its entries do not take
    /// effect.
    pub(super) fn finish<T, R>(&mut self, Layered { effective, own }: &Layered<'_, T, R>) {
        let (false, Some((own, _))) = (self.is_complete, own) else { return };
        let kind = self.kind;
        let message = format!(
            "`{kind}` of the workspace replaces the grants in your user config ({}), but not all \
             of it takes effect; remove it to use your own grants",
            own.origin()
        );
        let problem = Problem::new(DiagnosticKind::ReplacesOwnGrants(kind), message);
        self.warn(problem.at(effective.origin()));
    }

    /// Returns why an entry does not take effect. The arguments are those of
    /// [`takes_effect`](Self::takes_effect).
    pub(super) fn beyond_ceiling<T: ?Sized>(
        &self,
        entry: At<'_, T>,
        is_within: bool,
        one: &dyn Kind,
    ) -> Option<Diagnostic> {
        let Self { context, kind, .. } = self;
        let is_own = entry.file.layer() == Layer::User && self.grantee.code == Code::Own;
        let has_ceiling = context.workspace_ceiling.has(kind);
        // The user's grants for a name of their own do not apply to the code of a workspace.
        let is_trusted = context.trust.is_trusted() && entry.file.layer() != Layer::User;
        if is_own || is_within || (is_trusted && !has_ceiling) {
            return None;
        }
        if context.is_untrusted() {
            let message = "this grant has no effect, because the workspace is not trusted; see \
                           `kitbag trust`";
            return Some(
                Problem::new(DiagnosticKind::UntrustedGrant(kind), message).at(entry.origin()),
            );
        }
        let place = match has_ceiling {
            true => format!(" ({})", context.grant_ceiling.origin_of(kind)),
            false => String::new(),
        };
        let message = format!(
            "this grant has no effect: a workspace may grant only what `[ceiling.grants]` in your \
             user config allows{place}; to allow it, let `[ceiling.grants]` in {} include \
             `{}`",
            own_file(context.own_file),
            one.as_ceiling().unwrap_or_default()
        );
        let problem = Problem::new(DiagnosticKind::BeyondGrantCeiling(kind), message);
        Some(problem.at(entry.origin()))
    }
}
