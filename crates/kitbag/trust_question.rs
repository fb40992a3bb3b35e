//! The question whether a workspace is trusted, and the record of the approval.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kitbag_base::text::{printable, shown};
use kitbag_base::{ByteSize, ContentDigest};
use kitbag_config::{
    Config, IgnoredWorkspace, TrustChange, TrustChanges, TrustSubject, WorkspaceContent,
};
use kitbag_fs_guard::{OpenError, OwnerError, Owners};
use kitbag_host::COMPONENT_BYTES;
use kitbag_state::audit::{AuditError, AuditEvent, TrustEvent};
use kitbag_state::trust::{TrustError, TrustRecord, TrustStore, TrustedContent, digest_of_reader};
use kitbag_toolbox::Caller;
use kitbag_toolbox::consent::{RequestChange, RequestItem, Requester, Risk};

use crate::Kitbag;
use crate::requests::request_items;

/// Maximum total size of a workspace's components.
const COMPONENTS_BYTES: ByteSize = ByteSize::mib(1024);

/// The requests of a workspace, and the previous trust record.
///
/// Holds the content that was read: [`give`](Self::give) trusts only this content, even if the
/// files have changed since.
pub struct TrustQuestion<'a> {
    kitbag: &'a Kitbag,
    store: TrustStore,
    /// The record that an approval would store.
    pub record: TrustRecord,
    /// The requests of the workspace, each with its change since the workspace was trusted,
    /// including removed requests.
    pub items: Vec<RequestItem>,
    /// The requests, and the content of the files.
    pub shown: TrustedContent,
    /// The previous trust record, and the content that was shown then.
    pub before: Option<(TrustRecord, TrustedContent)>,
    /// Differences in requests and restrictions from the previous trust record. `None` if there is
    /// no previous record, or if its files were not stored.
    pub changes: Option<TrustChanges>,
}

/// Why trust in a workspace cannot be requested or recorded.
#[derive(Debug, thiserror::Error)]
pub enum TrustQuestionError {
    /// Another user can change the configuration, so it is not read.
    #[error(transparent)]
    Ignored(Box<IgnoredWorkspace>),
    /// The workspace was not read for a trust question.
    #[error("the configuration was not read to show its requests")]
    NotAsked,
    /// No configuration exists.
    #[error("`{}` has no configuration or tools of its own, so there is nothing to trust",
        shown(&root.to_string_lossy()))]
    Nothing {
        /// The root of the workspace.
        root: PathBuf,
    },
    /// No state directory for the record is known.
    #[error("trust cannot be recorded, because neither `HOME` nor `KITBAG_STATE_DIR` is set")]
    NoState,
    /// The workspace could write the record itself.
    #[error(
        "trust cannot be recorded: the state directory `{}` is in the workspace; set \
         `KITBAG_STATE_DIR` to another directory",
        shown(&state.to_string_lossy())
    )]
    StateInside {
        /// The state directory.
        state: PathBuf,
    },
    /// The path of the workspace is not valid UTF-8.
    #[error("trust cannot be recorded, because the path of the workspace is not UTF-8")]
    NotUtf8,
    /// A component cannot be read.
    #[error("the component `{}` cannot be examined: {reason}", shown(&path.to_string_lossy()))]
    Component {
        /// The file.
        path: PathBuf,
        /// Why the component cannot be read.
        reason: String,
    },
    /// The records cannot be read or written.
    #[error(transparent)]
    Store(#[from] TrustError),
    /// The audit log required by the settings cannot be written.
    #[error(
        "nothing was trusted, because `[audit] required` is set and trust cannot be logged: {0}"
    )]
    Audit(#[source] AuditError),
}

impl Kitbag {
    /// Returns the requests of the workspace. Requires
    /// [`Builder::ask_trust`](crate::Builder::ask_trust).
    ///
    /// # Errors
    ///
    /// [`TrustQuestionError`] if there are no requests, or if the answer cannot be recorded.
    pub fn trust_question(&self) -> Result<TrustQuestion<'_>, TrustQuestionError> {
        let config = self.toolbox.config();
        if let Some(ignored) = &config.ignored {
            return Err(TrustQuestionError::Ignored(Box::new(ignored.clone())));
        }
        let root = || config.root.value.clone();
        let content = config.content.as_ref().ok_or(TrustQuestionError::NotAsked)?;
        let nothing = TrustQuestionError::Nothing { root: root() };
        let store = match store(config, content) {
            Err(_) if content.is_empty() => return Err(nothing),
            store => store?,
        };
        // An unreadable record is treated as missing, and is replaced.
        let before = store.find(&content.root).ok().flatten();
        // Removed files may have contained a restriction.
        if content.is_empty() && before.is_none() {
            return Err(nothing);
        }
        let record = record(config, content)?;
        let items = request_items(&self.toolbox.settled_config());
        let asks = items.iter().map(|item| item.line.clone()).collect();
        let shown = TrustedContent { asks, texts: texts(config, content) };
        let before = before.map(|record| {
            let shown = store.shown(&content.root).unwrap_or_default();
            (record, shown)
        });
        let changes = before.as_ref().and_then(|(before, _)| changes(config, &record, before));
        let items = match &before {
            Some((_, then)) => changed(items, &then.asks),
            None => items,
        };
        let loosened = changes.iter().flat_map(|changes| &changes.loosened).map(loosened);
        let items = items.into_iter().chain(loosened).collect();
        Ok(TrustQuestion { kitbag: self, store, record, items, shown, before, changes })
    }

    /// Revokes trust in this workspace, by its path without links. Returns true if it was trusted.
    ///
    /// # Errors
    ///
    /// [`TrustQuestionError`] if the record cannot be removed, or the removal cannot be logged.
    pub fn revoke_trust(
        &self,
        workspace: &Path,
        caller: &Caller,
    ) -> Result<bool, TrustQuestionError> {
        let store = self.toolbox.config().trust_store().ok_or(TrustQuestionError::NoState)?;
        let is_trusted = store.is_kept(workspace)?;
        if is_trusted {
            self.log_trust(&workspace.to_string_lossy(), caller, None)?;
            store.revoke(workspace)?;
        }
        Ok(is_trusted)
    }

    /// Returns the trusted workspaces.
    ///
    /// # Errors
    ///
    /// [`TrustQuestionError`] if the records cannot be read.
    pub fn trusted_workspaces(&self) -> Result<Vec<TrustRecord>, TrustQuestionError> {
        let store = self.toolbox.config().trust_store().ok_or(TrustQuestionError::NoState)?;
        Ok(store.all()?)
    }

    fn log_trust(
        &self,
        workspace: &str,
        caller: &Caller,
        digest: Option<ContentDigest>,
    ) -> Result<(), TrustQuestionError> {
        let Some(auditor) = self.toolbox.auditor() else { return Ok(()) };
        auditor.record(AuditEvent::Trust(TrustEvent {
            workspace: workspace.to_owned(),
            caller: caller.to_string(),
            digest: digest.map(|digest| digest.to_string()),
        }));
        match auditor.problem() {
            Some(problem) if self.toolbox.config().audit.required.value => {
                Err(TrustQuestionError::Audit(problem))
            }
            _ => Ok(()),
        }
    }
}

impl TrustQuestion<'_> {
    /// Returns true unless the workspace is already trusted with this content.
    pub fn is_news(&self) -> bool {
        let before = self.before.as_ref().map(|(record, _)| record.digest());
        before != Some(self.record.digest())
    }

    /// Trusts the shown content on behalf of `caller`: first logs the decision, then records it.
    ///
    /// # Errors
    ///
    /// [`TrustQuestionError`] if the decision cannot be logged or recorded; the workspace is then
    /// not trusted.
    pub fn give(&self, caller: &Caller) -> Result<(), TrustQuestionError> {
        let record = &self.record;
        self.kitbag.log_trust(&record.workspace, caller, Some(record.digest()))?;
        self.store.write(record, &self.shown)?;
        Ok(())
    }
}

/// Marks requests as added or removed, compared with the lines shown when the workspace was
/// trusted.
fn changed(items: Vec<RequestItem>, then: &[String]) -> Vec<RequestItem> {
    let is_kept = |line: &String| items.iter().any(|item| item.line == *line);
    let gone = then.iter().filter(|line| !is_kept(line)).map(|line| {
        RequestItem::new(Requester::Workspace, line.as_str()).changed(RequestChange::Removed)
    });
    let gone: Vec<_> = gone.collect();
    let compared = items.into_iter().map(|item| match then.contains(&item.line) {
        true => item,
        false => item.changed(RequestChange::Added),
    });
    compared.chain(gone).collect()
}

/// Returns the request for a trusted restriction that was removed or loosened.
fn loosened(change: &TrustChange) -> RequestItem {
    let requester = match &change.subject {
        TrustSubject::Tool(name) => Requester::Tool(name.to_string()),
        TrustSubject::Server(name) => Requester::Server(name.to_string()),
        TrustSubject::Topic(id) => Requester::Topic(id.clone()),
        TrustSubject::Workspace => Requester::Workspace,
    };
    let line = printable(&change.to_string()).to_string();
    RequestItem::new(requester, line).with_risk(Risk::Loosened).changed(RequestChange::Loosened)
}

fn store(config: &Config, content: &WorkspaceContent) -> Result<TrustStore, TrustQuestionError> {
    let store = config.trust_store().ok_or(TrustQuestionError::NoState)?;
    match config.state_inside(&content.root) {
        Some(state) => Err(TrustQuestionError::StateInside { state: state.to_owned() }),
        None => Ok(store),
    }
}

fn record(config: &Config, content: &WorkspaceContent) -> Result<TrustRecord, TrustQuestionError> {
    let root = content.root.to_str().ok_or(TrustQuestionError::NotUtf8)?;
    let mut record = TrustRecord::new(root);
    record.files = content.files.clone();
    let owners = config.owners();
    let mut left = COMPONENTS_BYTES.as_u64();
    for (name, path) in config.workspace_components() {
        record.components.insert(name, component(&path, &owners, &mut left)?);
    }
    record.places = config.named_places();
    Ok(record)
}

/// Returns how a workspace differs from the previous trust record: its requests and restrictions,
/// and its components.
fn changes(config: &Config, now: &TrustRecord, before: &TrustRecord) -> Option<TrustChanges> {
    let mut changes = match &config.review {
        Some(review) => review.changes.clone(),
        None if now.files == before.files => TrustChanges::default(),
        None => return None,
    };
    for (path, digest) in &now.components {
        if before.components.get(path).is_some_and(|before| before != digest) {
            let text = format!("the component `{path}` changed");
            changes.added.push(TrustChange { subject: TrustSubject::Workspace, text });
        }
    }
    Some(changes)
}

/// Returns the digest of a component, with at most `left` more bytes for all components together.
/// `None` if the file does not exist.
fn component(
    path: &Path,
    owners: &Owners,
    left: &mut u64,
) -> Result<Option<ContentDigest>, TrustQuestionError> {
    let failed = |reason: String| TrustQuestionError::Component { path: path.to_owned(), reason };
    let (file, _) = match owners.open_following_links(path) {
        Err(OwnerError::Open(OpenError::Io(error))) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        opened => opened.map_err(|error| failed(error.to_string()))?,
    };
    let most = COMPONENT_BYTES.as_u64();
    let digested = digest_of_reader(file.take(most + 1));
    let (digest, size) = digested.map_err(|error| failed(error.to_string()))?;
    if size > most {
        return Err(failed(format!("it is larger than {COMPONENT_BYTES}")));
    }
    match left.checked_sub(size) {
        Some(more) => *left = more,
        None => {
            let together = "the components of the workspace in total are larger than";
            return Err(failed(format!("{together} {COMPONENTS_BYTES}")));
        }
    }
    Ok(Some(digest))
}

/// Returns the content of the files, as they were read.
fn texts(config: &Config, content: &WorkspaceContent) -> BTreeMap<ContentDigest, String> {
    let is_wanted = |digest: &ContentDigest| content.files.values().any(|wanted| wanted == digest);
    let files = config.files.iter().map(|file| (file.digest(), file.content().into_owned()));
    files.filter(|(digest, _)| is_wanted(digest)).collect()
}
