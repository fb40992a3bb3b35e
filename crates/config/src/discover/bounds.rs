//! Bounds on the files of a workspace together: an untrusted clone has to be cheap.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kitbag_contract::{ByteSize, ToolName};

use super::own_files::OwnFiles;
use crate::error::Report;
use crate::file::{self, Layer, SourceFile};
use crate::format::ConfigFile;
use crate::origin::Origin;
use crate::piece::Piece;
use crate::written::{Entry, Table};

/// The most that the files of a workspace have together, in bytes.
pub(crate) const BYTES: u64 = 16 << 20;

/// The most components and scripts in the directories of a workspace together.
pub(crate) const TOOLS: usize = 2_000;

/// The most tables of tools in the file of a workspace.
pub(crate) const TABLES: usize = 2_000;

/// The most topics in the file of a workspace.
pub(crate) const TOPICS: usize = 500;

/// The most entries of a directory that are looked at.
pub(crate) const ENTRIES: usize = 20_000;

/// A bound that a workspace exceeds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bound {
    /// The bytes of its files together.
    #[error(
        "is not read: the files of `.kitbag` have more than {} together, which is the most that is \
         read",
        ByteSize::bytes(BYTES)
    )]
    Bytes,
    /// The entries of a directory.
    #[error("has more than {ENTRIES} entries; the rest is not looked at")]
    Entries,
    /// Mistakes in all files.
    #[error("from here on mistakes are not counted, since there are too many")]
    Mistakes,
    /// Components and scripts in `.kitbag`.
    #[error(
        "is left out, with {more} more: `.kitbag` may hold {TOOLS} components and scripts together"
    )]
    Tools {
        /// How many more are left out.
        more: usize,
    },
    /// Tables of tools in the configuration.
    #[error("is left out, with {more} more: a file may have {TABLES} tables of tools")]
    Tables {
        /// How many more are left out.
        more: usize,
    },
    /// Topics in the configuration.
    #[error("is left out, with {more} more: a workspace may have {TOPICS} topics")]
    Topics {
        /// How many more are left out.
        more: usize,
    },
}

impl OwnFiles {
    /// Leaves out the components and scripts beyond [`TOOLS`], the last ones by name.
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
        let problem = Bound::Tools { more: beyond.len() - 1 };
        let piece = (Layer::Manifest, Piece::Tool(first.to_string()));
        let names = beyond.keys().map(ToString::to_string).collect();
        self.texts.report.piece_of(origin, problem.into(), piece, names);
    }
}

/// Leaves out the tables of tools and the topics of a workspace's file beyond what it may have,
/// the last ones of the file.
///
/// A tool whose table is left out is off: the table may restrict it.
pub(super) fn bound_tables(
    mut config: ConfigFile,
    file: &SourceFile,
    report: &mut Report,
) -> ConfigFile {
    if let Some(tables) = &mut config.tools {
        let beyond = tables.split_off(|_| true, TABLES);
        if let Some(Entry { key, .. }) = beyond.first() {
            let problem = Bound::Tables { more: beyond.len() - 1 };
            let names = beyond.iter().map(|entry| entry.key.value.clone()).collect();
            let piece = Piece::Tool(key.value.clone());
            report.span_of(file, key.span, problem, None, (piece, names));
        }
    }
    if let Some(topics) = &mut config.knowledge {
        // Other tables only change topics of the user's own file.
        let beyond = topics.split_off(|topic| topic.subjects.is_some(), TOPICS);
        if let Some(Entry { key, .. }) = beyond.first() {
            let problem = Bound::Topics { more: beyond.len() - 1 };
            let piece = Piece::Topic(key.value.clone());
            report.span_of(file, key.span, problem, None, (piece, Vec::new()));
        }
    }
    config
}

impl<V> Table<V> {
    /// Takes out the entries beyond the first `most` of those that count.
    fn split_off(&mut self, counts: impl Fn(&V) -> bool, most: usize) -> Vec<Entry<V>> {
        let mut left = most;
        self.take_out(|value| {
            let is_beyond = left == 0 && counts(value);
            left = left.saturating_sub(usize::from(counts(value)));
            is_beyond
        })
    }
}
