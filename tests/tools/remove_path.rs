//! `remove_path`, through the binary.

use serde_json::json;

use crate::support::Workspace;
use crate::support::files::names;

#[test]
fn removing_a_path_requires_consent() {
    let workspace = Workspace::of_files();
    workspace.file("in/a", "1");
    workspace.file("in/日本/b", "22");
    let all = json!({ "path": "in", "recursive": true });
    let asked = workspace.tool("remove_path", &all, &[]);
    assert!(
        asked.stderr.contains("Remove `in` (a directory with 3 entries, 3 B)?"),
        "{}",
        asked.shown()
    );
    let refused = workspace.tool("remove_path", &all, &["remove=false"]);
    assert_eq!(refused.stderr, "error: the removal was declined; nothing was changed\n");
    assert!(workspace.path("in/a").exists());
    let removed = workspace.tool("remove_path", &all, &["remove=true"]).success();
    assert_eq!(removed, "[removed: a directory with 3 entries, 3 B]\n");
    assert_eq!(names(&workspace.root()), [".kitbag"]);
}
