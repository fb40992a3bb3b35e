//! `kitbag login`.

use std::io::{self, IsTerminal as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::config::{Config, Disabled};
use kitbag::policy::http::HttpRequest;
use kitbag::policy::server::{ServerAddress, ServerName};
use kitbag::policy::{SecretName, SecretPlace};
use kitbag::secrets::CallEnd;
use kitbag::servers::sign_in::{
    Login, LoginOptions, Reach, RedirectListener, SignIn, SignInError, SignInStore,
};
use kitbag::{Kitbag, sign_in_store};
use serde_json::json;

use crate::commands::{Global, LimitArgs};
use crate::console::output;
use crate::error::{CliError, Finding};
use crate::exit::Exit;

/// The time in which a person signs in.
const TIME: Duration = Duration::from_secs(300);

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag login docs")]
pub(crate) struct Args {
    /// The name of the MCP server
    name: String,
    /// The URL of a server that is not added yet
    url: Option<String>,
    /// Show a code to enter on any device, instead of opening a browser here
    #[arg(long, conflicts_with = "no_browser")]
    device: bool,
    /// Print the URL, and open no browser
    #[arg(long)]
    no_browser: bool,
    /// Request this scope. Repeat it for several [default: those that the server names]
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Use this client of the authorization server [default: that of the last sign-in, otherwise
    /// register one]
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Use this secret for the client; one of its destinations must be the token endpoint
    #[arg(long, value_name = "NAME", requires = "client_id")]
    client_secret: Option<SecretName>,
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<Exit, CliError> {
        let Remote { kitbag, name, url, store } =
            Remote::find(global, &self.name, self.url.as_deref(), Purpose::SignIn)?;
        let runtime = runtime()?;
        let signed_in = runtime.block_on(self.sign_in(kitbag, &name, url, &*store))?;
        store.write(&signed_in).map_err(|reason| failed(&name, reason))?;
        let status = signed_in.status();
        if global.json {
            output::json(&json!({
                "server": name,
                "url": status.server,
                "issuer": status.issuer,
                "scopes": status.scopes,
                "expiresAt": status.expires_at,
                "refreshable": status.is_refreshable,
            }))?;
            return Ok(Exit::Done);
        }
        let scopes = match &*status.scopes {
            [] => String::new(),
            scopes => format!(" with the scopes {}", scopes.join(", ")),
        };
        output::data(&format!(
            "Signed in to the server {name} at {}{scopes}.\n`{}` ends it.",
            shown(&status.issuer),
            shell::command(["kitbag", "logout", name.as_str()])
        ))?;
        Ok(Exit::Done)
    }

    async fn sign_in(
        &self,
        kitbag: &Kitbag,
        name: &ServerName,
        url: String,
        store: &dyn SignInStore,
    ) -> Result<SignIn, CliError> {
        let refused = |error: SignInError| failed(name, error.to_string());
        let config = kitbag.toolbox().config();
        let mut client = None;
        if let Some(id) = &self.client_id {
            let secret = self.client_secret.as_ref();
            let secret = secret.map(|secret| read_secret(config, secret)).transpose()?;
            client = Some((id.clone(), secret));
        } else if store.status(&url).is_some() {
            let last = store.read(&url).map_err(|reason| failed(name, reason))?;
            let last = last.as_ref().and_then(SignIn::configured_client);
            client = last.map(|(id, secret)| (id.to_owned(), secret.map(str::to_owned)));
        }
        let options = LoginOptions {
            reach: reach(kitbag, name),
            server: url,
            client,
            scopes: self.scope.clone(),
        };
        let login = Login::find(options).await.map_err(refused)?;
        if let Some(secret) = &self.client_secret {
            check_destination(config, secret, login.token_endpoint())?;
        }
        output::note(&format!("signing in at {}", shown(login.issuer())));
        if self.device {
            let device = login.device().await.map_err(refused)?;
            output::note(&format!(
                "open {} and enter the code {}",
                shown(&device.url),
                shown(&device.user_code)
            ));
            return login.wait(device).await.map_err(refused);
        }
        let listener = RedirectListener::open().await.map_err(refused)?;
        let authorization = login.authorize(&listener.url()).await.map_err(refused)?;
        // The whole URL: a shortened one is useless. Its parser has encoded all other characters.
        output::note(&format!("open this URL to sign in:\n{}", authorization.url));
        if !self.no_browser && io::stderr().is_terminal() {
            open(&authorization.url);
        }
        let callback = listener.wait(TIME).await.map_err(refused)?;
        login.finish(authorization, callback).await.map_err(refused)
    }
}

/// A remote server, and the store of the sign-in to it.
pub(super) struct Remote<'a> {
    pub(super) kitbag: &'a Kitbag,
    pub(super) name: ServerName,
    pub(super) url: String,
    pub(super) store: Arc<dyn SignInStore>,
}

/// The reason to find a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    SignIn,
    SignOut,
}

impl<'a> Remote<'a> {
    /// Finds a server by its name, or one that is not in the configuration by its URL.
    pub(super) fn find(
        global: &'a Global,
        name: &str,
        own_url: Option<&str>,
        purpose: Purpose,
    ) -> Result<Self, CliError> {
        let kitbag = global.kitbag(LimitArgs::default())?;
        let config = kitbag.toolbox().config();
        let name = ServerName::new(name).map_err(|error| CliError::Usage(error.to_string()))?;
        let server = config.servers.get(&name);
        let is_untrusted =
            server.is_some_and(|server| matches!(server.disabled, Some(Disabled::Untrusted)));
        if is_untrusted && purpose == Purpose::SignIn {
            return Err(CliError::Usage(format!(
                "the server `{name}` is in a workspace that is not trusted; `kitbag trust` shows it"
            )));
        }
        let url = url(config, &name, own_url)?;
        let none = "sign-ins need a state directory: set `HOME` or `KITBAG_STATE_DIR`";
        let store = sign_in_store(config).ok_or_else(|| CliError::Usage(none.to_owned()))?;
        Ok(Self { kitbag, name, url, store })
    }
}

/// Returns the connections of a sign-in, with the addresses that the server may have.
pub(super) fn reach(kitbag: &Kitbag, name: &ServerName) -> Reach {
    let config = kitbag.toolbox().config();
    let address = config.servers.get(name).and_then(|server| server.address.as_ref());
    let addresses = match address.map(|address| &*address.value) {
        Some(ServerAddress::Remote(remote)) => remote.addresses.clone(),
        _ => Vec::new(),
    };
    let http = kitbag.toolbox().host().client().clone();
    Reach { http, deny: Arc::clone(&config.deny.value), addresses }
}

/// Returns the URL of a remote server.
fn url(config: &Config, name: &ServerName, url: Option<&str>) -> Result<String, CliError> {
    let address = config.servers.get(name).and_then(|server| server.address.as_ref());
    match (address.map(|address| &*address.value), url) {
        (Some(ServerAddress::Remote(remote)), None) if remote.secret.is_some() => {
            Err(CliError::Usage(format!(
                "the server `{name}` has a `secret`, which is used instead of a sign-in"
            )))
        }
        (Some(ServerAddress::Remote(remote)), None) => Ok(remote.url.clone()),
        (Some(ServerAddress::Remote(remote)), Some(url)) if remote.url == url => Ok(url.to_owned()),
        (Some(ServerAddress::Remote(_)), Some(_)) => {
            Err(CliError::Usage(format!("the server `{name}` has another URL; omit it")))
        }
        (Some(ServerAddress::Process(_)), _) => {
            Err(CliError::Usage(format!("the server `{name}` is a process, which has no sign-in")))
        }
        (None, Some(url)) => Ok(url.to_owned()),
        (None, None) => Err(CliError::Usage(format!(
            "no server is named `{name}`; for one that is not added yet, give its URL"
        ))),
    }
}

pub(super) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(CliError::Program)
}

pub(super) fn failed(name: &ServerName, text: String) -> CliError {
    let about = format!("server `{name}`");
    CliError::Faulty(Finding { about, text, kind: kitbag::contract::ErrorKind::Broken })
}

fn read_secret(config: &Config, name: &SecretName) -> Result<String, CliError> {
    let secret = |source| CliError::Secret { name: name.to_string(), source };
    let sources = kitbag::secret_sources(config);
    let value = kitbag::secrets::ReadSecret::read(&sources, name, &CallEnd::default());
    Ok(value.map_err(secret)?.reveal().to_owned())
}

/// Refuses a secret that may not be sent to the token endpoint.
fn check_destination(config: &Config, name: &SecretName, url: &str) -> Result<(), CliError> {
    let places = config.secrets.get(name).map(|secret| &secret.to.value);
    let request = HttpRequest::new("POST", url);
    let is_place = |place: &SecretPlace| {
        request.as_ref().is_ok_and(|request| place.pattern().matches(request))
    };
    match places.is_some_and(|places| places.iter().any(is_place)) {
        true => Ok(()),
        false => Err(CliError::Usage(format!(
            "the secret `{name}` may not be sent to the token endpoint `{}`; allow it with `{}`",
            shown(url),
            shell::command(["kitbag", "secret", "set", name.as_str(), "--keep-value", "--to", url])
        ))),
    }
}

/// Opens a URL with the program of the system. The URL is also printed.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.spawn();
}
