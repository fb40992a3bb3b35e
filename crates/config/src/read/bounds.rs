//! Bounds on all files of a workspace together: reading an untrusted clone must be cheap.

use crate::format::ConfigFile;
use crate::format::span::{Entry, Table};
use crate::read::file::SourceFile;
use crate::report::{Piece, Report};

/// The maximum total size of the files of a workspace, in bytes.
pub(crate) const BYTES: u64 = 16 << 20;

/// The maximum number of components and scripts in the directories of a workspace.
pub(crate) const TOOLS: usize = 2_000;

/// The maximum number of tables of tools in the file of a workspace.
pub(crate) const TABLES: usize = 2_000;

/// The maximum number of servers in the file of a workspace.
pub(crate) const SERVERS: usize = 64;

/// The maximum number of topics in the file of a workspace.
pub(crate) const TOPICS: usize = 500;

/// The maximum number of entries of a directory that are examined.
pub(crate) const ENTRIES: usize = 20_000;

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
    if let Some(servers) = &mut config.servers {
        let beyond = servers.split_off(|_| true, SERVERS);
        if let Some(Entry { key, .. }) = beyond.first() {
            let more = beyond.len() - 1;
            let problem =
                format!("is ignored, with {more} more: a file may have {SERVERS} servers");
            let names = beyond.iter().map(|entry| entry.key.value.clone()).collect();
            let piece = Piece::Server(key.value.clone());
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
