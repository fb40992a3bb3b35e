//! The storage of all tools of a workspace.

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

/// The storage of all tools of a workspace. Nothing is read or created before its first use.
///
/// Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Storage(pub(crate) Arc<Database>);

/// The used storage of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The name of the tool.
    pub tool: String,
    /// The number of its keys.
    pub keys: u64,
    /// The bytes of its keys and values.
    pub bytes: ByteSize,
}

impl Storage {
    /// Creates the storage of a workspace in the state directory. Both paths must be absolute.
    pub fn new(state: &Path, workspace: &Path) -> Self {
        Self(Arc::new(Database::new(WorkspaceState::new(state, workspace))))
    }

    /// Returns the namespace of a tool, within its grant. A result of one operation has at most
    /// `answer` bytes, and an operation waits for others until `until`.
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

    /// Returns the used storage of each tool, by name. Tools without data are omitted.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if the file cannot be read.
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

    /// Returns the used storage of a tool.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if the file cannot be read.
    pub fn usage(&self, tool: &str) -> Result<Usage, StorageError> {
        let nothing = || Usage { tool: tool.to_owned(), keys: 0, bytes: ByteSize::default() };
        let mut usages = self.namespaces()?.into_iter();
        Ok(usages.find(|usage| usage.tool == tool).unwrap_or_else(nothing))
    }

    /// Removes all data of a tool, also from the file, and returns its size.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if the file cannot be changed; nothing is removed then.
    pub fn clear(&self, tool: &str) -> Result<Usage, StorageError> {
        if !self.0.exists()? {
            return self.usage(tool);
        }
        let cleared = self.0.write(None, |connection| {
            // Deleted data is overwritten, also in pages that remain in use.
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
            // Both free space, but may fail while others read.
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
