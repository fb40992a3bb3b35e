//! What all tools of a workspace keep.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::WorkspaceState;
use kitbag_base::ByteSize;
use kitbag_policy::StorageGrant;
use rusqlite::OptionalExtension;

use crate::storage::database::Database;
use crate::storage::error::StorageError;
use crate::storage::namespace::{Namespace, begin};

/// What the tools of one workspace keep. Nothing is read or made before its first use.
///
/// Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Storage(pub(crate) Arc<Database>);

/// How much a tool keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The name of the tool.
    pub tool: String,
    /// How many keys it has.
    pub keys: u64,
    /// The bytes of its keys and values.
    pub bytes: ByteSize,
}

impl Storage {
    /// What the tools of a workspace keep in the state directory. Both paths are absolute.
    pub fn new(state: &Path, workspace: &Path) -> Self {
        Self(Arc::new(Database::new(WorkspaceState::new(state, workspace))))
    }

    /// The namespace of a tool, within what it is granted. What one use of it gives has at
    /// most `answer` bytes, and waits for others until then.
    pub fn namespace(
        &self,
        tool: &str,
        grant: StorageGrant,
        answer: ByteSize,
        until: Option<Instant>,
    ) -> Namespace {
        let (database, tool) = (Arc::clone(&self.0), tool.to_owned());
        Namespace { database, tool, grant, answer, until }
    }

    /// How much each tool keeps, by name. Tools that keep nothing are left out.
    ///
    /// # Errors
    ///
    /// [`StorageError`] where the file cannot be read.
    pub fn namespaces(&self) -> Result<Vec<Usage>, StorageError> {
        if !self.0.exists()? {
            return Ok(Vec::new());
        }
        self.0.with(None, |connection| {
            let text = "SELECT name, keys, bytes FROM namespaces WHERE keys > 0 ORDER BY name";
            let mut statement = connection.prepare_cached(text)?;
            let usages = statement.query_map([], |row| {
                let bytes = ByteSize::bytes(row.get(2)?);
                Ok(Usage { tool: row.get(0)?, keys: row.get(1)?, bytes })
            })?;
            Ok(usages.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// How much a tool keeps.
    ///
    /// # Errors
    ///
    /// [`StorageError`] where the file cannot be read.
    pub fn usage(&self, tool: &str) -> Result<Usage, StorageError> {
        let nothing = || Usage { tool: tool.to_owned(), keys: 0, bytes: ByteSize::default() };
        let mut usages = self.namespaces()?.into_iter();
        Ok(usages.find(|usage| usage.tool == tool).unwrap_or_else(nothing))
    }

    /// Removes everything that a tool keeps, also from the file, and returns how much it was.
    ///
    /// # Errors
    ///
    /// [`StorageError`] where the file cannot be changed; then nothing is removed.
    pub fn clear(&self, tool: &str) -> Result<Usage, StorageError> {
        if !self.0.exists()? {
            return self.usage(tool);
        }
        let cleared = self.0.write(None, |connection| {
            // What is deleted is overwritten, also where it is left in pages that stay.
            connection.pragma_update(None, "secure_delete", "ON")?;
            let transaction = begin(connection)?;
            let text = "SELECT id, keys, bytes FROM namespaces WHERE name = ?1";
            let found = transaction.query_row(text, [tool], |row| {
                Ok((row.get::<_, i64>(0)?, row.get(1)?, ByteSize::bytes(row.get(2)?)))
            });
            let found = found.optional()?;
            if let Some((id, ..)) = found {
                transaction.execute("DELETE FROM entries WHERE namespace = ?1", [id])?;
                let text = "UPDATE namespaces SET keys = 0, bytes = 0 WHERE id = ?1";
                transaction.execute(text, [id])?;
            }
            transaction.commit()?;
            connection.pragma_update(None, "secure_delete", "OFF")?;
            // Both give room back, and need not: others may be reading.
            let _ = connection.execute_batch("PRAGMA incremental_vacuum");
            let _ = connection.pragma_query(None, "wal_checkpoint(TRUNCATE)", |_| Ok(()));
            let (keys, bytes) =
                found.map_or_else(Default::default, |(_, keys, bytes)| (keys, bytes));
            Ok(Usage { tool: tool.to_owned(), keys, bytes })
        })?;
        self.0.close_idle();
        Ok(cleared)
    }
}
