//! Bounds on all files of a workspace together: reading an untrusted clone must be cheap.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kitbag_contract::ToolName;

use super::own_files::OwnFiles;
use crate::format::ConfigFile;
use crate::format::span::{Entry, Table};
use crate::layers::origin::Origin;
use crate::read::file::{self, Layer, SourceFile};
use crate::report::{Piece, Report};

/// The maximum total size of the files of a workspace, in bytes.
pub(crate) const BYTES: u64 = 16 << 20;

/// The maximum number of components and scripts in the directories of a workspace.
pub(crate) const TOOLS: usize = 2_000;

/// The maximum number of tables of tools in the file of a workspace.
pub(crate) const TABLES: usize = 2_000;

/// The maximum number of topics in the file of a workspace.
pub(crate) const TOPICS: usize = 500;

/// The maximum number of entries of a directory that are examined.
pub(crate) const ENTRIES: usize = 20_000;

impl OwnFiles {
    /// Omits the components and scripts beyond [`TOOLS`], the last ones by name.
    pub(super) fn bound_tools(&mut self) {
        let (mut left, mut beyond) = (TOOLS, BTreeMap::new());
        let mut keep = |name: &ToolName, path: &PathBuf| {
            let is_kept = left > 0;
            left = left.saturating_sub(1);
            if !is_kept {
                beyond.insert(name.clone(), path.clone());
            }
            is_kept
        };
        self.tools.retain(|name, found| keep(name, &found.wasm));
        self.scripts.retain(|name, found| keep(name, &found.path));
        let Some((first, path)) = beyond.first_key_value() else { return };
        let origin = Origin::Found { path: file::relative(path, &self.texts.root) };
        let problem = format!(
            "is ignored, with {} more: `.kitbag` may contain {TOOLS} components and scripts in \
             total",
            beyond.len() - 1
        );
        let piece = (Layer::Manifest, Piece::Tool(first.to_string()));
        let names = beyond.keys().map(ToString::to_string).collect();
        self.texts.report.piece_of(origin, problem, piece, names);
    }
}

/// Omits the tables of tools and the topics of a workspace's file beyond their maximum numbers, the
/// last ones in the file.
///
/// A tool whose table is omitted is off: the table may restrict it.
pub(super) fn bound_tables(
    mut config: ConfigFile,
    file: &SourceFile,
    report: &mut Report,
) -> ConfigFile {
    if let Some(tables) = &mut config.tools {
        let beyond = tables.split_off(|_| true, TABLES);
        if let Some(Entry { key, .. }) = beyond.first() {
            let more = beyond.len() - 1;
            let problem =
                format!("is ignored, with {more} more: a file may have {TABLES} tables of tools");
            let names = beyond.iter().map(|entry| entry.key.value.clone()).collect();
            let piece = Piece::Tool(key.value.clone());
            report.span_of(file, key.span, problem, (piece, names));
        }
    }
    if let Some(topics) = &mut config.knowledge {
        // Other tables only change topics of the user config.
        let beyond = topics.split_off(|topic| topic.subjects.is_some(), TOPICS);
        if let Some(Entry { key, .. }) = beyond.first() {
            let more = beyond.len() - 1;
            let problem =
                format!("is ignored, with {more} more: a workspace may have {TOPICS} topics");
            let piece = Piece::Topic(key.value.clone());
            report.span_of(file, key.span, problem, (piece, Vec::new()));
        }
    }
    config
}

impl<V> Table<V> {
    /// Removes the entries beyond the first `most` entries that match `counts`.
    fn split_off(&mut self, counts: impl Fn(&V) -> bool, most: usize) -> Vec<Entry<V>> {
        let mut left = most;
        self.take_out(|value| {
            let is_beyond = left == 0 && counts(value);
            left = left.saturating_sub(usize::from(counts(value)));
            is_beyond
        })
    }
}
