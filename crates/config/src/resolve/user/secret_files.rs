//! Names of files that look like secrets: changes to the built-in list.

use std::path::Path;

use crate::config::SecretFiles;
use crate::format::span::{At, Written};
use crate::read::file::Layer;
use crate::report::text::{not_a_glob, user_only};
use crate::report::{Piece, Report};
use crate::resolve::context::{ConfigFiles, tables, valid};

/// Returns the changes of all layers. Every layer can add names; only the user config can remove
/// names, so that a workspace cannot open files that the user has not opened.
pub(crate) fn secret_files(
    configs: &ConfigFiles<'_>,
    user_file: Option<&Path>,
    report: &mut Report,
) -> SecretFiles {
    let mut files = SecretFiles::default();
    for (file, table) in tables(configs, |config| config.secret_files.as_ref()) {
        if let Some(names) = table.names.as_ref().map(|names| names.at(file)) {
            files.names.value.extend(globs(names, report));
            files.names.origin = names.origin();
        }
        let Some(except) = table.except.as_ref().map(|except| except.at(file)) else { continue };
        if file.layer() == Layer::User {
            files.except = except.sourced(globs(except, report));
        } else {
            let key = "secret_files.except";
            let piece = (Piece::Key(key.to_owned()), Vec::new());
            report.span_of(except.file, except.span, user_only(key, user_file), piece);
        }
    }
    files
}

pub(crate) fn globs(list: At<'_, Vec<Written<String>>>, report: &mut Report) -> Vec<String> {
    valid(list, report, |text| match kitbag_glob::Glob::new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(reason) => Err(not_a_glob(text, reason)),
    })
}
