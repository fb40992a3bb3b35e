//! `count_text`, through the real component.

use crate::support::Workspace;
use crate::support::cases::check_cases;

#[test]
fn a_text_is_counted() {
    check_cases("text", &["count_text.txt"]);
}

#[test]
fn a_text_of_ten_megabytes_is_counted_in_the_memory_of_a_call() {
    let workspace = Workspace::with_toolsets(&["text"]);
    workspace.file("large.txt", "ten bytes\n".repeat(1_000_000));
    let counts = workspace.run(&["run", "count_text", "path=large.txt"]).json();
    assert_eq!(counts["lines"], 1_000_000);
    assert_eq!(counts["words"], 2_000_000);
    assert_eq!(counts["bytes"], 10_000_000);
}
