//! `read_media`, through the binary.

use serde_json::json;

use crate::support::Workspace;

#[test]
fn an_image_is_content_of_the_answer() {
    let workspace = Workspace::with_toolsets(&["files"]);
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend([0, 0, 2, 128, 0, 0, 1, 224, 8, 2, 0, 0, 0]);
    png.extend(b"\0\0\0\0\0\0\0\0IEND\xaeB`\x82");
    workspace.file("plot.png", &png);
    workspace.file("note.txt", "text");
    png.resize(2 << 20, 0);
    workspace.file("large.png", &png);
    let shown = workspace.run(&["run", "read_media", "path=plot.png", "--json"]).json();
    assert_eq!(shown["emitted"][0]["mimeType"], "image/png", "{shown}");
    let run = |path: &str| workspace.tool("read_media", &json!({ "path": path }), &[]).stderr;
    assert_eq!(run("note.txt"), "error: `note.txt` is text; `read_file` reads it\n");
    let large = run("large.png");
    assert!(
        large.starts_with("error: `large.png` (image/png, 640 x 480, 2.0 MiB) cannot be shown"),
        "{large}"
    );
}
