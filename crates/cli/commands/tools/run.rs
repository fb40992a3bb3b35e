//! `kitbag run`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kitbag::base::ByteSize;
use kitbag::base::format_duration;
use kitbag::base::json::{self as strict, Digits, JsonBudget};
use kitbag::base::shell;
use kitbag::base::text::{alternatives, printable, shown};
use kitbag::config::{Config, Origin, Sourced};
use kitbag::contract::{Action, ApprovalRequest, Field, barred};
use kitbag::host::{CallError, CapturedOutput, RefusedAccess};
use kitbag::toolbox::definitions::without_nulls;
use kitbag::toolbox::{FoundLeak, ScreeningReport, Truncation};
use kitbag::{
    Answer, AnswerError, AnswerType, Arguments, CallContext, CallOutcome, Caller, Completion,
    Content, ErrorInfo, EventSink, FrontEnd, Invocation, Kitbag, Outcome, Question, Reply,
    ToolboxError,
};
use serde_json::{Map, Value, json};

use crate::commands::{
    Global, GrantArgs, LimitArgs, ToolArg, warn, warn_description, warn_unlogged,
};
use crate::console::consent::{self, Choice};
use crate::console::input::{self, Input};
use crate::console::interrupt::Interrupt;
use crate::console::listener::Screen;
use crate::console::output;
use crate::console::tool_content;
use crate::error::{CliError, allow_more};
use crate::exit::Exit;
use crate::files::save::Saved;
use crate::labels::labelled;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag run read_file README.md
  kitbag run learn topic=team subjects='**'
  kitbag run ./word_count.wasm path=README.md
  kitbag run word_count --args '{\"path\":\"README.md\"}'
  kitbag run python code=@count.py
  kitbag run deploy target=staging --answer confirm=yes --json")]
pub(crate) struct Args {
    #[command(flatten)]
    tool: ToolArg,
    #[command(flatten)]
    call: Call,
}

// Options of a call in addition to its tool. No doc comment: clap would use it as the command's
// help.
#[derive(Debug, clap::Args)]
pub(crate) struct Call {
    /// Arguments. A value without a key is the only required string argument, or `path`
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    /// Read the arguments as a JSON object: the JSON itself, @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Ignore a null in --args for an optional argument that does not allow null, as models send in
    /// strict mode
    #[arg(long, requires = "args")]
    without_nulls: bool,
    /// Answer a question of the tool, by the id of the question
    #[arg(long = "answer", value_name = "ID=VALUE", value_parser = pair)]
    answers: Vec<(String, String)>,
    /// Approve the call in advance. Calls that the tool makes of other tools still ask
    #[arg(long)]
    approve: bool,
    /// Print the call as the tool renders it for approval, and do not run it
    #[arg(long)]
    format_arguments: bool,
    #[command(flatten)]
    grants: GrantArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Save files, images and links of the answer in this directory, and print their names
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Print the tool's log and output, and the cost of the call, on standard error
    #[arg(long, short)]
    verbose: bool,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let Self { tool, call } = self;
        call.run(&global, |limits, grants| tool.kitbag_with(&global, limits, grants))
    }
}

impl Call {
    /// Calls the tool that `find` returns, with its toolbox.
    pub(crate) fn run(
        self,
        global: &Global,
        find: impl FnOnce(LimitArgs, GrantArgs) -> Result<(&'static Kitbag, String), CliError>,
    ) -> Result<Exit, CliError> {
        let (kitbag, name) = find(self.limits, self.grants)?;
        let config = kitbag.toolbox().config();
        let saved = self.save.as_deref().map(|directory| Saved::open(directory, config));
        let saved = saved.transpose()?;
        let mut input = Input::new();
        let mut json = self.args.as_deref().map(|it| read_arguments(&mut input, it)).transpose()?;
        let schema = || -> Result<Value, CliError> {
            let described = |events| {
                let toolbox = kitbag.toolbox().with_events(events);
                let tool = toolbox.tool(&name)?;
                match tool.refused {
                    None => Ok(tool.input_schema.value),
                    // The schema of a changed component is not read. The error says what changed.
                    Some(reason) => {
                        toolbox.load(&name)?;
                        let (tool, update) = (name.clone(), name.clone());
                        Err(ToolboxError::NotAsRecorded { tool, reason, update })
                    }
                }
            };
            Ok(json!(Screen::during(global.json, described)?))
        };
        let pairs = pairs(self.words, &name, schema)?;
        let pairs = pairs.into_iter().map(|pair| input.pair(pair));
        let pairs = pairs.collect::<Result<_, _>>()?;
        if self.without_nulls
            && let Some((arguments, digits)) = json
        {
            json = Some((without_nulls(&schema()?, arguments), digits));
        }
        let (json, digits) =
            json.map_or((None, Digits::default()), |(json, digits)| (Some(json), digits));
        let arguments = Arguments { json, pairs, digits };
        let action = if self.format_arguments { Action::FormatArguments } else { Action::Run };
        let interrupt = Interrupt::take_over();
        let screen = Arc::new(Screen::of_call(self.verbose, global.json, &interrupt));
        let context = CallContext::new(Caller::this_user())
            .with_events(EventSink::new(Arc::<Screen>::clone(&screen)))
            .with_cancellation(interrupt.cancellation().clone());
        let mut terminal = Terminal {
            answers: &self.answers,
            approve: self.approve,
            as_json: global.json,
            interrupt: &interrupt,
            screen: &screen,
        };
        // Until the tool runs, no cleanup is needed.
        interrupt.set_leave(true);
        let invocation = Invocation::tool(&*name, arguments).with_action(action);
        let ended = kitbag.toolbox().call_blocking(invocation, context, &mut terminal);
        screen.clear();
        warn_unlogged(kitbag.toolbox());
        let configured = kitbag.toolbox().config().tools.get(&*name);
        let ended = ended.map_err(|error| CliError::from(error).of_call(configured))?;
        let (completion, problems, screening, cut, inner_refusals) = match ended {
            CallOutcome::Completed(call) => {
                (call.completion, call.problems, call.screening, call.cut, call.inner_refusals)
            }
            CallOutcome::Suspended(call) => {
                let problems = call.problems().clone();
                (call.completion, problems, call.screening, None, Vec::new())
            }
            CallOutcome::Refused(error) => return Err(error),
        };
        warn(&problems.cache);
        if let Some(problem) = &problems.description {
            warn_description(&name, problem);
        }
        if self.verbose {
            show_details(&completion);
        }
        let hint = match &completion.result {
            Ok(Outcome::Success(_) | Outcome::NeedsInput(_)) => None,
            Ok(Outcome::Error(_)) | Err(_) => grant_hint(kitbag.toolbox().config(), &completion),
        };
        // The tool's own error message includes it already.
        let is_said =
            matches!(&completion.result, Ok(Outcome::Error(_)) | Err(CallError::Trap { .. }));
        let blocked = |reason: &str| output::warn(&format!("a request was blocked: {reason}"));
        if !is_said {
            let requests = completion.refused.iter().filter_map(RefusedAccess::as_request);
            requests.for_each(|refused| blocked(&refused.reason));
        }
        // The error includes those of nested calls, unless the tool catches them.
        let said = match &completion.result {
            Ok(Outcome::Error(error)) => &*error.message,
            _ => "",
        };
        let caught = inner_refusals.iter().filter(|refused| !said.contains(&refused.reason));
        caught.for_each(|refused| blocked(&refused.reason));
        if !global.json {
            let what = match &completion.result {
                Ok(Outcome::NeedsInput(_)) => "question",
                Ok(_) | Err(_) => "answer",
            };
            for finding in &screening.findings {
                let warning = format!("the {what} looks like instructions to a model: {finding}");
                output::warn(&warning);
            }
            // With `--verbose` it is already in the log.
            for leak in screening.leaks.iter().filter(|_| !self.verbose) {
                output::note(&leak_note(what, &name, leak));
            }
        }
        let finished = finish(completion, cut.as_ref(), &screening, saved.as_ref(), global.json);
        match (finished, hint) {
            (Ok(exit), Some(hint)) => {
                output::note(&labelled("hint", &hint));
                Ok(exit)
            }
            (Err(error), Some(hint)) => match error.of_call(configured) {
                hinted @ CliError::Hinted { .. } => Err(hinted),
                error => Err(CliError::Hinted { hint, error: Box::new(error) }),
            },
            (finished, None) => finished.map_err(|error| error.of_call(configured)),
        }
    }
}

/// Returns the note on output that looks like a key or a password.
fn leak_note(what: &str, tool: &str, leak: &FoundLeak) -> String {
    let FoundLeak { rule, what: kind, fingerprint, is_masked } = leak;
    let place = format!("(rule `{rule}`, fingerprint `{fingerprint}`)");
    match is_masked {
        true => format!(
            "note: {kind} in the {what} is masked {place}; `mask = false` under `[tools.{tool}]` in \
             your user config turns masking off for this tool"
        ),
        false => format!("warning: the {what} contains what looks like {kind} {place}"),
    }
}

/// Returns the options that grant a refused request for one call.
fn grant_hint(config: &Config, completion: &Completion) -> Option<String> {
    let missing = completion.refused.iter().filter_map(RefusedAccess::missing);
    let flags: Vec<_> = missing.filter_map(|missing| config.grant_flag(missing)).collect();
    (!flags.is_empty()).then(|| format!("for one call, add {}", flags.join(" ")))
}

/// Answers questions from the command line, or asks the person at the terminal.
struct Terminal<'a> {
    answers: &'a [(String, String)],
    approve: bool,
    as_json: bool,
    interrupt: &'a Interrupt,
    screen: &'a Screen,
}

impl FrontEnd for Terminal<'_> {
    type Abort = CliError;

    async fn ask(
        &mut self,
        question: &Question,
        _: Option<&AnswerError>,
    ) -> Result<Reply, CliError> {
        self.screen.clear();
        if let Some(approval) = &question.approval {
            return self.ask_for_approval(question, approval.is_inner);
        }
        if let Some((_, text)) = self.answers.iter().find(|(id, _)| *id == question.id) {
            return Ok(Reply::text(text, Origin::flag("--answer")));
        }
        if !self.is_interactive() {
            return Ok(Reply::Unanswered);
        }
        self.interrupt.set_leave(true);
        prompt(question)
    }
}

impl Terminal<'_> {
    fn is_interactive(&self) -> bool {
        consent::is_interactive(self.as_json)
    }

    /// Asks for approval of a call. `--answer` does not approve calls, and `--approve` approves
    /// only the call on the command line.
    fn ask_for_approval(&self, question: &Question, is_inner: bool) -> Result<Reply, CliError> {
        if self.approve && !is_inner {
            return Ok(Reply::text(ApprovalRequest::ONCE, Origin::flag("--approve")));
        }
        if !self.is_interactive() {
            return Ok(Reply::NobodyToAsk);
        }
        self.interrupt.set_leave(true);
        let has_always = match &question.answer_type {
            AnswerType::Select(choices) => {
                choices.iter().any(|choice| choice.value == ApprovalRequest::ALWAYS)
            }
            _ => false,
        };
        let value = match consent::approve(&question.text, has_always)? {
            Some(Choice::YesOnce) => ApprovalRequest::ONCE,
            Some(Choice::Always) => ApprovalRequest::ALWAYS,
            Some(_) => ApprovalRequest::NO,
            // The input ended.
            None => return Ok(Reply::NobodyToAsk),
        };
        Ok(Reply::text(value, Origin::Caller))
    }
}

/// Prints the output and returns the exit code.
///
/// Truncated output is printed and exits like an exceeded limit, so that a program notices that the
/// document is incomplete.
fn finish(
    completion: Completion,
    cut: Option<&Truncation>,
    screening: &ScreeningReport,
    saved: Option<&Saved>,
    as_json: bool,
) -> Result<Exit, CliError> {
    let emitted = completion.emitted;
    // The first write error is returned; the output is printed anyway.
    let (mut files, mut unsaved) = (Vec::new(), None);
    for (index, content) in emitted.iter().enumerate() {
        let written = saved.map_or(Ok(None), |saved| saved.write(index + 1, content));
        files.push(written.unwrap_or_else(|error| {
            unsaved.get_or_insert(error);
            None
        }));
    }
    let print = |mut value: Value| {
        if !emitted.is_empty() {
            let json = |(content, file): (&Content, &Option<PathBuf>)| match file {
                Some(file) => tool_content::saved_json(content, file),
                None => tool_content::json(content),
            };
            value["emitted"] = emitted.iter().zip(&files).map(json).collect();
        }
        if let Some(fuel) = completion.usage.fuel {
            value["fuel"] = fuel.into();
        }
        if screening.is_untrusted {
            value["untrusted"] = true.into();
        }
        if !screening.findings.is_empty() {
            value["findings"] = json!(screening.findings);
        }
        if !screening.leaks.is_empty() {
            value["leaks"] = json!(screening.leaks);
        }
        output::json(&value)
    };
    match completion.result {
        Ok(Outcome::Success(content)) => {
            match as_json {
                true => {
                    let mut value = json!({ "outcome": "success", "content": content });
                    if let Some(Truncation { bytes, limit }) = cut {
                        value["cut"] = json!({ "bytes": bytes, "limit": limit.value.to_string() });
                    }
                    print(value)?;
                }
                false => output::untrusted(&content)?,
            }
            tell(&emitted, &files, as_json);
            let Some(cut) = cut else { return end(Exit::Done, unsaved) };
            let hint = allow_more("output", &cut.limit.origin);
            output::note(&format!("error: the output was truncated: {cut}\nhint: {hint}"));
            end(Exit::Limit, unsaved)
        }
        Ok(Outcome::Error(error)) => {
            if as_json {
                print(json!({ "outcome": "error", "error": error }))?;
            }
            output::note(&tool_error(&error));
            tell(&emitted, &files, as_json);
            end(Exit::ToolError, unsaved)
        }
        Ok(Outcome::NeedsInput(question)) => Err(CliError::Question(Box::new(question))),
        Err(error) => Err(ToolboxError::Call(error).into()),
    }
}

/// Notifies a person of content that is not text, and of its files.
fn tell(emitted: &[Content], files: &[Option<PathBuf>], as_json: bool) {
    if as_json {
        return;
    }
    for (content, file) in emitted.iter().zip(files) {
        if let Some(notes) = tool_content::notes(content) {
            output::note(&notes);
            continue;
        }
        let sentence = tool_content::sentence(content);
        let more = match (file, content) {
            (Some(file), _) => format!(": {}", shown(&file.to_string_lossy())),
            (None, Content::Link(_)) => String::new(),
            (None, _) => "; `--save DIR` writes it to a file".into(),
        };
        output::note(&format!("{sentence}{more}"));
    }
}

/// Returns the result of an answered call if a file could not be written. The output is already
/// printed, so nothing else may be written to standard output.
fn end(exit: Exit, unsaved: Option<CliError>) -> Result<Exit, CliError> {
    match unsaved {
        None => Ok(exit),
        Some(error) => {
            output::note(&error.report());
            Ok(error.exit())
        }
    }
}

pub(crate) fn tool_error(error: &ErrorInfo) -> String {
    let mut text = format!("{}\n", labelled("error", &error.message));
    for cause in &error.trace {
        text.push_str(&format!("{}\n", labelled("caused by", cause)));
    }
    if error.transient {
        text.push_str("hint: trying again may help, according to the tool\n");
    }
    text
}

fn show_details(completion: &Completion) {
    let show = |name: &str, captured: &CapturedOutput| {
        for line in captured.text.lines() {
            output::note(&format!("{name}: {}", printable(line)));
        }
        if captured.dropped_bytes > 0 {
            output::note(&format!("{name}: {} more bytes were dropped", captured.dropped_bytes));
        }
    };
    show("stdout", &completion.stdout);
    show("stderr", &completion.stderr);
    let usage = completion.usage;
    let (elapsed, output_size) =
        (format_duration(rounded(usage.elapsed)), ByteSize::bytes(usage.output_bytes));
    output::note(&format!("took {elapsed}, {} of memory, answered {output_size}", usage.memory));
    if usage.emitted_bytes > 0 {
        let (size, items) = (ByteSize::bytes(usage.emitted_bytes), completion.emitted.len());
        output::note(&format!("offered {size} of other content, items accepted: {items}"));
    }
    if let Some(fuel) = usage.fuel {
        output::note(&format!("ran {fuel} instructions"));
    }
}

/// Rounds a time to three digits: further digits differ from run to run.
fn rounded(time: Duration) -> Duration {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let unit = 10_u64.pow(nanos.checked_ilog10().unwrap_or(0).saturating_sub(2));
    Duration::from_nanos(nanos.saturating_add(unit / 2) / unit * unit)
}

/// Asks on the terminal. At the end of the input the question stays unanswered.
fn prompt(question: &Question) -> Result<Reply, CliError> {
    let answer = match &question.answer_type {
        AnswerType::Form(fields) => {
            output::note(&consent::on_screen(&question.shown()));
            let mut answers = Map::new();
            for field in fields {
                match prompt_field(field)? {
                    Typed::Answer(answer) => drop(answers.insert(field.id.clone(), answer)),
                    Typed::Nothing => {}
                    Typed::End => return Ok(Reply::Unanswered),
                }
            }
            Value::Object(answers)
        }
        kind => match prompt_line(&question.shown(), kind, question.default.as_deref(), true)? {
            Typed::Answer(answer) => answer,
            Typed::Nothing | Typed::End => return Ok(Reply::Unanswered),
        },
    };
    Ok(Reply::Answer(Sourced { value: Answer::Json(answer), origin: Origin::Caller }))
}

fn prompt_field(field: &Field) -> Result<Typed, CliError> {
    let mut text = field.title.as_ref().unwrap_or(&field.id).clone();
    if let Some(description) = &field.description {
        text.push_str(": ");
        text.push_str(description);
    }
    let default = field.default.as_ref().map(|default| match default {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    prompt_line(&barred(&text), &field.kind, default.as_deref(), field.is_required)
}

enum Typed {
    Answer(Value),
    /// An empty line, if allowed.
    Nothing,
    End,
}

/// Asks until the answer is valid. An empty line selects the default, except for yes or no, which
/// must be typed.
fn prompt_line(
    text: &str,
    kind: &AnswerType,
    default: Option<&str>,
    is_required: bool,
) -> Result<Typed, CliError> {
    let expectation = kind.expectation();
    let suggested = default.filter(|_| *kind != AnswerType::Boolean);
    let suggestion = match suggested {
        Some(default) => format!(", or nothing for `{}`", shown(default)),
        None if !is_required => ", or nothing".into(),
        None => String::new(),
    };
    let text = consent::on_screen(text);
    let text = match kind {
        AnswerType::Boolean => format!("{text}\n{}: ", consent::YES_OR_NO),
        _ => format!("{text}\n({expectation}{suggestion}) "),
    };
    loop {
        let Some(line) = consent::typed(&text)? else { return Ok(Typed::End) };
        let line = match (suggested, line.trim_end_matches(['\n', '\r'])) {
            (Some(default), "") => default,
            (None, "") if !is_required => return Ok(Typed::Nothing),
            (_, line) => line,
        };
        match kind.check(&Answer::Text(line.to_owned())) {
            Ok(answer) => return Ok(Typed::Answer(answer)),
            Err(error) => output::note(&printable(&error.to_string()).to_string()),
        }
    }
}

/// Reads `--args`: JSON, `@FILE` or `-`.
fn read_arguments(input: &mut Input, text: &str) -> Result<(Value, Digits), CliError> {
    let path = text.strip_prefix('@').or((text == "-").then_some(text));
    let content = match path {
        Some(path) => input.read(path)?,
        None => input::Content { name: "--args", bytes: text.as_bytes().to_owned() },
    };
    let name = content.name;
    strict::parse_exact(&content.bytes, JsonBudget::ARGUMENTS)
        .map_err(|error| CliError::Usage(format!("`{name}` is not a JSON object: {error}")))
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE".into()),
    }
}

/// Parses the arguments in words of the command line. A single word without a key is the only
/// required argument, if that is a string.
fn pairs(
    words: Vec<String>,
    tool: &str,
    schema: impl Fn() -> Result<Value, CliError>,
) -> Result<Vec<(String, String)>, CliError> {
    let has_key = |word: &str| {
        let is_key = |key: &str| {
            let key = key.strip_suffix(':').unwrap_or(key);
            key.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
                && key.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
        };
        word.split_once('=').is_some_and(|(key, _)| is_key(key))
    };
    let (named, mut unnamed): (Vec<_>, Vec<_>) = words.into_iter().partition(|it| has_key(it));
    let mut pairs: Vec<_> = named.iter().filter_map(|word| pair(word).ok()).collect();
    let Some(word) = unnamed.pop() else { return Ok(pairs) };
    let schema = schema()?;
    match required_text(&schema) {
        Some(key) if unnamed.is_empty() && pairs.iter().all(|(own, _)| *own != key) => {
            pairs.push((key, word));
            Ok(pairs)
        }
        _ => {
            let example = shell::command(["kitbag", "run", tool]);
            let keys: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
            let keys: Vec<_> = keys.iter().map(|(key, _)| key.as_str()).collect();
            let known = match keys.is_empty() {
                true => format!("`{}` has no arguments", shown(tool)),
                false => format!("the arguments of `{}` are {}", shown(tool), alternatives(&keys)),
            };
            Err(CliError::Usage(format!(
                "`{}` has no key; write `{example} KEY=VALUE`: {known}",
                shown(&word)
            )))
        }
    }
}

/// Returns the name of the only required property of a schema, or `path` if none is required.
/// `None` if the property is not a string.
fn required_text(schema: &Value) -> Option<String> {
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let key = match required {
        [] => "path",
        [key] => key.as_str()?,
        _ => return None,
    };
    (schema["properties"][key]["type"] == "string").then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shown_with_three_digits() {
        let check = |nanos: u64, expected: &str| {
            let shown = format_duration(rounded(Duration::from_nanos(nanos))).to_string();
            assert_eq!(shown, expected);
        };
        check(402_929_210, "403ms");
        check(738_457, "738us");
        check(4_512_900, "4ms 510us");
        check(65_430_000_001, "1m 5s 400ms");
        check(999_999, "1ms");
        check(7, "7ns");
        check(0, "0s");
    }
}
