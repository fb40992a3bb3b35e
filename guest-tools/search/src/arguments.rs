//! The arguments of both tools, converted for ripgrep's libraries.

use globset::{Glob, GlobSet, GlobSetBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use kitbag_sdk::ErrorInfo;
use kitbag_workspace::shown;
use serde::Deserialize;

use crate::place::SearchRoot;
use crate::walk::Filter;

/// The arguments of `search_files`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchFiles {
    pub(crate) pattern: String,
    #[serde(default)]
    pub(crate) literal: bool,
    #[serde(default = "here")]
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) globs: Vec<String>,
    #[serde(default)]
    pub(crate) types: Vec<String>,
    #[serde(default)]
    pub(crate) case: Case,
    #[serde(default)]
    pub(crate) context: usize,
    #[serde(default)]
    pub(crate) show: Show,
    #[serde(default)]
    pub(crate) hidden: bool,
    #[serde(default)]
    pub(crate) ignored: bool,
    #[serde(default)]
    pub(crate) newest: bool,
    #[serde(default = "matches_in_all")]
    pub(crate) limit: u64,
    #[serde(default = "matches_per_file")]
    pub(crate) per_file: u64,
}

/// The arguments of `find_files`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FindFiles {
    #[serde(default = "here")]
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) globs: Vec<String>,
    #[serde(default)]
    pub(crate) types: Vec<String>,
    #[serde(default)]
    pub(crate) kind: Wanted,
    #[serde(default)]
    pub(crate) depth: Option<usize>,
    #[serde(default)]
    pub(crate) hidden: bool,
    #[serde(default)]
    pub(crate) ignored: bool,
    #[serde(default)]
    pub(crate) newest: bool,
    #[serde(default = "paths_in_all")]
    pub(crate) limit: u64,
}

/// Case sensitivity.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Case {
    /// Sensitive only if the pattern has a capital letter.
    #[default]
    Smart,
    Sensitive,
    Insensitive,
}

/// The output for a matching file.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Show {
    /// The path and the matching lines.
    #[default]
    Lines,
    /// The path.
    Files,
    /// The path and the number of matching lines.
    Counts,
}

/// The entries that `find_files` lists.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wanted {
    #[default]
    File,
    Directory,
    Any,
}

fn here() -> String {
    ".".into()
}

fn matches_in_all() -> u64 {
    100
}

fn matches_per_file() -> u64 {
    20
}

fn paths_in_all() -> u64 {
    200
}

impl SearchFiles {
    /// Returns the filter of the walk.
    pub(crate) fn filter(&self, place: &SearchRoot) -> Result<Filter, ErrorInfo> {
        filter(&place.globs(&self.globs)?, &self.types, self.hidden, self.ignored, None)
    }
}

impl FindFiles {
    /// Returns the filter of the walk.
    pub(crate) fn filter(&self, place: &SearchRoot) -> Result<Filter, ErrorInfo> {
        filter(&place.globs(&self.globs)?, &self.types, self.hidden, self.ignored, self.depth)
    }
}

fn filter(
    globs: &[String],
    types: &[String],
    hidden: bool,
    ignored: bool,
    depth: Option<usize>,
) -> Result<Filter, ErrorInfo> {
    Ok(Filter {
        globs: self::globs(globs)?,
        hidden_names: hidden_names(globs),
        types: self::types(types)?,
        hidden,
        ignored,
        depth: depth.unwrap_or(usize::MAX),
    })
}

/// Returns the parts of globs that start with a dot, such as `.github` in `.github/**`. Invalid
/// globs are skipped, since [`globs`] reports them.
fn hidden_names(globs: &[String]) -> GlobSet {
    let wanted = globs.iter().filter(|glob| !glob.starts_with('!'));
    let parts = wanted.flat_map(|glob| glob.split('/'));
    let hidden = parts.filter(|part| part.starts_with('.') && !matches!(*part, "." | ".."));
    let mut builder = GlobSetBuilder::new();
    hidden.filter_map(|part| Glob::new(part).ok()).for_each(|glob| {
        builder.add(glob);
    });
    builder.build().unwrap_or_default()
}

/// Builds globs in the form of `rg --glob`: a glob that starts with `!` excludes, and the last
/// match decides.
fn globs(globs: &[String]) -> Result<Override, ErrorInfo> {
    let mut builder = OverrideBuilder::new("");
    for glob in globs {
        builder.add(glob).map_err(|error| {
            let why = match error {
                ignore::Error::Glob { err, .. } => err,
                error => error.to_string(),
            };
            ErrorInfo::new(format!("invalid glob `{}` in `globs`: {}", shown(glob), shown(&why)))
        })?;
    }
    builder.build().map_err(|error| {
        ErrorInfo::new(format!("`globs` cannot be used: {}", shown(&error.to_string())))
    })
}

/// Builds types in the form of `rg --type`, also from a file extension: `rs` for `rust`.
fn types(names: &[String]) -> Result<Types, ErrorInfo> {
    let mut builder = TypesBuilder::new();
    if names.is_empty() {
        return builder.build().map_err(|error| ErrorInfo::new(error.to_string()));
    }
    builder.add_defaults();
    let known = builder.definitions();
    for name in names {
        let (is_unwanted, name) = match name.strip_prefix('!') {
            Some(name) => (true, name),
            None => (false, &**name),
        };
        let extension = format!("*.{}", name.trim_start_matches('.'));
        let named = known.iter().find(|known| known.name() == name);
        let found = named.or_else(|| known.iter().find(|known| known.globs().contains(&extension)));
        let found = found.ok_or_else(|| {
            ErrorInfo::new(format!(
                "unknown file type `{}` in `types`; use `globs`, such as `{}`",
                shown(name),
                shown(&extension)
            ))
        })?;
        match is_unwanted {
            true => builder.negate(found.name()),
            false => builder.select(found.name()),
        };
    }
    builder.build().map_err(|error| {
        ErrorInfo::new(format!("`types` cannot be used: {}", shown(&error.to_string())))
    })
}
