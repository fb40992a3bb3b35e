//! `encode_text`, through the real component.

use crate::support::Workspace;
use crate::support::cases::check_cases;

#[test]
fn strings_are_encoded_and_decoded() {
    check_cases("text", &["encode_text.txt"]);
}

#[test]
fn the_bytes_of_a_file_are_encoded() {
    let workspace = Workspace::with_toolsets(&["text"]);
    workspace.file("bytes", [0, 255, 128]);
    let run = workspace.run(&["run", "encode_text", "path=bytes", "encoding=hex"]);
    assert_eq!(run.success().trim_end(), "00ff80");
}

#[test]
fn the_example_of_two_tools_of_one_component_runs() {
    let stdout = crate::support::cargo_run(&["--example", "two_tools"]);
    assert_eq!(stdout, "6120626167, which is a bag\n");
}
