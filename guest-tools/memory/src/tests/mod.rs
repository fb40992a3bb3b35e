//! Tests of the tools with a store in memory.

mod hostile;
mod tools;
mod transfer;
mod words;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use kitbag_sdk::{Call, ErrorInfo, json};
use serde_json::Value;

use crate::date::Moment;
use crate::store::{Clock, Store};
use crate::transfer::import_text;

/// The stored values and the number of requests.
#[derive(Default)]
struct Kept {
    values: RefCell<BTreeMap<String, Vec<u8>>>,
    uses: Cell<usize>,
    /// Maximum number of values. `None`: unlimited.
    quota: Option<usize>,
}

impl Kept {
    fn used(&self) -> &RefCell<BTreeMap<String, Vec<u8>>> {
        self.uses.set(self.uses.get() + 1);
        &self.values
    }
}

impl Store for Kept {
    fn keys(&self) -> Result<Vec<String>, ErrorInfo> {
        Ok(self.used().borrow().keys().cloned().collect())
    }

    fn get(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, ErrorInfo> {
        let values = self.used().borrow();
        let found: Vec<_> = keys.iter().map(|key| values.get(key).cloned()).collect();
        // The host's limit on the result of one request.
        assert!(found.iter().flatten().map(Vec::len).sum::<usize>() <= 16 << 20);
        Ok(found)
    }

    fn set(&self, entries: &[(String, Vec<u8>)]) -> Result<(), ErrorInfo> {
        let mut values = self.used().borrow_mut();
        let added = entries.iter().filter(|(key, _)| !values.contains_key(key)).count();
        if self.quota.is_some_and(|quota| values.len() + added > quota) {
            return Err(ErrorInfo::new("the storage is full"));
        }
        values.extend(entries.iter().cloned());
        Ok(())
    }

    fn delete(&self, keys: &[String]) -> Result<(), ErrorInfo> {
        self.used().borrow_mut().retain(|key, _| !keys.contains(key));
        Ok(())
    }
}

/// A clock that a test sets, and sequential numbers.
struct Ticks {
    now: Cell<Moment>,
    numbers: Cell<u64>,
}

impl Default for Ticks {
    fn default() -> Self {
        let now = Moment::first("2026-11-24T10:00:00Z").unwrap();
        Self { now: Cell::new(now), numbers: Cell::new(100_000_000_000) }
    }
}

impl Clock for Ticks {
    fn now(&self) -> Moment {
        self.now.get()
    }

    fn random(&self) -> u64 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }
}

/// The tools with their store.
#[derive(Default)]
struct Tools {
    kept: Kept,
    clock: Ticks,
}

impl Tools {
    fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
        let call = Call::new(tool, "/", arguments.to_string(), "{}");
        crate::run(&call, &self.kept, &self.clock).map_err(|error| error.message)
    }

    /// Returns the answer of a successful call.
    #[track_caller]
    fn ok(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap()
    }

    /// Returns the error of a failed call.
    #[track_caller]
    fn error(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap_err()
    }

    /// Remembers a text on a day and returns its id.
    #[track_caller]
    fn remember(&self, day: &str, text: &str, tags: &[&str]) -> String {
        self.clock.now.set(Moment::first(day).unwrap());
        let answer = self.ok("remember", json!({ "text": text, "tags": tags }));
        answer.strip_prefix("remembered ").unwrap().to_owned()
    }

    #[track_caller]
    fn recall(&self, query: &str) -> String {
        self.ok("recall", json!({ "query": query }))
    }

    fn export(&self, format: &str) -> String {
        self.ok("memory/export", json!({ "format": format }))
    }

    fn import(&self, format: &str, text: &str) -> Result<Value, String> {
        let format = serde_json::from_value(json!(format)).unwrap();
        import_text(format, "FILE", text, &self.kept, &self.clock)
            .map(|answer| serde_json::from_str(&answer).unwrap())
            .map_err(|error| error.message)
    }

    fn values(&self) -> BTreeMap<String, Vec<u8>> {
        self.kept.values.borrow().clone()
    }
}
