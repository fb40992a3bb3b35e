//! What looks like a secret: what the layers change of the built-in list of names.

use crate::config::SecretFiles;
use crate::format::ConfigFile;
use crate::format::spanned::{At, Written};
use crate::read::file::{Layer, SourceFile};
use crate::report::Piece;
use crate::report::text::{not_a_glob, user_only};
use crate::resolve::resolver::Resolver;

impl Resolver<'_> {
    /// Every layer adds names; only the user's own file takes some away, so that a workspace
    /// opens nothing that the user has not.
    pub(in crate::resolve) fn secret_files(
        &mut self,
        layers: &[(&SourceFile, &ConfigFile)],
    ) -> SecretFiles {
        let mut files = SecretFiles::default();
        for (file, layer) in layers {
            let Some(table) = &layer.secret_files else { continue };
            if let Some(names) = table.names.as_ref().map(|names| names.at(file)) {
                files.names.value.extend(self.globs(names));
                files.names.origin = names.origin();
            }
            let Some(except) = table.except.as_ref().map(|except| except.at(file)) else {
                continue;
            };
            if file.layer() == Layer::User {
                files.except = except.sourced(self.globs(except));
            } else {
                let key = "secret_files.except";
                let piece = (Piece::Key(key.to_owned()), Vec::new());
                let problem = user_only(key, self.own_file);
                self.report.span_of(except.file, except.span, problem, piece);
            }
        }
        files
    }

    /// The texts of a list of globs, those that are none reported.
    pub(in crate::resolve) fn globs(&mut self, at: At<'_, Vec<Written<String>>>) -> Vec<String> {
        let texts = at.value.iter().map(|text| text.at(at.file));
        let mut globs = Vec::with_capacity(at.value.len());
        for text in texts {
            match kitbag_glob::Glob::new(text.value) {
                Ok(_) => globs.push(text.value.clone()),
                Err(reason) => self.report.at(text, not_a_glob(text.value, reason)),
            }
        }
        globs
    }
}
