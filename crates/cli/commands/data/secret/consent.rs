//! The tools that are granted a secret, and the consent to give it to them.

use kitbag::Config;
use kitbag::base::text::shown;
use kitbag::config::{ConfiguredTool, DiagnosticKind, secret_destinations};
use kitbag::policy::{SecretGrant, SecretName};
use serde_json::Value;

use crate::console::consent;
use crate::console::output;
use crate::error::CliError;

/// The tools of this configuration that are granted a secret. The secret need not exist.
pub(super) struct GrantedTools(Vec<GrantedTool>);

struct GrantedTool {
    name: String,
    /// Destinations to which the tool could send the secret.
    requests: Vec<String>,
    origin: String,
}

impl GrantedTools {
    pub(super) fn of(config: &Config, secret: &SecretName) -> Self {
        let granted = config.tools.values().filter(|tool| tool.is_enabled());
        Self(granted.filter_map(|tool| granted_tool(tool, secret)).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|tool| format!("`{}`", tool.name)).collect();
        names.join(", ")
    }

    pub(super) fn to_json(&self) -> Value {
        self.0.iter().map(|tool| Value::from(tool.name.as_str())).collect()
    }

    /// Asks a person whether these tools may use a secret that had no destination before.
    ///
    /// # Errors
    ///
    /// [`CliError::NotAgreed`] if the person refuses, or if there is no terminal.
    pub(super) fn agree(
        &self,
        secret: &SecretName,
        to: &[String],
        is_agreed: bool,
        as_json: bool,
    ) -> Result<(), CliError> {
        if self.0.is_empty() || is_agreed {
            return Ok(());
        }
        let to: Vec<_> = to.iter().map(|place| shown(place).to_string()).collect();
        let mut text = format!("`{secret}` is sent to {}. Granted to:\n", to.join(", "));
        for GrantedTool { name, requests, origin } in &self.0 {
            let requests = match &requests[..] {
                [] => "no requests".to_owned(),
                requests => shown(&requests.join(", ")).to_string(),
            };
            text.push_str(&format!("  tool `{name}`, which may send {requests} ({origin})\n"));
        }
        if !consent::is_interactive(as_json) {
            return Err(CliError::NotAgreed(format!(
                "{text}nothing was set, because there is no terminal to ask on; to agree, add \
                 `--yes`"
            )));
        }
        output::note(&text);
        match consent::agrees("Grant it to them?")? {
            true => Ok(()),
            false => Err(CliError::NotAgreed("nothing was set".into())),
        }
    }
}

fn granted_tool(tool: &ConfiguredTool, secret: &SecretName) -> Option<GrantedTool> {
    let grants = &tool.grants.value;
    let origin = match grants.secrets.iter().find(|grant| grant.name == *secret) {
        Some(grant) => tool.grants.place_of(SecretGrant::KEY, &grant.to_string()),
        None => {
            let kind = DiagnosticKind::NoSecret(secret.to_string());
            &tool.grants.warnings.iter().find(|warning| warning.kind == kind)?.place
        }
    };
    Some(GrantedTool {
        name: tool.name.to_string(),
        requests: secret_destinations(grants),
        origin: origin.to_string(),
    })
}
