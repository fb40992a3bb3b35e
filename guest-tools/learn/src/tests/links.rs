use kitbag_sdk::serde_json::json;

use super::{Memory, check, check_error, list, listed, load, loaded};

#[track_caller]
fn check_leaves(files: &Memory, slug: &str) {
    let message = format!(
        "subject `{slug}` is, or is behind, a symbolic link that leaves the topic's directory"
    );
    check_error(load(files, json!({}), json!(slug)), &message);
    check_error(load(files, json!({}), json!(["a", slug])), &message);
}

#[test]
fn a_link_that_stays_inside_is_followed() {
    let files = Memory::of(&["a.md", "dir/b.md"])
        .link("alias.md", "dir/b.md")
        .link("other", "dir")
        .link("dir/up.md", "../a.md")
        .link("chain.txt", "alias.md");
    let expected = ["a", "alias", "chain", "dir/b", "dir/up", "other/b", "other/up"];
    assert_eq!(listed(&files), expected);
    assert_eq!(loaded(&files, json!("**")), expected);
    check(load(&files, json!({}), json!("other/b")), "dir/b.md");
    check(load(&files, json!({}), json!("dir/up")), "a.md");
}

#[test]
fn links_outside_the_topic_are_errors() {
    let files = Memory::of(&["a.md", "dir/b.md"])
        .link("passwd.md", "/etc/passwd")
        .link("parent.d", "..")
        .link("dir/out.md", "../../out.md")
        .link(".dot.md", "/etc/hosts")
        .link("chain.md", "passwd.md");
    assert_eq!(listed(&files), ["a", "dir/b"]);
    assert_eq!(loaded(&files, json!("**")), ["a", "dir/b"]);
    for slug in
        ["passwd", "passwd.md", "parent", "parent.d", "parent.d/x", "dir/out", "dot", "chain"]
    {
        check_leaves(&files, slug);
    }
    check_error(
        load(&files, json!({}), json!("parents")),
        "no subject of topic `skills` matches `parents`; it has `a`, `dir/b`",
    );
}

#[test]
fn files_precede_external_links_with_the_same_slug() {
    let files = Memory::of(&["a.md"]).link("a.toml", "/etc/passwd");
    assert_eq!(listed(&files), ["a"]);
    check(load(&files, json!({}), json!("a")), "a.md");
}

#[test]
fn dangling_links_are_not_subjects() {
    let files = Memory::of(&["a.md"])
        .link("dangling.md", "missing.md")
        .link("self.md", "self.md")
        .link("ping.md", "pong.md")
        .link("pong.md", "ping.md")
        .device("pipe")
        .link("to-pipe.md", "pipe");
    assert_eq!(listed(&files), ["a"]);
    check_error(
        load(&files, json!({}), json!("dangling")),
        "no subject of topic `skills` matches `dangling`; it has `a`",
    );
}

#[test]
fn links_to_parents_are_not_followed() {
    let files = Memory::of(&["a.md", "dir/b.md", "dir/deep/c.md"])
        .link("here", ".")
        .link("dir/up", "..")
        .link("dir/deep/dir", "../../dir")
        .link("dir/deep/here", ".");
    assert_eq!(listed(&files), ["a", "dir/b", "dir/deep/c"]);
}

#[test]
fn links_to_each_others_directories_end() {
    let files = Memory::of(&["x/a.md", "y/b.md"]).link("x/y", "../y").link("y/x", "../x");
    assert_eq!(listed(&files), ["x/a", "x/y/b", "y/b", "y/x/a"]);
}

#[test]
fn exponential_links_are_an_error() {
    // Each directory has ten links to the next one: 10 to the power of 5 paths.
    let files = (0..50).fold(Memory::of(&["5/a.md"]), |files, number| {
        let level = number / 10;
        files.link(&format!("{level}/{}", number % 10), &format!("../{}", level + 1))
    });
    check_error(
        list(&files, json!({})),
        "topic `skills` is too large: it has more than 100000 files and directories, \
         or paths of more than 8 MiB in all; name a directory with fewer",
    );
}
