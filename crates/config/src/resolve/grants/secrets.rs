//! Secrets of a tool: by name, and at places of those that the user's own file has.

use kitbag_policy::{SecretGrant, SecretName, SecretNameError, UrlPattern};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ceiling::Code;
use super::environment::Placeholder;
use crate::config::ToolGrants;
use crate::error::Report;
use crate::origin::Sourced;
use crate::problem::Problem;
use crate::resolve::resolver::Resolver;
use crate::written::{At, Table, Written, merge};

/// A secret of your own file, which the host adds to requests of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Secret of a tool")]
pub(crate) struct SecretGrantConfig {
    /// URLs that it goes to, of those that your own file has for it. Default: all of them.
    #[schemars(extend("examples" = [["https://api.github.com/repos/**"]]))]
    pub(crate) to: Option<Written<Vec<Written<String>>>>,
}

/// What the user's own file lets a workspace name.
pub(super) fn ceiling(
    at: At<'_, Vec<Written<String>>>,
    report: &mut Report,
) -> Sourced<Vec<SecretGrant>> {
    let mut grants = Vec::new();
    for text in at.value.iter().map(|text| text.at(at.file)) {
        match SecretName::new(text.value.as_str()) {
            Ok(name) => grants.push(SecretGrant {
                name,
                to: Vec::new(),
                within: None,
                added: None,
                variables: Vec::new(),
                in_query: false,
                in_body: false,
            }),
            Err(error) => report.at(text, error),
        }
    }
    at.sourced(grants)
}

impl Resolver<'_> {
    /// The secrets of a tool: those of every layer, of which a stronger one replaces single
    /// ones, and those whose placeholders are in its variables. What a workspace names beyond
    /// the ceiling is left out, and what the user's own file does not have.
    pub(super) fn secret_grants(
        &mut self,
        layers: &[At<'_, Table<SecretGrantConfig>>],
        placeholders: Vec<(At<'_, String>, Placeholder)>,
        is_enabled: bool,
        code: Code,
        grants: &mut ToolGrants,
    ) {
        let mut granted: Vec<SecretGrant> = Vec::new();
        let mut origin = None;
        for parts in merge(layers.iter().map(|at| (at.file, at.value))) {
            let Some(part) = parts.last() else { continue };
            let name = match SecretName::new(part.key.value) {
                Ok(name) => name,
                Err(error) => {
                    self.report.at(part.key, error);
                    continue;
                }
            };
            let within = part.at.inner(|grant| grant.to.as_ref()).map(|to| self.patterns(to));
            if let Some(mut grant) = self.secret_grant(&name, part.key, is_enabled, code, grants) {
                grant.within = within;
                granted.push(grant);
                origin = Some(part.key.origin());
            }
        }
        for (at, Placeholder { variable, secret }) in placeholders {
            if let Some(own) = granted.iter_mut().find(|grant| grant.name == secret) {
                // A workspace's variable does not get what only the user has named.
                if self.counts(&secret, at, code) {
                    own.variables.push(variable);
                    continue;
                }
            }
            if let Some(grant) = self.secret_grant(&secret, at, is_enabled, code, grants) {
                granted.push(SecretGrant { added: None, variables: vec![variable], ..grant });
                origin.get_or_insert(at.origin());
            }
        }
        let Some(origin) = origin else { return };
        grants.set(|grants| &mut grants.secrets, Sourced { value: granted, origin });
    }

    /// Whether a place may name a secret.
    fn counts<T: ?Sized>(&self, name: &SecretName, at: At<'_, T>, code: Code) -> bool {
        let ceiling = &self.grant_ceiling.value.secrets;
        let is_within = ceiling.iter().any(|grant| grant.name == *name);
        self.beyond_ceiling(at, code, is_within, String::new()).is_none()
    }

    /// What the user's own file has of a secret, for a tool.
    fn secret_grant<T: ?Sized>(
        &mut self,
        name: &SecretName,
        at: At<'_, T>,
        is_enabled: bool,
        code: Code,
        grants: &mut ToolGrants,
    ) -> Option<SecretGrant> {
        let ceiling = &self.grant_ceiling.value.secrets;
        let is_within = ceiling.iter().any(|grant| grant.name == *name);
        let setting = format!("secrets = [\"{name}\"]");
        if let Some(beyond) = self.beyond_ceiling(at, code, is_within, setting) {
            grants.warnings.extend(is_enabled.then_some(beyond));
            return None;
        }
        let Some(secret) = self.own_secrets.get(name) else {
            let problem = Problem::NoSecret { name: name.to_string() };
            grants.warnings.extend(is_enabled.then(|| at.sourced(problem)));
            return None;
        };
        let (in_query, in_body) = secret.placeholder.value;
        Some(SecretGrant {
            name: name.clone(),
            to: secret.to.value.clone(),
            within: None,
            added: Some(secret.placement.value.clone()),
            variables: Vec::new(),
            in_query,
            in_body,
        })
    }

    /// The patterns of a list, those that are none reported.
    fn patterns(&mut self, at: At<'_, Vec<Written<String>>>) -> Vec<UrlPattern> {
        let mut patterns = Vec::new();
        for text in at.value.iter().map(|text| text.at(at.file)) {
            match UrlPattern::parse(text.value) {
                Ok(pattern) => patterns.push(pattern),
                Err(error) => {
                    let (kind, reason) = (SecretGrant::KEY, error.to_string());
                    self.report.at(text, Problem::Grant { kind, reason });
                }
            }
        }
        patterns
    }
}

impl From<SecretNameError> for Problem {
    fn from(error: SecretNameError) -> Self {
        Self::Grant { kind: SecretGrant::KEY, reason: error.to_string() }
    }
}
