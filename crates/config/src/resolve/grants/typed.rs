//! Grants as they are typed on the command line.

use kitbag_contract::text::shown;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::Report;
use crate::file::{Layer, SourceFile};
use crate::problem::Problem;
use crate::written::{At, Written};

/// The option.
pub(super) const FLAG: &str = "--grant";

/// A grant as a table in TOML, by what reads such a table in a file.
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
    let flag: Flag<C> = toml::from_str(&text).map_err(|error| {
        let message = shown(error.message()).to_string();
        Problem::Syntax { message }
    })?;
    let file = SourceFile::new(FLAG.into(), "/".as_ref(), Layer::User, text);
    let mut report = Report::default();
    let grant = read(flag.grant.at(&file), &mut report);
    match (grant, report.finish()) {
        (Some(grant), Ok(())) => Ok(grant),
        (_, errors) => Err(errors
            .err()
            .map_or(Problem::Rejected { message: "it is not a grant".to_owned() }, |errors| {
                errors.diagnostics()[0].problem.clone()
            })),
    }
}
