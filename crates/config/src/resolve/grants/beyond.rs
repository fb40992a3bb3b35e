//! What a workspace grants beyond the ceiling, which does not count.

use crate::format::spanned::At;
use crate::read::file::Layer;
use crate::report::text::own_file;
use crate::report::{Diagnostic, DiagnosticKind, Problem};
use crate::resolve::resolver::Resolver;

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
        (kind, setting): (&'static str, String),
    ) -> Option<Diagnostic> {
        let is_own = entry.file.layer() == Layer::User && code == Code::Own;
        let has_ceiling = self.workspace_ceiling.has(kind);
        // What the user grants a name of their own is not for the code of a workspace.
        let is_trusted = self.trust.is_trusted() && entry.file.layer() != Layer::User;
        if is_own || is_within || (is_trusted && !has_ceiling) {
            return None;
        }
        if self.is_untrusted() {
            let message =
                "this grant does not count, since the workspace is not trusted; see `kitbag trust`";
            return Some(Problem::new(DiagnosticKind::UntrustedGrant, message).at(entry.origin()));
        }
        let place = match has_ceiling {
            true => format!(" ({})", self.grant_ceiling.origin_of(kind)),
            false => String::new(),
        };
        let message = format!(
            "this grant does not count: what the files and components of a workspace are granted \
             counts only within `[ceiling.grants]` of your own file{place}; to allow it, have \
             `[ceiling.grants]` in {} include `{setting}`",
            own_file(self.own_file)
        );
        let problem = Problem::new(DiagnosticKind::BeyondGrantCeiling(kind), message);
        Some(problem.at(entry.origin()))
    }
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
) -> Option<Diagnostic> {
    let message = format!(
        "`{kind}` of the workspace takes the place of what your own file grants the tool ({}), and \
         not all of it counts; without it your own grants count here",
        own?.origin()
    );
    let problem = Problem::new(DiagnosticKind::ReplacesOwnGrants(kind), message);
    Some(problem.at(effective.origin()))
}
