//! Scripts: those in `.kitbag/scripts`, and a script that the caller names.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::{fs, iter};

use kitbag_config::{Config, ConfigErrors, Origin, ScriptFile, ScriptTool, ToolSource, load};
use kitbag_policy::{Access, Kind};
use serde_json::json;

use crate::case_output::builtins;
use crate::support::{Fixture, problems};

/// Counts the words of a file.
const WORDS: &str = include_str!("../../../../tests/tools/scripts/words.py");

/// Returns the same script with a requested directory and, in addition to its description, a
/// docstring.
fn asking() -> String {
    let more = "#\n# [grants]\n# filesystem = [{ guest = \"/drafts\", mode = \"rw\" }]\n# ///\n\
                \"\"\"Not this.\"\"\"\nwords";
    WORDS.replace("# ///\nwords", more)
}

fn try_load(fixture: &Fixture) -> Result<Config, ConfigErrors> {
    let mut sources = fixture.sources();
    sources.builtins = builtins("python");
    load(&sources)
}

fn loaded(fixture: &Fixture) -> Config {
    try_load(fixture).unwrap_or_else(|errors| panic!("{errors}"))
}

#[track_caller]
fn check_problems(fixture: &Fixture, expected: &[&str]) {
    let actual = problems(&try_load(fixture), fixture);
    assert_eq!(actual.lines().collect::<Vec<_>>(), expected);
}

fn script(code: &str) -> Fixture {
    Fixture::empty().file("w/.kitbag/scripts/words.py", code)
}

fn tool<'a>(config: &'a Config, name: &str) -> (&'a kitbag_config::ConfiguredTool, &'a ScriptTool) {
    let tool = &config.tools[name];
    match &tool.source.value {
        ToolSource::Script(script) => (tool, script),
        source => panic!("{source:?}"),
    }
}

#[test]
fn a_script_is_a_tool_with_the_parameters_of_its_header() {
    let code = asking();
    let fixture = script(&code);
    let config = loaded(&fixture);
    let (tool, script) = tool(&config, "words");
    let place = |text: &str| format!(".kitbag/scripts/words.py:{text}");
    let title = tool.title.as_ref().unwrap();
    assert_eq!((&*title.value, title.origin.to_string()), ("Words", place("3:11")));
    let description = tool.description.as_ref().unwrap();
    assert_eq!(description.value, "Count the words of a file.");
    assert_eq!(description.origin.to_string(), place("4:17"));
    assert_eq!(
        script.parameters.input_schema(),
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "File, relative to the workspace" },
                "least": { "type": "integer", "default": 1 },
                "like": { "type": "string" },
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    );
    let output = script.output.as_ref().unwrap();
    assert_eq!(output.value["properties"]["words"], json!({ "type": "integer" }));
    assert_eq!(output.origin.to_string(), place("18:3"));
    let asks = json!({ "filesystem": [{ "guest": "/drafts", "mode": "rw" }] });
    assert_eq!(json!(script.asks), asks);
    // The script is not granted its request.
    assert_eq!(tool.grants.value.directories.len(), 1);
    assert_eq!(tool.grants.value.directories[0].access, Access::ReadOnly);
    assert_eq!(&*script.code, code);
    assert_eq!(tool.source.origin, Origin::Found { path: script_path().as_path().into() });
    assert!(tool.is_enabled() && tool.toolset.is_none());
}

fn script_path() -> PathBuf {
    ".kitbag/scripts/words.py".into()
}

#[test]
fn a_script_without_a_header_takes_no_parameters() {
    let fixture = script("# Words.\n\"\"\"Count words.\n\n    All of them.\n    \"\"\"\n1\n");
    let config = loaded(&fixture);
    let (tool, script) = tool(&config, "words");
    let description = tool.description.as_ref().unwrap();
    assert_eq!(description.value, "Count words.\n\nAll of them.");
    assert_eq!(description.origin.to_string(), ".kitbag/scripts/words.py:2:1");
    assert!(script.parameters.entries.is_empty());
    let bare = script_of(&loaded(&self::script("1\n")));
    assert_eq!((bare.output, bare.asks.len()), (None, 0));
    assert_eq!(loaded(&self::script("")).tools["words"].description, None);
}

fn script_of(config: &Config) -> ScriptTool {
    tool(config, "words").1.clone()
}

#[test]
fn the_table_of_a_script_overrides_its_header() {
    let table = "[tools.words]\nenable = false\ndescription = \"D\"\nrate = \"1/h\"\n\
                 parameters.path.description = \"P\"\nlimits.time = \"1s\"\n\
                 grants.filesystem = []\n";
    let config = loaded(&script(WORDS).file("w/.kitbag/config.toml", table));
    let (tool, script) = tool(&config, "words");
    assert_eq!(tool.description.as_ref().unwrap().value, "D");
    assert_eq!(tool.title.as_ref().unwrap().value, "Words");
    assert!(!tool.is_enabled() && tool.rates.len() == 1);
    assert_eq!(tool.limits.time.value.as_secs(), 1);
    assert_eq!(tool.grants.value.directories, []);
    let path = &script.parameters.entries[0].1;
    assert_eq!(path.description.as_ref().unwrap().value, "P");
    assert!(path.required.value);
}

#[test]
fn grants_of_a_script_are_within_the_ceilings() {
    let variables = |own: &str| {
        let table = "[tools.words]\ngrants.env = [\"LANG\"]\n";
        let fixture = script("1\n").file("w/.kitbag/config.toml", table);
        let config = loaded(&fixture.variables([("LANG", b"C")]).user(own));
        let grants = &config.tools["words"].grants;
        (grants.value.variables.len(), grants.warnings.len())
    };
    let bound = "[ceiling.grants]\nenv = []\n";
    assert_eq!(variables(""), (1, 0));
    assert_eq!(variables(bound), (0, 1));
    // The user's grants for a tool of this name do not apply to the code of the workspace.
    assert_eq!(variables(&format!("{bound}[tools.words]\ngrants.env = [\"LANG\"]\n")), (0, 1));
    assert_eq!(variables("[ceiling.grants]\nenv = [\"LANG\"]\n"), (1, 0));
}

#[test]
fn a_renamed_script_loses_its_own_name() {
    let named = |table: &str| {
        let config = loaded(&script("1\n").file("w/.kitbag/config.toml", table));
        config.tools.keys().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(named(""), "notes python words");
    assert_eq!(named("[tools.count]\nscript = \"words\"\n"), "count notes python");
    assert_eq!(named("[tools.words]\nscript = \"words\"\n"), "notes python words");
    // The script's own table also applies under another name.
    let both = "[tools.count]\nscript = \"words\"\n[tools.words]\nrate = \"1/h\"\n";
    assert_eq!(named(both), "count notes python words");
    // A script that the user turns off has no other name.
    let own = "[tools.words]\nenable = false\n";
    let other = "[tools.count]\nscript = \"words\"\n";
    let fixture = script("1\n").file("w/.kitbag/config.toml", other).user(own);
    let disabled = loaded(&fixture).tools["count"].disabled.clone().unwrap().to_string();
    assert!(disabled.contains("another name for `words`"), "{disabled}");
}

#[test]
fn a_name_refers_to_one_tool() {
    let fixture = || script("1\n");
    check_problems(
        &fixture().file("w/.kitbag/tools/words.wasm", ""),
        &[".kitbag/scripts/words.py: two tools are named `words`: this one and \
             `.kitbag/tools/words.wasm`; rename one of them"],
    );
    check_problems(
        &Fixture::empty().file("w/.kitbag/scripts/notes.py", "1\n"),
        &[".kitbag/scripts/notes.py: local tool `notes` has the name of a built-in tool; rename \
             it, or replace the built-in with `replaces = \"notes\"` in `tools.notes`"],
    );
    let replaced = Fixture::new("[tools.notes]\nreplaces = \"notes\"\n")
        .file("w/.kitbag/scripts/notes.py", "1\n");
    assert_eq!(loaded(&replaced).tools.len(), 2);
    check_problems(
        &Fixture::empty().file("w/.kitbag/scripts/a b.py", "1\n"),
        &[".kitbag/scripts/a b.py: `a b` is not a tool name: it takes letters, digits, `_` and \
           `-`, starts with a letter or `_`, and has at most 48 characters"],
    );
    let table = "[tools.words]\nsource = \"local\"\nwasm = \"x.wasm\"\n\
                 [tools.other]\nscript = \"wrods\"\n[tools.notes]\nscript = \"words\"\n";
    check_problems(
        &fixture().file("w/.kitbag/config.toml", table),
        &[
            ".kitbag/config.toml:2:10: `words` is the script `.kitbag/scripts/words.py`, which may \
             not have `source`; remove it",
            ".kitbag/config.toml:3:8: `words` is the script `.kitbag/scripts/words.py`, which may \
             not have `wasm`; remove it",
            ".kitbag/config.toml:5:10: no script in `.kitbag/scripts` is named `wrods`; did you mean \
             `words`?",
            ".kitbag/config.toml:7:10: local tool `notes` has the name of a built-in tool; rename \
             it, or replace the built-in with `replaces = \"notes\"` in `tools.notes`",
        ],
    );
    check_problems(
        &fixture().user("[tools.count]\nscript = \"words\"\n"),
        &["/t/h/config.toml:2:10: a script belongs to a workspace: set `script` in \
             `.kitbag/config.toml` of that workspace"],
    );
    // A tool of the user config keeps the name.
    let own = fixture().user("[tools.words]\nsource = \"local\"\nwasm = \"/own/a.wasm\"\n");
    let config = loaded(&own);
    assert!(matches!(config.tools["words"].source.value, ToolSource::Local(_)));
    let warning = config.warnings[0].to_string();
    assert!(
        warning.starts_with(
            ".kitbag/scripts/words.py: is ignored: your user config has a tool `words`"
        ),
        "{warning}"
    );
}

#[test]
fn a_script_is_not_a_link() {
    let linked =
        "is behind a symbolic link; put the script itself into `.kitbag/scripts` of the workspace";
    let check = |fixture: &Fixture, path: &str, problem: &str| {
        check_problems(fixture, &[&format!("{path}: {problem}")]);
    };
    let words = ".kitbag/scripts/words.py";
    let directory = || Fixture::empty().directory("w/.kitbag/scripts").file("w/a.py", "'''A'''\n");
    check(&directory().link("w/.kitbag/scripts/words.py", "../../a.py"), words, linked);
    check(&directory().link("w/.kitbag/scripts/words.py", "nowhere"), words, linked);
    let outside = Fixture::empty().file("o/words.py", "secret\n");
    check(&outside.link("w/.kitbag/scripts", "../../o"), words, linked);
    let inside = Fixture::empty().file("w/s/words.py", "1\n");
    check(&inside.link("w/.kitbag/scripts", "../s"), words, linked);
    let path = ".kitbag/scripts";
    check(&Fixture::empty().file("w/.kitbag/scripts", ""), path, "is not a directory");
    let inner = Fixture::empty().directory("w/.kitbag/scripts/words.py");
    check(&inner, words, "is a directory, but must be a file");
    let fifo = directory();
    let made = std::process::Command::new("mkfifo").arg(fifo.path("w").join(words)).status();
    assert!(made.unwrap().success());
    check(&fifo, words, "is not a regular file");
    let large = iter::repeat_n('#', (1 << 20) + 1).collect::<String>();
    check(&script(&large), words, "is larger than the limit of 1 MiB");
    let text = "is not UTF-8 from here on; save the file as UTF-8";
    let latin = Fixture::empty().file("w/.kitbag/scripts/words.py", b"# \xe4\n");
    check(&latin, ".kitbag/scripts/words.py:1:3", text);
    // Other files in the directory are ignored.
    let others = directory()
        .file("w/.kitbag/scripts/README.md", "")
        .directory("w/.kitbag/scripts/in")
        .link("w/.kitbag/scripts/.#words.py", "someone@somewhere");
    assert_eq!(loaded(&others).tools.len(), 2);
}

#[test]
fn the_workspace_of_a_writable_script_is_ignored() {
    let ignored = |fixture: &Fixture| {
        let config = loaded(fixture);
        assert!(!config.tools.contains_key("words"));
        fixture.redact(&config.ignored.expect("the workspace is ignored").to_string())
    };
    for (path, mode, shown) in [
        ("w/.kitbag/scripts/words.py", 0o666, "/t/w/.kitbag/scripts/words.py"),
        ("w/.kitbag/scripts", 0o777, "/t/w/.kitbag/scripts"),
    ] {
        let fixture = script("1\n");
        fs::set_permissions(fixture.path(path), fs::Permissions::from_mode(mode)).unwrap();
        assert!(ignored(&fixture).contains(&format!("`{shown}` is writable by every user")));
    }
    // Only root can give a file to another user.
    if rustix::process::geteuid().is_root() {
        let fixture = script("1\n");
        chown(fixture.path("w/.kitbag/scripts/words.py"), Some(65534), None).unwrap();
        assert!(ignored(&fixture).contains("words.py` belongs to user 65534"));
    }
}

#[test]
fn default_calls_of_a_script_are_within_its_workspaces_grants() {
    let calls = |own: &str, tool: &str| {
        let config = loaded(&script("1\n").user(own));
        config.tools[tool].grants.value.tools.lines().join(", ")
    };
    let ceiling = |tools: &str| format!("[ceiling.grants]\ntools = {tools}\n");
    let all = calls("", "words");
    assert!(!all.is_empty());
    assert_eq!(calls(&ceiling("\"caller\""), "words"), all);
    assert_eq!(calls(&ceiling("[]"), "words"), "");
    assert_eq!(calls(&ceiling("[\"now\"]"), "words"), "tool now → now");
    // The ceiling does not apply to the user's own tools.
    assert_eq!(calls(&ceiling("[]"), "python"), all);
}

#[test]
fn scripts_are_granted_no_directory_for_writing() {
    let table = |name: &str| {
        let grant = r#"[{ host = "docs", guest = "/docs", mode = "rw" }]"#;
        format!("[tools.{name}]\ngrants.filesystem = {grant}\n")
    };
    for name in ["python", "words"] {
        let fixture =
            script("words\n").directory("w/docs").file("w/.kitbag/config.toml", table(name));
        let config = loaded(&fixture);
        assert_eq!(config.tools[name].grants.value.directories[0].access, Access::ReadOnly);
        let [warning] = &config.warnings[..] else { panic!("{:?}", config.warnings) };
        let place = ".kitbag/config.toml:2:63: ";
        assert!(
            warning.to_string().starts_with(&format!("{place}scripts do not get `mode = \"rw\"`")),
            "{warning}"
        );
    }
}

#[test]
fn the_caller_can_name_a_script_anywhere() {
    let named = |fixture: &Fixture, path: &str| {
        let name = "words".parse().unwrap();
        let mut sources = fixture.sources();
        sources.builtins = builtins("python");
        sources.script = Some(ScriptFile { name, path: path.into() });
        load(&sources)
    };
    let table = "[tools.words]\ngrants.filesystem = []\n[tools.notes]\nenable = false\n";
    let fixture =
        Fixture::new(table).file("o/words.py", WORDS).file("w/.kitbag/scripts/words.py", "1");
    let fixture = fixture.link("link", "o/words.py");
    for path in ["../o/words.py", "../link"] {
        let config = named(&fixture, path).unwrap();
        let (tool, script) = tool(&config, "words");
        assert_eq!((&*script.code, &tool.source.origin), (WORDS, &Origin::Caller));
        // The table configures another tool of the name.
        assert_eq!(tool.grants.value.directories.len(), 1);
    }
    let fixture = Fixture::empty().file("o/words.py", "# /// kitbag\n# a = 1\n# ///\n");
    let shown = problems(&named(&fixture, "../o/words.py"), &fixture);
    assert!(shown.starts_with("/t/o/words.py:2:3: unknown key `a` in `tools.words`"), "{shown}");
    let mode = fs::Permissions::from_mode(0o666);
    fs::set_permissions(fixture.path("o/words.py"), mode).unwrap();
    let shown = problems(&named(&fixture, "../o/words.py"), &fixture);
    assert_eq!(
        shown,
        "/t/o/words.py: cannot be read: it is writable by every user (mode 0666); use `chmod o-w`\n"
    );
}

#[test]
fn without_python_no_script_is_offered() {
    let config = script("1\n").load();
    let disabled = config.tools["words"].disabled.clone().unwrap().to_string();
    assert_eq!(disabled, "disabled: it is a script, and this kitbag was built without `python`");
}
