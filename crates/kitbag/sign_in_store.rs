//! Sign-ins to remote servers, in the secret store. Files in the state directory say which exist,
//! so that no store is opened for a server without one.

use std::sync::Arc;

use kitbag_config::Config;
use kitbag_servers::sign_in::SignInStore;

/// Returns the store of sign-ins. `None`: no state is kept.
#[cfg(feature = "store")]
pub fn sign_in_store(config: &Config) -> Option<Arc<dyn SignInStore>> {
    let directory = config.state.as_ref()?.value.join("sign-ins");
    Some(Arc::new(stored::Stored { directory, config: config.secret_store.clone() }))
}

/// Returns the store of sign-ins, which this build does not have.
#[cfg(not(feature = "store"))]
pub fn sign_in_store(_: &Config) -> Option<Arc<dyn SignInStore>> {
    None
}

#[cfg(feature = "store")]
mod stored {
    use std::fs::{self, File, OpenOptions, TryLockError};
    use std::io::{self, Write as _};
    use std::path::{Path, PathBuf};

    use kitbag_config::{SecretStore, SecretStoreKind};
    use kitbag_fs_guard::sys::{create_private_directories, with_private_mode};
    use kitbag_policy::SecretName;
    use kitbag_secrets::store::Store;
    use kitbag_secrets::{CallEnd, SecretValue};
    use kitbag_servers::sign_in::{SignIn, SignInStatus, SignInStore, StoreLock, key};

    pub(super) struct Stored {
        pub(super) directory: PathBuf,
        pub(super) config: SecretStore,
    }

    impl Stored {
        fn path(&self, server: &str, extension: &str) -> PathBuf {
            self.directory.join(key(server)).with_extension(extension)
        }

        fn open(&self, end: &CallEnd) -> Result<Store, String> {
            let kind =
                self.config.kind.as_ref().map_or(SecretStoreKind::KeyFile, |kind| kind.value);
            let opened = crate::open_store(&self.config, kind, end, || Ok(None));
            opened.map_err(|error| error.to_string())
        }
    }

    fn name(server: &str) -> SecretName {
        SecretName::new(key(server)).expect("a constant and hexadecimal digits")
    }

    fn at(path: &Path) -> impl Fn(io::Error) -> String {
        move |error| format!("`{}`: {error}", path.display())
    }

    impl SignInStore for Stored {
        fn status(&self, server: &str) -> Option<SignInStatus> {
            let text = fs::read_to_string(self.path(server, "json")).ok()?;
            let status = SignInStatus::of_json(&text)?;
            (status.server == server).then_some(status)
        }

        fn read(&self, server: &str) -> Result<Option<SignIn>, String> {
            let end = CallEnd::default();
            let value = self.open(&end)?.get(&name(server), &end);
            let Some(value) = value.map_err(|error| error.to_string())? else { return Ok(None) };
            let sign_in = SignIn::of_json(value.reveal());
            Ok(sign_in.filter(|sign_in| sign_in.server() == server))
        }

        fn write(&self, sign_in: &SignIn) -> Result<(), String> {
            let end = CallEnd::default();
            create_private_directories(&self.directory).map_err(at(&self.directory))?;
            let value = SecretValue::new(sign_in.to_json().into())
                .map_err(|_| "its tokens have more than 8 KiB together".to_owned())?;
            let set = self.open(&end)?.set(&name(sign_in.server()), &value, &end);
            set.map_err(|error| error.to_string())?;
            let path = self.path(sign_in.server(), "json");
            let new = self.path(sign_in.server(), "new");
            let status = sign_in.status().to_json();
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
            let written = with_private_mode(&mut options)
                .open(&new)
                .and_then(|mut file| file.write_all(status.as_bytes()))
                .and_then(|()| fs::rename(&new, &path));
            written.map_err(at(&path))
        }

        fn delete(&self, server: &str) -> Result<bool, String> {
            let end = CallEnd::default();
            let deleted = self.open(&end)?.delete(&name(server), &end);
            let deleted = deleted.map_err(|error| error.to_string())?;
            let path = self.path(server, "json");
            match fs::remove_file(&path) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(deleted),
                Err(error) => Err(at(&path)(error)),
            }
        }

        fn try_lock(&self, server: &str) -> Result<Option<StoreLock>, String> {
            create_private_directories(&self.directory).map_err(at(&self.directory))?;
            let path = self.path(server, "lock");
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            let file: File = with_private_mode(&mut options).open(&path).map_err(at(&path))?;
            match file.try_lock() {
                Ok(()) => Ok(Some(Box::new(file))),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(error)) => Err(at(&path)(error)),
            }
        }
    }
}
