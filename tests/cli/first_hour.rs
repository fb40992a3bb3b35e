//! Mistakes of the first hour, and the command that was meant.

use crate::support::Workspace;

#[test]
fn a_description_ends_with_a_command_that_works() {
    let workspace = Workspace::with_toolsets(&["time", "calc"]);
    for tool in ["now", "calculate"] {
        let description = workspace.run(&["describe", tool]).success();
        let (_, command) = description.rsplit_once("\nCall it\n  kitbag ").unwrap();
        assert!(command.starts_with(&format!("run {tool}")), "{command}");
    }
    let description = workspace.run(&["describe", "now"]).success();
    assert!(description.ends_with("\nCall it\n  kitbag run now\n"), "{description}");
}
