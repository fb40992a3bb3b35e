//! The content that configures a workspace. It takes effect if a person trusts its requests, or
//! trusts the workspace by name.

use std::path::Path;
use std::sync::Arc;

use kitbag_state::trust::{TrustRecord, TrustStore, WorkspaceEdit};

use crate::config::{Config, Trust};
use crate::layers::origin::{Origin, Sourced};
use crate::layers::path::holds;
use crate::read::file::SourceFile;
use crate::read::sources::{Sources, TRUST_VARIABLE, TrustSource};
use crate::trust::review::TrustReview;
use crate::trust::workspace::{
    TrustedBy, UntrustedReason, UntrustedWorkspace, WorkspaceContent, WorkspaceTrust,
};

/// The content that configures a workspace, before it is digested.
pub(crate) struct OwnContent<'a> {
    pub(crate) root: &'a Path,
    pub(crate) files: Vec<(String, &'a SourceFile)>,
    pub(crate) components: Vec<String>,
    /// `true` if there are scripts, which may not have been read yet.
    pub(crate) has_scripts: bool,
    /// `true` if there is a directory of skills, whose descriptions are text for a model.
    pub(crate) has_skills: bool,
}

/// Returns whether the state directory is in a workspace, which could then contain any record. A
/// home directory that is a workspace contains it too, but belongs to the user.
pub(crate) fn lies_in(state: &Path, root: &Path, home: Option<&Path>) -> bool {
    kitbag_fs_guard::canonical(state).starts_with(root) && !holds(root, home)
}

impl Config {
    /// Returns the records of the workspaces that the user trusts. `None`: there is no state
    /// directory.
    pub fn trust_store(&self) -> Option<TrustStore> {
        self.state.as_ref().map(|state| TrustStore::new(&state.value))
    }

    /// Returns the state directory if it is in the workspace of this canonical path, which could
    /// then contain any record.
    pub fn state_inside(&self, root: &Path) -> Option<&Path> {
        let state = &self.state.as_ref()?.value;
        lies_in(state, root, self.home.as_deref()).then_some(state.as_path())
    }

    /// Returns the record of a workspace that no longer has configuration files. The edits are the
    /// removed files.
    pub(crate) fn record_of_nothing(&mut self) -> Option<Arc<TrustRecord>> {
        let root = kitbag_fs_guard::canonical(&self.root.value);
        let is_usable = self.ignored.is_none() && self.state_inside(&root).is_none();
        let record = self.trust_store().filter(|_| is_usable)?.find(&root).ok()??;
        self.note_edits(OwnContent::empty(&root).digested().changes(&record));
        Some(Arc::new(record))
    }

    /// Returns the record of the previous trust, for a workspace that is read to show its requests.
    pub(crate) fn record_before(&mut self) -> Option<Arc<TrustRecord>> {
        let content = self.content.as_ref()?;
        let record = self.trust_store()?.find(&content.root).ok()??;
        let edits = content.changes(&record);
        self.note_edits(edits);
        Some(Arc::new(record))
    }

    fn note_edits(&mut self, files: Vec<WorkspaceEdit>) {
        if !files.is_empty() {
            self.review = Some(TrustReview { files, ..TrustReview::default() });
        }
    }
}

impl<'a> OwnContent<'a> {
    /// Returns the content of a workspace without configuration.
    pub(crate) fn empty(root: &'a Path) -> Self {
        Self {
            root,
            files: Vec::new(),
            components: Vec::new(),
            has_scripts: false,
            has_skills: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.components.is_empty() && !self.has_scripts && !self.has_skills
    }

    pub(crate) fn digested(&self) -> WorkspaceContent {
        let digest = |(path, file): &(String, &SourceFile)| (path.clone(), file.digest());
        WorkspaceContent {
            root: self.root.to_owned(),
            files: self.files.iter().map(digest).collect(),
            components: self.components.clone(),
            has_skills: self.has_skills,
        }
    }

    /// Returns whether the content takes effect. `root` is the workspace as it was found.
    pub(crate) fn trust(
        &self,
        root: &Path,
        trust: &Trust,
        sources: &Sources<'_>,
    ) -> WorkspaceTrust {
        let untrusted = |reason| {
            let root = root.to_owned();
            WorkspaceTrust::Untrusted(Box::new(UntrustedWorkspace {
                root,
                reason,
                leaves_out: false,
            }))
        };
        let by = match &sources.trust {
            TrustSource::Asked => TrustedBy::Question,
            TrustSource::Said(Sourced { value: true, origin }) => TrustedBy::Caller(origin.clone()),
            TrustSource::Said(Sourced { value: false, .. }) if self.is_empty() => {
                return WorkspaceTrust::Nothing;
            }
            TrustSource::Said(Sourced { value: false, origin }) => {
                return untrusted(UntrustedReason::Caller(origin.clone()));
            }
            TrustSource::Recorded if sources.variable_trusts() => {
                TrustedBy::Caller(Origin::environment(TRUST_VARIABLE))
            }
            TrustSource::Recorded => match trust.pattern(self.root) {
                Some(origin) => TrustedBy::Pattern(origin.clone()),
                None if self.is_empty() => return WorkspaceTrust::Nothing,
                None => match self.record(sources) {
                    Ok(record) => TrustedBy::Record(Arc::new(record)),
                    Err(reason) => return untrusted(reason),
                },
            },
        };
        WorkspaceTrust::Trusted(by)
    }

    fn record(&self, sources: &Sources<'_>) -> Result<TrustRecord, UntrustedReason> {
        let Some(state) = &sources.state else { return Err(UntrustedReason::NoState) };
        let state = &state.value;
        if lies_in(state, self.root, sources.home.as_deref()) {
            return Err(UntrustedReason::StateInside(state.clone()));
        }
        let found = TrustStore::new(state).find(self.root);
        let found = found.map_err(|error| UntrustedReason::Record(error.to_string()))?;
        found.ok_or(UntrustedReason::New)
    }
}
