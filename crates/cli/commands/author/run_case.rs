//! Runs one case in a workspace of its own.

use std::fs;
use std::io;
use std::path::Path;

use kitbag::base::json::Digits;
use kitbag::config::{CallGrants, Origin, Sourced};
use kitbag::contract::ApprovalRequest;
use kitbag::host::{ClientOptions, RecordedResponse, Recordings, RefusedAccess};
use kitbag::{
    AnswerError, Arguments, CallContext, CallOutcome, Caller, Completion, FrontEnd, Invocation,
    Kitbag, Outcome, Places, Question, Reply,
};
use serde_json::json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

use crate::commands::Global;
use crate::commands::author::cases::Case;
use crate::console::tool_content;
use crate::error::CliError;

/// The result of a case.
pub(crate) struct CaseResult {
    /// The answer in the form of a case file.
    pub(crate) lines: Vec<String>,
    /// The likely reasons for a difference.
    pub(crate) notes: Vec<String>,
}

/// Calls the tool of a case. The tool reads only the files of the case, its requests are answered
/// only with the recorded responses, and no configuration of the user or the workspace applies.
pub(crate) fn run(case: &Case, component: &Path, global: &Global) -> Result<CaseResult, CliError> {
    let failed = |source| CliError::Save { path: "a temporary directory".into(), source };
    let directory = tempfile::tempdir().map_err(failed)?;
    let root = directory.path().join("workspace");
    write_workspace(case, component, &root).map_err(failed)?;
    let recordings = Recordings::new(case.setup.responses.clone());
    let usual = Places::from_environment(std::env::vars_os());
    let is_limit = |(name, _): &(String, String)| name.starts_with("KITBAG_LIMITS_");
    let state = directory.path().join("state");
    let places = Places {
        cache: usual.cache,
        state: Some(Sourced { value: state, origin: Origin::Caller }),
        environment: usual.environment.into_iter().filter(is_limit).collect(),
        ..Places::default()
    };
    let http = case.setup.responses.iter().map(http_grant);
    let grants = http.chain(case.setup.grants.iter().cloned()).collect();
    let connections =
        ClientOptions { recordings: Some(recordings.clone()), ..ClientOptions::default() };
    let kitbag = global
        .builder()
        .places(places)
        .workspace(&root)
        .trust_workspace(true)
        .call_grants(CallGrants { tool: case.tool.clone(), grants })
        .connections(connections)
        .single_call()
        .build()?;
    let mut answers = CaseAnswers { case, asked: Vec::new() };
    let arguments = Arguments {
        json: serde_json::from_str(&case.arguments).ok(),
        pairs: Vec::new(),
        digits: Digits::default(),
    };
    let invocation = Invocation::tool(&*case.tool, arguments);
    let context = CallContext::new(Caller::this_user());
    let ended = kitbag.toolbox().call_blocking(invocation, context, &mut answers);
    let (lines, refused) = match ended {
        Err(error) => (lines('!', &error.to_string()), Vec::new()),
        Ok(CallOutcome::Completed(call)) => completed(&call.completion),
        Ok(CallOutcome::Suspended(call)) => completed(&call.completion),
        Ok(CallOutcome::Refused(error)) => return Err(error),
    };
    let unanswered = recordings.unanswered();
    let unanswered = unanswered.iter().map(|url| format!("no response is recorded for `{url}`"));
    let unasked = case.answers.iter().filter(|(id, _)| !answers.asked.contains(id));
    let unasked = unasked.map(|(id, _)| format!("the tool did not ask `{id}`"));
    let notes = refused.into_iter().chain(unanswered).chain(unasked).collect();
    end_servers(&kitbag);
    Ok(CaseResult { lines, notes })
}

/// A component starts no servers; other tools of the toolbox are not called.
fn end_servers(kitbag: &Kitbag) {
    kitbag.toolbox().end_servers(std::time::Duration::ZERO);
}

/// Writes the files of a case, and the configuration of its tool.
fn write_workspace(case: &Case, component: &Path, root: &Path) -> io::Result<()> {
    fs::create_dir_all(root.join(".kitbag"))?;
    for (path, content) in &case.setup.files {
        let path = root.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, content)?;
    }
    let mut directory = InlineTable::new();
    directory.insert("host", ".".into());
    directory.insert("guest", "/workspace".into());
    directory.insert("mode", if case.setup.may_write { "rw" } else { "ro" }.into());
    let mut grants = Table::new();
    grants.insert("filesystem", value(Array::from_iter([directory])));
    let mut tool = Table::new();
    tool.insert("source", value("local"));
    tool.insert("wasm", value(component.to_string_lossy().into_owned()));
    tool.insert("grants", Item::Table(grants));
    let mut tools = Table::new();
    tools.insert(&case.tool, Item::Table(tool));
    let mut config = DocumentMut::new();
    config.insert("tools", Item::Table(tools));
    fs::write(root.join(".kitbag/config.toml"), config.to_string())
}

/// Returns the grant for a recorded response, in the form of `--grant`.
fn http_grant(response: &RecordedResponse) -> String {
    let request = &response.request;
    // A pattern has no query.
    let url = json!(format!("{}{}", request.origin_url(), request.path()));
    let method = json!(request.method().as_str());
    // A string in JSON is one in TOML.
    format!("http={{ url = {url}, methods = [{method}] }}")
}

/// Returns the lines of a completed call, and notes on its refused requests.
fn completed(completion: &Completion) -> (Vec<String>, Vec<String>) {
    let mut lines = match &completion.result {
        Ok(Outcome::Success(text)) => lines('=', text),
        Ok(Outcome::Error(error)) => lines('!', &error.message),
        Ok(Outcome::NeedsInput(question)) => vec![format!("? {}", question.id)],
        Err(error) => lines('!', &error.to_string()),
    };
    lines.extend(completion.emitted.iter().map(|it| format!("+ {}", tool_content::sentence(it))));
    let refused = completion.refused.iter().filter_map(RefusedAccess::as_request);
    let refused = refused
        .map(|refused| format!("no response is recorded for this request: {}", refused.reason));
    (lines, refused.collect())
}

/// Returns the lines of a text with a sign.
fn lines(sign: char, text: &str) -> Vec<String> {
    text.split('\n').map(|line| format!("{sign} {line}").trim_end().to_owned()).collect()
}

/// Answers the questions of a case, and approves its call.
struct CaseAnswers<'a> {
    case: &'a Case,
    asked: Vec<String>,
}

impl FrontEnd for CaseAnswers<'_> {
    type Abort = CliError;

    async fn ask(
        &mut self,
        question: &Question,
        rejected: Option<&AnswerError>,
    ) -> Result<Reply, CliError> {
        let answer = |text: &str| Reply::text(text, Origin::Caller);
        if question.approval.is_some() {
            return Ok(answer(ApprovalRequest::ONCE));
        }
        self.asked.push(question.id.clone());
        let found = self.case.answers.iter().find(|(id, _)| *id == question.id);
        Ok(match found {
            Some((_, text)) if rejected.is_none() => answer(text),
            _ => Reply::Unanswered,
        })
    }
}
