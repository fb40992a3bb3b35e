//! Native tests of the tool: calls and answers in `cases/`, with responses next to them.

use std::fs;
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use kitbag_sdk::{Call, ErrorInfo, Tool, json, serde_json};
use proptest::prelude::*;

use crate::Fetch;
use crate::arguments::{Format, Method, max_bytes};
use crate::request::Request;
use crate::response::Response;

#[test]
fn the_description_has_the_default_of_the_code() {
    let described: serde_json::Value = serde_json::from_str(crate::DESCRIPTION).unwrap();
    assert_eq!(described["inputSchema"]["properties"]["max_bytes"]["default"], max_bytes());
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// Parses a response file: a status line, header fields, an empty line, the body.
fn parse(file: &[u8]) -> Response {
    let end = file.windows(2).position(|two| two == b"\n\n").unwrap();
    let head = str::from_utf8(&file[..end]).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().parse().unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    let headers = headers.map(|(name, value)| (name.to_owned(), value.into())).collect();
    Response { status, headers, body: Box::new(Cursor::new(file[end + 2..].to_vec())) }
}

fn response(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Response {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
    Response { status, headers: headers.collect(), body: Box::new(Cursor::new(body.into())) }
}

fn call_with(
    arguments: &str,
    send: impl Fn(&Request) -> Result<Response, ErrorInfo>,
) -> Result<String, ErrorInfo> {
    crate::run(&Call::new("fetch", "/", arguments, "{}"), send)
}

/// Returns the result of a response to a simple call.
fn shown(response: Response) -> Result<String, String> {
    let response = std::cell::RefCell::new(Some(response));
    let send = |_: &Request| Ok(response.take().unwrap());
    call_with(r#"{"url":"https://a.test/"}"#, send).map_err(|error| error.message)
}

#[test]
fn responses_are_shown() {
    kitbag_cases::check(cases().join("fetch.txt"), |_, arguments| {
        let send = |request: &Request| {
            let name = request.url.path().trim_start_matches('/');
            let file = fs::read(cases().join("responses").join(name)).unwrap();
            Ok(parse(&file))
        };
        call_with(arguments, send).map_err(|error| error.message)
    });
}

#[test]
fn non_web_urls_are_refused_before_sending() {
    kitbag_cases::check(cases().join("urls.txt"), |_, arguments| {
        let send = |request: &Request| {
            Ok(response(200, &[], format!("{} {}", request.shown(), request.accept)))
        };
        call_with(arguments, send).map_err(|error| error.message)
    });
}

#[test]
fn temporary_errors_are_transient() {
    for (status, expected) in [(404, false), (403, false), (429, true), (500, true), (503, true)] {
        let send = |_: &Request| Ok(response(status, &[], ""));
        let error = call_with(r#"{"url":"https://a.test/"}"#, send).unwrap_err();
        assert_eq!(error.transient, expected, "{status}");
    }
}

#[test]
fn the_header_overrides_the_encoding_of_the_page() {
    let check = |content_type: &str, body: &[u8], expected: &str| {
        let response = response(200, &[("Content-Type", content_type)], body);
        assert_eq!(shown(response).unwrap(), expected, "{content_type}");
    };
    check("text/html; charset=iso-8859-2", b"<p>\xb1\xe6", "ąć");
    check("text/html; charset=\"windows-1251\"", b"<meta charset=utf-8><p>\xe4\xe0", "да");
    check("text/html", b"<meta charset=windows-1251><p>\xe4\xe0", "да");
    check("text/html;charset=utf-8", b"\xff\xfe<\0p\0>\0a\0", "a");
    check("text/html", "<p>é".as_bytes(), "é");
    check("text/html", b"<p>\xe9", "é\n[encoding guessed: windows-1252; none is declared]");
    check("text/html; charset=no-such", b"<meta charset=windows-1251><p>\xe4", "д");
    check("text/plain; charset=shift_jis", b"\x93\xfa\x96\x7b", "日本");
    check("text/plain", "日本".as_bytes(), "日本");
    check("text/plain", b"caf\xe9", "café\n[encoding guessed: windows-1252; none is declared]");
    check("text/plain; x=y; CHARSET=UTF-8", b"\xef\xbb\xbfa", "a");
}

#[test]
fn compressed_bodies_are_decompressed() {
    let text = "text ".repeat(1000);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(text.as_bytes()).unwrap();
    let packed = |coding, bytes| response(200, &[("content-encoding", coding)], bytes);
    assert_eq!(shown(packed("gzip", gzip.finish().unwrap())).unwrap(), text);
    assert_eq!(shown(packed("deflate", zlib.finish().unwrap())).unwrap(), text);
    let error = shown(packed("br", Vec::new())).unwrap_err();
    assert_eq!(error, "the response has the encoding `br`, which was not requested");
}

/// A body that ends with an error.
struct Broken(&'static [u8]);

impl Read for Broken {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into)? {
            0 => Err(io::Error::other("the response ended early")),
            count => Ok(count),
        }
    }
}

#[test]
fn incomplete_bodies_are_marked_as_truncated() {
    let broken = |content_type: &str, text: &'static [u8]| Response {
        status: 200,
        headers: vec![("content-type".into(), content_type.into())],
        body: Box::new(Broken(text)),
    };
    let note = "\n[truncated: the response ended early]";
    assert_eq!(shown(broken("text/plain", b"abc\xe6\x97")).unwrap(), format!("abc{note}"));
    assert_eq!(shown(broken("text/html", b"<h1>A</h1><p>b")).unwrap(), format!("# A\n\nb{note}"));
    let error = shown(broken("text/plain", b"")).unwrap_err();
    assert_eq!(error, "the response has no readable body: the response ended early");
    let error = shown(broken("image/png", b"\x89PNG\r\n\x1a\n")).unwrap_err();
    assert_eq!(error, "the image at `https://a.test/` is incomplete: the response ended early");
}

#[test]
fn endless_bodies_are_read_up_to_the_limit() {
    let endless = |content_type: &str| Response {
        status: 200,
        headers: vec![("content-type".into(), content_type.into())],
        body: Box::new(io::repeat(b'a')),
    };
    let text = shown(endless("text/plain")).unwrap();
    let note = "\n[bytes 0-40000 of 8388608; offset=40000 reads on]\
                \n[truncated: only the first 8 MiB are read]";
    assert_eq!(text.len(), 40_000 + note.len());
    assert!(text.ends_with(note), "{}", &text[40_000..]);
    assert!(
        shown(endless("text/html"))
            .unwrap()
            .ends_with("[truncated: only the first 8 MiB are read]")
    );
}

#[test]
fn oversized_pages_are_read_up_to_the_limit() {
    let items = "<li><a href=\"/a/b\">text</a></li>\n".repeat(250_000);
    let page = format!("<title>Many</title><ul>{items}</ul>");
    let text = shown(response(200, &[("content-type", "text/html")], page)).unwrap();
    assert!(text.starts_with("# Many\n\n- [text](https://a.test/a/b)\n"), "{}", &text[..60]);
    let note = "\n[truncated: only the first 200000 elements and text nodes are read]";
    assert!(text.ends_with(note), "{}", &text[text.len() - 100..]);
}

#[test]
fn titles_and_image_text_are_escaped() {
    let text = "a [b](https://c.test) `d` <e> \\";
    let escaped = "a \\[b\\](https://c.test) \\`d\\` \\<e> \\\\";
    let encoded = text.replace('<', "&lt;");
    let page = format!("<title>{encoded}</title><p>Text.</p><img src=/f alt=\"{encoded}\">");
    let shown = shown(response(200, &[("content-type", "text/html")], page)).unwrap();
    assert!(shown.starts_with(&format!("# {escaped}\n\nText.")), "{shown}");
    assert!(shown.contains(&format!("![{escaped}](https://a.test/f)")), "{shown}");
}

#[test]
fn compression_bombs_are_read_up_to_the_limit() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..32 {
        gzip.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    let bytes = gzip.finish().unwrap();
    let text = shown(response(200, &[("content-encoding", "gzip")], bytes)).unwrap();
    assert!(text.ends_with("[truncated: only the first 8 MiB are read]"), "{}", text.len());
}

#[test]
fn an_image_is_content() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x06\0\0\0";
    // With any header.
    for content_type in ["image/png", "image/jpeg", "text/html", "application/octet-stream"] {
        let response = response(200, &[("content-type", content_type)], png);
        assert_eq!(shown(response).unwrap(), "image/png, 2 x 3, 29 bytes");
    }
}

#[test]
fn calls_are_rendered_on_one_line() {
    let call = Call::new("fetch", "/", "{}", "{}");
    let arguments = serde_json_from(json!({ "url": "https://a.test/\n", "method": "HEAD" }));
    assert_eq!(Fetch::format_arguments(&call, arguments), r#"HEAD "https://a.test/\n""#);
}

fn serde_json_from(value: kitbag_sdk::serde_json::Value) -> crate::Arguments {
    kitbag_sdk::serde_json::from_value(value).unwrap()
}

proptest! {
    #[test]
    fn any_response_has_an_answer_or_error(
        status in 100u16..600,
        content_type in "(text/(html|plain)|image/png|application/json|\\PC{0,12})(; ?charset=(utf-8|utf-16|x|iso-8859-1))?",
        location in proptest::option::of("\\PC{0,12}"),
        body in proptest::collection::vec(any::<u8>(), 0..200),
        head: bool,
    ) {
        let mut headers = vec![("content-type", &*content_type)];
        headers.extend(location.iter().map(|location| ("location", &**location)));
        let method = if head { "HEAD" } else { "GET" };
        let arguments = json!({ "url": "https://a.test/", "method": method }).to_string();
        let _ = call_with(&arguments, |_| Ok(response(status, &headers, body.clone())));
    }

    #[test]
    fn any_url_has_an_answer_or_error(url in "(https?:)?(//)?[a-z@:/\\\\.?#%\\[\\] ]{0,20}|\\PC{0,20}") {
        if let Ok(request) = Request::new(&url, Method::Get, Format::Markdown) {
            prop_assert!(matches!(request.url.scheme(), "http" | "https"));
            prop_assert!(request.url.username().is_empty());
            prop_assert!(request.url.fragment().is_none());
        }
    }
}
