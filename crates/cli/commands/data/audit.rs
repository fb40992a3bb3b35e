//! `kitbag audit`.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, SystemTime};

use kitbag::audit::{
    AuditEntries, AuditEntry, AuditEvent, Head, OpenCalls, RemovedEvent, SinceError, Story,
    Verification, since,
};
use serde_json::{Value, json};

use crate::commands::{Global, nowhere};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// Interval at which the log is checked for new lines.
const FOLLOW: Duration = Duration::from_millis(200);

/// Default number of lines.
const SHOWN: usize = 50;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Times are in UTC.

Examples:
  kitbag audit --since yesterday
  kitbag audit --tool fetch --since 2h
  kitbag audit --outcome refused --json
  kitbag audit verify",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Show only calls of this tool, and its refusals
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Show only calls whose caller or client program has this text in its name, such as `claude`
    #[arg(long, value_name = "TEXT")]
    caller: Option<String>,
    /// Show only lines since this time: today, yesterday, a duration such as 2h or 7d, or a time
    /// such as 09:30, 2026-11-25 or 2026-11-25T09:30
    #[arg(long, value_name = "TIME", value_parser = since_now)]
    since: Option<SystemTime>,
    /// Show only calls with this outcome: success, error, suspended, refused, limit, trap,
    /// cancelled, failed or unfinished. `refused` includes refusals inside a call
    #[arg(long, value_name = "WORD")]
    outcome: Option<String>,
    /// Show all matching lines [default: the last 50]
    #[arg(long)]
    all: bool,
    /// Print new lines as they are logged
    #[arg(long)]
    follow: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check that no line of the log was changed, removed, added or cut off
    Verify,
    /// Print the hash of the last line
    ///
    /// Store the hash elsewhere to prove later that no line before it was changed, even if the log
    /// and its head were replaced together.
    Head,
}

fn since_now(text: &str) -> Result<SystemTime, SinceError> {
    since(text, SystemTime::now())
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let as_json = global.json;
        let kitbag = nowhere(&global)?;
        let Some(auditor) = kitbag.toolbox().auditor() else {
            let reason = match kitbag.toolbox().config().state {
                Some(_) => "nothing is logged: `[audit] enable` is false",
                None => "nothing is logged, because neither `HOME` nor `KITBAG_STATE_DIR` is set",
            };
            return Err(CliError::Usage(reason.into()));
        };
        let log = auditor.log();
        match &self.command {
            Some(Command::Verify) => verified(log.verify()?, as_json),
            Some(Command::Head) => head(log.head()?, log.details_head()?, as_json),
            None => match log.entries()? {
                Some(entries) => self.show(entries, as_json),
                None => Ok(Exit::Done),
            },
        }
    }

    fn show(&self, mut entries: AuditEntries, as_json: bool) -> Result<Exit, CliError> {
        let most = if self.all { usize::MAX } else { SHOWN };
        let mut last = VecDeque::new();
        let mut left_out = 0_u64;
        let mut unfinished = OpenCalls::default();
        while let Some(entry) = entries.next_entry()? {
            // The file has the start of each call, but a person sees only unfinished starts.
            let seen = if as_json { Some(entry) } else { unfinished.see(entry) };
            let Some(entry) = seen else { continue };
            if self.matches(&entry) {
                if last.len() >= most {
                    last.pop_front();
                    left_out += 1;
                }
                last.push_back(entry);
            }
        }
        last.extend(unfinished.starts().into_iter().filter(|entry| self.matches(entry)));
        last.make_contiguous().sort_by_key(|entry| entry.time);
        if left_out > 0 && !as_json {
            output::note(&format!("{left_out} earlier lines match; --all shows them"));
        }
        let mut story = Story::default();
        print(&mut story, last.make_contiguous(), as_json)?;
        if !self.follow {
            return Ok(Exit::Done);
        }
        loop {
            thread::sleep(FOLLOW);
            while let Some(entry) = entries.next_entry()? {
                let is_told = as_json || !matches!(entry.event, AuditEvent::Start(_));
                if is_told && self.matches(&entry) {
                    print(&mut story, &[entry], as_json)?;
                }
            }
        }
    }

    fn matches(&self, entry: &AuditEntry) -> bool {
        if self.since.is_some_and(|since| entry.time < since) {
            return false;
        }
        let (tool, caller, client, outcome) = match &entry.event {
            AuditEvent::Call(call) => {
                (&call.head.tool, &call.head.caller, &call.head.client, &*call.outcome)
            }
            AuditEvent::Start(it) => {
                (&it.head.tool, &it.head.caller, &it.head.client, "unfinished")
            }
            AuditEvent::Summary(it) => (&it.tool, &it.caller, &it.client, ""),
            AuditEvent::Refusal(it) => (&it.tool, &it.caller, &it.client, "refused"),
            AuditEvent::Approval(it) => (&it.tool, &it.caller, &None, &*it.answer),
            _ => return [&self.tool, &self.caller, &self.outcome].into_iter().all(Option::is_none),
        };
        let is_caller = |wanted: &String| {
            caller.contains(wanted)
                || client.as_ref().is_some_and(|client| client.name.contains(wanted))
        };
        self.tool.as_ref().is_none_or(|wanted| tool == wanted)
            && self.caller.as_ref().is_none_or(is_caller)
            && self.outcome.as_ref().is_none_or(|wanted| outcome == wanted)
    }
}

fn print(story: &mut Story, entries: &[AuditEntry], as_json: bool) -> Result<(), CliError> {
    match as_json {
        true => entries.iter().try_for_each(|entry| output::data(&entry.line)),
        false => story.tell(entries).iter().try_for_each(|line| output::data(line)),
    }
}

fn verified(verified: Option<Verification>, as_json: bool) -> Result<Exit, CliError> {
    let Some(verified) = verified else {
        return match as_json {
            true => output::json(&json!({ "lines": 0 })).map(|()| Exit::Done),
            false => output::data("nothing is logged yet").map(|()| Exit::Done),
        };
    };
    if as_json {
        let mut value = verified_json(&verified);
        if let Some(details) = &verified.details {
            value["details"] = verified_json(details);
        }
        output::json(&value)?;
        return Ok(Exit::Done);
    }
    let mut text = verified_text(&verified);
    if let Some(details) = &verified.details {
        text.push_str(&format!("\ninner calls and refusals: {}", verified_text(details)));
    }
    output::data(&text)?;
    Ok(Exit::Done)
}

fn verified_json(verified: &Verification) -> Value {
    let Verification { lines, first, files, open, torn, hash, removed, details: _ } = verified;
    let mut value = json!({
        "lines": lines, "first": first, "files": files, "open": open, "torn": torn,
        "hash": hash.to_string(),
    });
    if let Some((time, removed)) = removed {
        value["removed"] = json!(removed);
        value["removed"]["time"] = time.as_str().into();
    }
    value
}

fn verified_text(verified: &Verification) -> String {
    let Verification { lines, first, files, open, torn, hash, removed, details: _ } = verified;
    let are = if *lines == 1 { "is" } else { "are" };
    let mut text = format!("{} in {} {are} unchanged", noun(*lines, "line"), noun(*files, "file"));
    if *first > 0 {
        let older = noun(*first, "older line");
        text.push_str(&format!("; {older} were removed to keep the log within `[audit] size`"));
    }
    if let Some((time, RemovedEvent { lines, from, to, damaged, .. })) = removed {
        let of = match (from, to) {
            (Some(from), Some(to)) => format!(" of {from} to {to}"),
            _ => String::new(),
        };
        let lines = noun(*lines, "line");
        text.push_str(&format!("\nlast removed: {lines}{of}, at {time}"));
        if *damaged {
            text.push_str("; they were changed before");
        }
    }
    if *open > 0 {
        text.push_str(&format!(
            "\nopen end: {} not recorded in the head: a process was stopped before it could record them, or \
             another program added them",
            noun(*open, "line")
        ));
    }
    if *torn > 0 {
        text.push_str(&format!(
            "\nopen end: {} of an unfinished line of a process",
            noun(*torn, "byte")
        ));
    }
    format!("{text}\nhash of the last line: {hash}")
}

fn noun(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

fn head(head: Option<Head>, details: Option<Head>, as_json: bool) -> Result<Exit, CliError> {
    let Some(Head { lines, hash, .. }) = head else {
        return match as_json {
            true => output::json(&Value::Null).map(|()| Exit::Done),
            false => output::data("nothing is logged yet").map(|()| Exit::Done),
        };
    };
    match as_json {
        true => {
            let json = |lines: u64, hash: String| json!({ "lines": lines, "hash": hash });
            let mut value = json(lines, hash.to_string());
            if let Some(details) = details {
                value["details"] = json(details.lines, details.hash.to_string());
            }
            output::json(&value)?;
        }
        false => {
            let mut text = format!("{hash} after {lines} lines");
            if let Some(Head { lines, hash, .. }) = details {
                text.push_str(&format!("\n{hash} after {lines} lines of inner calls and refusals"));
            }
            output::data(&text)?;
        }
    }
    Ok(Exit::Done)
}
