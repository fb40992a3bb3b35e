//! The access token of a connection.

use std::sync::Arc;
use std::time::Duration;

use kitbag_base::shell;
use kitbag_policy::server::ServerName;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::exchange::Reach;
use super::login::refresh;
use super::store::{SignIn, SignInStore, StoreLock};

/// The time that a refresh waits for another process.
const LOCK: Duration = Duration::from_secs(45);

/// Reads the sign-in to one server, and refreshes it. Clones share it.
#[derive(Clone)]
pub(crate) struct Access(Arc<State>);

struct State {
    server: ServerName,
    url: String,
    reach: Reach,
    store: Arc<dyn SignInStore>,
    /// Held during a refresh, so that concurrent requests wait for one.
    current: Mutex<Option<SignIn>>,
}

impl Access {
    pub(crate) fn new(
        server: &ServerName,
        url: &str,
        reach: Reach,
        store: &Arc<dyn SignInStore>,
    ) -> Self {
        Self(Arc::new(State {
            server: server.clone(),
            url: url.to_owned(),
            reach,
            store: Arc::clone(store),
            current: Mutex::default(),
        }))
    }

    /// Returns the access token. `None`: the person is not signed in. `rejected` is a token that the
    /// server no longer accepts.
    ///
    /// # Errors
    ///
    /// The reason, for a person.
    pub(crate) async fn token(&self, rejected: Option<&str>) -> Result<Option<String>, String> {
        let state = Arc::clone(&self.0);
        let rejected = rejected.map(str::to_owned);
        // A refresh completes even if its request is cancelled: a rotated token would be lost.
        let task = tokio::spawn(async move { state.token(rejected.as_deref()).await });
        task.await.unwrap_or_else(|_| Err("the refresh of the sign-in failed".to_owned()))
    }

    /// Returns why a person has to sign in, with the command.
    pub(crate) fn required(&self) -> String {
        required(&self.0.server, &[])
    }
}

/// Returns why a person has to sign in, with the command.
pub(crate) fn required(server: &ServerName, scopes: &[String]) -> String {
    let words = ["kitbag", "login", server.as_str()].map(str::to_owned).into_iter();
    let options = scopes.iter().flat_map(|scope| ["--scope".to_owned(), scope.clone()]);
    let command = shell::command(words.chain(options).collect::<Vec<_>>());
    match scopes {
        [] => format!("requires a sign-in: a person has to run `{command}`"),
        scopes => format!(
            "requires a sign-in with the scopes `{}`: a person has to run `{command}`",
            scopes.join(" ")
        ),
    }
}

impl State {
    async fn token(&self, rejected: Option<&str>) -> Result<Option<String>, String> {
        let mut current = self.current.lock().await;
        let is_usable =
            |sign_in: &SignIn| sign_in.is_fresh() && rejected != Some(&*sign_in.access_token);
        if self.store.status(&self.url).is_none() {
            *current = None;
            return Ok(None);
        }
        if let Some(sign_in) = current.as_ref().filter(|it| is_usable(it)) {
            return Ok(Some(sign_in.access_token.clone()));
        }
        // Another process may have refreshed it.
        *current = self.read()?;
        match current.as_ref() {
            None => return Ok(None),
            Some(sign_in) if is_usable(sign_in) => return Ok(Some(sign_in.access_token.clone())),
            Some(_) => {}
        }
        let lock = self.lock().await?;
        *current = self.read()?;
        let Some(sign_in) = current.clone() else { return Ok(None) };
        if is_usable(&sign_in) {
            return Ok(Some(sign_in.access_token));
        }
        let failed = |reason: String| format!("its sign-in cannot be refreshed: {reason}");
        let refreshed = refresh(&self.reach, &sign_in).await;
        let Some(refreshed) = refreshed.map_err(|error| failed(error.to_string()))? else {
            *current = None;
            self.store.delete(&self.url).map_err(failed)?;
            return Ok(None);
        };
        self.store.write(&refreshed).map_err(failed)?;
        drop(lock);
        let token = refreshed.access_token.clone();
        *current = Some(refreshed);
        Ok(Some(token))
    }

    /// Reads the sign-in. One to another server is never used.
    fn read(&self) -> Result<Option<SignIn>, String> {
        let read = self.store.read(&self.url);
        let read = read.map_err(|reason| format!("its sign-in cannot be read: {reason}"))?;
        Ok(read.filter(|sign_in| sign_in.server == self.url))
    }

    async fn lock(&self) -> Result<StoreLock, String> {
        const PAUSE: Duration = Duration::from_millis(20);
        let end = Instant::now() + LOCK;
        while Instant::now() < end {
            if let Some(lock) = self.store.try_lock(&self.url)? {
                return Ok(lock);
            }
            sleep(PAUSE).await;
        }
        Err("another process has locked its sign-in".to_owned())
    }
}
