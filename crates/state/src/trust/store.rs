//! The store of trust records.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{SharedState, StateError, files};
use kitbag_base::ContentDigest;
use kitbag_base::text::shown;
use serde::{Deserialize, Serialize};

use crate::trust::record::{TrustRecord, VERSION, digest_of};

/// Maximum size of a record that is read: about 30,000 files.
const RECORD_BYTES: u64 = 4 << 20;

/// Maximum size of the shown content that is read.
const SHOWN_BYTES: u64 = 256 << 20;

/// The extension of a record.
const RECORD: &str = ".json";

/// The extension of the content that was shown.
const SHOWN: &str = ".shown";

/// The content that was shown when a workspace was trusted, to show changes later.
///
/// Edits are compared with the shown files. A file is used only if the record has its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedContent {
    /// The requests, in lines.
    pub asks: Vec<String>,
    /// The content of the files, by digest.
    pub texts: BTreeMap<ContentDigest, String>,
}

/// The content of trusted files, by path in the workspace.
pub type TrustedTexts = BTreeMap<String, String>;

/// The records of a user. Accesses no files until it is used.
#[derive(Debug)]
pub struct TrustStore {
    state: SharedState,
    path: PathBuf,
}

/// Why a record cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The directory of the records cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file in the directory cannot be used.
    #[error("`{}` cannot be used: {reason}", shown(&path.to_string_lossy()))]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl TrustStore {
    /// Creates the store in the state directory, whose path must be absolute.
    pub fn new(state: &Path) -> Self {
        let path = state.join("trust");
        Self { state: SharedState::new(state, "trust"), path }
    }

    /// Returns the directory of the records, which need not exist.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory of the records, so that it can be watched.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if it cannot be created or used.
    pub fn make(&self) -> Result<&Path, TrustError> {
        Ok(self.state.make()?)
    }

    /// Returns the record of a workspace, by its canonical path. `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if the record cannot be read, or another user could have written it.
    pub fn find(&self, workspace: &Path) -> Result<Option<TrustRecord>, TrustError> {
        let Some(directory) = self.state.find()? else { return Ok(None) };
        let path = directory.join(name(workspace, RECORD));
        let Some(record) = read_record(&path)? else { return Ok(None) };
        // A record that was copied to the path of another workspace is not valid.
        match workspace.to_str() == Some(&record.workspace) {
            true => Ok(Some(record)),
            false => Err(failed(&path, "it is the record of a different workspace")),
        }
    }

    /// Returns the content that was shown when a workspace was trusted, as far as it was kept.
    ///
    /// # Errors
    ///
    /// As for [`find`](Self::find).
    pub fn shown(&self, workspace: &Path) -> Result<TrustedContent, TrustError> {
        let Some(directory) = self.state.find()? else { return Ok(TrustedContent::default()) };
        let path = directory.join(name(workspace, SHOWN));
        let mut kept: TrustedContent = files::read(&path, SHOWN_BYTES)?.unwrap_or_default();
        kept.texts.retain(|digest, text| digest_of(text.as_bytes()) == *digest);
        Ok(kept)
    }

    /// Returns the content of the files that a record trusts, by path. `None` if one of them was not
    /// kept.
    ///
    /// # Errors
    ///
    /// As for [`find`](Self::find).
    pub fn texts(&self, record: &TrustRecord) -> Result<Option<TrustedTexts>, TrustError> {
        let shown = self.shown(Path::new(&record.workspace))?;
        let text = |digest| shown.texts.get(digest).cloned();
        let texts = record.files.iter().map(|(path, digest)| Some((path.clone(), text(digest)?)));
        Ok(texts.collect())
    }

    /// Replaces the record and the content that was shown.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if they cannot be written. The previous trust is still in effect then.
    pub fn write(&self, record: &TrustRecord, shown: &TrustedContent) -> Result<(), TrustError> {
        let directory = self.state.make()?;
        let _lock = files::lock(directory)?;
        let workspace = Path::new(&record.workspace);
        // If the process is stopped in between, the previous record remains, and its changes are
        // shown as whole files.
        files::write(&directory.join(name(workspace, SHOWN)), shown)?;
        Ok(files::write(&directory.join(name(workspace, RECORD)), record)?)
    }

    /// Returns true if a workspace has a record, valid or not.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if the directory of the records cannot be used.
    pub fn is_kept(&self, workspace: &Path) -> Result<bool, TrustError> {
        let directory = self.state.find()?;
        let is_there =
            |directory: &Path| directory.join(name(workspace, RECORD)).symlink_metadata().is_ok();
        Ok(directory.is_some_and(is_there))
    }

    /// Revokes the trust in a workspace. Returns true if it was trusted.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if the record cannot be removed.
    pub fn revoke(&self, workspace: &Path) -> Result<bool, TrustError> {
        let Some(directory) = self.state.find()? else { return Ok(false) };
        let _lock = files::lock(directory)?;
        let was_there = files::remove(&directory.join(name(workspace, RECORD)))?;
        files::remove(&directory.join(name(workspace, SHOWN)))?;
        Ok(was_there)
    }

    /// Returns all records, by path of the workspace.
    ///
    /// # Errors
    ///
    /// As for [`find`](Self::find).
    pub fn all(&self) -> Result<Vec<TrustRecord>, TrustError> {
        let Some(directory) = self.state.find()? else { return Ok(Vec::new()) };
        let mut records = Vec::new();
        let unreadable = |error: io::Error| failed(directory, error.to_string());
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            let file_name = entry.map_err(unreadable)?.file_name();
            let is_record = |name: &str| name.ends_with(RECORD) && !name.starts_with('.');
            if file_name.to_str().is_some_and(is_record) {
                let path = directory.join(&file_name);
                let record = read_record(&path)?;
                let is_own = |record: &TrustRecord| {
                    name(Path::new(&record.workspace), RECORD).as_str() == file_name
                };
                records.extend(record.filter(is_own));
            }
        }
        records.sort_by(|a, b| a.workspace.cmp(&b.workspace));
        Ok(records)
    }
}

/// Returns the file name for a workspace.
fn name(workspace: &Path, end: &str) -> String {
    let hash = blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex();
    format!("{}{end}", &hash[..32])
}

fn failed(path: &Path, reason: impl Into<String>) -> TrustError {
    TrustError::File { path: path.to_owned(), reason: reason.into() }
}

fn read_record(path: &Path) -> Result<Option<TrustRecord>, TrustError> {
    let record: Option<TrustRecord> = files::read(path, RECORD_BYTES)?;
    match record {
        Some(TrustRecord { version, .. }) if version != VERSION => {
            Err(failed(path, format!("it has format {version} of a different kitbag version")))
        }
        record => Ok(record),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;
    use crate::trust::record::WorkspaceEdit;

    #[test]
    fn digests_do_not_depend_on_the_reader() {
        let content = "content".repeat(100_000);
        let (digest, size) = crate::trust::digest_of_reader(content.as_bytes()).unwrap();
        assert_eq!((digest, size), (digest_of(content.as_bytes()), 700_000));
    }

    fn store() -> (TempDir, TrustStore) {
        let directory = tempfile::tempdir().unwrap();
        let store = TrustStore::new(&directory.path().join("state"));
        (directory, store)
    }

    fn record(workspace: &str) -> TrustRecord {
        let mut record = TrustRecord { seconds: 1, ..TrustRecord::new(workspace) };
        record.files.insert("a".into(), digest_of(b"a"));
        record
    }

    #[test]
    fn records_are_found_only_by_their_workspace() {
        let (_directory, store) = store();
        assert!(store.find(Path::new("/w")).unwrap().is_none());
        store.write(&record("/w"), &TrustedContent::default()).unwrap();
        assert_eq!(store.find(Path::new("/w")).unwrap().unwrap(), record("/w"));
        assert!(store.find(Path::new("/v")).unwrap().is_none());
        assert_eq!(store.all().unwrap(), [record("/w")]);
        // Copied to the path of another workspace.
        let at = |workspace: &str| store.path().join(name(Path::new(workspace), RECORD));
        fs::copy(at("/w"), at("/v")).unwrap();
        let error = store.find(Path::new("/v")).unwrap_err().to_string();
        assert!(error.ends_with("it is the record of a different workspace"), "{error}");
        assert_eq!(store.all().unwrap(), [record("/w")]);
        assert!(store.revoke(Path::new("/w")).unwrap());
        assert!(!store.revoke(Path::new("/w")).unwrap());
        assert!(store.find(Path::new("/w")).unwrap().is_none());
    }

    #[test]
    fn untrusted_or_damaged_records_are_errors() {
        let (_directory, store) = store();
        store.write(&record("/w"), &TrustedContent::default()).unwrap();
        let path = store.path().join(name(Path::new("/w"), RECORD));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
        assert!(store.find(Path::new("/w")).unwrap_err().to_string().contains("mode 622"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let whole = fs::read(&path).unwrap();
        for end in [0, 1, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..end]).unwrap();
            assert!(store.find(Path::new("/w")).is_err(), "{end}");
        }
        let newer = String::from_utf8(whole).unwrap().replace("\"version\":1", "\"version\":2");
        fs::write(&path, newer).unwrap();
        assert!(store.find(Path::new("/w")).unwrap_err().to_string().contains("different kitbag"));
    }

    #[test]
    fn shown_content_matches_its_digests() {
        let (_directory, store) = store();
        let texts = [(digest_of(b"one"), "one"), (digest_of(b"two"), "another")];
        let texts = texts.map(|(digest, text)| (digest, text.to_owned())).into();
        let shown = TrustedContent { asks: vec!["a".into()], texts };
        store.write(&record("/w"), &shown).unwrap();
        let kept = store.shown(Path::new("/w")).unwrap();
        assert_eq!(kept.texts.into_values().collect::<Vec<_>>(), ["one"]);
        assert_eq!(kept.asks, ["a"]);
    }

    #[test]
    fn every_difference_is_a_change() {
        let mut trusted = record("/w");
        trusted.files.insert("b".into(), digest_of(b"b"));
        let files = [("a", digest_of(b"A")), ("c", digest_of(b"c"))];
        assert_eq!(
            trusted.changes(files),
            [
                WorkspaceEdit::Changed("a".into()),
                WorkspaceEdit::Added("c".into()),
                WorkspaceEdit::Removed("b".into())
            ]
        );
        let same = [("b", digest_of(b"b")), ("a", digest_of(b"a"))];
        assert_eq!(trusted.changes(same), []);
    }

    #[test]
    fn record_digests_do_not_depend_on_the_time() {
        let (a, mut b) = (record("/w"), record("/w"));
        b.seconds += 1;
        assert_eq!(a.digest(), b.digest());
        b.components.insert("c".into(), None);
        assert_ne!(a.digest(), b.digest());
    }
}
