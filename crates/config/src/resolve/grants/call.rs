//! Grants of the command line, for one call.

use std::collections::BTreeMap;

use kitbag_base::shell;
use kitbag_base::text::{alternatives, nearest, shown};
use kitbag_contract::ToolName;
use kitbag_policy::{Grants, Kind, MissingGrant};

use super::KINDS;
use super::call_form::{CallForm, CallTarget, FLAG};
use crate::config::{Config, ConfiguredGrants, ConfiguredTool};
use crate::layers::origin::Origin;
use crate::read::sources::CallGrants;
use crate::report::text::{did_you_mean, own_file};
use crate::report::{Problem, Report};
use crate::resolve::context::Context;

/// A grant of one kind as it was typed.
struct TypedGrant {
    key: &'static str,
    form: &'static CallForm,
    grants: Grants,
}

impl TypedGrant {
    /// Reads a grant of the kind with a key. Returns `None` if the kind cannot be granted for one
    /// call.
    fn new(key: &str, text: &str) -> Option<Result<Self, Problem>> {
        let kind = KINDS.iter().find(|kind| kind.key == key)?;
        let form = kind.call.as_ref()?;
        Some((form.read)(text).map(|grants| Self { key: kind.key, form, grants }))
    }

    /// Reads a missing grant. Returns `None` if it cannot be granted for one call.
    fn of_missing(missing: &MissingGrant) -> Option<Self> {
        Self::new(missing.key, &missing.typed())?.ok()
    }

    fn is_within(&self, ceiling: &ConfiguredGrants) -> bool {
        !ceiling.has(self.key) || self.grants.beyond(&ceiling.value).is_none()
    }

    /// Returns the setting of `[ceiling.grants]` that allows the grant, in TOML.
    fn as_ceiling(&self) -> Option<String> {
        self.of_kind()?.as_ceiling()
    }

    fn of_kind(&self) -> Option<&dyn Kind> {
        self.grants.kinds().into_iter().find(|kind| kind.key() == self.key)
    }

    fn add_to(
        self,
        name: &ToolName,
        grants: &mut ConfiguredGrants,
        context: &Context<'_>,
    ) -> Result<(), Problem> {
        let Self { key, form, grants: one } = self;
        let origin = Origin::flag(FLAG);
        let target = CallTarget { name, grants: &mut *grants, origin: origin.clone(), context };
        let added = (form.add)(one, target)?;
        let added = Self { key, form, grants: added };
        for line in added.of_kind().into_iter().flat_map(Kind::lines) {
            grants.place(key, line, origin.clone());
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
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let grant = TypedGrant::new(key, value).unwrap_or_else(|| {
        let keys: Vec<_> =
            KINDS.iter().filter(|kind| kind.call.is_some()).map(|kind| kind.key).collect();
        let problem = Problem::from(format!(
            "`{}` cannot be granted for one call; write KIND=GRANT, where KIND is {}",
            shown(key),
            alternatives(&keys)
        ));
        Err(problem.hint(did_you_mean(nearest(key, keys))))
    })?;
    if !grant.is_within(context.grant_ceiling) {
        return Err(Problem::from(format!(
            "this grant exceeds `[ceiling.grants]` in your user config; to allow it, let \
             `[ceiling.grants]` in {} include `{}`",
            own_file(context.own_file),
            grant.as_ceiling().unwrap_or_default()
        )));
    }
    grant.add_to(name, grants, context)
}

impl ConfiguredGrants {
    /// Returns whether the configuration has an HTTP grant that would cover a missing grant but
    /// does not take effect, so that another entry would not help.
    pub fn is_left_out(&self, missing: &MissingGrant) -> bool {
        let typed = TypedGrant::of_missing(missing);
        let http = typed.map(|typed| typed.grants.http).filter(|http| !http.is_empty());
        http.is_some_and(|http| http.beyond(&self.left_out_http()).is_none())
    }
}

/// Reads a grant as it is typed for one call: a pattern, a name, or a table in TOML. `None` if the
/// text is not a grant of this kind, or if the kind cannot be typed.
pub fn read_grant(kind: &str, text: &str) -> Option<Grants> {
    Some(TypedGrant::new(kind, text)?.ok()?.grants)
}

impl Config {
    /// Returns the command line option that gives a missing grant for one call, quoted for a shell:
    /// `--grant 'http=https://api.github.com/**'`. `None`: there is no such option, or the grant
    /// would be beyond `[ceiling.grants]` of the user config.
    pub fn grant_flag(&self, missing: &MissingGrant) -> Option<String> {
        let grant = TypedGrant::of_missing(missing)?;
        let typed = match &*missing.typed() {
            "true" if missing.is_setting() => grant.key.to_owned(),
            text => shell::in_quotes(&format!("{}={text}", grant.key)),
        };
        grant.is_within(&self.grant_ceiling).then(|| format!("{FLAG} {typed}"))
    }
}
