//! What beats what.

use kitbag_base::ByteSize;
use kitbag_config::{Disabled, load_lenient};
use kitbag_contract::{Limits, ToolName};

use crate::support::{Fixture, check_rows};

#[test]
fn tables_are_merged_key_by_key_and_arrays_are_replaced() {
    let fixture = Fixture::new(
        r#"
[tools.count]
title = "Count (workspace)"
parameters.path.required = true
parameters.unit = { type = "string", enum = ["word", "line"] }
answers = { overwrite = true }

[knowledge.skills]
learned = ["c"]
"#,
    )
    .user(
        r#"
[tools.count]
source = "local"
wasm = "~/count.wasm"
title = "Count"
description = "Counts words"
parameters.path = { type = "string", description = "File" }
parameters.unit = { enum = ["word", "line", "byte"] }
answers = { overwrite = false, unit = { name = "word" } }

[knowledge.skills]
subjects = "skills"
learned = ["a", "b"]
disabled = ["d"]
"#,
    );
    check_rows(
        &fixture,
        "tools.count",
        &[
            r#"tools.count.source = "local" # /t/h/config.toml:3:10"#,
            r#"tools.count.wasm = "/t/h/count.wasm" # /t/h/config.toml:4:8"#,
            r#"tools.count.enable = true # default"#,
            r#"tools.count.title = "Count (workspace)" # .kitbag/config.toml:3:9"#,
            r#"tools.count.description = "Counts words" # /t/h/config.toml:6:15"#,
            r#"tools.count.parameters.path.type = "string" # /t/h/config.toml:7:28"#,
            r#"tools.count.parameters.path.description = "File" # /t/h/config.toml:7:52"#,
            r#"tools.count.parameters.path.required = true # .kitbag/config.toml:4:28"#,
            r#"tools.count.parameters.unit.type = "string" # .kitbag/config.toml:5:28"#,
            r#"tools.count.parameters.unit.required = false # default"#,
            r#"tools.count.parameters.unit.enum = ["word","line"] # .kitbag/config.toml:5:45"#,
            r#"tools.count.grants.filesystem = [{"host":"/t/w","guest":"/workspace","mode":"ro"}] # default"#,
            r#"tools.count.limits.memory = "64 MiB" # default"#,
            r#"tools.count.limits.time = "30s" # default"#,
            r#"tools.count.limits.output = "1 MiB" # default"#,
            r#"tools.count.limits.written = "1 GiB" # default"#,
            r#"tools.count.limits.requests = 50 # default"#,
            r#"tools.count.limits.tool_calls = 20 # default"#,
            r#"tools.count.limits.compile = "1m" # default"#,
            r#"tools.count.answers.overwrite = true # .kitbag/config.toml:6:25"#,
            r#"tools.count.answers.unit = {"name":"word"} # /t/h/config.toml:9:39"#,
        ],
    );
    check_rows(
        &fixture,
        "knowledge",
        &[
            r#"knowledge.skills.subjects = "/t/w/skills" # /t/h/config.toml:12:12"#,
            r#"knowledge.skills.enable = true # default"#,
            r#"knowledge.skills.title = "skills" # default"#,
            r#"knowledge.skills.learned = ["c"] # .kitbag/config.toml:9:11"#,
            r#"knowledge.skills.include = [] # default"#,
            r#"knowledge.skills.disabled = ["d"] # /t/h/config.toml:14:12"#,
        ],
    );
}

#[test]
fn a_manifest_is_weaker_than_every_table() {
    let fixture = Fixture::new("[tools.count]\ndescription = \"workspace\"\n")
        .user("[tools.count]\ndescription = \"user\"\nenable = false\n")
        .file("w/.kitbag/tools/count.wasm", "")
        .file(
            "w/.kitbag/tools/count.toml",
            "title = \"manifest\"\ndescription = \"manifest\"\nenable = true\nlimits.time = \"5s\"\n",
        );
    check_rows(
        &fixture,
        "tools.count",
        &[
            r#"tools.count.source = "local" # .kitbag/tools/count.wasm"#,
            r#"tools.count.wasm = "/t/w/.kitbag/tools/count.wasm" # .kitbag/tools/count.wasm"#,
            r#"tools.count.enable = false # /t/h/config.toml:3:10"#,
            r#"tools.count.title = "manifest" # .kitbag/tools/count.toml:1:9"#,
            r#"tools.count.description = "workspace" # .kitbag/config.toml:2:15"#,
            r#"tools.count.grants.filesystem = [{"host":"/t/w","guest":"/workspace","mode":"ro"}] # default"#,
            r#"tools.count.limits.memory = "64 MiB" # default"#,
            r#"tools.count.limits.time = "5s" # .kitbag/tools/count.toml:4:15"#,
            r#"tools.count.limits.output = "1 MiB" # default"#,
            r#"tools.count.limits.written = "1 GiB" # default"#,
            r#"tools.count.limits.requests = 50 # default"#,
            r#"tools.count.limits.tool_calls = 20 # default"#,
            r#"tools.count.limits.compile = "1m" # default"#,
        ],
    );
}

#[test]
fn what_can_be_made_out_of_a_faulty_configuration_comes_with_what_is_wrong() {
    let fixture = Fixture::new(
        "[limits]\ntime = \"soon\"\nmemory = \"1MiB\"\n[tools.a]\nsource = \"local\"\n\
         [tools.b]\nsource = \"local\"\nwasm = \"b.wasm\"\n\
         grants.filesystem = [{ host = \".git\", guest = \"/a\", mode = \"rw\" }]\n",
    )
    .directory("w/.git");
    let (config, errors) = load_lenient(&fixture.sources());
    let config = config.unwrap();
    assert_eq!(errors.unwrap().diagnostics().len(), 3);
    assert_eq!(config.limits.limits(), Limits { memory: ByteSize::mib(1), ..Limits::default() });
    let names: Vec<_> = config.tools.keys().map(ToolName::as_str).collect();
    assert_eq!(names, ["a", "b", "learn", "notes"]);
    assert!(matches!(config.tools["a"].disabled, Some(Disabled::Broken { .. })));
    assert_eq!(config.tools["b"].grants.value.directories, []);

    let (config, errors) = load_lenient(&Fixture::new("[").sources());
    assert!(config.is_some() && errors.is_some());
    let (config, errors) = load_lenient(&Fixture::new("").sources());
    assert!(config.is_some() && errors.is_none());
}
