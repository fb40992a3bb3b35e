//! `kv.sqlite.*`: todo items, tasks, reminders, plans and wakeups in the storage of the tool.
//!
//! Each row is one key, `KIND/ID`, with its JSON as the value. The results have the keys of
//! Butterfly Bot's. Estimates that it derives from the words of a title are not made, and the steps
//! of a plan are not copied to the todo list, which belongs to another tool.

use serde_json::{Map, Value, json};

use super::capabilities::text;
use crate::grants::storage::HeldStorage;

/// Number of rows that are read at once.
const PAGE_ROWS: usize = 100;

/// Maximum size of all rows in memory, as JSON.
const ROWS_BYTES: usize = 4 << 20;

/// A reminder with the same title within this time is the same reminder.
const SAME_REMINDER_SECONDS: i64 = 2;

/// The time of a reminder without one: in ten years.
const SOMEDAY_SECONDS: i64 = 315_360_000;

/// The first time in milliseconds: times below it are in seconds.
const FIRST_MILLISECONDS: i64 = 1_000_000_000_000;

/// The rows of one kind.
struct Rows<'a> {
    storage: &'a mut HeldStorage,
    kind: &'a str,
    arguments: &'a Value,
    /// The time in seconds since 1970.
    now: i64,
}

/// Carries out an action on the rows of a kind. `None` if there is no such action.
pub(super) fn carry_out(
    storage: &mut HeldStorage,
    kind: &str,
    action: &str,
    arguments: &Value,
    now: i64,
) -> Result<Option<Value>, String> {
    let mut rows = Rows { storage, kind, arguments, now };
    let result = match kind {
        "todo" => rows.todo(action)?,
        "tasks" => rows.tasks(action)?,
        "reminders" => rows.reminders(action)?,
        "planning" => rows.planning(action)?,
        "wakeup" => rows.wakeup(action)?,
        _ => None,
    };
    Ok(result.map(|(key, value)| {
        let mut result = json!({ "status": "ok" });
        if let (Value::Object(result), false) = (&mut result, key.is_empty()) {
            result.insert(key.to_owned(), value);
        }
        result
    }))
}

/// The key and the value of a result, besides its status. No key: only the status.
type Entry = Option<(&'static str, Value)>;

impl<'a> Rows<'a> {
    fn todo(&mut self, action: &str) -> Result<Entry, String> {
        Ok(Some(match action {
            "create" => {
                let row = self.todo_row(self.text("title")?, &json!({}))?;
                let notes = self.arguments["notes"].as_str();
                ("item", self.insert(row, json!({ "notes": notes }))?)
            }
            "create_many" => {
                let items = self.arguments["items"].as_array();
                let items = items.ok_or("capability args missing items")?;
                if items.is_empty() {
                    return Err("items empty".to_owned());
                }
                let mut created = Vec::new();
                for item in items {
                    let title = match item {
                        Value::String(title) => title,
                        Value::Object(_) => item["title"].as_str().ok_or("Missing item title")?,
                        _ => return Err("Invalid item format".to_owned()),
                    };
                    let row = self.todo_row(title, item)?;
                    created.push(self.insert(row, json!({}))?);
                }
                ("items", Value::Array(created))
            }
            "list" => {
                let rows = self.own(is_todo(self.status("open")))?;
                ("items", list(rows, "position", self.limit(50)))
            }
            "complete" => ("item", self.change(json!({ "completed_at": self.now }))?),
            "reopen" => ("item", self.change(json!({ "completed_at": null }))?),
            "delete" => ("deleted", self.delete(false)?),
            "clear" => ("deleted", self.clear(is_todo(self.status("open")))?),
            "reorder" => {
                let ids = self.arguments["ordered_ids"].as_array();
                let ids = ids.ok_or("capability args missing ordered_ids")?;
                let ids: Vec<_> = ids.iter().filter_map(Value::as_i64).collect();
                if ids.is_empty() {
                    return Err("ordered_ids empty".to_owned());
                }
                let mut moved = self.own(|row| ids.contains(&number(row, "id")))?;
                for row in &mut moved {
                    let position = ids.iter().position(|id| *id == number(row, "id"));
                    row["position"] = json!(position.unwrap_or_default() + 1);
                    row["updated_at"] = json!(self.now);
                }
                self.put(&moved)?;
                ("", Value::Null)
            }
            _ => return Ok(None),
        }))
    }

    fn todo_row(&mut self, title: &str, item: &Value) -> Result<Value, String> {
        let position = self.own(|_| true)?.iter().map(|row| number(row, "position")).max();
        let mut references: Vec<_> = item["dependency_refs"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|reference| reference.trim().to_ascii_lowercase())
            .filter(|reference| !reference.is_empty())
            .collect();
        references.sort();
        references.dedup();
        Ok(json!({
            "title": title,
            "notes": item["notes"],
            "position": position.unwrap_or_default().saturating_add(1),
            "updated_at": self.now,
            "completed_at": null,
            "t_shirt_size": item["t_shirt_size"],
            "story_points": item["story_points"],
            "estimate_optimistic_minutes": item["estimate_optimistic_minutes"],
            "estimate_likely_minutes": item["estimate_likely_minutes"],
            "estimate_pessimistic_minutes": item["estimate_pessimistic_minutes"],
            "dependency_refs": references,
        }))
    }

    fn tasks(&mut self, action: &str) -> Result<Entry, String> {
        Ok(Some(match action {
            "schedule" => {
                let run_at = self.number("run_at")?;
                let interval = self.arguments["interval_minutes"].as_i64().filter(|it| *it > 0);
                let row = json!({
                    "name": self.text("name")?,
                    "prompt": self.text("prompt")?,
                    "run_at": run_at,
                    "interval_minutes": interval,
                    "enabled": true,
                    "updated_at": self.now,
                    "last_run_at": null,
                    "next_run_at": run_at.max(self.now),
                });
                ("task", self.insert(row, json!({}))?)
            }
            "list" => {
                let rows = self.own(is_enabled(self.status("all")))?;
                ("tasks", list(rows, "next_run_at", self.limit(50)))
            }
            "enable" => ("task", self.change(json!({ "enabled": true }))?),
            "disable" => ("task", self.change(json!({ "enabled": false }))?),
            "delete" => ("deleted", self.delete(false)?),
            "clear" => ("deleted", self.clear(is_enabled(self.status("all")))?),
            _ => return Ok(None),
        }))
    }

    fn wakeup(&mut self, action: &str) -> Result<Entry, String> {
        Ok(Some(match action {
            "create" => {
                let interval = self.number("interval_minutes")?.max(1);
                let row = json!({
                    "name": self.text("name")?,
                    "prompt": self.text("prompt")?,
                    "interval_minutes": interval,
                    "enabled": true,
                    "updated_at": self.now,
                    "last_run_at": null,
                    "next_run_at": self.now.saturating_add(interval.saturating_mul(60)),
                });
                ("task", self.insert(row, json!({}))?)
            }
            "list" => {
                let rows = self.own(is_enabled(self.status("all")))?;
                ("tasks", list(rows, "next_run_at", self.limit(20)))
            }
            "enable" => ("task", self.change(json!({ "enabled": true }))?),
            "disable" => ("task", self.change(json!({ "enabled": false }))?),
            "delete" => ("deleted", self.delete(false)?),
            _ => return Ok(None),
        }))
    }

    fn reminders(&mut self, action: &str) -> Result<Entry, String> {
        Ok(Some(match action {
            "create" => {
                let title = self.text("title")?.to_owned();
                let due = self.due();
                let due = due.unwrap_or(self.now.saturating_add(SOMEDAY_SECONDS));
                let same = self.own(|row| {
                    row["title"] == *title
                        && row["completed_at"].is_null()
                        && row["fired_at"].is_null()
                        && number(row, "due_at").abs_diff(due)
                            <= SAME_REMINDER_SECONDS.unsigned_abs()
                })?;
                let reminder = match same.into_iter().max_by_key(|row| number(row, "id")) {
                    Some(same) => same,
                    None => {
                        let row = json!({
                            "title": title, "due_at": due, "completed_at": null, "fired_at": null,
                        });
                        self.insert(row, json!({}))?
                    }
                };
                ("reminder", without_user(reminder))
            }
            "list" => {
                let rows = match self.status("open") {
                    "completed" => self.own(|row| !row["completed_at"].is_null())?,
                    "all" => self.own(|_| true)?,
                    _ => self.own(|row| row["completed_at"].is_null())?,
                };
                let limit = match self.limit(20) {
                    0 => usize::MAX,
                    limit => limit,
                };
                let rows = rows.into_iter().map(without_user).collect();
                ("reminders", list(rows, "due_at", limit))
            }
            "complete" => ("completed", self.change_own(json!({ "completed_at": self.now }))?),
            "delete" => ("deleted", self.delete(true)?),
            "snooze" => {
                self.number("id")?;
                let due = self.due().ok_or("Missing due_at or delay_seconds")?;
                ("snoozed", self.change_own(json!({ "due_at": due, "fired_at": null }))?)
            }
            "clear" => {
                let has_completed = ["all", "completed"].contains(&self.status("open"));
                ("deleted", self.clear(|row| has_completed || row["completed_at"].is_null())?)
            }
            _ => return Ok(None),
        }))
    }

    /// Returns the time of a reminder, if the arguments have one.
    fn due(&self) -> Option<i64> {
        let number = |key: &str| self.arguments[key].as_i64();
        let delay = number("delay_seconds").or_else(|| number("in_seconds"));
        let time = |due: i64| if due >= FIRST_MILLISECONDS { due / 1000 } else { due };
        match delay {
            Some(delay) => Some(self.now.saturating_add(delay.max(0))),
            None => number("due_at").map(time),
        }
    }

    fn planning(&mut self, action: &str) -> Result<Entry, String> {
        Ok(Some(match action {
            "create" => {
                let row = json!({
                    "title": self.text("title")?,
                    "goal": self.text("goal")?,
                    "steps": self.steps()?,
                    "status": self.arguments["status"].as_str().unwrap_or("draft"),
                    "updated_at": self.now,
                });
                ("plan", self.insert(row, json!({}))?)
            }
            "list" => {
                let mut plans = self.own(|_| true)?;
                // The newest first.
                let key =
                    |row: &Value| std::cmp::Reverse((number(row, "created_at"), number(row, "id")));
                plans.sort_by_key(key);
                plans.truncate(self.limit(20));
                ("plans", Value::Array(plans))
            }
            "get" => {
                let id = self.number("id")?;
                ("plan", self.get(id)?.ok_or_else(|| missing(id))?)
            }
            "update" => {
                let mut change = Map::new();
                for key in ["title", "goal", "status"] {
                    let value = self.arguments[key].as_str();
                    change.extend(value.map(|value| (key.to_owned(), json!(value))));
                }
                let steps = self.steps()?;
                if !steps.is_null() {
                    change.insert("steps".to_owned(), steps);
                }
                ("plan", self.change(Value::Object(change))?)
            }
            "delete" => ("deleted", self.delete(false)?),
            "clear" => ("deleted", self.clear(|_| true)?),
            _ => return Ok(None),
        }))
    }

    fn steps(&self) -> Result<Value, String> {
        match &self.arguments["steps"] {
            steps @ (Value::Null | Value::Array(_)) => Ok(steps.clone()),
            _ => Err("steps must be an array".to_owned()),
        }
    }

    /// Stores a new row and returns it.
    fn insert(&mut self, row: Value, more: Value) -> Result<Value, String> {
        let user = self.text("user_id")?;
        let key = format!("{}/next", self.kind);
        let id = self.storage.access(|storage| storage.increment(&key, 1))?;
        let mut new = json!({ "id": id, "user_id": user, "created_at": self.now });
        for part in [row, more] {
            if let (Value::Object(new), Value::Object(part)) = (&mut new, part) {
                new.extend(part);
            }
        }
        self.put(std::slice::from_ref(&new))?;
        Ok(new)
    }

    /// Changes the row with the id of the arguments and returns it.
    fn change(&mut self, change: Value) -> Result<Value, String> {
        self.text("user_id")?;
        let id = self.number("id")?;
        let mut row = self.get(id)?.ok_or_else(|| missing(id))?;
        if let (Value::Object(row), Value::Object(change)) = (&mut row, change) {
            row.extend(change);
            row.insert("updated_at".to_owned(), json!(self.now));
        }
        self.put(std::slice::from_ref(&row))?;
        Ok(row)
    }

    /// Changes the row with the id of the arguments, if it belongs to the user. Returns whether it
    /// does.
    fn change_own(&mut self, change: Value) -> Result<Value, String> {
        let user = self.text("user_id")?;
        let id = self.number("id")?;
        let Some(mut row) = self.get(id)?.filter(|row| row["user_id"] == *user) else {
            return Ok(json!(false));
        };
        if let (Value::Object(row), Value::Object(change)) = (&mut row, change) {
            row.extend(change);
        }
        self.put(std::slice::from_ref(&row))?;
        Ok(json!(true))
    }

    /// Deletes the row with the id of the arguments. Returns whether it existed.
    fn delete(&mut self, only_own: bool) -> Result<Value, String> {
        let user = self.text("user_id")?;
        let id = self.number("id")?;
        let row = self.get(id)?.filter(|row| !only_own || row["user_id"] == *user);
        if row.is_some() {
            self.remove(&[id])?;
        }
        Ok(json!(row.is_some()))
    }

    /// Deletes rows of the user and returns their number.
    fn clear(&mut self, is_deleted: impl Fn(&Value) -> bool) -> Result<Value, String> {
        let mut ids = Vec::new();
        self.each(|row, _| {
            if is_deleted(&row) {
                ids.push(number(&row, "id"));
            }
            Ok(())
        })?;
        self.remove(&ids)?;
        Ok(json!(ids.len()))
    }

    /// Returns rows of the user.
    fn own(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Result<Vec<Value>, String> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        self.each(|row, length| {
            if is_wanted(&row) {
                bytes += length;
                rows.push(row);
            }
            match bytes > ROWS_BYTES {
                true => Err("the entries have more than 4 MiB; delete some of them".to_owned()),
                false => Ok(()),
            }
        })?;
        Ok(rows)
    }

    /// Visits the rows of the user, each with its length in bytes.
    fn each(
        &mut self,
        mut visit: impl FnMut(Value, usize) -> Result<(), String>,
    ) -> Result<(), String> {
        let user = self.text("user_id")?;
        let prefix = format!("{}/", self.kind);
        let mut cursor = None;
        loop {
            let page = self.storage.access(|storage| storage.list_keys(cursor))?;
            let is_row = |key: &&String| {
                key.strip_prefix(&prefix).is_some_and(|id| id.parse::<i64>().is_ok())
            };
            let keys: Vec<_> = page.keys.iter().filter(is_row).collect();
            for keys in keys.chunks(PAGE_ROWS) {
                let values = self.storage.access(|storage| storage.get_many(keys))?;
                for (_, value) in values.into_iter().flatten() {
                    let row: Value = serde_json::from_slice(&value).unwrap_or_default();
                    if row["user_id"] == *user {
                        visit(row, value.len())?;
                    }
                }
            }
            cursor = page.cursor;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    fn get(&mut self, id: i64) -> Result<Option<Value>, String> {
        let key = self.key(id);
        let value = self.storage.access(|storage| storage.get(&key))?;
        Ok(value.and_then(|value| serde_json::from_slice(&value).ok()))
    }

    fn put(&mut self, rows: &[Value]) -> Result<(), String> {
        let entries = rows.iter().map(|row| (self.key(number(row, "id")), row.to_string()));
        let entries: Vec<_> = entries.collect();
        for entries in entries.chunks(PAGE_ROWS) {
            self.storage.access(|storage| storage.set_many(entries))?;
        }
        Ok(())
    }

    fn remove(&mut self, ids: &[i64]) -> Result<(), String> {
        let keys: Vec<_> = ids.iter().map(|id| self.key(*id)).collect();
        for keys in keys.chunks(PAGE_ROWS) {
            self.storage.access(|storage| storage.delete_many(keys))?;
        }
        Ok(())
    }

    fn key(&self, id: i64) -> String {
        format!("{}/{id}", self.kind)
    }

    fn text(&self, key: &str) -> Result<&'a str, String> {
        text(self.arguments, key)
    }

    fn number(&self, key: &str) -> Result<i64, String> {
        self.arguments[key].as_i64().ok_or_else(|| format!("capability args missing {key}"))
    }

    fn status(&self, default: &'static str) -> &'a str {
        self.arguments["status"].as_str().unwrap_or(default)
    }

    fn limit(&self, default: usize) -> usize {
        let limit = self.arguments["limit"].as_u64();
        limit.map_or(default, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }
}

fn is_todo(status: &str) -> impl Fn(&Value) -> bool + use<> {
    let is_completed = match status {
        "completed" => Some(true),
        "open" => Some(false),
        _ => None,
    };
    move |row| is_completed.is_none_or(|it| it != row["completed_at"].is_null())
}

fn is_enabled(status: &str) -> impl Fn(&Value) -> bool + use<> {
    let is_enabled = match status {
        "enabled" => Some(true),
        "disabled" => Some(false),
        _ => None,
    };
    move |row| is_enabled.is_none_or(|it| row["enabled"] == json!(it))
}

fn list(mut rows: Vec<Value>, order: &str, limit: usize) -> Value {
    rows.sort_by_key(|row| (number(row, order), number(row, "id")));
    rows.truncate(limit);
    Value::Array(rows)
}

fn number(row: &Value, key: &str) -> i64 {
    row[key].as_i64().unwrap_or_default()
}

fn missing(id: i64) -> String {
    format!("there is no entry with the id {id}")
}

/// Removes the user, which reminders do not show.
fn without_user(mut row: Value) -> Value {
    if let Value::Object(row) = &mut row {
        row.remove("user_id");
    }
    row
}
