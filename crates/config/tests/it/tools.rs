//! Tools: built in, found, and named by a table.

use kitbag_config::{ConfiguredTool, ToolSource};

use crate::support::{Fixture, check_problems, check_problems_of, check_rows};

/// Compares the names and what they stand for; `!` marks what is not enabled.
#[track_caller]
fn check(fixture: &Fixture, expected: &[&str]) {
    let describe = |tool: &ConfiguredTool| {
        let enabled = if tool.enable.value { "" } else { "!" };
        let source = match &tool.source.value {
            ToolSource::Builtin { name } => format!("builtin {}", name.value),
            source @ (ToolSource::Script(_) | ToolSource::Bytes(_) | ToolSource::Native) => {
                unreachable!("no file names one: {source:?}")
            }
            ToolSource::Local(local) => fixture.redact(local.wasm.value.to_str().unwrap()),
        };
        format!("{enabled}{}: {source}", tool.name)
    };
    let config = fixture.load();
    assert!(config.tools.iter().all(|(name, tool)| *name == tool.name));
    assert_eq!(config.tools.values().map(describe).collect::<Vec<_>>(), expected);
}

#[test]
fn without_configuration_there_are_the_built_ins() {
    let fixture = Fixture::empty();
    check(&fixture, &["learn: builtin learn", "notes: builtin notes"]);
    check_rows(
        &fixture,
        "tools.learn",
        &[
            r#"tools.learn.source = "builtin" # default"#,
            r#"tools.learn.builtin = "learn" # default"#,
            r#"tools.learn.enable = true # default"#,
            r#"tools.learn.limits.memory = "64 MiB" # default"#,
            r#"tools.learn.limits.time = "30s" # default"#,
            r#"tools.learn.limits.output = "1 MiB" # default"#,
            r#"tools.learn.limits.written = "1 GiB" # default"#,
            r#"tools.learn.limits.requests = 50 # default"#,
            r#"tools.learn.limits.tool_calls = 20 # default"#,
            r#"tools.learn.limits.compile = "1m" # default"#,
        ],
    );
}

#[test]
fn a_built_in_can_be_narrowed() {
    let fixture = Fixture::new(
        "[tools.learn]\nenable = false\ntitle = \"T\"\ndescription = \"D\"\nanswers.sure = true\n\
         [tools.notes]\nsource = \"builtin\"\n",
    );
    check(&fixture, &["!learn: builtin learn", "notes: builtin notes"]);
    let learn = &fixture.load().tools["learn"];
    assert_eq!(learn.title.as_ref().unwrap().value, "T");
    assert_eq!(learn.description.as_ref().unwrap().value, "D");
    assert_eq!(learn.answers["sure"].value, true);
}

#[test]
fn a_built_in_that_is_renamed_has_its_own_name_no_longer() {
    let study = "[tools.study]\nsource = \"builtin\"\nbuiltin = \"learn\"\n";
    check(&Fixture::new(study), &["notes: builtin notes", "study: builtin learn"]);
    let disabled = format!("{study}enable = false\n");
    check(&Fixture::new(&disabled), &["notes: builtin notes", "!study: builtin learn"]);
    let both = format!("{study}[tools.learn]\n");
    check(
        &Fixture::new(&both),
        &["learn: builtin learn", "notes: builtin notes", "study: builtin learn"],
    );
}

#[test]
fn what_a_built_in_brings_along_cannot_be_configured() {
    check_problems(
        "[tools.learn]\nwasm = \"learn.wasm\"\nparameters.a.type = \"string\"\n",
        &[
            "C:2:8: built-in tool `learn` takes no `wasm`: its component is part of kitbag; remove the key",
            "C:3:1: built-in tool `learn` takes no `parameters`: it brings its own; remove the key",
        ],
    );
}

#[test]
fn an_unknown_built_in_is_refused_with_the_nearest() {
    check_problems(
        r#"
[tools.a]
source = "builtin"
builtin = "lern"
[tools.note]
source = "builtin"
[tools.zzz]
source = "builtin"
[tools.larn]
"#,
        &[
            "C:4:11: no built-in tool is named `lern`; did you mean `learn`?",
            "C:6:10: no built-in tool is named `note`; did you mean `notes`?",
            "C:8:10: no built-in tool is named `zzz`; known built-in tools: `learn`, `notes`",
            "C:9:1: tool `larn` has no `source`; add `source = \"local\"` and `wasm`, \
             `source = \"builtin\"`, or `script`; did you mean `learn`?",
        ],
    );
}

#[test]
fn the_name_of_a_built_in_stands_for_that_one_only() {
    check_problems(
        "[tools.learn]\nbuiltin = \"notes\"\n[tools.notes]\nsource = \"local\"\nwasm = \"n.wasm\"\n",
        &[
            "C:2:11: tool `learn` stands for the built-in `notes`, but has the name of another built-in; \
             give it another one",
            "C:4:10: local tool `notes` has the name of a built-in tool; give it another one, or replace the \
             built-in with `replaces = \"notes\"` in `tools.notes`",
        ],
    );
    check_problems_of(
        &Fixture::empty().file("w/.kitbag/tools/learn.wasm", ""),
        &[
            ".kitbag/tools/learn.wasm: local tool `learn` has the name of a built-in tool; give it another one, or replace the \
             built-in with `replaces = \"learn\"` in `tools.learn`",
        ],
    );
}

#[test]
fn a_local_tool_says_where_its_component_is() {
    check_problems(
        r#"
[tools.a]
wasm = "a.wasm"
[tools.b]
source = "local"
[tools.c]
source = "local"
wasm = ""
builtin = "learn"
[tools.d.limits]
time = "1s"
"#,
        &[
            "C:2:1: tool `a` has no `source`; add `source = \"local\"` and `wasm`, `source = \"builtin\"`, or `script`",
            "C:4:1: local tool `b` has no `wasm`; add the path of its component",
            "C:8:8: the path is empty; write `.` for the workspace",
            "C:9:11: local tool `c` takes no `builtin`; remove it, or write `source = \"builtin\"`",
            "C:10:8: tool `d` has no `source`; add `source = \"local\"` and `wasm`, `source = \"builtin\"`, or `script`",
        ],
    );
}

#[test]
fn what_the_users_own_file_says_of_a_tool_counts_where_there_is_one() {
    let rules = "[tools.lint]\ndev = true\napprove = \"always\"\nrate = \"1/s\"\nenable = false\n\
                 limits.time = \"1s\"\ngrants.env = [\"CI\"]\nanswers.sure = true\n\
                 [tools.lern]\nenable = false\n";
    let absent = |fixture: &Fixture| {
        let config = fixture.load();
        let lines = config.absent.iter().map(|it| {
            let hint = it.hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"));
            fixture.redact(&format!("{}: {}{hint}", it.place, it.message))
        });
        (lines.collect::<Vec<_>>(), config)
    };
    let nothing = Fixture::empty().user(rules);
    let (lines, config) = absent(&nothing);
    assert_eq!(
        lines,
        [
            "/t/h/config.toml:9:8: there is no tool `lern` here, and its table has no effect; did you \
             mean `learn`?",
            "/t/h/config.toml:1:8: there is no tool `lint` here, and its table has no effect",
        ]
    );
    assert!(config.tools.keys().all(|name| name.as_str() != "lint"));
    check(&nothing, &["learn: builtin learn", "notes: builtin notes"]);
    // Where there is such a tool, all of it holds.
    let found = Fixture::empty().user(rules).file("w/.kitbag/tools/lint.wasm", "");
    let (lines, config) = absent(&found);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let lint = &config.tools["lint"];
    assert!(!lint.enable.value && !lint.rates.is_empty() && lint.approve.rules.len() == 1);
    assert_eq!(lint.limits.time.value.as_secs(), 1);
    // The tool of a table of the workspace, too.
    let named = Fixture::new("[tools.lint]\nsource = \"local\"\nwasm = \"l.wasm\"\n").user(rules);
    assert_eq!(absent(&named).0.len(), 1);
    // A table that says what a tool is has to say where it comes from.
    for table in ["wasm = \"/l.wasm\"", "description = \"D\"", "parameters.a.type = \"string\""] {
        let described = Fixture::empty().user(&format!("[tools.lint]\n{table}\n"));
        assert!(described.problems().contains("tool `lint` has no `source`"), "{table}");
    }
    // What a workspace says is for its own tools.
    check_problems_of(
        &Fixture::new("[tools.lint]\nenable = false\n").user(rules),
        &["C:1:1: tool `lint` has no `source`; add `source = \"local\"` and `wasm`, \
           `source = \"builtin\"`, or `script`"],
    );
}

#[test]
fn a_component_is_relative_to_the_workspace_and_need_not_exist() {
    let tool =
        |name: &str, wasm: &str| format!("[tools.{name}]\nsource = \"local\"\nwasm = \"{wasm}\"\n");
    let config = [
        tool("a", "./x//a.wasm"),
        tool("b", "../b.wasm"),
        tool("c", "~/c.wasm"),
        tool("d", "/d.wasm"),
    ];
    check(
        &Fixture::new(&config.concat()),
        &[
            "a: /t/w/x/a.wasm",
            "b: /t/w/../b.wasm",
            "c: /t/h/c.wasm",
            "d: /d.wasm",
            "learn: builtin learn",
            "notes: builtin notes",
        ],
    );
}

#[test]
fn the_own_file_of_a_person_names_components_for_all_workspaces() {
    let fixture = Fixture::empty().user("[tools.a]\nsource = \"local\"\nwasm = \"a.wasm\"\n");
    check_problems_of(
        &fixture,
        &[
            "/t/h/config.toml:3:8: `a.wasm` is relative, and this file is for all workspaces; write an absolute \
           path, or one that starts with `~/`",
        ],
    );
    let fixture = Fixture::empty().user("[tools.a]\nsource = \"local\"\nwasm = \"~/a.wasm\"\n");
    check(&fixture, &["a: /t/h/a.wasm", "learn: builtin learn", "notes: builtin notes"]);
    let mut sources = fixture.sources();
    sources.home = None;
    let errors = kitbag_config::load(&sources).unwrap_err();
    assert_eq!(
        errors.diagnostics()[0].message,
        "`~/a.wasm` cannot be found: the home directory is not known; write an absolute path",
    );
}

#[test]
fn a_component_in_the_directory_of_tools_is_a_tool() {
    let fixture = Fixture::empty()
        .file("w/.kitbag/tools/count.wasm", "never opened")
        .file(
            "w/.kitbag/tools/count.toml",
            "description = \"Counts\"\nparameters.path = { type = \"string\" }\n",
        )
        .file("w/elsewhere.wasm", "")
        .link("w/.kitbag/tools/linked.wasm", "../../elsewhere.wasm")
        .link("w/.kitbag/tools/dangling.wasm", "nowhere.wasm")
        .file("w/.kitbag/tools/README.md", "")
        .file("w/.kitbag/tools/no-extension", "")
        .file("w/.kitbag/tools/sub/nested.wasm", "");
    check(
        &fixture,
        &[
            "count: /t/w/.kitbag/tools/count.wasm",
            "learn: builtin learn",
            "linked: /t/w/.kitbag/tools/linked.wasm",
            "notes: builtin notes",
        ],
    );
    check_rows(
        &fixture,
        "tools.count",
        &[
            r#"tools.count.source = "local" # .kitbag/tools/count.wasm"#,
            r#"tools.count.wasm = "/t/w/.kitbag/tools/count.wasm" # .kitbag/tools/count.wasm"#,
            r#"tools.count.enable = true # default"#,
            r#"tools.count.description = "Counts" # .kitbag/tools/count.toml:1:15"#,
            r#"tools.count.parameters.path.type = "string" # .kitbag/tools/count.toml:2:28"#,
            r#"tools.count.parameters.path.required = false # default"#,
            r#"tools.count.grants.filesystem = [{"host":"/t/w","guest":"/workspace","mode":"ro"}] # default"#,
            r#"tools.count.limits.memory = "64 MiB" # default"#,
            r#"tools.count.limits.time = "30s" # default"#,
            r#"tools.count.limits.output = "1 MiB" # default"#,
            r#"tools.count.limits.written = "1 GiB" # default"#,
            r#"tools.count.limits.requests = 50 # default"#,
            r#"tools.count.limits.tool_calls = 20 # default"#,
            r#"tools.count.limits.compile = "1m" # default"#,
        ],
    );
}

#[test]
fn a_file_in_the_directory_of_tools_must_make_sense() {
    let fixture = Fixture::empty()
        .file("w/.kitbag/tools/a b.wasm", "")
        .file("w/.kitbag/tools/tar.gz.toml", "")
        .file("w/.kitbag/tools/lone.toml", "title = 1")
        .directory("w/.kitbag/tools/dir.wasm")
        .file("w/.kitbag/tools/dir.toml", "");
    let form = "is not a tool name: it takes letters, digits, `_` and `-`, starts with a letter or `_`, and has \
                at most 48 characters";
    check_problems_of(
        &fixture,
        &[
            &format!(".kitbag/tools/a b.wasm: `a b` {form}"),
            ".kitbag/tools/dir.toml: describes a tool that is not there; `.kitbag/tools/dir.wasm` is missing",
            ".kitbag/tools/dir.wasm: is a directory; a file is expected here",
            ".kitbag/tools/lone.toml: describes a tool that is not there; `.kitbag/tools/lone.wasm` is missing",
            &format!(".kitbag/tools/tar.gz.toml: `tar.gz` {form}"),
        ],
    );
}

#[test]
fn a_manifest_does_not_say_what_the_file_beside_it_says() {
    let check = |manifest: &str, expected: &[&str]| {
        let fixture = Fixture::empty()
            .file("w/.kitbag/tools/a.wasm", "")
            .file("w/.kitbag/tools/a.toml", manifest);
        let expected: Vec<_> =
            expected.iter().map(|line| format!(".kitbag/tools/a.toml:{line}")).collect();
        check_problems_of(&fixture, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    };
    let source =
        "1:10: `source` has no place in a manifest: it describes `a.wasm` beside it; remove it";
    let wasm = "2:8: `wasm` has no place in a manifest: it describes `a.wasm` beside it; remove it";
    let builtin =
        "3:11: `builtin` has no place in a manifest: it describes `a.wasm` beside it; remove it";
    let keys = "source = \"local\"\nwasm = \"other.wasm\"\nbuiltin = \"learn\"\n";
    check(keys, &[source, wasm, builtin]);
    let known = "`replaces`, `title`, `description`, `enable`, `parameters`, `grants`, `limits`, `rate`, `approve`, `answers`";
    check(
        &format!("{keys}titel = \"A\"\nzzz = 1\nwsam = 1\n"),
        &[
            source,
            wasm,
            builtin,
            "4:1: unknown key `titel` in `tools.a`; did you mean `title`?",
            &format!("5:1: unknown key `zzz` in `tools.a`; known keys: {known}"),
            &format!("6:1: unknown key `wsam` in `tools.a`; known keys: {known}"),
        ],
    );
}

#[test]
fn a_table_may_name_the_component_that_was_found_and_no_other() {
    let fixture = |config: &str| {
        Fixture::new(config)
            .file("w/.kitbag/tools/a.wasm", "")
            .link("w/link.wasm", ".kitbag/tools/a.wasm")
    };
    let names = &["a: /t/w/.kitbag/tools/a.wasm", "learn: builtin learn", "notes: builtin notes"];
    check(&fixture("[tools.a]\ntitle = \"A\"\n"), names);
    check(&fixture("[tools.a]\nsource = \"local\"\nwasm = \".kitbag/tools/a.wasm\"\n"), names);
    check(&fixture("[tools.a]\nwasm = \"link.wasm\"\n"), names);
    check(&fixture("[tools.a]\nwasm = \"x/../.kitbag/tools/a.wasm\"\n").directory("w/x"), names);
    let two = "two tools are named `a`: this one and `.kitbag/tools/a.wasm`; give one of them another name";
    let other = fixture("[tools.a]\nwasm = \"b.wasm\"\n").file("w/b.wasm", "");
    check_problems_of(&other, &[&format!("C:2:8: {two}")]);
    let missing = "C:2:8: this file does not exist, and `a` is the component `.kitbag/tools/a.wasm`; \
                   remove `wasm`";
    check_problems_of(&fixture("[tools.a]\nwasm = \"b.wasm\"\n"), &[missing]);
    check_problems_of(&fixture("[tools.a]\nsource = \"builtin\"\n"), &[&format!("C:2:10: {two}")]);
}

#[test]
fn a_built_in_of_the_caller_must_have_a_name_too() {
    let fixture = Fixture::empty();
    let mut sources = fixture.sources();
    let builtins = ["no name".into()];
    sources.builtins = &builtins;
    let errors = kitbag_config::load(&sources).unwrap_err().to_string();
    assert!(errors.starts_with("default: `no name` is not a tool name"), "{errors}");
}

#[test]
fn answers_become_json() {
    let fixture = Fixture::new(
        "[tools.learn.answers]\n\"a b\" = 1979-05-27T07:32:00Z\nlist = [1, 2.5, { x = true }]\n",
    );
    check_rows(
        &fixture,
        "tools.learn.answers",
        &[
            r#"tools.learn.answers."a b" = "1979-05-27T07:32:00Z" # .kitbag/config.toml:2:9"#,
            r#"tools.learn.answers.list = [1,2.5,{"x":true}] # .kitbag/config.toml:3:8"#,
        ],
    );
    check_problems(
        "[tools.learn.answers]\na = [nan]\nb = -inf\nc = 9223372036854775808\nd = 1e999\n",
        &[
            "C:2:5: `nan` cannot be handed to a tool: JSON has no such number",
            "C:3:5: `-inf` cannot be handed to a tool: JSON has no such number",
            "C:4:5: number `9223372036854775808` is out of range",
            "C:5:5: number `1e999` is out of range",
        ],
    );
}

#[test]
fn a_local_tool_replaces_a_built_in_on_purpose() {
    let replacing = "[tools.notes]\nsource = \"local\"\nwasm = \"n.wasm\"\nreplaces = \"notes\"\n";
    check(&Fixture::new(replacing), &["learn: builtin learn", "notes: /t/w/n.wasm"]);
    // By another name it takes the built-in away all the same, and also where it is off.
    let renamed = replacing.replace("[tools.notes]", "[tools.other]");
    check(&Fixture::new(&renamed), &["learn: builtin learn", "other: /t/w/n.wasm"]);
    let disabled = format!("{replacing}enable = false\n");
    check(&Fixture::new(&disabled), &["learn: builtin learn", "!notes: /t/w/n.wasm"]);
    // A manifest beside the component says it, too.
    let found = Fixture::empty()
        .file("w/.kitbag/tools/notes.wasm", "")
        .file("w/.kitbag/tools/notes.toml", "replaces = \"notes\"\n");
    check(&found, &["learn: builtin learn", "notes: /t/w/.kitbag/tools/notes.wasm"]);
}

#[test]
fn what_replaces_nothing_is_refused() {
    check_problems(
        r#"
[tools.learn]
replaces = "notes"
[tools.a]
source = "local"
wasm = "a.wasm"
replaces = "note"
[tools.b]
source = "local"
wasm = "b.wasm"
replaces = "learn"
[tools.notes]
source = "local"
wasm = "n.wasm"
replaces = "learn"
"#,
        &[
            "C:3:12: tool `learn` takes no `replaces`: only a local tool replaces a built-in; \
             remove it",
            "C:7:12: no built-in tool is named `note`; did you mean `notes`?",
            "C:13:10: local tool `notes` has the name of a built-in tool; give it another one, or \
             replace the built-in with `replaces = \"notes\"` in `tools.notes`",
            "C:15:12: `learn` is replaced by `b` already; remove one `replaces`",
        ],
    );
}

#[test]
fn raw_text_is_a_choice_of_the_user_alone() {
    let mask = |fixture: &Fixture| {
        let config = fixture.load();
        let learn = &config.tools["learn"].mask;
        (learn.value, fixture.redact(&learn.origin.to_string()))
    };
    assert_eq!(mask(&Fixture::empty()), (true, "default".to_owned()));
    let own = Fixture::empty().user("[tools.learn]\nmask = false\n");
    assert_eq!(mask(&own), (false, "/t/h/config.toml:2:8".to_owned()));
    let refused = "`mask` has no place in a workspace's file";
    for table in ["mask = false\n", "mask = true\n"] {
        let problems = Fixture::new(&format!("[tools.learn]\n{table}")).problems();
        assert!(problems.contains(refused), "{problems}");
    }
    let manifest = Fixture::empty()
        .file("w/.kitbag/tools/lint.wasm", "")
        .file("w/.kitbag/tools/lint.toml", "mask = false\n");
    assert!(manifest.problems().contains(refused), "{}", manifest.problems());
}

#[test]
fn a_url_is_refused_as_the_path_of_a_component() {
    let wasm = "[tools.a]\nsource = \"local\"\nwasm = \"https://example.com/a.wasm\"\n";
    let problem = "`https://example.com/a.wasm` is a URL, and the path of a file is expected here: \
                   kitbag downloads nothing; download the file, look at it with `kitbag inspect \
                   FILE`, and add it with `kitbag add FILE`";
    check_problems(wasm, &[&format!("C:3:8: {problem}")]);
    let fixture = Fixture::new("").user(wasm);
    check_problems_of(&fixture, &[&format!("/t/h/config.toml:3:8: {problem}")]);
}
