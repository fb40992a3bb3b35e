//! `html_to_markdown`, through the real component. Pages in detail are tested in
//! `guest-tools/text`.

use serde_json::json;

use crate::support::Workspace;
use crate::support::cases::{call, check_cases, check_concurrent};

#[test]
fn pages_become_markdown() {
    check_cases("text", &["html_to_markdown.txt"]);
}

#[test]
fn deep_elements_keep_their_text() {
    let workspace = Workspace::with_toolsets(&["text"]).with_time();
    let kitbag = workspace.kitbag();
    for tag in ["div", "b", "ul><li", "blockquote", "table><tr><td", "p", "pre", "code", "a href=x"]
    {
        let page = format!("<p>before</p>{}deep", format!("<{tag}>").repeat(100_000));
        workspace.file("deep.html", page);
        let arguments = json!({ "path": "deep.html", "max_bytes": 900_000 });
        let markdown = call(&kitbag, "html_to_markdown", arguments).unwrap();
        assert!(markdown.starts_with("before") && markdown.contains("deep"), "{tag}");
    }
}

#[test]
fn a_page_of_ten_megabytes_is_converted_in_the_memory_of_a_call() {
    let workspace = Workspace::with_toolsets(&["text"]);
    let paragraph = "Some text of an article, as long as paragraphs are. ".repeat(8);
    let mut page = String::from("<title>Large</title><main>");
    let mut count = 0;
    while page.len() < 10_000_000 {
        count += 1;
        page.push_str(&format!(
            "<h2 class='x'>Part {count}</h2>\n<p>{paragraph}<a href='/p/{count}'>A link</a>, \
             <b>more</b>.</p>\n<script>track('{paragraph}');</script>\n"
        ));
    }
    workspace.file("large.html", page);
    let run = workspace.run(&["run", "html_to_markdown", "path=large.html", "max_bytes=300"]);
    let markdown = run.success();
    assert!(markdown.starts_with("# Large\n\n## Part 1\n\n"), "{markdown}");
    assert!(markdown.contains("; offset="), "{markdown}");
    assert!(!markdown.contains("track"), "{markdown}");
}

#[test]
fn concurrent_calls_do_not_interfere() {
    let workspace = Workspace::with_toolsets(&["text"]);
    let kitbag = workspace.kitbag();
    let pages = ["<h1>One", "<table><tr><th>a<th>b", "<ul><li>x", ""];
    check_concurrent(&kitbag, &pages.map(|page| ("html_to_markdown", json!({ "text": page }))));
}
