//! `read_file`, `list_dir`, `file_info` and `read_media`.

use std::fs;
use std::os::unix::fs::symlink;

use kitbag_sdk::json;
use kitbag_sdk::serde_json::Value;

use super::Directory;
use crate::file::{WHOLE_BYTES, digest};

/// Returns an answer of `read_file` without the digest.
fn read(directory: &Directory, arguments: Value) -> String {
    let answer = directory.call("read_file", arguments);
    match answer.split_once("digest ") {
        Some((before, after)) => format!("{before}#{}", &after[12..]),
        None => answer,
    }
}

#[test]
fn files_are_read_whole_or_by_lines() {
    let directory = Directory::new();
    directory.file("a.txt", "one\ntwo\nthree\nfour\n").file("empty", "");
    let check = |arguments: Value, expected: &str| {
        let mut all = json!({ "path": "a.txt" });
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        assert_eq!(read(&directory, all), expected, "{arguments}");
    };
    check(json!({}), "[4 lines, #]\none\ntwo\nthree\nfour\n");
    check(json!({ "start_line": 2, "end_line": 3 }), "[lines 2-3 of 4, #]\ntwo\nthree\n");
    check(json!({ "start_line": 4 }), "[line 4 of 4, #]\nfour\n");
    check(json!({ "start_line": -2 }), "[lines 3-4 of 4, #]\nthree\nfour\n");
    check(json!({ "start_line": -9 }), "[4 lines, #]\none\ntwo\nthree\nfour\n");
    check(json!({ "end_line": 9 }), "[4 lines, #]\none\ntwo\nthree\nfour\n");
    check(json!({ "start_line": 3, "numbered": true }), "[lines 3-4 of 4, #]\n3\tthree\n4\tfour\n");
    check(json!({ "max_bytes": 9 }), "[lines 1-2 of 4, #; start_line=3 reads on]\none\ntwo\n");
    check(
        json!({ "start_line": 3, "max_bytes": 3 }),
        "[line 3 of 4, #; start_line=3 start_column=4 reads on]\nthr",
    );
    check(
        json!({ "start_line": 3, "start_column": 4, "end_line": 3, "max_bytes": 3 }),
        "[line 3 of 4, #]\nee\n",
    );
    check(json!({ "start_line": 5 }), "error: `start_line` is 5, but the file has 4 lines");
    check(json!({ "start_line": 0 }), "error: `start_line` is 0, but lines start at 1");
    check(
        json!({ "start_line": 3, "end_line": 2 }),
        "error: `end_line` is 2, before `start_line` 3",
    );
    assert_eq!(read(&directory, json!({ "path": "empty" })), "[empty, #]\n");
}

#[test]
fn truncated_reads_name_the_next_arguments() {
    let directory = Directory::new();
    let content: String = (0..200).map(|n| format!("{n} {}\n", "é".repeat(n))).collect();
    directory.file("a.txt", &content);
    let mut read_so_far = String::new();
    let mut arguments = json!({ "path": "a.txt", "max_bytes": 100 });
    loop {
        let answer = directory.call("read_file", arguments.clone());
        let (head, lines) = answer.split_once('\n').unwrap();
        read_so_far.push_str(lines);
        let Some((_, more)) = head.split_once("; ") else { break };
        arguments = json!({ "path": "a.txt", "max_bytes": 100 });
        for argument in more.trim_end_matches(" reads on]").split(' ') {
            let (key, value) = argument.split_once('=').unwrap();
            arguments[key] = json!(value.parse::<u64>().unwrap());
        }
    }
    assert_eq!(read_so_far, content);
}

#[test]
fn unusual_text_properties_are_reported() {
    let directory = Directory::new();
    let check = |content: &[u8], expected: &str| {
        directory.file("a", content);
        assert_eq!(read(&directory, json!({ "path": "a" })), expected);
    };
    check(b"a\r\nb\r\n", "[2 lines, CRLF, #]\na\nb\n");
    check(b"a\r\nb\n", "[2 lines, mixed line endings, #]\na\nb\n");
    check(b"a", "[1 line, no final newline, #]\na");
    check(b"caf\xe9\n", "[1 line, Latin-1, #]\ncaf\u{e9}\n");
    check(b"\xff\xfea\0\n\0", "[1 line, UTF-16 LE, #]\na\n");
    check(b"\xef\xbb\xbfa\n", "[1 line, UTF-8 with a byte order mark, #]\na\n");
    check(b"a\0b", "error: `a` is binary, not text; `file_info` shows its size and digest");
    check(
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        "error: `a` is binary (image/png), not text; `read_media` gives it",
    );
}

#[test]
fn several_files_are_read_in_one_call() {
    let directory = Directory::new();
    directory.file("a", "1\n").file("b", "2").file("c", "3\n");
    let paths = |paths: Value| directory.call("read_file", json!({ "paths": paths }));
    let [a, b] = [digest(b"1\n"), digest(b"2")];
    assert_eq!(
        paths(json!(["a", "nothing", "b"])),
        format!(
            "[a: 1 line, digest {a}]\n1\n\n[`nothing` does not exist]\n\n\
             [b: 1 line, no final newline, digest {b}]\n2"
        )
    );
    assert_eq!(paths(json!(["x1", "y2"])), "error: `x1` does not exist; `y2` does not exist");
    let few = json!({ "paths": ["a", "b", "c"], "max_bytes": 20 });
    assert!(
        directory
            .call("read_file", few)
            .ends_with("[max_bytes reached; paths=[\"b\",\"c\"] reads on]"),
    );
    assert_eq!(directory.call("read_file", json!({})), "error: `path` or `paths` must name a file");
}

#[test]
fn a_large_file_is_read_in_pieces() {
    let directory = Directory::new();
    let line = |number: u64| format!("{number:0>62}é\n");
    let lines = WHOLE_BYTES / 64;
    let content: String = (1..=lines + 10).map(line).collect();
    directory.file("large", &content);
    let at = |start: i64, bytes: usize| {
        directory
            .call("read_file", json!({ "path": "large", "start_line": start, "max_bytes": bytes }))
    };
    assert_eq!(
        at(1, 140),
        format!("[lines 1-2 of 8.1 MiB; start_line=3 reads on]\n{}{}", line(1), line(2))
    );
    assert_eq!(
        at(100_000, 70),
        format!("[lines 100000-100000 of 8.1 MiB; start_line=100001 reads on]\n{}", line(100_000))
    );
    assert_eq!(
        at(lines as i64 + 10, 1000),
        format!("[lines {0}-{0} of 8.1 MiB]\n{1}", lines + 10, line(lines + 10))
    );
    assert_eq!(at(-1, 1000), format!("[last 1 line of 8.1 MiB]\n{}", line(lines + 10)));
    assert_eq!(at(999_999, 1000), "error: `start_line` is 999999, but `large` has fewer lines");
}

#[test]
fn non_files_are_named_with_the_right_tool() {
    let directory = Directory::new();
    directory.file("in/a", "");
    symlink("loop", directory.path("loop")).unwrap();
    let check = |path: &str, expected: &str| {
        assert_eq!(read(&directory, json!({ "path": path })), expected);
    };
    check("in", "error: `in` is a directory; `list_dir` lists it");
    check("loop", "error: `loop` cannot be read: its symbolic links form a loop");
    check("a", "error: `a` does not exist; nearest: `in/a`");
    check("", "error: a path is empty; `.` is the working directory");
}

#[test]
fn a_directory_is_listed_by_name_and_in_pages() {
    let directory = Directory::new();
    directory.file("b/deep/x", "").file("b/y", "").file("a.txt", "12").file("line\nbreak", "");
    directory.file(".kitbag-tmp-1", "");
    symlink("a.txt", directory.path("link")).unwrap();
    let list = |arguments: Value| directory.call("list_dir", arguments);
    assert_eq!(list(json!({})), "a.txt\nb/\n\"line\\nbreak\"\nlink -> a.txt\n");
    assert_eq!(
        list(json!({ "depth": 3 })),
        "a.txt\nb/\n  deep/\n    x\n  y\n\"line\\nbreak\"\nlink -> a.txt\n"
    );
    assert_eq!(list(json!({ "limit": 2 })), "a.txt\nb/\n[2 more; after=\"b\" reads on]\n");
    assert_eq!(list(json!({ "after": "b" })), "\"line\\nbreak\"\nlink -> a.txt\n");
    assert_eq!(list(json!({ "path": "b/deep/" })), "x\n");
    let details = list(json!({ "details": true, "limit": 1 }));
    assert!(details.starts_with("a.txt  2 B  20"), "{details}");
    fs::create_dir(directory.path("empty")).unwrap();
    assert_eq!(list(json!({ "path": "empty" })), "[empty]\n");
    assert_eq!(
        list(json!({ "path": "a.txt" })),
        "error: `a.txt` is a file; `read_file` reads it, `file_info` describes it"
    );
    assert_eq!(list(json!({ "path": "c" })), "error: `c` does not exist");
}

#[test]
fn every_directory_of_a_tree_gets_a_share() {
    let directory = Directory::new();
    for number in 0..500 {
        directory.file(&format!("full/{number:03}"), "");
    }
    directory.file("zebra/a", "").file("zebra/b", "");
    let tree = directory.call("list_dir", json!({ "depth": 2, "limit": 40 }));
    assert!(tree.contains("  [481 more]\n"), "{tree}");
    assert!(tree.ends_with("zebra/\n  a\n  b\n"), "{tree}");
}

#[test]
fn paths_are_described() {
    let directory = Directory::new();
    directory.file("a.txt", "1\r\n2\r\n").file("in/b", b"\x89PNG\r\n\x1a\n\0");
    symlink("a.txt", directory.path("link")).unwrap();
    symlink("nowhere", directory.path("dangling")).unwrap();
    let info = |path: &str| {
        let answer = directory.call("file_info", json!({ "path": path }));
        let mut info: Value = kitbag_sdk::serde_json::from_str(&answer).unwrap();
        assert!(info.as_object_mut().unwrap().remove("modified").is_some());
        info
    };
    let file = json!({
        "type": "file", "size": 6, "lines": 2, "text": ["CRLF"], "digest": digest(b"1\r\n2\r\n"),
    });
    assert_eq!(info("a.txt"), file);
    let mut link = file;
    link["link"] = json!("a.txt");
    assert_eq!(info("link"), link);
    assert_eq!(info("dangling"), json!({ "type": "link", "link": "nowhere" }));
    assert_eq!(info("in"), json!({ "type": "directory", "entries": 1 }));
    assert_eq!(info("in/b")["media_type"], "image/png");
    assert_eq!(directory.call("file_info", json!({ "path": "c" })), "error: `c` does not exist");
}

#[test]
fn only_images_and_audio_are_shown() {
    let directory = Directory::new();
    directory.file("a.png", png(640, 480)).file("b.wav", b"RIFF\x24\0\0\0WAVEfmt ");
    directory.file("c.txt", "text").file("e", "").file("f", b"\0\x01\x02");
    directory.file("d.zip", b"PK\x03\x04\x14\0\0\0");
    let check = |path: &str, expected: &str| {
        assert_eq!(directory.call("read_media", json!({ "path": path })), expected);
    };
    check("a.png", "image/png, 640 x 480, 45 B");
    check("b.wav", "audio/x-wav, 16 B");
    check("c.txt", "error: `c.txt` is text; `read_file` reads it");
    check("d.zip", "error: `d.zip` is application/zip, neither an image nor audio");
    check("e", "error: `e` is empty");
    check("f", "error: `f` is neither an image nor audio of a known type");
}

/// The chunks of a PNG with its size and its end.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
    png.extend(b"\x08\x02\0\0\0\0\0\0\0\0\0\0\0IEND\xaeB`\x82");
    png.truncate(45);
    png
}

#[test]
fn unsupported_images_are_refused_with_a_fix() {
    let directory = Directory::new();
    let check = |content: &[u8], expected: &str| {
        directory.file("a", content);
        let answer = directory.call("read_media", json!({ "path": "a" }));
        assert_eq!(answer, expected);
    };
    let formats = "cannot be shown: models accept PNG, JPEG, GIF and WebP; convert a copy";
    check(b"BM\x46\0\0\0\0\0\0\0", &format!("error: `a` (image/bmp, 10 B) {formats}"));
    check(b"II*\0\x08\0\0\0\x01\0\0\x01", &format!("error: `a` (image/tiff, 12 B) {formats}"));
    check(&png(640, 480)[..29], "error: `a` (image/png, 29 B) is damaged: its end is missing");
    check(
        &png(640, 480)[..12],
        "error: `a` (image/png, 12 B) is damaged: its header does not contain its size",
    );
    check(&png(0, 480), "error: `a` (image/png, 45 B) is damaged: it has no pixels");
    check(
        &png(9_000, 480),
        "error: `a` (image/png, 45 B) cannot be shown: it has 9000 x 480 pixels, but models accept \
         images of at most 8000 per side; make a smaller copy, such as 1500 pixels wide",
    );
    let large = [png(640, 480), vec![0; 4 << 20]].concat();
    check(
        &large,
        "error: `a` (image/png, 4.0 MiB) cannot be shown: models accept images of at most 3.75 \
         MiB; make a smaller copy, such as 1500 pixels wide",
    );
    let jpeg = b"\xff\xd8\xff\xe0\0\x04JF\xff\xc0\0\x0b\x08\0\x10\0\x20\x01\x01\x11\0\
                 \xff\xda\0\x02abc";
    check(jpeg, "error: `a` (image/jpeg, 28 B) is damaged: its end is missing");
    check(&[&jpeg[..], b"\xff\xd9\0"].concat(), "image/jpeg, 32 x 16, 31 B");
    let gif = b"GIF89a\x10\0\x08\0\0\0\0;";
    check(gif, "image/gif, 16 x 8, 14 B");
    check(&gif[..13], "error: `a` (image/gif, 13 B) is damaged: its end is missing");
}

#[test]
fn a_pdf_is_binary() {
    let directory = Directory::new();
    directory.file("r.pdf", "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n");
    assert_eq!(
        directory.call("read_file", json!({ "path": "r.pdf" })),
        "error: `r.pdf` is binary (application/pdf), not text; `file_info` shows its size and \
         digest"
    );
}

#[test]
fn distant_columns_of_a_line_are_read() {
    let directory = Directory::new();
    let line = "\u{e9}abc".repeat(4 << 20);
    directory.file("a", format!("first\n{line}\nlast\n"));
    let check = |column: usize, expected: &str| {
        let arguments =
            json!({ "path": "a", "start_line": 2, "start_column": column, "max_bytes": 4 });
        let answer = directory.call("read_file", arguments);
        assert_eq!(answer, expected);
    };
    let all = "20.0 MiB";
    let more = |column: usize| format!("start_line=2 start_column={column} reads on");
    check(2, &format!("[lines 2-2 of {all}; {}]\nabc", more(5)));
    check(12_000_001, &format!("[lines 2-2 of {all}; {}]\n\u{e9}ab", more(12_000_004)));
    check(16 << 20, &format!("[lines 2-2 of {all}; start_line=3 reads on]\nc\n"));
    check(
        20_000_000,
        "error: `start_column` is 20000000, but line 2 of `a` has 16777216 characters",
    );
}
