//! Secrets of a tool: by name, and with destinations that the user config allows.

use kitbag_base::shell;
use kitbag_policy::{SecretGrant, SecretName, UrlPattern};

use super::beyond::{Entries, layered};
use super::kind::{ConfigKind, Merge, Placeholder};
use crate::config::ConfiguredGrants;
use crate::format::span::{At, Table, merge};
use crate::format::{CeilingGrantsConfig, SecretGrantConfig};
use crate::layers::origin::Sourced;
use crate::report::{DiagnosticKind, Problem, Report};
use crate::resolve::context::valid;

pub(super) const KIND: ConfigKind =
    ConfigKind { key: SecretGrant::KEY, merge: granted, ceiling: Some(ceiling), call: None };

fn ceiling(own: At<'_, CeilingGrantsConfig>, ceiling: &mut ConfiguredGrants, report: &mut Report) {
    let Some(at) = own.inner(|grants| grants.secrets.as_ref()) else { return };
    let secrets = valid(at, report, |name| SecretName::new(name).map(by_name));
    ceiling.set(|grants| &mut grants.secrets, at.sourced(secrets));
}

/// Returns a grant of a secret without any other settings.
fn by_name(name: SecretName) -> SecretGrant {
    SecretGrant {
        name,
        to: Vec::new(),
        within: None,
        added: None,
        variables: Vec::new(),
        in_query: false,
        in_body: false,
    }
}

/// Returns the secrets of a tool, including those whose placeholders are in its variables. Omits
/// secrets that a workspace names beyond the ceiling and the user's own grants, and secrets that
/// the user config does not have.
fn granted(merge: &mut Merge<'_, '_>, report: &mut Report) {
    let layers = merge.layers(|grants| grants.secrets.as_ref());
    let placeholders = std::mem::take(&mut merge.placeholders);
    let mut entries = merge.entries(SecretGrant::KEY);
    let ceiling = &entries.context.workspace_ceiling.value.secrets;
    let layers = layered(layers, entries.grantee.code, |weaker| {
        let named = named_secrets(weaker, report).into_iter();
        named.map(|(_, grant)| grant).collect::<Vec<_>>()
    });
    let own = layers.as_ref().and_then(|layers| layers.own.as_ref());
    let own = own.map_or(&[][..], |(_, own)| own);
    let mut granted: Vec<SecretGrant> = Vec::new();
    if let Some(layers) = &layers {
        for (at, named) in named_secrets(layers.effective, report) {
            let is_within = ceiling.iter().chain(own).any(|bound| bound.names(&named));
            let Some(grant) = grant(&named.name, at, is_within, &mut entries) else { continue };
            let (within, beyond) = inside(&grant, named.within);
            for pattern in beyond {
                let message = format!(
                    "the secret `{}` is not sent to `{pattern}`: its `to` in your user config does \
                     not include that",
                    grant.name
                );
                let kind = DiagnosticKind::Grant(SecretGrant::KEY);
                entries.warn(Problem::new(kind, message).at(at.origin()));
            }
            granted.push(SecretGrant { within, ..grant });
        }
        entries.finish(layers);
    }
    let mut origin = layers.as_ref().map(|layers| layers.effective.origin());
    for (at, Placeholder { variable, secret, is_own }) in placeholders {
        let is_within = is_own || ceiling.iter().any(|grant| grant.name == secret);
        let Some(grant) = grant(&secret, at, is_within, &mut entries) else { continue };
        origin.get_or_insert(at.origin());
        match granted.iter_mut().find(|grant| grant.name == secret) {
            Some(same) => same.variables.push(variable),
            None => {
                // A list of the workspace that does not name the secret does not extend the user's
                // own destinations for the tool.
                let own = own.iter().find(|own| own.name == secret);
                let within = own.and_then(|own| own.within.clone());
                let variables = vec![variable];
                granted.push(SecretGrant { added: None, variables, within, ..grant });
            }
        }
    }
    let Some(origin) = origin else { return };
    entries.grants.set(|grants| &mut grants.secrets, Sourced { value: granted, origin });
}

/// Returns the secrets that a table names, with their destinations for the tool.
fn named_secrets<'a>(
    table: At<'a, Table<SecretGrantConfig>>,
    report: &mut Report,
) -> Vec<(At<'a, str>, SecretGrant)> {
    let mut named = Vec::new();
    for part in merge([(table.file, table.value)]).into_iter().flatten() {
        let within =
            part.at.inner(|grant| grant.to.as_ref()).map(|to| valid(to, report, UrlPattern::parse));
        match SecretName::new(part.key.value) {
            Ok(name) => named.push((part.key, SecretGrant { within, ..by_name(name) })),
            Err(error) => report.at(part.key, error),
        }
    }
    named
}

/// Returns a secret of the user config, for a tool. `None`: it is omitted.
fn grant<T: ?Sized>(
    name: &SecretName,
    at: At<'_, T>,
    is_within: bool,
    entries: &mut Entries<'_, '_>,
) -> Option<SecretGrant> {
    let one = vec![by_name(name.clone())];
    if !entries.takes_effect(at, is_within, Some(name.as_str()), &one) {
        return None;
    }
    let Some(secret) = entries.context.own_secrets.get(name) else {
        let kind = DiagnosticKind::NoSecret(name.to_string());
        let command = shell::command(["kitbag", "secret", "set", name.as_str()]);
        let message = format!(
            "the secret `{name}` does not exist; store it with `{command} --to 'https://…'`"
        );
        entries.leave_out(name.as_str(), Problem::new(kind, message).at(at.origin()));
        return None;
    };
    let (in_query, in_body) = secret.placeholder.value;
    Some(SecretGrant {
        to: secret.to.value.clone(),
        added: Some(secret.placement.value.clone()),
        in_query,
        in_body,
        ..by_name(name.clone())
    })
}

fn inside(
    grant: &SecretGrant,
    within: Option<Vec<UrlPattern>>,
) -> (Option<Vec<UrlPattern>>, Vec<UrlPattern>) {
    let Some(within) = within else { return (None, Vec::new()) };
    let is_place =
        |pattern: &UrlPattern| grant.to.iter().any(|place| place.pattern().holds(pattern));
    let (inside, beyond) = within.into_iter().partition(is_place);
    (Some(inside), beyond)
}
