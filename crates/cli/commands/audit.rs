//! `kitbag audit`.

use std::thread;
use std::time::{Duration, SystemTime};

use kitbag::audit::{
    ApprovalEvent, AuditEvent, CallEvent, Entries, Entry, Head, TrustEvent, Verified,
};
use kitbag::contract::text::printable;
use kitbag::contract::{format_duration, parse_duration};
use serde_json::{Value, json};

use crate::commands::{Global, nowhere};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// How often the log is looked at for new lines.
const FOLLOW: Duration = Duration::from_millis(200);

/// How many lines are shown where nothing else is said.
const SHOWN: usize = 50;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  kitbag audit --tool fetch --since 1d
  kitbag audit --outcome refused --json
  kitbag audit verify",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only calls of callers whose name holds this, such as `client`
    #[arg(long, value_name = "TEXT")]
    caller: Option<String>,
    /// Only what was logged in this time, such as 1h or 7d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<Duration>,
    /// Only calls that ended so: success, error, suspended, refused, limit, trap, cancelled or
    /// failed
    #[arg(long, value_name = "WORD")]
    outcome: Option<String>,
    /// Show all that match, and not the last 50
    #[arg(long)]
    all: bool,
    /// Go on with what is logged from now on
    #[arg(long)]
    follow: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Look whether the log is as it was written: nothing changed, removed or cut off
    Verify,
    /// Print the hash of the last line
    ///
    /// Kept elsewhere, it shows later that nothing before that line was changed, also where log
    /// and head were replaced together.
    Head,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let as_json = global.json;
        let kitbag = nowhere(&global)?;
        let Some(auditor) = kitbag.toolbox().auditor() else {
            let reason = match kitbag.toolbox().config().state {
                Some(_) => "nothing is logged: `[audit] enable` is false",
                None => "nothing is logged, since neither `HOME` nor `KITBAG_STATE_DIR` is set",
            };
            return Err(CliError::Usage(reason.into()));
        };
        let log = auditor.log();
        match &self.command {
            Some(Command::Verify) => verified(log.verify()?, as_json),
            Some(Command::Head) => head(log.head()?, as_json),
            None => match log.entries()? {
                Some(entries) => self.show(entries, as_json),
                None => Ok(Exit::Done),
            },
        }
    }

    /// Shows the lines that match.
    fn show(&self, mut entries: Entries, as_json: bool) -> Result<Exit, CliError> {
        let since = self.since.and_then(|since| SystemTime::now().checked_sub(since));
        let most = if self.all { usize::MAX } else { SHOWN };
        let mut last = std::collections::VecDeque::new();
        let mut left_out = 0_u64;
        while let Some(entry) = entries.next_entry()? {
            if self.matches(&entry, since) {
                if last.len() >= most {
                    last.pop_front();
                    left_out += 1;
                }
                last.push_back(entry);
            }
        }
        if left_out > 0 && !as_json {
            output::note(&format!("{left_out} earlier lines match; --all shows them"));
        }
        for entry in &last {
            print(entry, as_json)?;
        }
        if !self.follow {
            return Ok(Exit::Done);
        }
        loop {
            thread::sleep(FOLLOW);
            while let Some(entry) = entries.next_entry()? {
                if self.matches(&entry, None) {
                    print(&entry, as_json)?;
                }
            }
        }
    }

    fn matches(&self, entry: &Entry, since: Option<SystemTime>) -> bool {
        if since.is_some_and(|since| entry.time < since) {
            return false;
        }
        let any = [&self.tool, &self.caller, &self.outcome].into_iter().all(Option::is_none);
        let (tool, caller, outcome) = match &entry.event {
            AuditEvent::Call(call) => (&call.tool, &call.caller, &call.outcome),
            AuditEvent::Approval(approval) => (&approval.tool, &approval.caller, &approval.answer),
            _ => return any,
        };
        self.tool.as_ref().is_none_or(|wanted| tool == wanted)
            && self.caller.as_ref().is_none_or(|wanted| caller.contains(wanted))
            && self.outcome.as_ref().is_none_or(|wanted| outcome == wanted)
    }
}

fn print(entry: &Entry, as_json: bool) -> Result<(), CliError> {
    if as_json {
        return output::data(&entry.line);
    }
    let time = entry.time_text();
    let text = match &entry.event {
        AuditEvent::Call(call) => call_line(call),
        AuditEvent::Trust(TrustEvent { workspace, caller, digest }) => match digest {
            Some(digest) => format!("trust  {caller}  {workspace}  content {}", short(digest)),
            None => format!("trust taken back  {caller}  {workspace}"),
        },
        AuditEvent::Approval(approval) => approval_line(approval),
        AuditEvent::Torn { bytes } => {
            format!("a process was stopped while it wrote the {bytes} bytes before this line")
        }
        AuditEvent::Lost { lines, reason } => {
            format!("{lines} lines could not be written: {reason}")
        }
        _ => entry.line.clone(),
    };
    output::data(&format!("{time}  {}", printable(&text)))
}

/// As much of a digest as tells it from another one to a person.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// A call as a person reads it.
fn call_line(call: &CallEvent) -> String {
    let CallEvent { tool, caller, outcome, workspace, .. } = call;
    let reason = call.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let time = format_duration(Duration::from_micros(call.micros));
    let mut line = format!("{tool}  {outcome}{reason}  {time}  {caller}  {workspace}");
    if call.parent.is_some() {
        line.push_str("  inside another call");
    }
    for request in &call.requests {
        let end = match (&request.refused, request.status) {
            (Some(kind), _) => format!("refused ({kind})"),
            (None, Some(status)) => status.to_string(),
            (None, None) => "no response".to_owned(),
        };
        line.push_str(&format!("\n    {} {}  {end}", request.method, request.origin));
    }
    if call.more_requests > 0 {
        line.push_str(&format!("\n    and {} more requests", call.more_requests));
    }
    line
}

/// What became of the question whether a call may be made.
fn approval_line(approval: &ApprovalEvent) -> String {
    let ApprovalEvent { tool, caller, answer, by, workspace, .. } = approval;
    let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    format!("{tool}  approval: {answer}{by}  {caller}  {workspace}")
}

fn verified(verified: Option<Verified>, as_json: bool) -> Result<Exit, CliError> {
    let Some(Verified { lines, first, files, open, torn, hash }) = verified else {
        return match as_json {
            true => output::json(&json!({ "lines": 0 })).map(|()| Exit::Done),
            false => output::data("nothing was logged yet").map(|()| Exit::Done),
        };
    };
    if as_json {
        let value = json!({
            "lines": lines, "first": first, "files": files, "open": open, "torn": torn,
            "hash": hash.to_string(),
        });
        output::json(&value)?;
        return Ok(Exit::Done);
    }
    let noun = if files == 1 { "file" } else { "files" };
    let mut text = format!("{lines} lines in {files} {noun} are as they were written");
    if first > 0 {
        text.push_str(&format!("; the {first} before them are gone, as `[audit] size` has it"));
    }
    if open > 0 || torn > 0 {
        text.push_str(&format!(
            "\nopen end: a process was stopped before it had finished {open} lines and {torn} bytes"
        ));
    }
    output::data(&format!("{text}\nhash of the last line: {hash}"))?;
    Ok(Exit::Done)
}

fn head(head: Option<Head>, as_json: bool) -> Result<Exit, CliError> {
    let Some(Head { lines, hash, .. }) = head else {
        return match as_json {
            true => output::json(&Value::Null).map(|()| Exit::Done),
            false => output::data("nothing was logged yet").map(|()| Exit::Done),
        };
    };
    match as_json {
        true => output::json(&json!({ "lines": lines, "hash": hash.to_string() }))?,
        false => output::data(&format!("{hash} after {lines} lines"))?,
    }
    Ok(Exit::Done)
}
