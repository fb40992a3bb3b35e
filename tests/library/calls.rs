//! Calls: arguments are checked before the guest runs, questions are answered, and every outcome is
//! available as text, as JSON and as an exit code.

use serde_json::json;

use crate::support::terminal::{on_a_hasty_terminal, on_a_terminal};
use crate::support::{Workspace, snapshot};

/// `probe` with its own schema.
fn typed() -> Workspace {
    Workspace::with_probe(
        "[tools.probe.parameters]\n\
         do = { type = \"string\", required = true, description = \"what to try\" }\n\
         count = { type = \"integer\", default = 7 }\n\
         ratio = { type = \"number\" }\n\
         deep = { type = \"boolean\" }\n\
         tags = { type = \"array\", items = { type = \"string\" } }\n\
         mode = { type = \"string\", enum = [\"fast\", \"slow\"], default = \"fast\" }\n",
    )
}

#[test]
fn arguments_are_converted_to_the_schema_types() {
    let workspace = typed();
    let run = |arguments: &[&str]| {
        let command = [&["run", "probe", "do=arguments"], arguments].concat();
        let arguments = workspace.run(&command).success();
        serde_json::from_str::<serde_json::Value>(&arguments).unwrap()
    };
    assert_eq!(
        run(&["count=3", "ratio=0.5", "deep=true", "tags=a", "tags=b", "mode=slow"]),
        json!({ "do": "arguments", "count": 3, "ratio": 0.5, "deep": true, "tags": ["a", "b"], "mode": "slow" }),
    );
    assert_eq!(
        run(&["tags=a"]),
        json!({ "do": "arguments", "tags": ["a"], "count": 7, "mode": "fast" })
    );
    assert_eq!(run(&["tags:=[\"a,b\"]"])["tags"], json!(["a,b"]));
}

#[test]
fn arguments_come_from_json_a_file_and_standard_input_alike() {
    let workspace = typed();
    let arguments = r#"{"do":"arguments","count":1}"#;
    workspace.file("arguments.json", arguments);
    let expected = "{\"do\":\"arguments\",\"count\":1,\"mode\":\"fast\"}\n";
    assert_eq!(workspace.run(&["run", "probe", "--args", arguments]).success(), expected);
    assert_eq!(workspace.run(&["run", "probe", "--args", "@arguments.json"]).success(), expected);
    assert_eq!(
        workspace.run_with(&["run", "probe", "--args", "-"], arguments, &[]).success(),
        expected
    );
    let both = workspace.run(&["run", "probe", "do=arguments", "--args", r#"{"count":1}"#]);
    assert_eq!(both.success(), "{\"count\":1,\"do\":\"arguments\",\"mode\":\"fast\"}\n");
}

#[test]
fn wrong_arguments_are_all_named_before_the_tool_runs() {
    let workspace = typed();
    snapshot!(
        "wrong arguments",
        &workspace.session(&[
            &["run", "probe"],
            &["run", "probe", "do=echo", "count=three", "mod=fast", "deep=maybe", "mode=quick"],
            &["run", "probe", "do=echo", "do=twice"],
            &["run", "probe", "echo"],
            &["run", "probe", "--args", "{\"do\":\"echo\",\"tags\":[1,\"a\",{}]}"],
            &["run", "probe", "--args", "{\"do\":"],
            &["run", "probe", "--args", "[1]"],
            &["run", "probe", "--args", "@nowhere.json"],
            &["run", "probe", "count=x", "--json"],
        ]),
    );
}

#[test]
fn an_unknown_tool_names_the_nearest() {
    let workspace = typed();
    snapshot!(
        "unknown tool",
        &workspace.session(&[
            &["run", "prob"],
            &["run", "prob", "--json"],
            &["run", "something-else"],
            &["describe", "lern"],
        ]),
    );
}

#[test]
fn a_disabled_tool_names_the_line_that_disables_it() {
    let workspace = Workspace::new();
    workspace.config("[tools.learn]\nenable = false\n");
    snapshot!("disabled", &workspace.session(&[&["run", "learn"], &["list"]]));
}

#[test]
fn every_outcome_has_its_text_its_json_and_its_exit_code() {
    let workspace = Workspace::with_probe("");
    let trace = r#"trace:=["inner","innermost"]"#;
    snapshot!(
        "outcomes",
        &workspace.session(&[
            &["run", "probe", "do=echo", "text=hello"],
            &["run", "probe", "do=echo", "text=hello", "--json"],
            &["run", "probe", "do=fail", "message=the disk is full", trace, "transient:=true"],
            &[
                "run",
                "probe",
                "do=fail",
                "message=the disk is full",
                trace,
                "transient:=true",
                "--json",
            ],
            &["run", "probe", "do=ask"],
            &["run", "probe", "do=ask", "--json"],
            &["run", "probe", "do=panic", "message=oh no"],
            &["run", "probe", "do=panic", "message=oh no", "--json"],
            &["run", "probe", "do=spin", "--time", "200ms"],
            &["run", "probe", "do=spin", "--time", "200ms", "--json"],
        ]),
    );
}

#[test]
fn configured_answers_come_before_the_command_line() {
    let workspace = Workspace::with_probe("[tools.probe.answers]\nfirst = \"from the file\"\n");
    snapshot!(
        "questions",
        &workspace.session(&[
            &["run", "probe", "do=ask-twice"],
            &["run", "probe", "do=ask-twice", "--answer", "second=yes"],
            &[
                "run",
                "probe",
                "do=ask-twice",
                "--answer",
                "second=yes",
                "--answer",
                "first=ignored",
            ],
            &["run", "probe", "do=ask-twice", "--answer", "second=perhaps"],
            &["run", "probe", "do=ask", "answer_type=colour"],
            &[
                "run",
                "probe",
                "do=ask",
                "id=pick",
                "--answer",
                "pick=Blue",
                r#"answer_type={"select":{"options":["red",{"value":3,"title":"Blue"}]}}"#,
            ],
            &[
                "run",
                "probe",
                "do=ask",
                "id=pick",
                "default=red",
                r#"answer_type={"multi-select":{"options":["red","blue"]}}"#,
            ],
        ]),
    );
}

#[test]
fn a_person_at_a_terminal_is_asked_until_the_answer_fits() {
    let workspace = Workspace::with_probe("");
    let (stdout, shown) =
        on_a_terminal(&workspace, &["run", "probe", "do=ask-twice"], "blue\nperhaps\nyes\n");
    assert_eq!(stdout, "ask-twice: {\"first\":\"blue\",\"second\":true}\n");
    assert!(shown.contains("The second question?\n[y]es / [n]o: "), "{shown}");
    assert!(shown.contains("`perhaps` is not `yes` or `no`"), "{shown}");
    let ask = ["run", "probe", "do=ask", "answer_type=text", "default=a suggestion"];
    let (stdout, shown) = on_a_terminal(&workspace, &ask, "\n");
    assert_eq!(stdout, "ask: {\"go-on\":\"a suggestion\"}\n");
    assert!(shown.contains("(a text, or nothing for `a suggestion`) "), "{shown}");
    // Consent must be explicit.
    let ask = ["run", "probe", "do=ask", "default=yes"];
    let (stdout, shown) = on_a_terminal(&workspace, &ask, "\nno\n");
    assert_eq!(stdout, "ask: {\"go-on\":false}\n", "{shown}");
    // The end of the input is not an answer.
    let (stdout, shown) = on_a_terminal(&workspace, &["run", "probe", "do=ask"], "\u{4}");
    assert_eq!(stdout, "");
    assert!(shown.contains("error: the tool asks `go-on`"), "{shown}");
    // The text of a question cannot control the terminal.
    let ask = ["run", "probe", "do=ask", "text=\u{1b}[2Jgone"];
    let (_, shown) = on_a_terminal(&workspace, &ask, "no\n");
    assert!(shown.contains("\\u{1b}[2Jgone") && !shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_form_is_asked_a_field_at_a_time_or_answered_at_once() {
    let workspace = Workspace::with_probe("");
    let fields = r#"answer_type={"form":{"fields":[
        {"id":"name","title":"Your name","type":"text","default":"Ann"},
        {"id":"age","description":"in years","type":"integer","required":false},
        {"id":"agrees","type":"boolean","default":true}
    ]}}"#;
    let ask = ["run", "probe", "do=ask", fields];
    let (stdout, shown) = on_a_terminal(&workspace, &ask, "\nold\n\n\nyes\n");
    assert_eq!(stdout, "ask: {\"go-on\":{\"name\":\"Ann\",\"agrees\":true}}\n", "{shown}");
    for part in [
        "`probe` asks: Go on?\n",
        "Your name\n(a text, or nothing for `Ann`) ",
        "age: in years\n(a whole number, or nothing) ",
        "`old` is not a whole number",
        "agrees\n[y]es / [n]o: ",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let (stdout, _) = on_a_terminal(&workspace, &ask, "Bob\n\u{4}");
    assert_eq!(stdout, "", "the end of the input in the middle of a form");
    let answer = r#"go-on={"name":"Bob","agrees":false,"age":3}"#;
    let run = workspace.run(&[&ask[..], &["--answer", answer]].concat());
    assert_eq!(run.success(), "ask: {\"go-on\":{\"name\":\"Bob\",\"age\":3,\"agrees\":false}}\n");
    let run = workspace.run(&[&ask[..], &["--answer", r#"go-on={"name":"Bob"}"#]].concat());
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("the field `agrees`: `nothing` is not `yes` or `no`"), "{run:?}");
}

#[test]
fn text_typed_before_a_question_of_a_tool_answers_nothing() {
    let workspace = Workspace::with_probe("");
    let ask = ["run", "probe", "do=ask"];
    for before in ["yes\n", "yes\nyes\ny"] {
        let typed = if before.ends_with('\n') { "no\n" } else { "\nno\n" };
        let (stdout, shown) = on_a_hasty_terminal(&workspace, &ask, before, typed);
        assert_eq!(stdout, "ask: {\"go-on\":false}\n", "{shown}");
    }
    let secret = ["run", "probe", "do=ask", "text=Your API key:\n\nhint: x", "answer_type=text"];
    let (_, shown) = on_a_terminal(&workspace, &secret, "x\n");
    assert!(shown.contains("`probe` asks:\n| Your API key:\n| \n| hint: x\n"), "{shown}");
    assert!(shown.contains("\nNote from kitbag: this seems to ask for a secret."), "{shown}");
}

#[test]
fn an_unsuitable_preset_answer_is_a_configuration_error() {
    let workspace = Workspace::with_probe("[tools.probe.answers]\n\"go-on\" = \"blue\"\n");
    snapshot!("preset that does not fit", &workspace.session(&[&["run", "probe", "do=ask"]]));
}

#[test]
fn a_call_can_be_shown_before_it_is_made() {
    let workspace = Workspace::with_probe("");
    let run =
        workspace.run(&["run", "probe", "do=write", "path=x", "text=y", "--format-arguments"]);
    assert_eq!(run.success(), "probe write (0 directories)\n");
    assert!(!workspace.path("x").exists());
}

#[test]
fn a_limit_of_the_command_line_beats_the_configured_one() {
    let workspace =
        Workspace::with_probe("[tools.probe.limits]\ntime = \"20s\"\noutput = \"1MiB\"\n");
    let spin = workspace.run(&["run", "probe", "do=spin", "--time", "100ms"]);
    assert_eq!(
        (spin.code, spin.stderr.lines().next().unwrap()),
        (5, "error: limit: time (100ms): request less, or a part of it")
    );
    let long = workspace.run(&["run", "probe", "do=output", "bytes:=100", "--output", "60B"]);
    assert_eq!((long.code, long.stdout.len()), (5, 61), "{}", long.shown());
    let by_environment =
        workspace.run_with(&["run", "probe", "do=spin"], "", &[("KITBAG_LIMITS_TIME", "100ms")]);
    assert_eq!(by_environment.code, 5, "{}", by_environment.shown());
}

#[test]
fn fuel_is_counted_the_same_every_time_and_runs_out() {
    let workspace = Workspace::with_probe("");
    workspace.file("notes/rules.md", "Be kind.\n");
    workspace.config(&crate::support::probe("[knowledge.team]\nsubjects = \"notes\"\n"));
    let echo = ["run", "probe", "do=echo", "text=x", "--fuel", "100000000", "--json"];
    let learn = ["run", "learn", "topic=team", "--fuel", "100000000", "--json"];
    for command in [&echo[..], &learn] {
        let fuel = || workspace.run(command).json()["fuel"].as_u64().unwrap();
        let first = fuel();
        assert!(first > 1000, "{command:?} took {first}");
        assert_eq!(fuel(), first, "{command:?}");
    }
    // The description is the same with and without fuel.
    workspace
        .file(".kitbag/tools/mine.wasm", std::fs::read(crate::support::guest("learn")).unwrap());
    let schema = |extra: &[&str]| {
        let described = workspace.run(&[&["describe", "mine", "--json"], extra].concat()).json();
        described["inputSchema"]["value"].clone()
    };
    assert!(schema(&[])["properties"].is_object());
    assert_eq!(schema(&["--fuel", "100000000"]), schema(&[]));
    // Without fuel, consumption is not counted.
    assert_eq!(workspace.run(&["run", "learn", "topic=team", "--json"]).json().get("fuel"), None);
    snapshot!(
        "fuel",
        &workspace.session(&[
            &["run", "probe", "do=spin", "--fuel", "1000000"],
            &["run", "probe", "do=spin", "--fuel", "1000000", "--json"],
            &["run", "learn", "topic=team", "--fuel", "10"],
            &["run", "probe", "do=spin", "--fuel", "0"],
            &["run", "probe", "do=echo", "text=x"],
        ]),
    );
}

#[test]
fn a_built_in_is_compiled_for_fuel_once_and_kept() {
    let workspace = Workspace::new();
    workspace.file("notes/rules.md", "Be kind.\n");
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\n");
    let cache = workspace.path("cache");
    let cache = [("KITBAG_CACHE_DIR", cache.to_str().unwrap())];
    let learn = ["run", "learn", "topic=team"];
    let fuel = [&learn[..], &["--fuel", "100000000"]].concat();
    let entries = || {
        let listed = workspace.run_with(&["cache", "--json"], "", &cache).json();
        listed["entries"].as_array().unwrap().clone()
    };
    let plain = workspace.run_with(&learn, "", &cache);
    assert_eq!((plain.code, entries().len()), (0, 0), "{}", plain.shown());
    let counted = workspace.run_with(&fuel, "", &cache);
    assert_eq!((counted.code, &counted.stdout), (0, &plain.stdout), "{}", counted.shown());
    let kept = entries();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(workspace.run_with(&fuel, "", &cache).stdout, plain.stdout);
    assert_eq!(entries(), kept);
}

#[test]
fn ctrl_c_at_a_question_exits() {
    use std::io::Read;
    let workspace = Workspace::with_probe("");
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut person = std::fs::File::from(terminal.master);
    let child = {
        let mut command = workspace.command();
        command.args(["run", "probe", "do=ask"]).stdin(terminal.slave.try_clone().unwrap());
        command.stderr(terminal.slave).stdout(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    // The question is shown, so the program waits for a person.
    let mut shown = String::new();
    while !shown.contains("Go on?") {
        let mut bytes = [0; 256];
        let length = person.read(&mut bytes).unwrap();
        shown.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
}

#[test]
fn ctrl_c_cancels_and_reports_the_call() {
    let workspace = Workspace::with_probe("");
    for action in ["do=spin", "do=sleep"] {
        let mut command = workspace.command();
        command.args(["run", "probe", action, "ms:=60000", "--json"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        // The thread that monitors calls starts with the first call.
        let threads = std::path::PathBuf::from(format!("/proc/{}/task", child.id()));
        let is_timer = |thread: std::fs::DirEntry| {
            let name = std::fs::read_to_string(thread.path().join("comm"));
            name.is_ok_and(|name| name == "kitbag-timer\n")
        };
        while !std::fs::read_dir(&threads).unwrap().flatten().any(is_timer) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(130), "{stdout}");
        assert!(stdout.starts_with(r#"{"outcome":"failed","kind":"cancelled""#), "{stdout}");
    }
}
