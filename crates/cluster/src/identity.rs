//! The key of a machine or a person: its login at NATS and its signatures.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use kitbag_base::text::shown_path;
use kitbag_fs_guard::sys::{effective_user, mode_of_metadata, owner_of_metadata, private_file};
use nkeys::{KeyPair, KeyPairType};
use zeroize::Zeroizing;

/// Maximum size of a file with a key. A credentials file has a token beside it.
const FILE_BYTES: u64 = 64 << 10;

/// An Ed25519 key in the form of NATS: a user key.
pub struct Identity {
    pair: KeyPair,
    public: String,
}

/// The purpose of a signature. A signature for one purpose is not valid for another, nor for the
/// challenge of a NATS server, which the same key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A call, by a front end.
    Call,
    /// A reply, by a worker.
    Reply,
    /// A snapshot, by a publisher.
    Snapshot,
}

/// An error of reading or using a key.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file of the key cannot be read, or another user could have read or changed it.
    #[error("the key `{path}` cannot be used: {reason}")]
    File {
        /// The path of the file.
        path: String,
        /// The reason.
        reason: String,
    },
}

impl Identity {
    /// Creates a key that is in no file.
    pub fn generate() -> Self {
        Self::new(KeyPair::new_user())
    }

    /// Reads a key from a file with a seed (`SU…`), or from a credentials file of NATS.
    ///
    /// # Errors
    ///
    /// [`IdentityError`] if there is no such file, it has no user key, or other users can access it.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        let mut options = OpenOptions::new();
        let file = private_file(options.read(true)).open(path);
        let read = file.map_err(|error| error.to_string()).and_then(read_private);
        let pair = read.and_then(|text| user_key(&text));
        pair.map(Self::new).map_err(|reason| failed(path, reason))
    }

    /// Reads the key of a file, and creates both if there is no file. Its directory must exist.
    ///
    /// # Errors
    ///
    /// As for [`load`](Self::load).
    pub fn load_or_create(path: &Path) -> Result<Self, IdentityError> {
        let mut options = OpenOptions::new();
        match private_file(options.write(true).create_new(true)).open(path) {
            Ok(mut file) => {
                let identity = Self::generate();
                let seed = identity.pair.seed().map_err(|error| failed(path, error.to_string()))?;
                let line = Zeroizing::new(format!("{seed}\n"));
                let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_all());
                written.map_err(|error| failed(path, error.to_string()))?;
                Ok(identity)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::load(path),
            Err(error) => Err(failed(path, error.to_string())),
        }
    }

    /// The public key: `U` and 55 letters and digits.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// Signs some bytes for a purpose.
    pub fn sign(&self, purpose: Purpose, bytes: &[u8]) -> Vec<u8> {
        // Only a public key without its private half cannot sign.
        self.pair.sign(&purpose.message(bytes)).expect("a private key signs")
    }

    /// The seed, which the connection to NATS requires.
    pub(crate) fn seed(&self) -> Zeroizing<String> {
        Zeroizing::new(self.pair.seed().expect("a private key has a seed"))
    }

    fn new(pair: KeyPair) -> Self {
        let public = pair.public_key();
        Self { pair, public }
    }
}

impl Purpose {
    /// Returns the bytes to sign. The prefix contains a zero byte, and so does no challenge of NATS.
    fn message(self, bytes: &[u8]) -> Vec<u8> {
        let prefix: &[u8] = match self {
            Self::Call => b"kitbag call\0",
            Self::Reply => b"kitbag reply\0",
            Self::Snapshot => b"kitbag snapshot\0",
        };
        [prefix, bytes].concat()
    }
}

/// Returns whether the owner of a public key signed these bytes for this purpose.
pub fn is_signed(public: &str, purpose: Purpose, bytes: &[u8], signature: &[u8]) -> bool {
    is_public_key(public)
        && KeyPair::from_public_key(public)
            .is_ok_and(|pair| pair.verify(&purpose.message(bytes), signature).is_ok())
}

/// Returns whether a string is the public key of a user.
pub fn is_public_key(text: &str) -> bool {
    text.starts_with('U')
        && KeyPair::from_public_key(text)
            .is_ok_and(|pair| pair.key_pair_type() == KeyPairType::User)
}

fn failed(path: &Path, reason: String) -> IdentityError {
    IdentityError::File { path: shown_path(path), reason }
}

/// Reads a file that only its owner can access.
fn read_private(file: File) -> Result<Zeroizing<String>, String> {
    let found = file.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    let (owner, mode) = (owner_of_metadata(&found), mode_of_metadata(&found));
    if owner != effective_user() {
        return Err(format!("it belongs to user {owner}"));
    }
    if mode & 0o077 != 0 {
        let mode = mode & 0o777;
        return Err(format!("it is open to others (mode {mode:03o}); close it with `chmod 600`"));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(FILE_BYTES).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// Finds the seed in a file that has one alone, or in a section of a credentials file.
fn user_key(text: &str) -> Result<KeyPair, String> {
    let is_seed = |line: &&str| line.starts_with("SU") && line.len() == 58;
    let seed = text.lines().map(str::trim).find(is_seed);
    let seed = seed.ok_or("it has no user seed (`SU…`)")?;
    KeyPair::from_seed(seed).map_err(|error| format!("its seed is not valid: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_created_once_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let created = Identity::load_or_create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let loaded = Identity::load_or_create(&path).unwrap();
        assert_eq!(created.public(), loaded.public());
        assert!(is_public_key(loaded.public()));
        assert_eq!(*loaded.seed(), *created.seed());
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        Identity::load_or_create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Identity::load(&path).err().unwrap().to_string();
        assert!(error.contains("open to others (mode 640)"), "{error}");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Identity::load(&link).is_err());
    }

    #[test]
    fn a_credentials_file_has_a_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("worker.creds");
        let identity = Identity::generate();
        let text = format!(
            "-----BEGIN NATS USER JWT-----\neyJ0\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            *identity.seed()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(Identity::load(&path).unwrap().public(), identity.public());
        fs::write(&path, "SA\n").unwrap();
        let error = Identity::load(&path).err().unwrap().to_string();
        assert!(error.ends_with("it has no user seed (`SU…`)"), "{error}");
    }

    #[test]
    fn a_signature_is_for_one_key_and_one_purpose() {
        let (one, other) = (Identity::generate(), Identity::generate());
        let signature = one.sign(Purpose::Call, b"bytes");
        assert!(is_signed(one.public(), Purpose::Call, b"bytes", &signature));
        assert!(!is_signed(one.public(), Purpose::Reply, b"bytes", &signature));
        assert!(!is_signed(one.public(), Purpose::Call, b"byte", &signature));
        assert!(!is_signed(other.public(), Purpose::Call, b"bytes", &signature));
        assert!(!is_signed(one.public(), Purpose::Call, b"bytes", &signature[1..]));
        assert!(!is_signed("", Purpose::Call, b"bytes", &signature));
        let account = KeyPair::new_account();
        assert!(!is_public_key(&account.public_key()));
    }
}
