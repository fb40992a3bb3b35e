//! Secrets of a tool: by name, and at places of those that the user's own file has.

use kitbag_base::shell;
use kitbag_policy::{SecretGrant, SecretName, UrlPattern};

use super::beyond::{Code, own_of, replaces};
use super::environment::Placeholder;
use crate::config::ConfiguredGrants;
use crate::format::SecretGrantConfig;
use crate::format::spanned::{At, Table, Written, merge};
use crate::layers::origin::Sourced;
use crate::report::{Diagnostic, DiagnosticKind, Problem, Report};
use crate::resolve::resolver::Resolver;

/// What the user's own file lets a workspace name.
pub(super) fn ceiling(
    at: At<'_, Vec<Written<String>>>,
    report: &mut Report,
) -> Sourced<Vec<SecretGrant>> {
    let mut grants = Vec::new();
    for text in at.value.iter().map(|text| text.at(at.file)) {
        match SecretName::new(text.value.as_str()) {
            Ok(name) => grants.push(by_name(name)),
            Err(error) => report.at(text, error),
        }
    }
    at.sourced(grants)
}

/// A secret of which nothing but the name is known.
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

impl Resolver<'_> {
    /// The secrets of a tool, and those whose placeholders are in its variables. What a
    /// workspace names beyond the ceiling and the user's own grants is left out, and what the
    /// user's own file does not have.
    pub(super) fn secret_grants(
        &mut self,
        mut layers: Vec<At<'_, Table<SecretGrantConfig>>>,
        placeholders: Vec<(At<'_, String>, Placeholder)>,
        is_enabled: bool,
        code: Code,
        grants: &mut ConfiguredGrants,
    ) {
        let effective = layers.pop();
        let own = own_of(&layers, code);
        let mut own_grants = Vec::new();
        // A weaker layer is overridden, but must be valid all the same.
        for weaker in layers {
            let named = self.named_secrets(weaker);
            if own.is_some_and(|own| std::ptr::eq(own.value, weaker.value)) {
                own_grants.extend(named.into_iter().map(|(_, grant)| grant));
            }
        }
        let mut granted: Vec<SecretGrant> = Vec::new();
        let mut all_count = true;
        for (at, named) in
            effective.map_or_else(Vec::new, |effective| self.named_secrets(effective))
        {
            let ceiling = &self.workspace_ceiling.value.secrets;
            let is_within = ceiling.iter().chain(&own_grants).any(|bound| bound.names(&named));
            let SecretGrant { name, within, .. } = named;
            match self.secret_grant(&name, at, code, is_within) {
                Ok(grant) => {
                    let (within, beyond) = inside(&grant, within);
                    let warning = |pattern: UrlPattern| {
                        let message = format!(
                            "the secret `{name}` does not go to `{pattern}`: no place that your own \
                             file has for it holds that"
                        );
                        let kind = DiagnosticKind::Grant(SecretGrant::KEY);
                        Problem::new(kind, message).at(at.origin())
                    };
                    let warnings = beyond.into_iter().map(warning);
                    grants.warnings.extend(warnings.filter(|_| is_enabled));
                    granted.push(SecretGrant { within, ..grant });
                }
                Err(problem) => {
                    all_count &= !matches!(
                        problem.kind,
                        DiagnosticKind::BeyondGrantCeiling(_) | DiagnosticKind::UntrustedGrant
                    );
                    grants.leave_out(SecretGrant::KEY, name.as_str(), &problem);
                    grants.warnings.extend(is_enabled.then_some(*problem));
                }
            }
        }
        if let (Some(effective), false, true) = (effective, all_count, is_enabled) {
            grants.warnings.extend(replaces(SecretGrant::KEY, effective, own));
        }
        let mut origin = effective.map(|effective| effective.origin());
        for (at, Placeholder { variable, secret, is_own }) in placeholders {
            let ceiling = &self.workspace_ceiling.value.secrets;
            let is_within = is_own || ceiling.iter().any(|grant| grant.name == secret);
            match self.secret_grant(&secret, at, code, is_within) {
                Ok(grant) => {
                    origin.get_or_insert(at.origin());
                    match granted.iter_mut().find(|grant| grant.name == secret) {
                        Some(same) => same.variables.push(variable),
                        None => {
                            // Where the user lets the tool take it is no wider for a list of
                            // the workspace that does not name it.
                            let own = own_grants.iter().find(|own| own.name == secret);
                            let within = own.and_then(|own| own.within.clone());
                            let variables = vec![variable];
                            granted.push(SecretGrant { added: None, variables, within, ..grant });
                        }
                    }
                }
                Err(problem) => {
                    grants.leave_out(SecretGrant::KEY, secret.as_str(), &problem);
                    grants.warnings.extend(is_enabled.then_some(*problem));
                }
            }
        }
        let Some(origin) = origin else { return };
        grants.set(|grants| &mut grants.secrets, Sourced { value: granted, origin });
    }

    /// The secrets that a table names, with where the tool takes them.
    fn named_secrets<'a>(
        &mut self,
        table: At<'a, Table<SecretGrantConfig>>,
    ) -> Vec<(At<'a, str>, SecretGrant)> {
        let mut named = Vec::new();
        for part in merge([(table.file, table.value)]).into_iter().flatten() {
            let within = part.at.inner(|grant| grant.to.as_ref()).map(|to| self.patterns(to));
            match SecretName::new(part.key.value) {
                Ok(name) => named.push((part.key, SecretGrant { within, ..by_name(name) })),
                Err(error) => self.report.at(part.key, error),
            }
        }
        named
    }

    /// What the user's own file has of a secret, for a tool.
    fn secret_grant<T: ?Sized>(
        &self,
        name: &SecretName,
        at: At<'_, T>,
        code: Code,
        is_within: bool,
    ) -> Result<SecretGrant, Box<Diagnostic>> {
        let setting = format!("secrets = [\"{name}\"]");
        if let Some(beyond) = self.beyond_ceiling(at, code, is_within, (SecretGrant::KEY, setting))
        {
            return Err(beyond.into());
        }
        let Some(secret) = self.own_secrets.get(name) else {
            let kind = DiagnosticKind::NoSecret(name.to_string());
            let command = shell::command(["kitbag", "secret", "set", name.as_str()]);
            let message =
                format!("there is no secret `{name}`; keep one with `{command} --to 'https://…'`");
            return Err(Problem::new(kind, message).at(at.origin()).into());
        };
        let (in_query, in_body) = secret.placeholder.value;
        Ok(SecretGrant {
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
                Err(error) => self.report.at(text, error),
            }
        }
        patterns
    }
}

/// Which of these patterns are places of a secret, and which are not.
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
