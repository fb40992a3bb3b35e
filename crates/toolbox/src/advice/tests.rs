use std::sync::Arc;
use std::time::Duration;

use kitbag_base::ContentDigest;
use kitbag_config::HigherLimit;
use kitbag_contract::{AnswerError, ErrorKind, Pin};
use kitbag_policy::{Period, Rate};
use kitbag_schema::ArgumentProblem;
use kitbag_state::audit::AuditError;
use kitbag_state::rates::CountsError;

use super::*;
use crate::error::{NearestTool, Truncation};

/// Returns the number of a kind. A new kind does not compile until it has a number, and
/// `every_kind_is_checked` fails until `errors` contains an error of that kind.
fn number(error: &ToolboxError) -> usize {
    match error {
        ToolboxError::UnknownTool { .. } => 0,
        ToolboxError::Disabled { .. } => 1,
        ToolboxError::MissingComponent { .. } => 2,
        ToolboxError::NotAsRecorded { .. } => 3,
        ToolboxError::Load { .. } => 4,
        ToolboxError::Arguments { .. } => 5,
        ToolboxError::Output { .. } => 6,
        ToolboxError::Cut { .. } => 7,
        ToolboxError::Schema { .. } => 8,
        ToolboxError::Answer { .. } => 9,
        ToolboxError::Declined { .. } => 10,
        ToolboxError::NotApproved { .. } => 11,
        ToolboxError::ReservedQuestion { .. } => 12,
        ToolboxError::Random(_) => 13,
        ToolboxError::TooDeep { .. } => 14,
        ToolboxError::Rate { .. } => 15,
        ToolboxError::AliasRate { .. } => 16,
        ToolboxError::Counts(_) => 17,
        ToolboxError::Audit(_) => 18,
        ToolboxError::Register { .. } => 19,
        ToolboxError::State(_) => 20,
        ToolboxError::AskedAgain { .. } => 21,
        ToolboxError::TooManyQuestions { .. } => 22,
        ToolboxError::Diverged { .. } => 23,
        ToolboxError::TooMuchToKeep { .. } => 24,
        ToolboxError::NotGranted { .. } => 25,
        ToolboxError::NoSecret { .. } => 26,
        ToolboxError::MoreGranted { .. } => 27,
        ToolboxError::HigherLimit { .. } => 28,
        ToolboxError::Call(error) => match error {
            CallError::Limit { .. } => 29,
            CallError::Denied(_) => 30,
            CallError::Trap { .. } => 31,
            CallError::Contract(_) => 32,
            CallError::Cancelled => 33,
            CallError::Busy { .. } => 34,
            CallError::MemoryBusy { .. } => 35,
            CallError::BeyondMemory { .. } => 36,
            CallError::Load(_) => 37,
            CallError::Internal(_) => 38,
        },
        ToolboxError::Masked { .. } => 39,
        ToolboxError::QuestionFlaw { .. } => 40,
        ToolboxError::NotCallable { .. } => 41,
        ToolboxError::Remote { .. } => 42,
    }
}

const KINDS: usize = 43;

fn file() -> Origin {
    Origin::File { path: Arc::from(std::path::Path::new("/h/config.toml")), line: 2, column: 8 }
}

fn pinned() -> LoadError {
    let digest = ContentDigest([0; 32]);
    let (recorded_in, renewed_by) = ("/w/kitbag.lock:4:1".into(), "kitbag update t".into());
    let pin = Box::new(Pin { digest, recorded_in, renewed_by });
    LoadError::Pinned { path: "/w/t.wasm".into(), found: ContentDigest([1; 32]), pin }
}

fn distrusted() -> LoadError {
    let reason = kitbag_config::Distrust::Owner { uid: 7 };
    LoadError::Distrusted { path: "/w/t.wasm".into(), found: "/w".into(), reason }
}

fn rate() -> Rate {
    Rate { calls: std::num::NonZeroU32::MIN, period: Period::Minute }
}

/// Returns one error of each kind, and several for a kind with several messages.
fn errors() -> Vec<ToolboxError> {
    let tool = || "t".to_owned();
    let problem = || vec![ArgumentProblem { pointer: "/a".into(), message: "is missing".into() }];
    let answer = || AnswerError::UnknownType("x".into());
    let near = |disabled: Option<Disabled>| {
        let disabled = disabled.map(Box::new);
        Some(NearestTool { name: "u".into(), disabled })
    };
    let size = ByteSize::mib(1);
    vec![
        ToolboxError::UnknownTool { name: tool(), nearest: None, known: Vec::new() },
        ToolboxError::UnknownTool { name: tool(), nearest: near(None), known: Vec::new() },
        ToolboxError::UnknownTool {
            name: tool(),
            nearest: near(Some(Disabled::Untrusted)),
            known: Vec::new(),
        },
        ToolboxError::Disabled { name: tool(), reason: Box::new(Disabled::Untrusted) },
        ToolboxError::Disabled {
            name: tool(),
            reason: Box::new(Disabled::Tool { origin: file() }),
        },
        ToolboxError::MissingComponent { path: "/w/t.wasm".into(), origin: file(), near: None },
        ToolboxError::NotAsRecorded {
            update: "t".into(),
            tool: tool(),
            reason: "its schema differs from the recorded one; `kitbag update t` shows it".into(),
        },
        ToolboxError::NotCallable {
            tool: tool(),
            reason: "its component has several tools, and none is named `t`".into(),
        },
        ToolboxError::Remote {
            kind: ErrorKind::MayHaveActed,
            message: "the worker of the call is gone, and `t` may have changed or sent something"
                .into(),
        },
        ToolboxError::Load { tool: tool(), source: Box::new(distrusted()) },
        ToolboxError::Arguments { tool: tool(), problems: problem() },
        ToolboxError::Masked {
            tool: tool(),
            pointer: "/content".into(),
            mask: "[kitbag-mask:github-token]".into(),
        },
        ToolboxError::Output { tool: tool(), problems: problem() },
        ToolboxError::Cut {
            tool: tool(),
            cut: Truncation { bytes: 3_000_000, limit: Sourced { value: size, origin: file() } },
        },
        ToolboxError::Schema { tool: tool(), kind: "input", reason: "it is none".into() },
        ToolboxError::Answer { question: "q".into(), origin: file(), source: answer() },
        ToolboxError::Declined { question: "q".into(), text: "Go?".into(), is_dismissed: false },
        ToolboxError::NotApproved { tool: tool(), why: NotApproved::Declined },
        ToolboxError::NotApproved {
            tool: tool(),
            why: NotApproved::Class { class: "db:drop".into(), origin: file() },
        },
        ToolboxError::NotApproved {
            tool: tool(),
            why: NotApproved::NobodyToAsk { advice: "write `approve = \"never\"`".into() },
        },
        ToolboxError::ReservedQuestion { question: "q".into() },
        ToolboxError::QuestionFlaw { question: "q".into(), reason: "it has the words of kitbag" },
        ToolboxError::Random("none".into()),
        ToolboxError::TooDeep { caller: "tool t".into(), limit: 4 },
        ToolboxError::Rate {
            tool: tool(),
            counted_as: None,
            rate: rate(),
            origin: file(),
            retry_after: Duration::from_secs(5),
        },
        ToolboxError::AliasRate {
            alias: "t/u".into(),
            rate: rate(),
            retry_after: Duration::from_secs(5),
        },
        ToolboxError::Counts(CountsError { path: "/s".into(), reason: "full".into() }),
        ToolboxError::Audit(AuditError::Unusable { path: "/s".into(), reason: "full".into() }),
        ToolboxError::Register { tool: tool(), reason: "it has no name".into() },
        ToolboxError::State("the state is old".into()),
        ToolboxError::AskedAgain { question: "q".into() },
        ToolboxError::TooManyQuestions { limit: 100 },
        ToolboxError::Diverged { number: 1, before: "a".into(), now: "b".into() },
        ToolboxError::TooMuchToKeep { limit: 1 << 20 },
        ToolboxError::NotGranted {
            caller: tool(),
            alias: "u".into(),
            reason: "no grant of `tools` names `u`".into(),
            advice: None,
        },
        ToolboxError::NoSecret {
            tool: tool(),
            secret: "github".into(),
            command: "kitbag secret set github --to 'https://a.example/**'".into(),
        },
        ToolboxError::MoreGranted { tool: tool(), grant: "http".into(), reason: "more".into() },
        ToolboxError::HigherLimit {
            tool: tool(),
            limit: Box::new(HigherLimit {
                key: "memory",
                wanted: "2 MiB".into(),
                own: Sourced { value: "1 MiB".into(), origin: file() },
            }),
        },
        CallError::Limit { kind: LimitKind::Memory, limit: "64 MiB".into() }.into(),
        CallError::Limit { kind: LimitKind::Stack, limit: "512 KiB".into() }.into(),
        CallError::Denied("the directory `/a`, granted as `/a`, cannot be opened".into()).into(),
        CallError::Trap { message: "it panicked".into() }.into(),
        CallError::Contract(answer()).into(),
        CallError::Cancelled.into(),
        CallError::Busy { running: 1, waiting: 1, retry_after: Duration::from_secs(1) }.into(),
        CallError::MemoryBusy { retry_after: Duration::from_secs(1) }.into(),
        CallError::BeyondMemory { needed: size, memory: size }.into(),
        CallError::Load(pinned()).into(),
        CallError::Load(distrusted()).into(),
        CallError::Load(LoadError::NotFound { path: "/w/t.wasm".into() }).into(),
        CallError::Internal("broken".into()).into(),
    ]
}

#[test]
fn every_kind_is_checked() {
    let numbers: BTreeSet<_> = errors().iter().map(number).collect();
    assert_eq!(numbers, (0..KINDS).collect());
}

#[test]
fn a_model_is_never_told_to_weaken_a_protection() {
    const WEAKER: [&str; 11] = [
        "approve =",
        "never",
        "remove",
        "rate =",
        "[trust]",
        "trust_workspace",
        "--trust-workspace",
        "[output",
        "--approve",
        "shows the difference",
        "your own",
    ];
    for error in errors() {
        let text = error.message_for(Audience::Model, None);
        for words in WEAKER {
            assert!(!text.contains(words), "`{words}` is in: {text}");
        }
    }
}

#[test]
fn people_get_the_complete_message() {
    for error in errors() {
        assert_eq!(error.message_for(Audience::Person, None), with_causes(&error));
    }
}

#[test]
fn a_model_reads_the_cause_and_a_request_for_its_user() {
    let texts: Vec<_> = errors()
        .iter()
        .map(|error| (error.message_for(Audience::Model, None), with_causes(error)))
        .filter(|(model, person)| model != person)
        .map(|(model, _)| model)
        .collect();
    let path = "kitbag does not run `/w/t.wasm`, because";
    let expected = [
        "no tool is named `t`; did you mean `u`?".to_owned(),
        "no tool is named `t`; did you mean `u`? It is disabled: its workspace is not trusted; ask \
         the user to review it with `kitbag trust`"
            .to_owned(),
        "the tool `t` is disabled: its workspace is not trusted; ask the user to review it with \
         `kitbag trust`"
            .to_owned(),
        "kitbag does not run the tool `t`: it changed; ask the user to look at `kitbag update t`"
            .to_owned(),
        format!(
            "the tool `t` cannot be loaded: {path} another user can change it: `/w` belongs to \
             user 7"
        ),
        "the output of `t` was truncated, so it is no longer valid JSON: it had 3000000 bytes; the \
         limit `output` is 1 MiB (/h/config.toml:2:8); request less, or ask the user to raise the \
         limit"
            .to_owned(),
        "the call of `t` needs the approval of a person, but no person can be asked; nothing was \
         done"
            .to_owned(),
        "`t` is granted the secret `github`, which does not exist; ask the user to run `kitbag \
         secret set github --to 'https://a.example/**'`"
            .to_owned(),
        "the call may need 1 MiB (its limit `memory` and memory of the host), but the server has 1 \
         MiB for all calls; ask the user to raise `memory` under `[serve]`"
            .to_owned(),
        format!("{path} it differs from the recorded component; ask the user to look at it"),
        format!("{path} another user can change it: `/w` belongs to user 7"),
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_model_asks_its_user_to_enable_a_tool() {
    let check = |reason: Disabled| {
        let error = ToolboxError::Disabled { name: "t".to_owned(), reason: Box::new(reason) };
        let message = error.message_for(Audience::Model, None);
        assert!(message.ends_with("; ask the user to do that"), "{message}");
        let message = error.message_for(Audience::Person, None);
        assert!(!message.contains("the user"), "{message}");
    };
    let own: Arc<std::path::Path> = Arc::from(std::path::Path::new("/h/config.toml"));
    let off = || Disabled::Toolset { toolset: "calc", origin: file() };
    check(off());
    check(Disabled::OffByDefault { toolset: "memory", file: Arc::clone(&own) });
    check(Disabled::Write { origin: file(), file: own });
    let tool = kitbag_contract::ToolName::new("calculate").unwrap();
    check(Disabled::NotGranted {
        tool: tool.clone(),
        setting: "x".into(),
        empty: None,
        file: None,
    });
    check(Disabled::Alias { other: tool, reason: Box::new(off()) });
}

#[test]
fn every_message_is_bounded() {
    let long = "päth/".repeat(100_000);
    let problem = || ArgumentProblem { pointer: format!("/{long}"), message: long.clone() };
    let problems = |count: usize| (0..count).map(|_| problem()).collect::<Vec<_>>();
    let errors = [
        ToolboxError::Arguments { tool: "t".into(), problems: problems(1) },
        ToolboxError::Arguments { tool: "t".into(), problems: problems(101) },
        ToolboxError::Output { tool: "t".into(), problems: problems(3) },
        ToolboxError::Call(CallError::Denied(long.clone())),
        ToolboxError::UnknownTool { name: long.clone(), nearest: None, known: Vec::new() },
    ];
    for error in errors {
        for audience in [Audience::Person, Audience::Model] {
            let message = error.message_for(audience, None);
            assert!(message.len() <= 4 << 10, "{}", message.len());
            assert!(message.contains('t'));
        }
    }
}
