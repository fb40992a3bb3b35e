//! Grants from the command line.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::format::parse::syntax_error;
use crate::format::spanned::{At, Written};
use crate::read::file::{Layer, SourceFile};
use crate::report::{Problem, Report};

pub(super) const FLAG: &str = "--grant";

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
