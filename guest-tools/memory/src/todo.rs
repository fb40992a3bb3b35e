//! `todo`.

use kitbag_sdk::ErrorInfo;
use serde::Deserialize;

use crate::answer::counted;
use crate::entry::{self, Content, Entry, Kind, Stored};
use crate::store::{Clock, Store};

/// Maximum number of tasks in a list.
const SHOWN: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Todo {
    action: Action,
    text: Option<String>,
    id: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Add,
    List,
    Done,
    Remove,
}

/// Changes or lists the tasks.
pub(crate) fn todo(
    Todo { action, text, id }: Todo,
    store: &impl Store,
    clock: &impl Clock,
) -> Result<String, ErrorInfo> {
    let id = || match &id {
        Some(id) => Kind::Task.check(id),
        None => Err(ErrorInfo::new("`id` is empty; name a task")),
    };
    match action {
        Action::Add => {
            let text = text.ok_or_else(|| ErrorInfo::new("the task needs a `text`"))?;
            let text = entry::text(Kind::Task, &text).map_err(ErrorInfo::new)?;
            let (id, created) = (Kind::Task.new_id(store, clock)?, clock.now());
            let task = Entry { id, created, content: Content::Task(false), text };
            store.set(&[task.kept()])?;
            Ok(format!("added {}", task.id))
        }
        Action::List => list(store),
        Action::Done => {
            let id = id()?;
            let value = store.value(id)?.ok_or_else(|| Kind::Task.unknown(&[id]))?;
            let task = Stored::read(Kind::Task, id, &value)?.entry(Kind::Task, id);
            let done = Entry { content: Content::Task(true), ..task };
            store.set(&[done.kept()])?;
            Ok(format!("done: {}", done.text))
        }
        Action::Remove => {
            let id = id()?;
            if store.value(id)?.is_none() {
                return Err(Kind::Task.unknown(&[id]));
            }
            store.delete(&[id.to_owned()])?;
            Ok(format!("removed {id}"))
        }
    }
}

/// Lists the open tasks, then the completed ones, each by age.
fn list(store: &impl Store) -> Result<String, ErrorInfo> {
    let ids = Kind::Task.ids(store)?;
    let mut tasks = Vec::new();
    Kind::Task.each(store, &ids, |index, stored| {
        tasks.push((stored.is_done(), stored.created, &ids[index]));
    })?;
    if tasks.is_empty() {
        return Ok("no tasks".to_owned());
    }
    tasks.sort_unstable();
    let shown: Vec<String> = tasks.iter().take(SHOWN).map(|(.., id)| (*id).clone()).collect();
    let mut lines = Vec::new();
    Kind::Task.each(store, &shown, |index, stored| {
        let mark = if stored.is_done() { 'x' } else { ' ' };
        lines.push(format!("[{mark}] {} {}", shown[index], stored.text));
    })?;
    if let Some(more @ 1..) = tasks.len().checked_sub(SHOWN) {
        lines.push(format!("and {}", counted(more, "more task", "more tasks")));
    }
    Ok(lines.join("\n"))
}
