//! Ceilings: what the files of a workspace may set a limit to, at most.

use std::time::Duration;

use kitbag_contract::ByteSize;

use super::limits::{MEMORY, OUTPUT, Quantity, TIME, WRITTEN};
use crate::config::{Ceiling, EffectiveLimits};
use crate::error::Report;
use crate::file::{Layer, SourceFile};
use crate::format::{CeilingConfig, ConfigFile};
use crate::key::KeyPath;
use crate::origin::Sourced;
use crate::parse::Damage;
use crate::schema::CEILING;
use crate::written::Written;

/// The ceilings. One that was written wrong is `None`: nothing can be measured
/// against it.
pub(super) struct Ceilings {
    pub(super) memory: Option<Sourced<ByteSize>>,
    pub(super) time: Option<Sourced<Duration>>,
    pub(super) output: Option<Sourced<ByteSize>>,
    pub(super) written: Option<Sourced<ByteSize>>,
    pub(super) fuel: Option<Sourced<u64>>,
}

impl Ceilings {
    /// What the person's own file says, over the defaults of the limits.
    pub(super) fn new(
        configs: &[(&SourceFile, &ConfigFile)],
        damage: &Damage,
        report: &mut Report,
    ) -> Self {
        let Ceiling { memory, time, output, written, fuel } = Ceiling::default();
        let own = configs.iter().find(|(file, _)| file.layer() == Layer::User);
        let own = own.and_then(|(file, config)| Some((*file, config.ceiling.as_ref()?)));
        let own_fuel = own.and_then(|(file, table)| Some(table.fuel.as_ref()?.at(file)));
        let mut own = Own { table: own, damage, report };
        Self {
            memory: own.ceiling(&MEMORY, |table| table.memory.as_ref(), memory),
            time: own.ceiling(&TIME, |table| table.time.as_ref(), time),
            output: own.ceiling(&OUTPUT, |table| table.output.as_ref(), output),
            written: own.ceiling(&WRITTEN, |table| table.written.as_ref(), written),
            fuel: own_fuel.map(|at| at.sourced(at.value.get())).or(fuel),
        }
    }

    /// Puts the ceilings over the defaults: what nobody set is not above what
    /// nobody but the person may set.
    pub(super) fn over(&self, limits: EffectiveLimits) -> EffectiveLimits {
        EffectiveLimits {
            memory: lower(limits.memory, &self.memory),
            time: lower(limits.time, &self.time),
            output: lower(limits.output, &self.output),
            written: lower(limits.written, &self.written),
            // No budget is more than any.
            fuel: self.fuel.clone().or(limits.fuel),
        }
    }

    /// The ceilings, with the default for one that was written wrong.
    pub(super) fn into_ceiling(self) -> Ceiling {
        let Ceiling { memory, time, output, written, fuel } = Ceiling::default();
        Ceiling {
            memory: self.memory.unwrap_or(memory),
            time: self.time.unwrap_or(time),
            output: self.output.unwrap_or(output),
            written: self.written.unwrap_or(written),
            fuel: self.fuel.or(fuel),
        }
    }
}

/// What the person's own file says of ceilings.
struct Own<'a> {
    table: Option<(&'a SourceFile, &'a CeilingConfig)>,
    damage: &'a Damage,
    report: &'a mut Report,
}

impl<'a> Own<'a> {
    fn ceiling<T>(
        &mut self,
        quantity: &Quantity<T>,
        field: impl FnOnce(&'a CeilingConfig) -> Option<&'a Written<String>>,
        default: Sourced<T>,
    ) -> Option<Sourced<T>> {
        let written = self.table.and_then(|(file, table)| Some(field(table)?.at(file)));
        match written {
            Some(at) => match (quantity.parse)(at.value) {
                Ok(value) => Some(at.sourced(value)),
                Err(error) => {
                    self.report.at(at, error);
                    None
                }
            },
            None => {
                let table = KeyPath::ROOT.key(CEILING);
                (!self.damage.covers(&table.key(quantity.key))).then_some(default)
            }
        }
    }
}

fn lower<T: PartialOrd + Clone>(limit: Sourced<T>, ceiling: &Option<Sourced<T>>) -> Sourced<T> {
    match ceiling {
        Some(ceiling) if ceiling.value < limit.value => ceiling.clone(),
        _ => limit,
    }
}
