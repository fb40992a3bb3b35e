//! Grants of a workspace beyond the ceiling, which do not take effect.

use kitbag_contract::ToolName;

use crate::config::ConfiguredGrants;
use crate::format::spanned::At;
use crate::read::file::Layer;
use crate::read::sources::BuiltinTool;
use crate::report::text::own_file;
use crate::report::{Diagnostic, DiagnosticKind, Problem};
use crate::resolve::context::Context;

/// Who decides what a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// kitbag, the user or the program: it is built in, named in the user's own file, or
    /// brought by the program.
    Own,
    /// The workspace, which holds or names its component, or says for which built-in its name
    /// stands.
    Workspace,
}

/// The tool that gets grants.
#[derive(Clone, Copy)]
pub(crate) struct Grantee<'a> {
    pub(crate) name: &'a ToolName,
    /// The built-in whose declaration is the default.
    pub(crate) builtin: Option<&'a BuiltinTool<'a>>,
    pub(crate) code: Code,
    /// Whether host directories are opened, and warnings are given.
    pub(crate) is_enabled: bool,
}

/// A kind of grants as the layers have it: the strongest layer takes effect alone.
pub(super) struct Layered<'a, T, R> {
    pub(super) effective: At<'a, T>,
    /// The user's own grants, if a workspace replaces them: its grants within these take effect.
    /// The code of a workspace has none of these.
    pub(super) own: Option<(At<'a, T>, R)>,
}

/// Takes the strongest layer. A weaker layer must be valid all the same, so `read` reads it.
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

/// Decides for each entry of a kind whether it takes effect.
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

    /// Whether an entry takes effect; if not, a warning tells why. Without a ceiling of the kind,
    /// the entries of a trusted workspace take effect.
    ///
    /// `is_within`: the ceiling or the user's own grants hold it. `name` is by what a request
    /// asks for it, and `setting` allows it under `[ceiling.grants]`, in TOML.
    pub(super) fn takes_effect<T: ?Sized>(
        &mut self,
        entry: At<'_, T>,
        is_within: bool,
        name: Option<&str>,
        setting: &str,
    ) -> bool {
        let beyond = self.beyond_ceiling(entry, is_within, setting);
        if let Some(beyond) = beyond {
            self.is_complete = false;
            match name {
                Some(name) => self.leave_out(name, beyond),
                None => self.warn(beyond),
            }
            return false;
        }
        true
    }

    pub(super) fn leave_out(&mut self, name: &str, problem: Diagnostic) {
        self.grants.leave_out(self.kind, name, &problem);
        self.warn(problem);
    }

    /// Warns of a grant, if the tool is enabled.
    pub(super) fn warn(&mut self, diagnostic: Diagnostic) {
        self.grants.warnings.extend(self.grantee.is_enabled.then_some(diagnostic));
    }

    /// Warns if the workspace replaces the user's own grants and not all of its entries take
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

    fn beyond_ceiling<T: ?Sized>(
        &self,
        entry: At<'_, T>,
        is_within: bool,
        setting: &str,
    ) -> Option<Diagnostic> {
        let Self { context, kind, .. } = self;
        let is_own = entry.file.layer() == Layer::User && self.grantee.code == Code::Own;
        let has_ceiling = context.workspace_ceiling.has(kind);
        // What the user grants a name of their own is not for the code of a workspace.
        let is_trusted = context.trust.is_trusted() && entry.file.layer() != Layer::User;
        if is_own || is_within || (is_trusted && !has_ceiling) {
            return None;
        }
        if context.is_untrusted() {
            let message = "this grant has no effect, because the workspace is not trusted; see \
                           `kitbag trust`";
            return Some(Problem::new(DiagnosticKind::UntrustedGrant, message).at(entry.origin()));
        }
        let place = match has_ceiling {
            true => format!(" ({})", context.grant_ceiling.origin_of(kind)),
            false => String::new(),
        };
        let message = format!(
            "this grant has no effect: a workspace may grant only what `[ceiling.grants]` in your \
             user config allows{place}; to allow it, let `[ceiling.grants]` in {} include \
             `{setting}`",
            own_file(context.own_file)
        );
        let problem = Problem::new(DiagnosticKind::BeyondGrantCeiling(kind), message);
        Some(problem.at(entry.origin()))
    }
}
