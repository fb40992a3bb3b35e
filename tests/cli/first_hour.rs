//! Mistakes of the first hour, and the intended command.

use std::fs;
use std::process::Command;

use crate::support::Workspace;

#[test]
fn a_description_ends_with_a_command_that_works() {
    let toolsets =
        ["files", "search", "data", "text", "time", "calc", "python", "memory", "write", "learn"];
    let workspace = Workspace::with_toolsets(&toolsets);
    // These need a workspace with a topic, a memory or an image, or a person who consents.
    let others = ["learn", "forget", "read_media", "remove_path"];
    let tools = workspace.run(&["list", "--json"]).json();
    let tools = tools.as_array().unwrap().iter().filter(|tool| tool["disabled"].is_null());
    let mut count = 0;
    for tool in tools.map(|tool| tool["name"].as_str().unwrap()) {
        let description = workspace.run(&["describe", tool]).success();
        let (_, command) = description.rsplit_once("\nCall it\n  kitbag ").unwrap();
        assert!(command.starts_with(&format!("run {tool}")), "{command}");
        if others.contains(&tool) {
            continue;
        }
        workspace.file("notes.txt", "hello\n");
        if tool == "write_file" {
            fs::remove_file(workspace.path("notes.txt")).unwrap();
        }
        let script = format!("exec \"$KITBAG\" {command}");
        let mut shell = workspace.command();
        let program = shell.get_program().to_owned();
        let variables: Vec<_> = shell
            .get_envs()
            .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
            .collect();
        shell = Command::new("sh");
        let shell = shell.args(["-c", &script]).env_clear().envs(variables);
        let output = shell.env("KITBAG", program).current_dir(workspace.path("")).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        count += 1;
    }
    assert!(count > 25, "{count}");
    let description = workspace.run(&["describe", "now"]).success();
    assert!(description.ends_with("\nCall it\n  kitbag run now\n"), "{description}");
}
