//! Grants of the command line, for one call.

use std::collections::BTreeMap;
use std::sync::Arc;

use kitbag_base::shell;
use kitbag_base::text::{alternatives, nearest, shown};
use kitbag_contract::ToolName;
use kitbag_policy::tools::ToolGrants;
use kitbag_policy::{
    HttpGrant, HttpGrants, Kind, MissingGrant, StorageGrant, VariableGrant, VariableName,
};

use super::environment::{unset_variable, unusable_variable};
use super::http;
use super::storage;
use super::tools::CallGrant;
use super::typed::{FLAG, table};
use crate::config::{Config, ConfiguredGrants, ConfiguredTool};
use crate::format::HttpGrantConfig;
use crate::format::spanned::StringOr;
use crate::layers::origin::{Origin, Sourced};
use crate::read::sources::{CallGrants, VariableValue};
use crate::report::Problem;
use crate::report::text::{did_you_mean, own_file};
use crate::resolve::resolver::Resolver;

/// The kinds that can be granted like this.
const KINDS: [&str; 4] = [HttpGrant::KEY, VariableGrant::KEY, StorageGrant::KEY, ToolGrants::KEY];

impl Resolver<'_> {
    /// Adds to the grants of a tool what is granted for one call. Where the user's own file
    /// has a ceiling of the kind they lie within that.
    pub(in crate::resolve) fn call_grants(
        &mut self,
        tools: &mut BTreeMap<ToolName, ConfiguredTool>,
        call: &CallGrants,
    ) {
        let Some(tool) = tools.get_mut(&*call.tool) else { return };
        for text in &call.grants {
            if let Err(problem) = self.call_grant(&tool.name, &mut tool.grants, text) {
                self.report.origin(Origin::flag(FLAG), problem);
            }
        }
    }

    fn call_grant(
        &self,
        name: &ToolName,
        grants: &mut ConfiguredGrants,
        text: &str,
    ) -> Result<(), Problem> {
        let (kind, value) = text.split_once('=').unwrap_or((text, ""));
        match kind {
            HttpGrant::KEY => {
                let one = HttpGrants::from(vec![http(value)?]);
                let grant = Arc::clone(&one.grants[0]);
                let is_within = || one.beyond(&self.grant_ceiling.value.http.grants).is_none();
                self.check_call_ceiling(HttpGrant::KEY, is_within, || {
                    format!("http = [{}]", grant.as_entry())
                })?;
                grants.place(HttpGrant::KEY, grant.to_string(), Origin::flag(FLAG));
                grants.value_mut().http.grants.push(grant);
                Ok(())
            }
            VariableGrant::KEY => {
                let name = VariableName::new(value)?;
                let ceiling = &self.grant_ceiling.value.variables;
                let is_within = || ceiling.iter().any(|variable| variable.name == name);
                self.check_call_ceiling(VariableGrant::KEY, is_within, || {
                    format!("env = [\"{name}\"]")
                })?;
                let value = self.variables.and_then(|variables| variables.get(name.as_str()));
                let value = match value {
                    Some(VariableValue::Text(value)) => Some(value),
                    Some(VariableValue::Unusable(reason)) => {
                        return Err(unusable_variable(&name, reason));
                    }
                    None => return Err(unset_variable(&name)),
                };
                grants.value_mut().variables.retain(|variable| variable.name != name);
                let grant = VariableGrant { name, value };
                for line in vec![grant.clone()].lines() {
                    grants.place(VariableGrant::KEY, line, Origin::flag(FLAG));
                }
                grants.value_mut().variables.push(grant);
                Ok(())
            }
            StorageGrant::KEY => {
                let grant = storage::typed(value)?;
                let ceiling = self.grant_ceiling.value.storage;
                let is_within = || ceiling.is_some_and(|ceiling| grant.is_within(&ceiling));
                self.check_call_ceiling(StorageGrant::KEY, is_within, || grant.as_setting())?;
                let origin = Origin::flag(FLAG);
                grants.set(|grants| &mut grants.storage, Sourced { value: Some(grant), origin });
                Ok(())
            }
            ToolGrants::KEY => {
                let grant = CallGrant::new(value)?;
                let one = grant.grants();
                let is_within = || self.grant_ceiling.value.tools.contains(&one);
                self.check_call_ceiling(ToolGrants::KEY, is_within, || grant.setting())?;
                grant.add_to(name, &mut grants.value_mut().tools)?;
                for line in one.lines() {
                    grants.place(ToolGrants::KEY, line, Origin::flag(FLAG));
                }
                Ok(())
            }
            kind => {
                let problem = Problem::from(format!(
                    "`{}` cannot be granted for one call; write KIND=GRANT, where the kind is {}",
                    shown(kind),
                    alternatives(&KINDS)
                ));
                Err(problem.hint(did_you_mean(nearest(kind, KINDS))))
            }
        }
    }

    /// Refuses what the user's own file does not let anyone grant but itself.
    fn check_call_ceiling(
        &self,
        kind: &'static str,
        is_within: impl FnOnce() -> bool,
        setting: impl FnOnce() -> String,
    ) -> Result<(), Problem> {
        if !self.grant_ceiling.has(kind) || is_within() {
            return Ok(());
        }
        Err(Problem::from(format!(
            "a call is granted no more than `[ceiling.grants]` of your own file allows; to allow \
             it, have `[ceiling.grants]` in {} include `{}`",
            own_file(self.own_file),
            setting()
        )))
    }
}

impl Config {
    /// The option of the command line that grants for one call what is missing, quoted for a
    /// shell: `--grant 'http=https://api.github.com/**'`. `None`: no option does, or it would be
    /// beyond `[ceiling.grants]` of the user's own file.
    pub fn grant_flag(&self, missing: &MissingGrant) -> Option<String> {
        let MissingGrant { key, entry, .. } = missing;
        // Of a setting its value.
        let value = match missing.is_setting() {
            true => entry.split_once(" = ")?.1,
            false => entry,
        };
        // A pattern and a name stand there alone, a table as in a file.
        let text = value.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let mut text = text.unwrap_or(value).to_owned();
        let ceiling = &self.grant_ceiling.value;
        let is_within = match *key {
            HttpGrant::KEY => {
                let one = HttpGrants::from(vec![http(&text).ok()?]);
                one.beyond(&ceiling.http.grants).is_none()
            }
            VariableGrant::KEY => {
                ceiling.variables.iter().any(|variable| variable.name.as_str() == text)
            }
            StorageGrant::KEY => {
                let grant = storage::typed(&text).ok()?;
                ceiling.storage.is_some_and(|ceiling| grant.is_within(&ceiling))
            }
            ToolGrants::KEY => {
                let grant = CallGrant::new(&text).ok()?;
                text = grant.typed();
                ceiling.tools.contains(&grant.grants())
            }
            _ => return None,
        };
        let typed = match (*key, &*text) {
            (StorageGrant::KEY, "true") => StorageGrant::KEY.to_owned(),
            _ => shell::in_quotes(&format!("{key}={text}")),
        };
        (is_within || !self.grant_ceiling.has(key)).then(|| format!("{FLAG} {typed}"))
    }
}

/// A grant as it is typed: a pattern, or a table in TOML.
fn http(text: &str) -> Result<HttpGrant, Problem> {
    if !text.starts_with('{') {
        return http::short(text);
    }
    table::<StringOr<HttpGrantConfig>, _>(text, http::grant)
}
