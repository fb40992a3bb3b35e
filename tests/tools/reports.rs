//! Reports of a running tool, and its content besides the text: received in the library, shown on
//! the command line.

use std::sync::Arc;

use kitbag::contract::{Action, Media, Resource, ResourceBody, ResourceLink};
use kitbag::{
    Answer, AnswerError, CallContext, Completion, Content, EventSink, FrontEnd, Invocation, Kitbag,
    Listener, LogLevel, NoAnswers, Outcome, Progress, Question, Reply,
};
use serde_json::{Value, json};

use crate::support::terminal::{on_a_terminal, on_a_watched_terminal};
use crate::support::{CallInTest, Heard, Workspace, block_on, crafted, guest, snapshot};

fn emitted(kitbag: &Kitbag, arguments: Value) -> Vec<Content> {
    block_on(kitbag.complete("probe", arguments)).unwrap().emitted
}

/// Calls a tool on this thread, with its own listener and front end.
fn complete<F: FrontEnd>(
    kitbag: &Kitbag,
    tool: &str,
    arguments: Value,
    heard: &Arc<Heard>,
    front_end: &mut F,
) -> Completion {
    let context = CallContext::default().with_events(EventSink::new(Arc::<Heard>::clone(heard)));
    let invocation = Invocation::tool(tool, arguments);
    let ended = kitbag.toolbox().call_blocking(invocation, context, front_end).unwrap();
    ended.completion().unwrap_or_else(|_| panic!("the front end refused"))
}

/// Answers every question with yes.
struct Yes {
    asked: u32,
}

impl FrontEnd for Yes {
    type Abort = std::convert::Infallible;

    async fn ask(&mut self, _: &Question, _: Option<&AnswerError>) -> Result<Reply, Self::Abort> {
        self.asked += 1;
        let (value, origin) = (Answer::Json(true.into()), kitbag::config::Origin::Caller);
        Ok(Reply::Answer(kitbag::config::Sourced { value, origin }))
    }
}

fn image(bytes: usize) -> Content {
    Content::Image(Media { data: vec![b'x'; bytes], mime_type: "image/png".into() })
}

fn progress(done: f64, total: Option<f64>, message: Option<&str>) -> Progress {
    Progress { done, total, message: message.map(ToOwned::to_owned) }
}

#[test]
fn log_messages_are_received_in_order_with_their_level() {
    let workspace = Workspace::with_probe("");
    let (kitbag, heard) = workspace.kitbag_with_ears();
    let arguments = json!({ "do": "log", "level": "all", "text": "hello", "repeat": 2 });
    assert_eq!(kitbag.call_in_test("probe", arguments), "log: 16 all");
    let (logs, progress) = heard.take();
    let expected = LogLevel::ALL.map(|level| (level, "hello".to_owned()));
    assert_eq!(logs, [expected.clone(), expected].concat());
    assert_eq!(progress, []);
    // A listener is optional.
    let arguments = json!({ "do": "log", "level": "all" });
    assert_eq!(workspace.call("probe", arguments), "log: 8 all");
}

#[test]
fn progress_is_received_unchanged() {
    let workspace = Workspace::with_probe("");
    let (kitbag, heard) = workspace.kitbag_with_ears();
    let arguments =
        json!({ "do": "progress", "steps": ["0", "0.5", "7"], "total": "4", "text": "at it" });
    assert_eq!(kitbag.call_in_test("probe", arguments), "progress: 3 steps");
    let expected = [0.0, 0.5, 7.0].map(|done| progress(done, Some(4.0), Some("at it")));
    assert_eq!(heard.take(), (vec![], expected.to_vec()));
    let arguments = json!({ "do": "progress", "steps": ["0"] });
    assert_eq!(kitbag.call_in_test("probe", arguments), "progress: 1 steps");
    // A separate call has separate progress.
    assert_eq!(heard.take(), (vec![], vec![progress(0.0, None, None)]));
}

#[test]
fn a_tool_emits_images_audio_documents_and_links() {
    let workspace = Workspace::with_probe("");
    let kitbag = workspace.kitbag();
    let arguments = json!({
        "do": "emit", "kind": "all", "mime": "a/b", "uri": "x:y", "name": "it", "title": "It",
    });
    let completion = block_on(kitbag.complete("probe", arguments)).unwrap();
    let media = Media { data: b"xxxx".to_vec(), mime_type: "a/b".into() };
    let resource = |body| Resource { uri: "x:y".into(), mime_type: Some("a/b".into()), body };
    let link = ResourceLink {
        uri: "x:y".into(),
        name: "it".into(),
        title: Some("It".into()),
        description: None,
        mime_type: Some("a/b".into()),
        size: Some(4),
    };
    let expected = [
        Content::Image(media.clone()),
        Content::Audio(media),
        Content::Resource(resource(ResourceBody::Text("xxxx".into()))),
        Content::Resource(resource(ResourceBody::Blob(b"xxxx".to_vec()))),
        Content::Link(link),
    ];
    assert_eq!(completion.emitted, expected);
    let size: usize = expected.iter().map(Content::size).sum();
    assert_eq!(completion.usage.emitted_bytes, size as u64);
    assert_eq!(completion.result.unwrap(), Outcome::Success("emit: 5 items taken".into()));
    // An error can also have content, and unknown formats are accepted.
    let arguments = json!({ "do": "emit", "kind": "text", "mime": "", "then": "fail" });
    let resource = Resource {
        uri: "file:///a".into(),
        mime_type: None,
        body: ResourceBody::Text("xxxx".into()),
    };
    assert_eq!(emitted(&kitbag, arguments), [Content::Resource(resource)]);
    assert_eq!(emitted(&kitbag, json!({ "do": "echo", "text": "x" })), []);
}

#[test]
fn only_the_last_run_of_a_call_emits_content() {
    let workspace = Workspace::with_probe("");
    let asks = || json!({ "do": "emit", "then": "ask" });
    let unanswered = block_on(workspace.kitbag().complete("probe", asks())).unwrap();
    assert!(matches!(unanswered.result, Ok(Outcome::NeedsInput(_))));
    assert_eq!(unanswered.emitted, []);
    // Answered by a person, and by the configuration.
    let builder = workspace.builder();
    let answer = |_| async { Some(Answer::Json(true.into())) };
    let kitbag = builder.on_question(answer).build().unwrap();
    assert_eq!(emitted(&kitbag, asks()), [image(4)]);
    let preset = Workspace::with_probe("[tools.probe.answers]\n\"go-on\" = true\n");
    assert_eq!(emitted(&preset.kitbag(), asks()), [image(4)]);
}

#[test]
fn progress_rises_over_all_runs_of_a_call() {
    let preset = "[tools.probe.answers]\n\"go-on\" = true\n";
    for (workspace, is_preset) in
        [(Workspace::with_probe(preset), true), (Workspace::with_probe(""), false)]
    {
        let heard = Arc::<Heard>::default();
        let arguments = json!({ "do": "progress", "steps": ["1", "2"], "then": "ask" });
        let mut front_end = Yes { asked: 0 };
        let completion = complete(&workspace.kitbag(), "probe", arguments, &heard, &mut front_end);
        assert_eq!(front_end.asked, u32::from(!is_preset));
        assert_eq!(completion.result.unwrap(), Outcome::Success("progress: 2 steps".into()));
        let expected = vec![progress(1.0, None, None), progress(2.0, None, None)];
        assert_eq!(heard.take(), (vec![], expected));
    }
}

#[test]
fn a_call_may_have_its_own_listener() {
    let workspace = Workspace::with_probe("");
    let kitbag = workspace.kitbag();
    let heard = Arc::<Heard>::default();
    complete(&kitbag, "probe", json!({ "do": "log" }), &heard, &mut NoAnswers);
    assert_eq!(heard.take().0, [(LogLevel::Info, "hello".to_owned())]);
    block_on(kitbag.call("probe", json!({ "do": "log" }))).unwrap();
    assert_eq!(heard.take().0, []);
}

#[test]
fn describe_and_render_send_no_reports_or_content() {
    const REFUSED: &str = "emit: refused (a tool may emit content only during a call, not while it \
                           describes itself or renders a call)";
    // With a separate cache, so that the tool is compiled and described here.
    let workspace = Workspace::with_own_cache();
    std::fs::create_dir(workspace.path(".kitbag/tools")).unwrap();
    std::fs::copy(guest("probe"), workspace.path(".kitbag/tools/probe.wasm")).unwrap();
    let (kitbag, heard) = workspace.kitbag_with_ears();
    let tool = kitbag.toolbox().tool("probe").unwrap();
    let description = tool.description.unwrap().value;
    assert!(description.contains(REFUSED), "{description}");
    let invocation = Invocation::tool("probe", json!({ "do": "emit" }));
    let invocation = invocation.with_action(Action::FormatArguments);
    let context = CallContext::default().with_events(EventSink::new(Arc::<Heard>::clone(&heard)));
    let ended = kitbag.toolbox().call_blocking(invocation, context, &mut NoAnswers).unwrap();
    let Ok(completion) = ended.completion();
    let rendered = format!("probe emit (0 directories); {REFUSED}");
    assert_eq!(completion.result.unwrap(), Outcome::Success(rendered));
    assert_eq!(completion.emitted, []);
    assert_eq!(heard.take(), (vec![], vec![]));
}

#[test]
fn a_panicking_listener_ends_only_its_call() {
    struct Panics;
    impl Listener for Panics {
        fn log(&self, _: LogLevel, _: &str) {
            panic!("on purpose");
        }
    }
    let workspace = Workspace::with_probe("");
    let kitbag = workspace.builder().listener(Arc::new(Panics)).build().unwrap();
    let got = kitbag.call_in_test("probe", json!({ "do": "log" }));
    assert!(got.starts_with("failed: internal error: "), "{got}");
    assert_eq!(kitbag.call_in_test("probe", json!({ "do": "echo", "text": "x" })), "x");
}

#[test]
fn a_tool_without_reports_does_not_import_them() {
    let workspace = Workspace::new();
    let imports = |name: &str| {
        let file = guest(name);
        let inspected = workspace.run(&["inspect", file.to_str().unwrap(), "--json"]).json();
        assert_eq!(inspected["runs"], true);
        let imports = inspected["imports"].as_array().unwrap().iter();
        let host = imports.filter(|import| import["name"] == "kitbag:tool/host@0.1.0");
        host.map(|import| import["offered"].clone()).collect::<Vec<_>>()
    };
    // Both are built with the same sdk.
    assert_eq!(imports("learn"), [] as [Value; 0]);
    assert_eq!(imports("probe"), ["log, progress, and content other than text"]);
    // A tool that is built without the sdk.
    assert_eq!(imports("stranger"), [] as [Value; 0]);
}

#[test]
fn the_command_line_shows_reports_and_content() {
    let workspace = Workspace::with_probe("");
    let escapes = "text=a\u{1b}[2Jb\nlog: error: forged\u{202e}";
    let report = workspace.session(&[
        &["run", "probe", "do=log", "level=all"],
        &["run", "probe", "do=log", "level=all", "--verbose"],
        &["run", "probe", "do=log", "level=all", "--verbose", "--json"],
        &["run", "probe", "do=log", escapes, "--verbose"],
        &["run", "probe", "do=progress", r#"steps:=["1","2"]"#, "--verbose"],
        &["run", "probe", "do=emit", "kind=all", "bytes:=2048"],
        &["run", "probe", "do=emit", "kind=all", "title=A", "description=a document", "--json"],
        &["run", "probe", "do=emit", "mime=", "kind=link", "--json"],
        &["run", "probe", "do=emit", "then=fail"],
        &["run", "probe", "do=emit", "then=fail", "--json"],
        &["run", "probe", "do=emit", "kind=link", "uri=x:\u{661}\u{feff}", "mime=", "--json"],
        &["run", "probe", "do=emit", "then=ask", "--json"],
        &["run", "probe", "do=emit", "then=ask", "--answer", "go-on=yes", "--json"],
        &["run", "probe", "do=emit", "bytes:=600", "repeat:=2", "--output", "1KiB", "--verbose"],
        &["run", "probe", "do=emit", "--format-arguments", "--verbose"],
    ]);
    // The duration and the memory vary.
    let report: Vec<_> = report.lines().filter(|line| !line.starts_with("took ")).collect();
    snapshot!("command line", &report.join("\n"));
}

#[test]
fn progress_on_a_terminal_is_a_temporary_line() {
    let workspace = Workspace::with_probe("");
    let steps = r#"steps:=["1","2"]"#;
    let run = ["run", "probe", "do=progress", steps, "total=4", "text=\u{1b}]0;x"];
    let (stdout, shown) = on_a_terminal(&workspace, &run, "");
    assert_eq!(stdout, "progress: 2 steps\n");
    // The second step is omitted if it follows too soon after the first.
    let lines: Vec<_> = shown.split("\u{1b}[K").collect();
    assert_eq!(
        (lines[0], lines[1], lines.last()),
        ("", "25 %  \\u{1b}]0;x", Some(&"")),
        "{shown:?}"
    );
    let between = &lines[2..lines.len() - 1];
    assert!(between.is_empty() || between == ["50 %  \\u{1b}]0;x"], "{shown:?}");
    let (stdout, shown) = on_a_terminal(&workspace, &[&run[..], &["--json"]].concat(), "");
    assert_eq!(
        stdout,
        "{\"outcome\":\"success\",\"content\":\"progress: 2 steps\",\"untrusted\":true}\n"
    );
    assert_eq!(shown, "");
    // The progress is cleared before a question.
    let run = ["run", "probe", "do=progress", steps, "then=ask"];
    let (stdout, shown) = on_a_terminal(&workspace, &run, "yes\n");
    assert_eq!(stdout, "progress: 2 steps\n");
    let is_shown =
        shown.contains("\u{1b}[K1\u{1b}[K") && shown.contains("\u{1b}[K`probe` asks: Go on?\n");
    assert!(is_shown, "{shown:?}");
}

#[test]
fn compiling_is_a_temporary_line_on_a_terminal() {
    let workspace = Workspace::with_own_cache();
    workspace.file(".kitbag/tools/tiny.wasm", crafted::tool("a:b/c", ""));
    workspace.run(&["run", "tiny"]).success();
    for (command, expected) in [
        (&["run", "tiny"][..], "ok\n"),
        (&["run", "tiny", "--args", "{}", "--without-nulls"], "ok\n"),
        (&["describe", "tiny"], "tiny ("),
        (&["check"], "2 tools, 0 topics: no problem\n"),
    ] {
        // As if another process compiled it, for as long as the test requires.
        let mut claim = Some(workspace.claim());
        let (stdout, shown) = on_a_watched_terminal(&workspace, command, "", |shown| {
            if shown.ends_with(" s") {
                drop(claim.take());
            }
        });
        assert!(stdout.starts_with(expected), "{command:?}: {stdout}");
        let lines: Vec<_> = shown.split("\u{1b}[K").collect();
        let line = "compiling tiny.wasm (1 KiB)";
        assert_eq!(lines[..2], ["", line], "{command:?}: {shown:?}");
        // The line counts seconds; a slow machine may skip some of them.
        let seconds = lines[2].strip_prefix(line).and_then(|it| it.strip_suffix(" s"));
        let seconds = seconds.and_then(|it| it.trim_start().parse().ok());
        assert!(seconds.is_some_and(|seconds: u32| seconds >= 1), "{command:?}: {shown:?}");
        assert_eq!(lines.last(), Some(&""), "{command:?}: {shown:?}");
    }
    // Loading from the cache prints no line.
    assert_eq!(on_a_terminal(&workspace, &["run", "tiny"], "").1, "");
}

#[test]
fn compiling_prints_no_progress_for_programs() {
    let workspace = Workspace::with_own_cache();
    workspace.file(".kitbag/tools/tiny.wasm", crafted::tool("a:b/c", ""));
    workspace.run(&["run", "tiny"]).success();
    let held_for = std::time::Duration::from_millis(1500);
    let release = |claim: std::fs::File| {
        std::thread::spawn(move || {
            std::thread::sleep(held_for);
            drop(claim);
        })
    };
    let releasing = release(workspace.claim());
    let (stdout, shown) = on_a_terminal(&workspace, &["run", "tiny", "--json"], "");
    assert_eq!(stdout, "{\"outcome\":\"success\",\"content\":\"ok\",\"untrusted\":true}\n");
    assert_eq!(shown, "");
    releasing.join().unwrap();
    let releasing = release(workspace.claim());
    let run = workspace.run(&["run", "tiny", "--verbose"]);
    let lines: Vec<_> = run.stderr.lines().filter(|line| !line.starts_with("took ")).collect();
    assert_eq!((&*run.stdout, lines), ("ok\n", vec![]));
    releasing.join().unwrap();
}
