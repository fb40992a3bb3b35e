//! Grants of the command line, for one call.

use std::collections::BTreeMap;

use kitbag_base::shell;
use kitbag_base::text::{alternatives, nearest, shown};
use kitbag_contract::ToolName;
use kitbag_policy::tools::ToolGrants;
use kitbag_policy::{
    Grants, HttpGrant, HttpGrants, Kind, MissingGrant, StorageGrant, VariableGrant, VariableName,
};

use super::tools::CallGrant;
use super::typed::{FLAG, table};
use super::{environment, http, storage};
use crate::config::{Config, ConfiguredGrants, ConfiguredTool};
use crate::format::HttpGrantConfig;
use crate::format::spanned::StringOr;
use crate::layers::origin::{Origin, Sourced};
use crate::read::sources::CallGrants;
use crate::report::text::{did_you_mean, own_file};
use crate::report::{Problem, Report};
use crate::resolve::context::Context;

const KINDS: [&str; 4] = [HttpGrant::KEY, VariableGrant::KEY, StorageGrant::KEY, ToolGrants::KEY];

enum TypedGrant {
    Http(HttpGrants),
    Variable(VariableName),
    Storage(StorageGrant),
    Tool(CallGrant),
}

impl TypedGrant {
    /// Reads a grant of the kind with a key. Returns `None` if the kind cannot be granted for one
    /// call.
    fn new(kind: &str, text: &str) -> Option<Result<Self, Problem>> {
        Some(match kind {
            HttpGrant::KEY => http(text).map(|grant| Self::Http(vec![grant].into())),
            VariableGrant::KEY => VariableName::new(text).map(Self::Variable).map_err(Into::into),
            StorageGrant::KEY => storage::typed(text).map(Self::Storage),
            ToolGrants::KEY => CallGrant::new(text).map(Self::Tool),
            _ => return None,
        })
    }

    fn key(&self) -> &'static str {
        match self {
            Self::Http(_) => HttpGrant::KEY,
            Self::Variable(_) => VariableGrant::KEY,
            Self::Storage(_) => StorageGrant::KEY,
            Self::Tool(_) => ToolGrants::KEY,
        }
    }

    fn is_within(&self, ceiling: &ConfiguredGrants) -> bool {
        let Grants { http, variables, storage, tools, .. } = &*ceiling.value;
        !ceiling.has(self.key())
            || match self {
                Self::Http(one) => one.beyond(&http.grants).is_none(),
                Self::Variable(name) => variables.iter().any(|variable| variable.name == *name),
                Self::Storage(grant) => storage.is_some_and(|ceiling| grant.is_within(&ceiling)),
                Self::Tool(grant) => tools.contains(&grant.grants()),
            }
    }

    /// Returns the setting of `[ceiling.grants]` that allows the grant, in TOML.
    fn setting(&self) -> String {
        match self {
            Self::Http(one) => http::setting(&one.grants[0]),
            Self::Variable(name) => environment::setting(name),
            Self::Storage(grant) => grant.as_setting(),
            Self::Tool(grant) => grant.setting(),
        }
    }

    fn add_to(
        self,
        name: &ToolName,
        grants: &mut ConfiguredGrants,
        context: &Context<'_>,
    ) -> Result<(), Problem> {
        let (kind, origin) = (self.key(), Origin::flag(FLAG));
        let lines = match self {
            Self::Http(HttpGrants { grants: one, .. }) => {
                let lines = one.iter().map(ToString::to_string).collect();
                grants.value_mut().http.grants.extend(one);
                lines
            }
            Self::Variable(name) => {
                let value = Some(environment::value_of(&name, context)?);
                let variables = &mut grants.value_mut().variables;
                variables.retain(|variable| variable.name != name);
                let grant = VariableGrant { name, value };
                variables.push(grant.clone());
                vec![grant].lines()
            }
            Self::Storage(grant) => {
                let granted = Sourced { value: Some(grant), origin };
                grants.set(|grants| &mut grants.storage, granted);
                return Ok(());
            }
            Self::Tool(grant) => {
                let lines = grant.grants().lines();
                grant.add_to(name, &mut grants.value_mut().tools)?;
                lines
            }
        };
        for line in lines {
            grants.place(kind, line, origin.clone());
        }
        Ok(())
    }
}

/// Adds the grants of one call to those of its tool. They are within `[ceiling.grants]` of the
/// user config.
pub(crate) fn add(
    context: &Context<'_>,
    tools: &mut BTreeMap<ToolName, ConfiguredTool>,
    call: &CallGrants,
    report: &mut Report,
) {
    let Some(tool) = tools.get_mut(&*call.tool) else { return };
    for text in &call.grants {
        if let Err(problem) = add_one(context, &tool.name, &mut tool.grants, text) {
            report.origin(Origin::flag(FLAG), problem);
        }
    }
}

fn add_one(
    context: &Context<'_>,
    name: &ToolName,
    grants: &mut ConfiguredGrants,
    text: &str,
) -> Result<(), Problem> {
    let (kind, value) = text.split_once('=').unwrap_or((text, ""));
    let grant = TypedGrant::new(kind, value).unwrap_or_else(|| {
        let problem = Problem::from(format!(
            "`{}` cannot be granted for one call; write KIND=GRANT, where KIND is {}",
            shown(kind),
            alternatives(&KINDS)
        ));
        Err(problem.hint(did_you_mean(nearest(kind, KINDS))))
    })?;
    if !grant.is_within(context.grant_ceiling) {
        return Err(Problem::from(format!(
            "this grant exceeds `[ceiling.grants]` in your user config; to allow it, let \
             `[ceiling.grants]` in {} include `{}`",
            own_file(context.own_file),
            grant.setting()
        )));
    }
    grant.add_to(name, grants, context)
}

/// Returns the grant that would give a missing one, and its text as it is typed. `None`: the kind
/// cannot be granted for one call.
fn typed(missing: &MissingGrant) -> Option<(TypedGrant, &str)> {
    let MissingGrant { key, entry, .. } = missing;
    // For a setting, this is its value.
    let value = match missing.is_setting() {
        true => entry.split_once(" = ")?.1,
        false => entry,
    };
    // A pattern or a name is written without quotes, a table as in a file.
    let text = value.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let text = text.unwrap_or(value);
    Some((TypedGrant::new(key, text)?.ok()?, text))
}

impl ConfiguredGrants {
    /// Returns whether the configuration has an HTTP grant that would cover a missing grant but
    /// does not take effect, so that another entry would not help.
    pub fn is_left_out(&self, missing: &MissingGrant) -> bool {
        match typed(missing) {
            Some((TypedGrant::Http(one), _)) => one.beyond(&self.left_out_http()).is_none(),
            _ => false,
        }
    }
}

/// Reads a grant as it is typed for one call: a pattern, a name, or a table in TOML. `None` if the
/// text is not a grant of this kind, or if the kind cannot be typed.
pub fn read_grant(kind: &str, text: &str) -> Option<Grants> {
    let none = Grants::default;
    Some(match TypedGrant::new(kind, text)?.ok()? {
        TypedGrant::Http(http) => Grants { http, ..none() },
        TypedGrant::Variable(name) => {
            Grants { variables: vec![VariableGrant { name, value: None }], ..none() }
        }
        TypedGrant::Storage(grant) => Grants { storage: Some(grant), ..none() },
        TypedGrant::Tool(grant) => Grants { tools: grant.grants(), ..none() },
    })
}

impl Config {
    /// Returns the command line option that gives a missing grant for one call, quoted for a shell:
    /// `--grant 'http=https://api.github.com/**'`. `None`: there is no such option, or the grant
    /// would be beyond `[ceiling.grants]` of the user config.
    pub fn grant_flag(&self, missing: &MissingGrant) -> Option<String> {
        let (grant, text) = typed(missing)?;
        let key = missing.key;
        let typed = match &grant {
            TypedGrant::Storage(_) if text == "true" => StorageGrant::KEY.to_owned(),
            TypedGrant::Tool(grant) => shell::in_quotes(&format!("{key}={}", grant.typed())),
            _ => shell::in_quotes(&format!("{key}={text}")),
        };
        grant.is_within(&self.grant_ceiling).then(|| format!("{FLAG} {typed}"))
    }
}

/// Reads a grant as it is typed: a pattern, or a table in TOML.
fn http(text: &str) -> Result<HttpGrant, Problem> {
    if !text.starts_with('{') {
        return http::short(text);
    }
    table::<StringOr<HttpGrantConfig>, _>(text, http::grant)
}
