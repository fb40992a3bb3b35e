//! Extends the trust in a workspace to a change that a person just approved.

use std::collections::BTreeMap;
use std::sync::Arc;

use kitbag::base::ContentDigest;
use kitbag::config::{TrustedBy, WorkspaceTrust};
use kitbag::host::Limits;
use kitbag::trust::TrustRecord;
use kitbag::{Caller, Config};

use crate::commands::{Global, limits_now};
use crate::console::output;
use crate::error::CliError;

/// The trust in a workspace before a command changed its files.
pub(crate) enum TrustBefore {
    Content(Option<Arc<TrustRecord>>),
    All,
    None,
}

/// The files that a command changed, by their paths in the workspace. `None`: the file was removed.
pub(crate) type Changed = BTreeMap<String, Option<ContentDigest>>;

impl TrustBefore {
    /// Returns the current trust, while no other command changes the files.
    pub(crate) fn now(global: &Global) -> Result<Self, CliError> {
        let kitbag = global.builder().single_call().build()?;
        Ok(Self::reviewed(kitbag.toolbox().config(), global))
    }

    /// Returns the trust in the current content. An edit that requests more must be reviewed by a
    /// person first.
    fn reviewed(config: &Config, global: &Global) -> Self {
        match &config.review {
            None => Self::of(config),
            Some(review) if review.changes.is_within() => Self::edited(config, global),
            Some(_) => Self::None,
        }
    }

    /// Returns the trust in a workspace that was edited and does not request more.
    fn edited(config: &Config, global: &Global) -> Self {
        let Some(trusted) = config.workspace_trust.record() else { return Self::None };
        let (kitbag, _) = global.builder().single_call().ask_trust().build_faulty();
        let Some(kitbag) = kitbag else { return Self::None };
        let Ok(question) = kitbag.trust_question() else { return Self::None };
        let now = question.record.clone();
        let is_trusted = |(path, digest)| trusted.components.get(path) == Some(digest);
        match now.components.iter().all(is_trusted) {
            true => Self::Content(Some(Arc::new(now))),
            false => Self::None,
        }
    }

    /// Like [`now`](Self::now), but accepts a configuration with mistakes. `None` if a file cannot
    /// be read at all.
    pub(crate) fn now_leniently(global: &Global) -> Option<Self> {
        let (kitbag, _) = global.builder().single_call().build_faulty();
        kitbag.map(|kitbag| Self::reviewed(kitbag.toolbox().config(), global))
    }

    /// Returns whether the workspace was trusted, or had nothing to trust.
    pub(crate) fn is_trusted(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Returns the current limits of all calls if the workspace does not set them.
    pub(crate) fn limits(&self, global: &Global) -> Result<Option<Limits>, CliError> {
        match self {
            Self::None => limits_now(global).map(Some),
            Self::Content(_) | Self::All => Ok(None),
        }
    }

    fn of(config: &Config) -> Self {
        match &config.workspace_trust {
            WorkspaceTrust::Nothing => Self::Content(None),
            WorkspaceTrust::Trusted(TrustedBy::Record(record)) => {
                Self::Content(Some(Arc::clone(record)))
            }
            WorkspaceTrust::Trusted(_) => Self::All,
            WorkspaceTrust::Untrusted(_) => Self::None,
        }
    }

    /// Trusts the workspace with a command's changes, if it was trusted before and nothing else has
    /// changed. `own` is the name of the tool or server in the places of a record. Otherwise a note
    /// tells the person what to do.
    pub(crate) fn extend(
        &self,
        global: &Global,
        own: &str,
        changed: &Changed,
    ) -> Result<(), CliError> {
        let before = match self {
            Self::All => return Ok(()),
            Self::None => {
                output::note(
                    "the workspace is not trusted, so it does not run yet; `kitbag trust` \
                     shows all requests of the workspace",
                );
                return Ok(());
            }
            Self::Content(before) => before,
        };
        // Other mistakes stay as they were trusted.
        let (kitbag, errors) = global.builder().single_call().ask_trust().build_faulty();
        let Some(kitbag) = kitbag else {
            return errors.into_iter().next().map_or(Ok(()), |error| Err(error.into()));
        };
        let question = match kitbag.trust_question() {
            Ok(question) => question,
            // No content remains that could be trusted.
            Err(_) if changed.values().all(Option::is_none) => return Ok(()),
            Err(error) => {
                output::note(&format!("trust in the workspace does not include it: {error}"));
                return Ok(());
            }
        };
        match is_only(before.as_deref(), &question.record, own, changed) {
            true => question.give(&Caller::this_user()).map_err(CliError::from),
            false => {
                output::note(
                    "the workspace also has other changes; review and trust them with `kitbag \
                     trust`",
                );
                Ok(())
            }
        }
    }
}

/// Returns whether two contents differ only in the changed files, and in granted paths outside of
/// the workspace.
fn is_only(before: Option<&TrustRecord>, now: &TrustRecord, own: &str, changed: &Changed) -> bool {
    let (mut files, mut components, places) = match before {
        Some(before) => (before.files.clone(), before.components.clone(), before.places.clone()),
        None => Default::default(),
    };
    for (path, digest) in changed {
        let is_component = path.ends_with(".wasm");
        match (is_component, digest) {
            (true, Some(digest)) => drop(components.insert(path.clone(), Some(*digest))),
            (true, None) => drop(components.remove(path)),
            (false, Some(digest)) => drop(files.insert(path.clone(), *digest)),
            (false, None) => drop(files.remove(path)),
        }
    }
    let others = |record: &TrustRecord| {
        let others = record.places.iter().filter(|place| place.by != own);
        others.cloned().collect::<Vec<_>>()
    };
    let places: Vec<_> = places.into_iter().filter(|place| place.by != own).collect();
    now.files == files && now.components == components && others(now) == places
}

#[cfg(test)]
mod tests {
    use kitbag::trust::TrustedPlace;

    use super::*;

    fn digest(byte: u8) -> ContentDigest {
        ContentDigest([byte; 32])
    }

    fn record(files: &[(&str, u8)], components: &[(&str, u8)], places: &[&str]) -> TrustRecord {
        let mut record = TrustRecord::new("/w");
        let entry = |(path, byte): &(&str, u8)| ((*path).to_owned(), digest(*byte));
        record.files = files.iter().map(entry).collect();
        record.components =
            components.iter().map(entry).map(|(path, digest)| (path, Some(digest))).collect();
        let place = |by: &&str| TrustedPlace {
            by: (*by).to_owned(),
            path: "/srv".to_owned(),
            access: "read".to_owned(),
        };
        record.places = places.iter().map(place).collect();
        record
    }

    #[test]
    fn trust_is_extended_if_nothing_else_changed() {
        const CONFIG: &str = ".kitbag/config.toml";
        const A: &str = ".kitbag/tools/a.wasm";
        const B: &str = ".kitbag/tools/b.wasm";
        let changed: Changed = [(CONFIG, Some(digest(2))), (A, Some(digest(9)))]
            .map(|(path, it)| (path.to_owned(), it))
            .into();
        let before = record(&[(CONFIG, 1)], &[(B, 5)], &["tool `b`"]);
        let check = |now: TrustRecord, expected: bool| {
            assert_eq!(is_only(Some(&before), &now, "tool `a`", &changed), expected, "{now:?}");
        };
        let components = [(A, 9), (B, 5)];
        check(record(&[(CONFIG, 2)], &components, &["tool `b`"]), true);
        check(record(&[(CONFIG, 2)], &components, &["tool `a`", "tool `b`"]), true);
        // Another command changed a file in the meantime.
        check(record(&[(CONFIG, 3)], &components, &["tool `b`"]), false);
        check(record(&[(CONFIG, 2), ("x", 1)], &components, &["tool `b`"]), false);
        check(record(&[(CONFIG, 2)], &[(A, 8), (B, 5)], &["tool `b`"]), false);
        check(record(&[(CONFIG, 2)], &[(A, 9), (B, 6)], &["tool `b`"]), false);
        check(record(&[(CONFIG, 2)], &components, &["tool `b`", "topic `keys`"]), false);
        check(record(&[(CONFIG, 2)], &components, &[]), false);
        let new = record(&[(CONFIG, 2)], &[(A, 9)], &[]);
        assert!(is_only(None, &new, "tool `a`", &changed));
    }
}
