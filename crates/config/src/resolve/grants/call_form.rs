//! The form of a grant for one call, by kind.

use kitbag_contract::ToolName;
use kitbag_policy::Grants;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::config::ConfiguredGrants;
use crate::format::parse::syntax_error;
use crate::format::span::{At, Written};
use crate::layers::origin::Origin;
use crate::read::file::{Layer, SourceFile};
use crate::report::{Problem, Report};
use crate::resolve::context::Context;

pub(super) const FLAG: &str = "--grant";

/// The form of a grant for one call.
pub(super) struct CallForm {
    /// Reads a grant as it is typed: a pattern, a name, or a table in TOML.
    pub(super) read: fn(&str) -> Result<Grants, Problem>,
    /// Adds a grant to the grants of a tool, and returns it as it was added.
    pub(super) add: fn(Grants, CallTarget<'_>) -> Result<Grants, Problem>,
}

/// The tool that gets a grant for one call.
pub(super) struct CallTarget<'a> {
    pub(super) name: &'a ToolName,
    pub(super) grants: &'a mut ConfiguredGrants,
    pub(super) origin: Origin,
    pub(super) context: &'a Context<'a>,
}

/// Reads a grant that is a table in TOML, with the function that reads such a table in a file.
pub(super) fn table<C: DeserializeOwned, T>(
    text: &str,
    read: impl FnOnce(At<'_, C>, &mut Report) -> Option<T>,
) -> Result<T, Problem> {
    #[derive(Deserialize)]
    #[serde(bound = "C: DeserializeOwned")]
    struct Flag<C> {
        grant: Written<C>,
    }

    let text = format!("grant = {text}");
    let flag: Flag<C> = toml::from_str(&text).map_err(|error| syntax_error(&error))?;
    let file = SourceFile::new(FLAG.into(), "/".as_ref(), Layer::User, text);
    let mut report = Report::default();
    let grant = read(flag.grant.at(&file), &mut report);
    match (grant, report.finish()) {
        (Some(grant), Ok(())) => Ok(grant),
        (_, Ok(())) => Err("it is not a grant".into()),
        (_, Err(errors)) => Err(Problem::from(&errors.diagnostics()[0].message)),
    }
}
