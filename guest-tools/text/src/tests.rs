//! Native tests of the tools: calls and answers from `cases/`, whose files form the workspace, and
//! properties.

use std::fs;
use std::path::{Path, PathBuf};

use kitbag_sdk::{Call, json};
use proptest::prelude::*;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

fn call_in(root: &Path, tool: &str, arguments: &str) -> Result<String, String> {
    let call = Call::new(tool, root.to_str().unwrap(), arguments, "{}");
    crate::run(&call).map_err(|error| error.message)
}

fn call(tool: &str, arguments: &str) -> Result<String, String> {
    call_in(&cases(), tool, arguments)
}

fn markdown(html: &str) -> String {
    call("html_to_markdown", &json!({ "text": html }).to_string()).unwrap()
}

/// Converts a page in a file.
fn markdown_of(bytes: &[u8]) -> Result<String, String> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("page.html"), bytes).unwrap();
    call_in(directory.path(), "html_to_markdown", r#"{"path":"page.html","max_bytes":100000000}"#)
}

fn check(file: &str) {
    kitbag_cases::check(cases().join(file), call);
}

#[test]
fn invalid_arguments_are_refused() {
    check("arguments.txt");
}

#[test]
fn pages_become_markdown() {
    for file in PAGES {
        check(file);
    }
}

/// Pages, named by their special feature.
const PAGES: [&str; 7] = [
    "html_to_markdown.txt",
    "tables.txt",
    "code_blocks.txt",
    "hidden.txt",
    "images.txt",
    "links.txt",
    "articles.txt",
];

#[test]
fn image_text_cannot_end_early() {
    let check = |image: &str, expected: &str| assert_eq!(markdown(image).trim(), expected);
    check(
        "<p><img src='a.png' alt='](https://x.example/) [click'></p>",
        r"![\](https://x.example/) \[click](a.png)",
    );
    check("<p><img src='a.png' alt='one\n\n# two'></p>", "![one # two](a.png)");
    check("<p><img src='a.png' title='t\" [b](c)'></p>", r#"![](a.png "t\" [b](c)")"#);
    check("<p><img src='a b)[c](d.png' alt=x></p>", "![x](a%20b%29[c]%28d.png)");
    check("<p><img alt='](b)'></p>", r"![\](b)]()");
}

#[test]
fn differences_are_a_unified_diff() {
    check("diff_text.txt");
}

#[test]
fn a_text_is_counted() {
    check("count_text.txt");
}

#[test]
fn a_text_and_a_file_are_hashed() {
    check("hash_text.txt");
}

#[test]
fn encoding_and_decoding_match_the_cases() {
    check("encode_text.txt");
}

#[test]
fn pages_are_read_in_their_own_encoding() {
    let check = |bytes: &[u8], expected: &str| {
        assert_eq!(markdown_of(bytes).unwrap(), expected);
    };
    check("<p>Grüße 漢字".as_bytes(), "Grüße 漢字");
    check(b"\xef\xbb\xbf<p>caf\xc3\xa9", "café");
    check(b"<meta charset=\"windows-1251\"><p>\xcf\xf0\xe8\xe2\xe5\xf2", "Привет");
    check(
        b"<meta http-equiv=content-type content='text/html; charset=Shift_JIS'><p>\x93\xfa\x96{",
        "日本",
    );
    check(b"<?xml version='1.0' encoding='ISO-8859-2'?><p>\xb3\xf3d\xbc", "łódź");
    check(b"\xff\xfe<\0p\0>\0a\0\xac\x20", "a€");
    check(b"\0<\0p\0>\0a\0b\0c\0d", "abcd");
    check(b"<meta charset=utf-16><p>caf\xc3\xa9", "café");
    check("<meta charset=iso-8859-1><p>schön".as_bytes(), "schön");
    // A character that spans two pieces.
    let long = format!("<p>{}é", "a".repeat((64 << 10) - 4));
    check(long.as_bytes(), &long[3..]);
    check(b"<meta charset=utf-8><p>a\xffb", "a\u{fffd}b");
    check(b"", "[the page has no text]");
    check(b"<p>a\0b", "ab");
}

#[test]
fn deeply_nested_text_is_kept() {
    for tag in [
        "div",
        "span",
        "b",
        "a",
        "ul><li",
        "blockquote",
        "table><tr><td",
        "p",
        "font",
        "svg",
        "pre",
        "code",
    ] {
        let page = format!("<p>before</p>{}<i>deep</i>", format!("<{tag}>").repeat(100_000));
        let markdown = markdown_of(page.as_bytes()).unwrap();
        assert!(markdown.starts_with("before"), "{tag}: {}", &markdown[..markdown.len().min(100)]);
        if tag != "svg" {
            assert!(markdown.contains("deep"), "{tag}");
        }
    }
    let closed = format!("{}deep{}<p>after</p>", "<div>".repeat(100_000), "</div>".repeat(100_000));
    assert_eq!(markdown_of(closed.as_bytes()).unwrap(), "deep\n\nafter");
}

#[test]
fn elements_without_end_tags_are_not_deep() {
    let page = format!("<ul>{}</ul><h2>after</h2>", "<li>item".repeat(5_000));
    let markdown = markdown_of(page.as_bytes()).unwrap();
    assert_eq!(markdown.matches("- item").count(), 5_000);
    assert!(markdown.ends_with("\n\n## after"), "{}", &markdown[markdown.len() - 50..]);
    let page = format!("<table>{}</table>", "<tr><td>a<td>b".repeat(2_000));
    assert_eq!(markdown_of(page.as_bytes()).unwrap().matches("| a | b |").count(), 2_000);
}

#[test]
fn pages_of_ten_megabytes_are_converted() {
    let mut page = String::from("<html><head><title>Large</title></head><body><main>");
    let mut count = 0;
    while page.len() < 10_000_000 {
        count += 1;
        page.push_str(&format!(
            "<h2 class='section' id='s{count}' data-track='x'>Part {count}</h2><p>Some text with \
             <a href='/p/{count}' onclick='go()'>a link</a> and <b>more</b> of it, as long as a \
             sentence in an article is.</p><script>var a = '{count}';</script>\n"
        ));
    }
    let markdown = markdown_of(page.as_bytes()).unwrap();
    assert_eq!(markdown.matches("## Part").count(), count);
    assert!(!markdown.contains("var a"));
    assert!(
        markdown.starts_with("# Large\n\n## Part 1\n\nSome text with [a link](/p/1) and **more**")
    );
}

#[test]
fn pages_with_too_many_elements_are_refused() {
    let error = markdown_of("<br>".repeat(1_000_001).as_bytes()).unwrap_err();
    assert!(error.contains("more than 1000000 elements"), "{error}");
}

#[test]
fn truncated_pages_can_be_continued() {
    let page = "<p>täxt</p>".repeat(1_000);
    let whole = markdown(&page);
    let (mut read, mut offset) = (String::new(), 0);
    loop {
        let arguments = json!({ "text": page, "max_bytes": 777, "offset": offset });
        let answer = call("html_to_markdown", &arguments.to_string()).unwrap();
        let Some((shown, note)) = answer.rsplit_once("\n[bytes ") else {
            read.push_str(&answer);
            break;
        };
        assert!(shown.len() <= 777);
        read.push_str(shown);
        let next = note.split("offset=").nth(1).unwrap().split(' ').next().unwrap();
        assert!(next.parse::<usize>().unwrap() > offset);
        offset = next.parse().unwrap();
    }
    assert_eq!(read, whole);
}

#[test]
fn token_estimates_are_close_to_the_tokenizer() {
    let tokenizer = tiktoken_rs::o200k_base().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let languages = read("guest-tools/text/cases/languages.txt");
    let mut samples: Vec<(String, String)> = [
        "README.md",
        "docs/architecture.md",
        "guest-tools/text/src/count.rs",
        "deny.toml",
        "guest-tools/Cargo.lock",
        "guest-tools/time/cases/parse_time.txt",
    ]
    .map(|path| (path.to_owned(), read(path)))
    .into();
    samples.extend(
        languages
            .split("\n\n")
            .map(|text| (text[..20.min(text.floor_char_boundary(20))].to_owned(), text.to_owned())),
    );
    let mut worst = String::new();
    for (name, text) in samples {
        let tokens = tokenizer.encode_ordinary(&text).len() as f64;
        let estimated = crate::count::tokens(&text) as f64;
        let error = (estimated - tokens) / tokens;
        if error.abs() > 0.2 {
            worst += &format!("{name:?}: {tokens} tokens, estimated {estimated}, {error:+.2}\n");
        }
    }
    assert!(worst.is_empty(), "{worst}");
}

/// Applies a unified diff of one file in the simplest way.
fn applied(old: &str, diff: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut new, mut at) = (String::new(), 0);
    let lines: Vec<&str> = diff.split_inclusive('\n').collect();
    for (index, line) in lines.iter().enumerate() {
        let is_unended = lines.get(index + 1).is_some_and(|next| next.starts_with('\\'));
        let content = |line: &str| {
            let text = &line[1..];
            if is_unended {
                text.strip_suffix('\n').unwrap_or(text).to_owned()
            } else {
                text.to_owned()
            }
        };
        match line.as_bytes()[0] {
            b'@' => {
                let range = line.split(['-', ' ']).nth(2).unwrap();
                let (start, count) = range.split_once(',').unwrap_or((range, "1"));
                let start: usize = start.parse().unwrap();
                // An empty range refers to the line before it.
                let start = if count == "0" { start } else { start - 1 };
                new.extend(old[at..start].iter().copied());
                at = start;
            }
            b'+' => new.push_str(&content(line)),
            b'-' => at += 1,
            b' ' => {
                new.push_str(&content(line));
                at += 1;
            }
            _ => {}
        }
    }
    new.extend(old[at..].iter().copied());
    new
}

proptest! {
    #[test]
    fn diffs_turn_the_old_text_into_the_new_one(
        old in "([abc]{0,2}\n){0,12}[abc]{0,2}", new in "([abc]{0,2}\n){0,12}[abc]{0,2}", context in 0usize..4,
    ) {
        let arguments = json!({ "old": old, "new": new, "context": context });
        let diff = call("diff_text", &arguments.to_string()).unwrap();
        match old == new {
            true => prop_assert_eq!(diff, "no differences"),
            false => prop_assert_eq!(applied(&old, &diff), new),
        }
    }

    #[test]
    fn encoded_text_is_decoded_back(text in "\\PC{0,40}|(?s).{0,20}", at in 0usize..5) {
        let arguments = |text: &str| json!({ "text": text, "encoding": crate::code::NAMES[at] }).to_string();
        let encoded = call("encode_text", &arguments(&text)).unwrap();
        prop_assert_eq!(call("decode_text", &arguments(&encoded)).unwrap(), text);
    }

    #[test]
    fn any_text_is_decoded_or_refused(text in "\\PC{0,40}|[%=&;#a-zA-Z0-9+/_-]{0,20}", at in 0usize..5) {
        let arguments = json!({ "text": text, "encoding": crate::code::NAMES[at] });
        let _ = call("decode_text", &arguments.to_string());
    }

    #[test]
    fn any_page_is_converted_or_refused(
        page in "(<(/?)(p|b|a href=x|table|tr|td|ul|li|pre|code|svg|math|title|template|select|option|form|body|html|head|frameset|script|style|i|em|h1|br|img src=y|plaintext|textarea|main|article|nav)>|text|&amp;|&#0;|<!--|-->|<!\\[CDATA\\[|\n| ){0,40}",
        main: bool,
    ) {
        let arguments = json!({ "text": page, "main": main, "base": "https://example.com/a/" });
        call("html_to_markdown", &arguments.to_string()).unwrap();
    }

    #[test]
    fn the_words_of_paragraphs_are_kept(words in prop::collection::vec("[a-z]{1,8}", 1..30)) {
        let page: String = words.iter().map(|word| format!("<div><p>{word}")).collect();
        let found: Vec<String> = markdown(&page).split_whitespace().map(str::to_owned).collect();
        prop_assert_eq!(found, words);
    }
}
