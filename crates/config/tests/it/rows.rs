//! Every value and where it came from.

use crate::support::{Fixture, check_rows};

#[test]
fn without_files_every_value_is_a_default() {
    let fixture = Fixture::empty();
    let rows = fixture.load().rows();
    let rows: Vec<_> = rows
        .iter()
        .map(|row| fixture.redact(&format!("{} = {} # {}", row.key, row.value, row.origin)))
        .collect();
    assert_eq!(
        rows.join("\n"),
        r#"workspace = "/t/w" # .kitbag
ceiling.memory = "64 MiB" # default
ceiling.time = "30s" # default
ceiling.output = "1 MiB" # default
ceiling.written = "1 GiB" # default
ceiling.requests = 50 # default
ceiling.tool_calls = 20 # default
ceiling.compile = "1m" # default
deny = [] # default
audit.enable = true # default
audit.arguments = false # default
audit.required = false # default
audit.sync = "batch" # default
audit.size = "128 MiB" # default
trust.directories = [] # default
limits.memory = "64 MiB" # default
limits.time = "30s" # default
limits.output = "1 MiB" # default
limits.written = "1 GiB" # default
limits.requests = 50 # default
limits.tool_calls = 20 # default
limits.compile = "1m" # default
secret_files.names = [] # default
secret_files.except = [] # default
allow_leak = [] # default
serve.memory = "2 GiB" # default
serve.session_idle = "30m" # default
serve.unknown_arguments = "drop" # default
toolsets.write = false # default
tools.learn.source = "builtin" # default
tools.learn.builtin = "learn" # default
tools.learn.enable = true # default
tools.learn.limits.memory = "64 MiB" # default
tools.learn.limits.time = "30s" # default
tools.learn.limits.output = "1 MiB" # default
tools.learn.limits.written = "1 GiB" # default
tools.learn.limits.requests = 50 # default
tools.learn.limits.tool_calls = 20 # default
tools.learn.limits.compile = "1m" # default
tools.notes.source = "builtin" # default
tools.notes.builtin = "notes" # default
tools.notes.enable = true # default
tools.notes.limits.memory = "64 MiB" # default
tools.notes.limits.time = "30s" # default
tools.notes.limits.output = "1 MiB" # default
tools.notes.limits.written = "1 GiB" # default
tools.notes.limits.requests = 50 # default
tools.notes.limits.tool_calls = 20 # default
tools.notes.limits.compile = "1m" # default"#
    );
}

#[test]
fn nested_parameters_have_rows_of_their_own() {
    let fixture = Fixture::new(
        r#"
[tools.t]
source = "local"
wasm = "t.wasm"
parameters.list = { type = "array", items = { type = "integer", enum = [1, 2] }, default = [1] }
parameters."a.b" = { type = "object", properties = { c = { type = "string", description = "C" } } }
"#,
    );
    check_rows(
        &fixture,
        "tools.t.parameters",
        &[
            r#"tools.t.parameters.list.type = "array" # .kitbag/config.toml:5:28"#,
            r#"tools.t.parameters.list.required = false # default"#,
            r#"tools.t.parameters.list.default = [1] # .kitbag/config.toml:5:92"#,
            r#"tools.t.parameters.list.items.type = "integer" # .kitbag/config.toml:5:54"#,
            r#"tools.t.parameters.list.items.enum = [1,2] # .kitbag/config.toml:5:72"#,
            r#"tools.t.parameters."a.b".type = "object" # .kitbag/config.toml:6:29"#,
            r#"tools.t.parameters."a.b".required = false # default"#,
            r#"tools.t.parameters."a.b".properties.c.type = "string" # .kitbag/config.toml:6:67"#,
            r#"tools.t.parameters."a.b".properties.c.description = "C" # .kitbag/config.toml:6:91"#,
            r#"tools.t.parameters."a.b".properties.c.required = false # default"#,
        ],
    );
}
