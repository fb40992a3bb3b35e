//! Tests of the keyring store: `tests/keyring/run` starts a keyring for them.

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

/// Runs another program's keyring client.
fn secret_tool(arguments: &[&str]) -> String {
    let output = Command::new("secret-tool").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn other_programs_find_the_values() {
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
fn the_keyring_works_inside_a_runtime() {
    let (store, end) = (store(), CallEnd::default());
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { assert_eq!(store.names(&end).unwrap(), []) });
}

/// A prompter of the keyring that never answers. Calls `on_prompt` once it should prompt.
fn ask_in_vain(started: mpsc::Sender<()>, on_prompt: impl FnOnce()) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connection = Connection::session().await.unwrap();
        let mut messages = MessageStream::from(&connection);
        connection.request_name("org.gnome.keyring.SystemPrompter").await.unwrap();
        started.send(()).unwrap();
        loop {
            let message = messages.next().await.unwrap().unwrap();
            if message.header().member().is_some_and(|member| *member == "BeginPrompting") {
                break on_prompt();
            }
        }
    });
}

#[test]
fn keyring_prompts_end_with_the_call() {
    let (store, end) = (store(), CallEnd::default());
    store.set(&name("github"), &value("the-value-of-it"), &end).unwrap();
    secret_tool(&["lock"]);
    // Nothing can prompt.
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
