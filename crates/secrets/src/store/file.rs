//! A store in an encrypted file.
//!
//! The file is in `age` format, so that other programs can read it, and contains a JSON object of
//! names and values. Writes are atomic, and concurrent processes do not lose each other's changes.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::SecretValue;
use age::secrecy::{ExposeSecret, SecretString};
use age::{scrypt, x25519};
use kitbag_fs_guard::sys::{
    create_private_directories, effective_user, mode_of_metadata, nonblocking, owner_of_metadata,
    private_permissions, with_private_mode,
};
use kitbag_policy::SecretName;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::store::error::{MOST_BYTES, StoreError};

/// An encrypted file of values.
pub struct FileStore {
    path: PathBuf,
    key: Key,
}

/// The key of the file.
pub enum Key {
    /// A file with an `age` key, which is created together with the first value.
    File(PathBuf),
    /// A passphrase.
    Passphrase(SecretValue),
}

/// The decrypted content. Its strings are wiped.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    secrets: BTreeMap<SecretName, String>,
}

/// The version of [`Content`].
const VERSION: u32 = 1;

impl Drop for Content {
    fn drop(&mut self) {
        self.secrets.values_mut().for_each(Zeroize::zeroize);
    }
}

impl FileStore {
    /// Creates a store in this file, which need not exist.
    pub fn new(path: impl Into<PathBuf>, key: Key) -> Self {
        Self { path: path.into(), key }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of the stored values.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be opened.
    pub fn names(&self) -> Result<Vec<SecretName>, StoreError> {
        Ok(self.load()?.secrets.keys().cloned().collect())
    }

    /// Returns the value with this name, if any.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be opened.
    pub fn get(&self, name: &SecretName) -> Result<Option<SecretValue>, StoreError> {
        let mut content = self.load()?;
        let value = content.secrets.remove(name);
        Ok(value.map(|value| SecretValue::new(value.into_bytes())).transpose()?)
    }

    /// Stores a value. Returns true if it replaced an existing value.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; the stored values are unchanged.
    pub fn set(&self, name: &SecretName, value: &SecretValue) -> Result<bool, StoreError> {
        self.change(|content| {
            let old = content.secrets.insert(name.clone(), value.reveal().to_owned());
            let was_there = old.map(Zeroizing::new).is_some();
            (was_there, true)
        })
    }

    /// Removes a value. Returns true if it existed.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; the stored values are unchanged.
    pub fn delete(&self, name: &SecretName) -> Result<bool, StoreError> {
        self.change(|content| {
            let was_there = content.secrets.remove(name).map(Zeroizing::new).is_some();
            (was_there, was_there)
        })
    }

    /// Changes the content if the second result is true. Other processes wait.
    fn change<T>(&self, change: impl FnOnce(&mut Content) -> (T, bool)) -> Result<T, StoreError> {
        let directory = directory(&self.path);
        create_private_directories(directory).map_err(at(directory))?;
        let lock_path = self.path.with_added_extension("lock");
        let mut options = OpenOptions::new();
        // The lock file remains, since a removed file locks nothing.
        options.read(true).write(true).create(true).truncate(false);
        let lock = with_private_mode(&mut options)
            .open(&lock_path)
            .and_then(|file| file.lock().map(|()| file));
        let lock = lock.map_err(at(&lock_path))?;
        let mut content = self.load()?;
        let (result, is_changed) = change(&mut content);
        if is_changed {
            content.version = VERSION;
            self.save(&content)?;
        }
        drop(lock);
        Ok(result)
    }

    fn load(&self) -> Result<Content, StoreError> {
        let Some(encrypted) = read_private(&self.path)? else { return Ok(Content::default()) };
        let locked = |key| move |_| StoreError::Locked { path: self.path.clone(), key };
        let plain = match &self.key {
            Key::File(path) => {
                let no_key = || StoreError::NoKey { key: path.clone(), store: self.path.clone() };
                let identity = read_key(path)?.ok_or_else(no_key)?;
                age::decrypt(&identity, &encrypted).map_err(locked("key"))?
            }
            Key::Passphrase(passphrase) => {
                let identity = scrypt::Identity::new(secret(passphrase));
                age::decrypt(&identity, &encrypted).map_err(locked("passphrase"))?
            }
        };
        let plain = Zeroizing::new(plain);
        let content: Option<Content> = serde_json::from_slice(&plain).ok();
        let content = content.filter(|content| content.version == VERSION);
        content.ok_or_else(|| StoreError::Content { path: self.path.clone() })
    }

    fn save(&self, content: &Content) -> Result<(), StoreError> {
        // Allocated once, since growing would leave copies in memory.
        let size: usize = content.secrets.values().map(|value| value.len() * 6 + 100).sum();
        let mut plain = Zeroizing::new(Vec::with_capacity(size + 100));
        let failed = |reason: String| StoreError::Encrypt { path: self.path.clone(), reason };
        serde_json::to_writer(&mut *plain, content).map_err(|error| failed(error.to_string()))?;
        let encrypted = match &self.key {
            Key::File(path) => {
                let identity = match read_key(path)? {
                    Some(identity) => identity,
                    // Only the first value creates a key, and only for a store that the key opens.
                    None => make_key(path)?,
                };
                age::encrypt(&identity.to_public(), &plain)
            }
            Key::Passphrase(passphrase) => {
                #[allow(unused_mut, reason = "a low work factor keeps the tests fast")]
                let mut recipient = scrypt::Recipient::new(secret(passphrase));
                #[cfg(test)]
                recipient.set_work_factor(2);
                age::encrypt(&recipient, &plain)
            }
        };
        let encrypted = encrypted.map_err(|error| failed(error.to_string()))?;
        if encrypted.len() as u64 > MOST_BYTES {
            return Err(StoreError::Full { path: self.path.clone() });
        }
        write_private(&self.path, &encrypted).map_err(at(&self.path))
    }
}

/// Returns the parent directory of a file.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn at(path: &Path) -> impl Fn(io::Error) -> StoreError {
    move |source| StoreError::File { path: path.to_owned(), source }
}

fn secret(value: &SecretValue) -> SecretString {
    SecretString::from(value.reveal().to_owned())
}

/// Reads a file that only the user can access. Returns `None` if it does not exist.
fn read_private(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
    // A FIFO in its place cannot block.
    let file = match nonblocking(OpenOptions::new().read(true)).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(at(path))?,
    };
    let found = file.metadata().map_err(at(path))?;
    let is_own = owner_of_metadata(&found) == effective_user();
    if mode_of_metadata(&found) & 0o077 != 0 || !is_own || !found.is_file() {
        return Err(StoreError::Shared { path: path.to_owned() });
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(found.len().min(MOST_BYTES) as usize + 1));
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(at(path))?;
    Ok(Some(bytes))
}

/// Writes a file atomically. Only the user can access it.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private_file(directory(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    // If the path is a link, its target is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    file.persist(&target).map_err(|error| error.error)?;
    File::open(directory(&target))?.sync_all()
}

fn private_file(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut options = tempfile::Builder::new();
    options.prefix(".kitbag-").permissions(private_permissions());
    options.tempfile_in(directory)
}

/// Reads a key. Returns `None` if the file does not exist.
fn read_key(path: &Path) -> Result<Option<x25519::Identity>, StoreError> {
    let Some(bytes) = read_private(path)? else { return Ok(None) };
    let not_a_key = || StoreError::NotAKey { path: path.to_owned() };
    let text = str::from_utf8(&bytes).map_err(|_| not_a_key())?;
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(Some(line.ok_or_else(not_a_key)?.parse().map_err(|_| not_a_key())?))
}

/// Creates a key if there is none. Only one of two processes succeeds.
fn make_key(path: &Path) -> Result<x25519::Identity, StoreError> {
    let directory = directory(path);
    create_private_directories(directory).map_err(at(directory))?;
    let identity = x25519::Identity::generate();
    let text = identity.to_string();
    let mut file = private_file(directory).map_err(at(path))?;
    let written = writeln!(file, "# The key of kitbag's secret store. Keep it private.")
        .and_then(|()| writeln!(file, "{}", text.expose_secret()))
        .and_then(|()| file.as_file().sync_all());
    written.map_err(at(path))?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(identity),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            read_key(path)?.ok_or_else(|| StoreError::NotAKey { path: path.to_owned() })
        }
        Err(error) => Err(at(path)(error.error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn name(text: &str) -> SecretName {
        SecretName::new(text).unwrap()
    }

    fn value(text: &str) -> SecretValue {
        SecretValue::new(text.as_bytes().to_vec()).unwrap()
    }

    /// Creates a store in a new directory that does not exist yet.
    fn store(directory: &Path) -> FileStore {
        let directory = directory.join("kitbag");
        FileStore::new(directory.join("secrets.age"), Key::File(directory.join("secrets.key")))
    }

    fn kept(store: &FileStore, secret: &str) -> Option<String> {
        store.get(&name(secret)).unwrap().map(|value| value.reveal().to_owned())
    }

    fn mode(path: &Path) -> u32 {
        mode_of_metadata(&path.metadata().unwrap())
    }

    #[test]
    fn values_are_encrypted_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        assert_eq!(kept(&store, "github"), None);
        assert!(store.names().unwrap().is_empty());
        assert!(!store.delete(&name("github")).unwrap());
        assert!(!store.path().exists());

        assert!(!store.set(&name("github"), &value("the-first-value")).unwrap());
        assert!(store.set(&name("github"), &value("the-second-value")).unwrap());
        assert!(!store.set(&name("other"), &value("something-else")).unwrap());
        assert_eq!(kept(&store, "github").as_deref(), Some("the-second-value"));
        assert_eq!(store.names().unwrap(), [name("github"), name("other")]);
        let file = fs::read(store.path()).unwrap();
        assert!(file.starts_with(b"age-encryption.org/v1\n"));
        for text in ["second-value", "github", "other"] {
            assert!(memchr::memmem::find(&file, text.as_bytes()).is_none(), "{text}");
        }
        let parent = store.path().parent().unwrap();
        assert_eq!(mode(store.path()), 0o600);
        assert_eq!(mode(&parent.join("secrets.key")), 0o600);
        assert_eq!(mode(parent), 0o700);

        assert!(store.delete(&name("github")).unwrap());
        assert_eq!(kept(&store, "github"), None);
        assert_eq!(kept(&store, "other").as_deref(), Some("something-else"));
        // No temporary file is left.
        let mut names: Vec<_> =
            fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["secrets.age", "secrets.age.lock", "secrets.key"]);
    }

    #[test]
    fn passphrases_open_their_store() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secrets.age");
        let store = |passphrase: &str| FileStore::new(&path, Key::Passphrase(value(passphrase)));
        store("a long passphrase").set(&name("github"), &value("the-value-of-it")).unwrap();
        let kept = kept(&store("a long passphrase"), "github");
        assert_eq!(kept.as_deref(), Some("the-value-of-it"));
        let before = fs::read(&path).unwrap();
        let set = store("another passphrase").set(&name("github"), &value("other-value"));
        let error = set.unwrap_err().to_string();
        let expected = format!("`{}` cannot be opened with its passphrase", path.display());
        assert_eq!(error, expected);
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn modified_or_shared_stores_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        store.set(&name("github"), &value("the-value-of-it")).unwrap();
        let key = store.path().with_file_name("secrets.key");
        let check = |expected: &str| {
            for error in [store.names().unwrap_err(), store.delete(&name("x")).unwrap_err()] {
                assert!(error.to_string().contains(expected), "{error}");
            }
        };
        for path in [store.path(), &key] {
            fs::set_permissions(path, Permissions::from_mode(0o640)).unwrap();
            check("can be read or written by other users");
            fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        }
        let (store_bytes, key_bytes) = (fs::read(store.path()).unwrap(), fs::read(&key).unwrap());
        let mut changed = store_bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        fs::write(store.path(), &changed).unwrap();
        check("cannot be opened with its key");
        fs::write(store.path(), &store_bytes[..store_bytes.len() / 2]).unwrap();
        check("cannot be opened with its key");
        fs::write(store.path(), "").unwrap();
        check("cannot be opened with its key");
        fs::write(store.path(), &store_bytes).unwrap();
        fs::write(&key, "# nothing\n").unwrap();
        check("does not contain an age key");
        // No other key is created, since the values would be lost.
        fs::remove_file(&key).unwrap();
        check("is missing");
        assert!(!key.exists());
        fs::write(&key, &key_bytes).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(kept(&store, "github").as_deref(), Some("the-value-of-it"));
    }

    #[test]
    fn concurrent_writers_lose_no_values() {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let store = store(directory.path());
                scope.spawn(move || {
                    for number in 0..5 {
                        let name = name(&format!("secret-{writer}-{number}"));
                        store.set(&name, &value(&format!("value-of-{name}"))).unwrap();
                        assert!(kept(&store, name.as_str()).is_some());
                    }
                });
            }
        });
        let store = store(directory.path());
        let names = store.names().unwrap();
        assert_eq!(names.len(), 20);
        for name in names {
            assert_eq!(kept(&store, name.as_str()), Some(format!("value-of-{name}")));
        }
    }

    #[test]
    fn links_to_the_store_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join("secrets.age"));
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let key = || Key::File(directory.path().join("key"));
        // A dangling link is replaced; a link to a file is kept.
        FileStore::new(&real, key()).set(&name("github"), &value("the-value-of-it")).unwrap();
        FileStore::new(&link, key()).set(&name("other"), &value("something-else")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(FileStore::new(&real, key()).names().unwrap().len(), 2);
    }
}
