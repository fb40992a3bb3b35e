//! Ceilings: the highest limits that the files of a workspace may set.

use super::context::ConfigFiles;
use super::limits::{Quantity, SIZE, TIME};
use crate::format::invalid_keys::InvalidKeys;
use crate::format::key::KeyPath;
use crate::format::schema::CEILING;
use crate::format::span::At;
use crate::layers::limits::{EffectiveLimits, KnownLimits};
use crate::layers::origin::Sourced;
use crate::read::file::Layer;
use crate::report::Report;

/// Returns the ceilings of the user config; the default ceilings are the default limits. An invalid
/// ceiling is `None`, because no limit can be compared with it.
pub(super) fn ceilings(
    configs: &ConfigFiles<'_>,
    invalid: &InvalidKeys,
    report: &mut Report,
) -> KnownLimits {
    let own = configs.iter().find(|(file, _)| file.layer() == Layer::User);
    let own = own.and_then(|(file, config)| Some((*file, config.ceiling.as_ref()?)));
    let own = own.map(|(file, table)| table.limits(file)).unwrap_or_default();
    own.zip(EffectiveLimits::default()).map(
        &mut Own { invalid, report },
        |own, key, (written, default)| own.ceiling(&SIZE, key, written, default),
        |own, key, (written, default)| own.ceiling(&TIME, key, written, default),
        |own, key, (written, default)| match written {
            Some(at) => Some(at.sourced(at.value.get())),
            None => own.default(key, default),
        },
        |_, _, (written, default)| written.map(|at| at.sourced(at.value.get())).or(default),
    )
}

/// Lowers limits to their ceilings: a default must not exceed a ceiling that the user has set.
pub(super) fn lowered(limits: EffectiveLimits, ceilings: &KnownLimits) -> EffectiveLimits {
    limits.zip(ceilings.clone()).map(
        &mut (),
        |(), _, (limit, ceiling)| lower(limit, ceiling),
        |(), _, (limit, ceiling)| lower(limit, ceiling),
        |(), _, (limit, ceiling)| lower(limit, ceiling),
        // An unlimited budget exceeds any ceiling.
        |(), _, (limit, ceiling)| ceiling.or(limit),
    )
}

struct Own<'a> {
    invalid: &'a InvalidKeys,
    report: &'a mut Report,
}

impl Own<'_> {
    fn ceiling<T>(
        &mut self,
        quantity: &Quantity<T, String>,
        key: &str,
        written: Option<At<'_, String>>,
        default: Sourced<T>,
    ) -> Option<Sourced<T>> {
        match written {
            Some(at) => match (quantity.parse)(at.value) {
                Ok(value) => Some(at.sourced(value)),
                Err(error) => {
                    self.report.at(at, error);
                    None
                }
            },
            None => self.default(key, default),
        }
    }

    /// Returns the default of a ceiling that is not set, unless an invalid ceiling was set.
    fn default<T>(&self, key: &str, default: Sourced<T>) -> Option<Sourced<T>> {
        let table = KeyPath::ROOT.key(CEILING);
        (!self.invalid.covers(&table.key(key))).then_some(default)
    }
}

fn lower<T: PartialOrd>(limit: Sourced<T>, ceiling: Option<Sourced<T>>) -> Sourced<T> {
    match ceiling {
        Some(ceiling) if ceiling.value < limit.value => ceiling,
        _ => limit,
    }
}
