//! The storage of one tool and its operations.

use std::sync::Arc;
use std::time::Instant;

use kitbag_base::ByteSize;
use kitbag_policy::StorageGrant;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use crate::storage::bounds::{ANSWER_KEYS, KEY_BYTES};
use crate::storage::database::{Database, Failure};
use crate::storage::error::{QuotaExceeded, StorageError};

/// The bits of an entry's id that number it within its namespace.
const NUMBER_BITS: u32 = 40;

/// The highest number of an entry.
const MOST_NUMBER: i64 = (1 << NUMBER_BITS) - 1;

/// The most keys in one page of a list.
const PAGE_KEYS: usize = 1000;

/// The storage of one tool during one call.
#[derive(Clone, Debug)]
pub struct Namespace {
    pub(crate) database: Arc<Database>,
    pub(crate) tool: String,
    pub(crate) grant: StorageGrant,
    /// Maximum size of a result in bytes.
    pub(crate) answer: ByteSize,
    /// The time at which an operation stops waiting for others.
    pub(crate) until: Option<Instant>,
}

/// A page of a tool's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// The keys in order of creation.
    pub keys: Vec<String>,
    /// The start of the next page. `None` for the last page.
    pub cursor: Option<u64>,
}

/// The row of a namespace.
struct Totals {
    id: i64,
    keys: u64,
    bytes: u64,
    next: i64,
}

impl Namespace {
    /// Returns the value of a key, if it exists.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StorageError> {
        check_key(key)?;
        self.database.with(self.until, |connection| {
            let mut left = self.answer.as_u64();
            self.read(connection, key, &mut left)
        })
    }

    /// Returns true if a key exists.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn exists(&self, key: &str) -> Result<bool, StorageError> {
        check_key(key)?;
        self.database.with(self.until, |connection| {
            let text = "SELECT 1 FROM entries \
                        WHERE namespace = (SELECT id FROM namespaces WHERE name = ?1) AND key = ?2";
            Ok(connection.prepare_cached(text)?.exists((&self.tool, key))?)
        })
    }

    /// Sets a value.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn set(&self, key: &str, value: &[u8]) -> Result<(), StorageError> {
        self.set_many(&[(key, value)])
    }

    /// Removes a key if it exists.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn delete(&self, key: &str) -> Result<(), StorageError> {
        self.delete_many(&[key])
    }

    /// Returns the keys after a cursor, in pages.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn list_keys(&self, cursor: Option<u64>) -> Result<Keys, StorageError> {
        // The cursor comes from a guest and may have any value.
        let after = i64::try_from(cursor.unwrap_or(0)).unwrap_or(MOST_NUMBER).min(MOST_NUMBER);
        self.database.with(self.until, |connection| {
            let text = "SELECT entries.id & ?3, key FROM namespaces, entries \
                        WHERE name = ?1 AND entries.id > (namespaces.id << ?4 | ?2) \
                        AND entries.id <= (namespaces.id << ?4 | ?3) ORDER BY entries.id";
            let mut statement = connection.prepare_cached(text)?;
            let mut rows = statement.query((&self.tool, after, MOST_NUMBER, NUMBER_BITS))?;
            let (mut page, mut bytes, mut last) = (Keys::default(), 0, None);
            while let Some(row) = rows.next()? {
                let key: String = row.get(1)?;
                bytes += key.len() as u64;
                let is_first = page.keys.is_empty();
                if page.keys.len() == PAGE_KEYS || (bytes > self.answer.as_u64() && !is_first) {
                    page.cursor = last;
                    break;
                }
                page.keys.push(key);
                last = Some(row.get(0)?);
            }
            Ok(page)
        })
    }

    /// Adds to the number of a key, in decimal digits, and returns the result. A missing key is
    /// zero.
    ///
    /// # Errors
    ///
    /// [`StorageError::Number`] if the value is not a number, and others.
    pub fn increment(&self, key: &str, delta: u64) -> Result<u64, StorageError> {
        check_key(key)?;
        let wrong = |reason| StorageError::Number { key: key.to_owned(), reason };
        self.database.write(self.until, |connection| {
            let transaction = begin(connection)?;
            let value = self.read(&transaction, key, &mut u64::MAX.clone())?;
            let number = match value {
                None => 0,
                Some(value) => std::str::from_utf8(&value)
                    .ok()
                    .and_then(|text| text.parse::<u64>().ok())
                    .ok_or_else(|| wrong("is not a number"))?,
            };
            let sum = number.checked_add(delta);
            let sum = sum.ok_or_else(|| wrong("would be larger than 18446744073709551615"))?;
            self.put(&transaction, &[(key, sum.to_string().as_bytes())])?;
            transaction.commit()?;
            Ok(sum)
        })
    }

    /// Returns the values of several keys at one moment, each with its key, in order.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    #[expect(clippy::type_complexity, reason = "the guest interface has this signature")]
    pub fn get_many(
        &self,
        keys: &[impl AsRef<str>],
    ) -> Result<Vec<Option<(String, Vec<u8>)>>, StorageError> {
        check_keys(keys.iter().map(AsRef::as_ref))?;
        self.database.with(self.until, |connection| {
            let transaction = connection.transaction()?;
            let mut left = self.answer.as_u64();
            let values = keys.iter().map(AsRef::as_ref).map(|key: &str| {
                let value = self.read(&transaction, key, &mut left)?;
                Ok(value.map(|value| (key.to_owned(), value)))
            });
            values.collect()
        })
    }

    /// Sets several values, all or none.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn set_many(
        &self,
        entries: &[(impl AsRef<str>, impl AsRef<[u8]>)],
    ) -> Result<(), StorageError> {
        check_keys(entries.iter().map(|(key, _)| key.as_ref()))?;
        self.database.write(self.until, |connection| {
            let transaction = begin(connection)?;
            self.put(&transaction, entries)?;
            Ok(transaction.commit()?)
        })
    }

    /// Removes several keys if they exist, all or none.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn delete_many(&self, keys: &[impl AsRef<str>]) -> Result<(), StorageError> {
        check_keys(keys.iter().map(AsRef::as_ref))?;
        self.database.write(self.until, |connection| {
            let transaction = begin(connection)?;
            let Some(mut totals) = self.totals(&transaction)? else { return Ok(()) };
            {
                let text = "DELETE FROM entries WHERE namespace = ?1 AND key = ?2 \
                            RETURNING length(value)";
                let mut delete = transaction.prepare_cached(text)?;
                for key in keys.iter().map(AsRef::as_ref) {
                    let removed = delete.query_row((totals.id, key), |row| row.get::<_, u64>(0));
                    if let Some(value) = removed.optional()? {
                        totals.keys = totals.keys.saturating_sub(1);
                        totals.bytes = totals.bytes.saturating_sub(key.len() as u64 + value);
                    }
                }
            }
            totals.save(&transaction)?;
            Ok(transaction.commit()?)
        })
    }

    /// Returns the value of a key if it fits into the rest of a result.
    fn read(
        &self,
        connection: &Connection,
        key: &str,
        left: &mut u64,
    ) -> Result<Option<Vec<u8>>, Failure> {
        // A value that is too large is not read.
        let text = "SELECT length(value), CASE WHEN length(value) <= ?3 THEN value END \
                    FROM entries \
                    WHERE namespace = (SELECT id FROM namespaces WHERE name = ?1) AND key = ?2";
        let mut statement = connection.prepare_cached(text)?;
        let most = i64::try_from(*left).unwrap_or(i64::MAX);
        let found = statement.query_row((&self.tool, key, most), |row| {
            Ok((row.get::<_, u64>(0)?, row.get::<_, Option<Vec<u8>>>(1)?))
        });
        let Some((bytes, value)) = found.optional()? else { return Ok(None) };
        let value = value.ok_or(StorageError::Answer { limit: self.answer })?;
        // Each key counts as well, since the result repeats it.
        *left = left.saturating_sub(bytes + key.len() as u64);
        Ok(Some(value))
    }

    /// Sets values and compares the final totals with the grant.
    fn put(
        &self,
        transaction: &Transaction<'_>,
        entries: &[(impl AsRef<str>, impl AsRef<[u8]>)],
    ) -> Result<(), Failure> {
        let mut totals = match self.totals(transaction)? {
            Some(totals) => totals,
            None => {
                let text = "INSERT INTO namespaces (name) VALUES (?1)";
                transaction.prepare_cached(text)?.execute([&self.tool])?;
                Totals { id: transaction.last_insert_rowid(), keys: 0, bytes: 0, next: 1 }
            }
        };
        let (keys_before, bytes_before) = (totals.keys, totals.bytes);
        let mut find = transaction.prepare_cached(
            "SELECT id, length(value) FROM entries WHERE namespace = ?1 AND key = ?2",
        )?;
        let mut update =
            transaction.prepare_cached("UPDATE entries SET value = ?2 WHERE id = ?1")?;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO entries (id, namespace, key, value) VALUES (?1, ?2, ?3, ?4)",
        )?;
        for (key, value) in entries {
            let (key, value) = (key.as_ref(), value.as_ref());
            let found = find.query_row((totals.id, key), |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, u64>(1)?))
            });
            let found = found.optional()?;
            let before = found.map_or(0, |(_, before)| key.len() as u64 + before);
            totals.bytes = totals.bytes.saturating_sub(before) + size(key, value);
            // Checked without writing the value.
            if size(key, value) > self.grant.quota().as_u64() {
                return Err(self.beyond_bytes(bytes_before, totals.bytes).into());
            }
            match found {
                Some((id, _)) => {
                    update.execute((id, value))?;
                }
                None => {
                    let id = totals.id << NUMBER_BITS | totals.next.min(MOST_NUMBER);
                    insert.execute((id, totals.id, key, value))?;
                    totals.next += 1;
                    totals.keys += 1;
                }
            }
        }
        // If the grant was reduced, existing data may still shrink.
        if totals.keys > self.grant.keys() && totals.keys > keys_before {
            let exceeded =
                QuotaExceeded::Keys { used: keys_before, needed: totals.keys, grant: self.grant };
            return Err(StorageError::from(exceeded).into());
        }
        if totals.bytes > self.grant.quota().as_u64() && totals.bytes > bytes_before {
            return Err(self.beyond_bytes(bytes_before, totals.bytes).into());
        }
        totals.save(transaction)
    }

    fn totals(&self, connection: &Connection) -> Result<Option<Totals>, Failure> {
        let text = "SELECT id, keys, bytes, next FROM namespaces WHERE name = ?1";
        let mut statement = connection.prepare_cached(text)?;
        let totals = statement.query_row([&self.tool], |row| {
            let (id, keys) = (row.get(0)?, row.get(1)?);
            Ok(Totals { id, keys, bytes: row.get(2)?, next: row.get(3)? })
        });
        Ok(totals.optional()?)
    }

    fn beyond_bytes(&self, used: u64, needed: u64) -> StorageError {
        QuotaExceeded::Bytes { used, needed, grant: self.grant }.into()
    }
}

impl Totals {
    fn save(&self, transaction: &Transaction<'_>) -> Result<(), Failure> {
        let Self { id, keys, bytes, next } = self;
        let text = "UPDATE namespaces SET keys = ?2, bytes = ?3, next = ?4 WHERE id = ?1";
        transaction.prepare_cached(text)?.execute((id, keys, bytes, next))?;
        Ok(())
    }
}

/// Starts a write transaction: no other writer changes the data that it reads.
pub(crate) fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn size(key: &str, value: &[u8]) -> u64 {
    key.len() as u64 + value.len() as u64
}

fn check_key(key: &str) -> Result<(), StorageError> {
    match key.len() {
        1..=KEY_BYTES => Ok(()),
        bytes => Err(StorageError::Key { bytes }),
    }
}

fn check_keys<'a>(mut keys: impl ExactSizeIterator<Item = &'a str>) -> Result<(), StorageError> {
    let count = keys.len();
    match count > ANSWER_KEYS {
        true => Err(StorageError::TooManyKeys { count }),
        false => keys.try_for_each(check_key),
    }
}
