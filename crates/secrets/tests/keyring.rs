//! A keyring keeps values: `tests/keyring/run` starts one for these.

use std::process::Command;
use std::sync::mpsc;
use std::thread;

use futures_util::StreamExt;
use kitbag_policy::SecretName;
use kitbag_secrets::store::{Keyring, Store, StoreError};
use kitbag_secrets::{CallEnd, ReadError, ReadSecret, SecretValue};
use tokio::runtime::Builder;
use zbus::{Connection, MessageStream};

fn store() -> Store {
    Store::Keyring(Keyring::default())
}

fn name(text: &str) -> SecretName {
    SecretName::new(text).unwrap()
}

fn value(text: &str) -> SecretValue {
    SecretValue::new(text.into()).unwrap()
}

/// What another program has to say of the keyring.
fn secret_tool(arguments: &[&str]) -> String {
    let output = Command::new("secret-tool").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn values_are_kept_under_their_names_where_other_programs_find_them() {
    let (store, end) = (store(), CallEnd::default());
    let kept = |secret: &str| {
        store.get(&name(secret), &end).unwrap().map(|value| value.reveal().to_owned())
    };
    assert_eq!(store.names(&end).unwrap(), []);
    assert_eq!(kept("github"), None);
    assert!(matches!(store.read(&name("github"), &end), Err(ReadError::Missing { .. })));
    assert!(!store.delete(&name("github"), &end).unwrap());

    assert!(!store.set(&name("github"), &value("the-first-value"), &end).unwrap());
    assert!(store.set(&name("github"), &value("the-sécond-value"), &end).unwrap());
    assert!(!store.set(&name("other"), &value("something-else"), &end).unwrap());
    assert_eq!(store.names(&end).unwrap(), [name("github"), name("other")]);
    assert_eq!(kept("github").as_deref(), Some("the-sécond-value"));
    let found = secret_tool(&["lookup", "application", "kitbag", "secret", "github"]);
    assert_eq!(found, "the-sécond-value");
    let shown = secret_tool(&["search", "application", "kitbag", "secret", "other"]);
    assert!(shown.contains("label = kitbag: other\n"), "{shown}");

    assert!(store.delete(&name("github"), &end).unwrap());
    assert_eq!(store.names(&end).unwrap(), [name("other")]);
    assert_eq!(kept("other").as_deref(), Some("something-else"));
}

#[test]
fn a_keyring_is_asked_inside_a_runtime_too() {
    let (store, end) = (store(), CallEnd::default());
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { assert_eq!(store.names(&end).unwrap(), []) });
}

/// What asks the user for the keyring, and never gets an answer. `asked` is called once it is to
/// ask.
fn ask_in_vain(started: mpsc::Sender<()>, asked: impl FnOnce()) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connection = Connection::session().await.unwrap();
        let mut messages = MessageStream::from(&connection);
        connection.request_name("org.gnome.keyring.SystemPrompter").await.unwrap();
        started.send(()).unwrap();
        loop {
            let message = messages.next().await.unwrap().unwrap();
            if message.header().member().is_some_and(|member| *member == "BeginPrompting") {
                break asked();
            }
        }
    });
}

#[test]
fn a_locked_keyring_asks_its_user_no_longer_than_the_call_goes_on() {
    let (store, end) = (store(), CallEnd::default());
    store.set(&name("github"), &value("the-value-of-it"), &end).unwrap();
    secret_tool(&["lock"]);
    // There is nothing that could ask.
    let locked = store.names(&end).unwrap_err();
    assert!(matches!(locked, StoreError::LockedKeyring), "{locked}");
    let (started, starts) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| ask_in_vain(started, || end.end()));
        starts.recv().unwrap();
        assert_eq!(store.read(&name("github"), &end).err(), Some(ReadError::CallEnded));
    });
    assert_eq!(store.read(&name("github"), &end).err(), Some(ReadError::CallEnded));
}
