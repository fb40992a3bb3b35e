//! What a person is asked before the files of a workspace count, and what their yes records.

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

/// The most that the components of a workspace have together.
const COMPONENTS_BYTES: ByteSize = ByteSize::mib(1024);

/// What a workspace asks, and what was trusted before.
///
/// It holds what was read: [`give`](Self::give) trusts that and nothing else, whatever has become
/// of the files meanwhile.
pub struct TrustQuestion<'a> {
    kitbag: &'a Kitbag,
    store: TrustStore,
    /// What would be trusted.
    pub record: TrustRecord,
    /// The requests of the workspace, each with its change since it was trusted, those that are
    /// gone among them.
    pub items: Vec<RequestItem>,
    /// What it asks, and the texts of its files.
    pub shown: TrustedContent,
    /// What was trusted before, and what was shown then.
    pub before: Option<(TrustRecord, TrustedContent)>,
    /// How its requests and restrictions differ from those that were trusted before. `None`:
    /// nothing was, or its files are not kept.
    pub changes: Option<TrustChanges>,
}

/// Why nobody can be asked to trust a workspace, or the answer cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum TrustQuestionError {
    /// Another user can change its configuration, which is not read therefore.
    #[error(transparent)]
    Ignored(Box<IgnoredWorkspace>),
    /// It was not read to be asked about.
    #[error("the configuration was not read to show what it asks")]
    NotAsked,
    /// Nothing configures it.
    #[error("`{}` has no configuration and no tools of its own: there is nothing to trust",
        shown(&root.to_string_lossy()))]
    Nothing {
        /// The root of the workspace.
        root: PathBuf,
    },
    /// There is nothing to keep the answer in.
    #[error("trust cannot be remembered, since neither `HOME` nor `KITBAG_STATE_DIR` is set")]
    NoState,
    /// The workspace could write the record itself.
    #[error(
        "trust cannot be remembered: the state directory `{}` lies in the workspace; set \
         `KITBAG_STATE_DIR` to another one",
        shown(&state.to_string_lossy())
    )]
    StateInside {
        /// The state directory.
        state: PathBuf,
    },
    /// The path of the workspace cannot be written down.
    #[error("the path of the workspace is not UTF-8, so that no trust in it can be remembered")]
    NotUtf8,
    /// A component cannot be read.
    #[error("the component `{}` cannot be looked at: {reason}", shown(&path.to_string_lossy()))]
    Component {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The records cannot be read or written.
    #[error(transparent)]
    Store(#[from] TrustError),
    /// It cannot be logged, which the settings require.
    #[error("nothing was trusted, since `[audit] required` wants it logged: {0}")]
    Audit(#[source] AuditError),
}

impl Kitbag {
    /// What the workspace asks. The configuration was read for that, with
    /// [`Builder::ask_trust`](crate::Builder::ask_trust).
    ///
    /// # Errors
    ///
    /// [`TrustQuestionError`] where there is nothing to ask, or nowhere to keep the answer.
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
        // One that cannot be read is as none, and is replaced.
        let before = store.find(&content.root).ok().flatten();
        // Files that are gone can have held a restriction.
        if content.is_empty() && before.is_none() {
            return Err(nothing);
        }
        let record = record(config, content)?;
        let items = request_items(config);
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

    /// Trusts this workspace no longer, by its path without links. Returns whether it was.
    ///
    /// # Errors
    ///
    /// [`TrustQuestionError`] where the record cannot be removed, or that cannot be logged.
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

    /// The workspaces that a person trusts.
    ///
    /// # Errors
    ///
    /// [`TrustQuestionError`] where the records cannot be read.
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
    /// Whether this is not what is trusted already.
    pub fn is_news(&self) -> bool {
        let before = self.before.as_ref().map(|(record, _)| record.digest());
        before != Some(self.record.digest())
    }

    /// Trusts what was shown, in the name of who said so: it is logged, and then recorded.
    ///
    /// # Errors
    ///
    /// [`TrustQuestionError`] where it cannot be logged or recorded; nothing is trusted then.
    pub fn give(&self, caller: &Caller) -> Result<(), TrustQuestionError> {
        let record = &self.record;
        self.kitbag.log_trust(&record.workspace, caller, Some(record.digest()))?;
        self.store.write(record, &self.shown)?;
        Ok(())
    }
}

/// The requests, compared with the lines that were shown when the workspace was trusted.
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

/// A restriction that was trusted and is gone or less strict.
fn loosened(change: &TrustChange) -> RequestItem {
    let requester = match &change.subject {
        TrustSubject::Tool(name) => Requester::Tool(name.to_string()),
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

/// How a workspace differs from what was trusted before: its requests and restrictions, and the
/// components that it still names.
fn changes(config: &Config, now: &TrustRecord, before: &TrustRecord) -> Option<TrustChanges> {
    let mut changes = match &config.review {
        Some(review) => review.changes.clone(),
        None if now.files == before.files => TrustChanges::default(),
        None => return None,
    };
    for (path, digest) in &now.components {
        if before.components.get(path).is_some_and(|before| before != digest) {
            let text = format!("the component `{path}` is another one");
            changes.added.push(TrustChange { subject: TrustSubject::Workspace, text });
        }
    }
    Some(changes)
}

/// The digest of a component, of which all together may have `left` more bytes. `None`: there is no
/// such file.
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
            let together = "the components of the workspace are larger together than";
            return Err(failed(format!("{together} {COMPONENTS_BYTES}")));
        }
    }
    Ok(Some(digest))
}

/// The texts of the files, as they were read.
fn texts(config: &Config, content: &WorkspaceContent) -> BTreeMap<ContentDigest, String> {
    let is_wanted = |digest: &ContentDigest| content.files.values().any(|wanted| wanted == digest);
    let files = config.files.iter().map(|file| (file.digest(), file.content().into_owned()));
    files.filter(|(digest, _)| is_wanted(digest)).collect()
}
