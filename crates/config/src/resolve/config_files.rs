//! The configuration files, in the order of their layers.

use crate::format::ConfigFile;
use crate::format::span::{At, Written};
use crate::read::file::{Layer, SourceFile};

/// The user config and the workspace's configuration, the weakest first.
pub(super) type ConfigFiles<'a> = [(&'a SourceFile, &'a ConfigFile)];

/// Returns a table of each file that has it, the weakest first.
pub(super) fn tables<'a, T: 'a>(
    configs: &ConfigFiles<'a>,
    table: impl Fn(&'a ConfigFile) -> Option<&'a T>,
) -> impl Iterator<Item = (&'a SourceFile, &'a T)> {
    configs.iter().filter_map(move |(file, config)| Some((*file, table(config)?)))
}

pub(super) fn of_user<'a, T>(
    configs: &ConfigFiles<'a>,
    field: impl FnOnce(&'a ConfigFile) -> Option<&'a Written<T>>,
) -> Option<At<'a, T>> {
    let (file, config) = configs.iter().find(|(file, _)| file.layer() == Layer::User)?;
    Some(field(config)?.at(file))
}
