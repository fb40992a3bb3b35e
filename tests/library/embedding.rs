//! The library: calls from any runtime, concurrent calls, answers by a callback, and cancellation
//! by dropping.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kitbag::contract::LEAST_SERVER_MEMORY;
use kitbag::{Answer, Concurrency, Kitbag, Outcome, Places};
use serde_json::json;

use crate::support::{CallInTest, Workspace, block_on, guest};

#[test]
fn questions_go_to_the_callback_one_after_the_other() {
    let workspace = Workspace::with_probe("");
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let kitbag = workspace
        .builder()
        .on_question(move |question| {
            counter.fetch_add(1, Ordering::Relaxed);
            async move {
                Some(match &*question.id {
                    "first" => Answer::Text("blue".into()),
                    _ => Answer::Json(true.into()),
                })
            }
        })
        .build()
        .unwrap();
    let answered = kitbag.call_in_test("probe", json!({ "do": "ask-twice" }));
    assert_eq!(answered, r#"ask-twice: {"first":"blue","second":true}"#);
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[test]
fn a_question_without_an_answer_is_the_outcome() {
    let workspace = Workspace::with_probe("");
    let outcome = block_on(workspace.kitbag().call("probe", json!({ "do": "ask" }))).unwrap();
    let Outcome::NeedsInput(question) = outcome else { panic!("{outcome:?}") };
    assert_eq!((&*question.id, question.answer_type), ("go-on", kitbag::AnswerType::Boolean));
}

#[test]
fn many_threads_may_call_at_once() {
    let workspace = Workspace::with_probe("");
    let kitbag = workspace.kitbag();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let kitbag = &kitbag;
            scope.spawn(move || {
                for round in 0..25 {
                    let text = format!("{thread}/{round}");
                    let got = kitbag.call_in_test("probe", json!({ "do": "echo", "text": text }));
                    assert_eq!(got, text);
                    let got =
                        kitbag.call_in_test("probe", json!({ "do": "panic", "message": text }));
                    assert!(got.ends_with(&format!(": {text}")), "{got}");
                }
            });
        }
    });
}

#[test]
fn a_call_works_inside_a_runtime_of_any_kind() {
    let workspace = Workspace::with_probe("");
    let kitbag = workspace.kitbag();
    let arguments = || json!({ "do": "sleep", "ms": 1 });
    // Without timers and I/O, since the caller's runtime needs neither.
    let bare = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcome = bare.block_on(kitbag.call("probe", arguments())).unwrap();
    assert_eq!(outcome, Outcome::Success("sleep 1 ms: awake".into()));
    // Waiting for a call inside a runtime blocks it, but does not panic.
    bare.block_on(async {
        let cancellation = kitbag::Cancellation::default();
        let outcome = kitbag.call_blocking("probe", arguments(), &cancellation).unwrap();
        assert_eq!(outcome, Outcome::Success("sleep 1 ms: awake".into()));
    });
}

#[test]
fn several_toolboxes_of_one_process_have_the_built_ins() {
    let workspace = Workspace::new();
    workspace.file("notes/rules.md", "Be kind.\n");
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\n");
    let arguments = || json!({ "topic": "team", "subjects": "rules" });
    let learns = |kitbag: &Kitbag| {
        assert_eq!(kitbag.call_in_test("learn", arguments()), "Be kind.\n");
    };
    let (first, second) = (workspace.kitbag(), workspace.kitbag());
    learns(&first);
    learns(&second);
    // Dropping one toolbox does not affect the other.
    drop(first);
    learns(&second);
    learns(&workspace.kitbag());
}

#[test]
fn a_tool_can_be_inspected_inside_a_runtime() {
    // With a separate cache, so that the tool is compiled and described here.
    let workspace = Workspace::with_own_cache();
    let learn = std::fs::read(guest("learn")).unwrap();
    workspace.file(".kitbag/tools/mine.wasm", learn);
    let kitbag = workspace.kitbag();
    let bare = tokio::runtime::Builder::new_current_thread().build().unwrap();
    bare.block_on(async {
        let tool = kitbag.toolbox().tool("mine").unwrap();
        assert!(tool.input_schema.value["properties"]["subjects"].is_object());
    });
}

#[test]
fn dropping_a_call_ends_it() {
    let workspace = Workspace::with_probe("");
    workspace.own_config("[tools.probe.limits]\ntime = \"1h\"\n");
    // The next call needs the slot of the dropped call.
    let concurrency = Concurrency { calls: NonZeroUsize::MIN, waiting: 1 };
    let kitbag = workspace.builder().concurrency(concurrency).build().unwrap();
    kitbag.toolbox().load("probe").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        for action in ["spin", "spin-hostcall", "sleep"] {
            let call = kitbag.call("probe", json!({ "do": action, "ms": 3_600_000 }));
            let given_up = tokio::time::timeout(Duration::from_millis(50), call).await;
            assert!(given_up.is_err(), "{action}");
            // Otherwise it would wait for an hour.
            let outcome = kitbag.call("probe", json!({ "do": "echo", "text": "x" })).await;
            assert_eq!(outcome.unwrap(), Outcome::Success("x".into()));
        }
    });
}

#[test]
fn a_cancelled_call_reports_cancellation() {
    let workspace = Workspace::with_probe("");
    let kitbag = workspace.kitbag();
    for action in ["spin", "sleep"] {
        let cancellation = kitbag::Cancellation::default();
        let handle = cancellation.clone();
        let cancel = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            handle.cancel();
        });
        let arguments = json!({ "do": action, "ms": 60_000 });
        let error = kitbag.call_blocking("probe", arguments, &cancellation).unwrap_err();
        assert_eq!(error.to_string(), "cancelled");
        cancel.join().unwrap();
    }
}

#[test]
fn a_host_can_be_dropped_inside_a_runtime() {
    let workspace = Workspace::with_probe("");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(async {
        let kitbag = workspace.kitbag();
        kitbag.call("probe", json!({ "do": "echo", "text": "x" })).await.unwrap();
        drop(kitbag);
    });
}

#[test]
fn the_example_runs() {
    let stdout = crate::support::cargo_run(&["--example", "embed"]);
    assert!(stdout.contains("# Topic: kitbag"), "{stdout}");
}

#[test]
fn components_that_no_call_uses_make_room_for_others() {
    const TOOLS: u64 = 100;
    let workspace = Workspace::new();
    let probe = std::fs::read(guest("probe")).unwrap();
    for tool in 0..TOOLS {
        workspace.file(&format!(".kitbag/tools/tool_{tool}.wasm"), &probe);
    }
    let places = Places { cache: Some(workspace.cache().to_owned()), ..Places::default() };
    let builder =
        Kitbag::builder().workspace(workspace.root()).places(places).trust_workspace(true);
    let kitbag = builder.memory(LEAST_SERVER_MEMORY).build().unwrap();
    let budget = &kitbag.toolbox().host().options().memory.components;
    let call = |tool: u64| {
        let arguments = json!({ "do": "echo", "text": "here" });
        assert_eq!(kitbag.call_in_test(&format!("tool_{tool}"), arguments), "here");
        budget.reserved().as_u64()
    };
    let (one, most) = (call(0), budget.size().unwrap().as_u64());
    assert!(one * TOOLS > most, "{TOOLS} components of {one} bytes all fit");
    for tool in 1..TOOLS {
        assert!(call(tool) <= most);
    }
    // The first one is loaded again.
    call(0);
}
