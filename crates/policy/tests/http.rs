//! Grants of HTTP and requests: what is read, matched, held and denied, by the cases in
//! `http/`.

use kitbag_policy::HttpRequest;

/// The lines of a file of cases, with their numbers, without comments.
fn cases(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// A text with `\t`, `\r`, `\n`, `\\`, `\xNN` and `\u{N}` read as in Rust.
fn unescaped(text: &str) -> String {
    let mut chars = text.chars();
    let mut out = String::new();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        let number = |digits: String| {
            let number = u32::from_str_radix(&digits, 16).unwrap();
            char::from_u32(number).unwrap()
        };
        out.push(match chars.next().unwrap() {
            't' => '\t',
            'r' => '\r',
            'n' => '\n',
            'x' => number(chars.by_ref().take(2).collect()),
            'u' => number(chars.by_ref().skip(1).take_while(|char| *char != '}').collect()),
            char => char,
        });
    }
    out
}

#[test]
fn a_request_is_never_repaired() {
    for (line, case) in cases(include_str!("http/requests.txt")) {
        let mut words = case.rsplitn(2, ' ');
        let (expected, request) = (words.next().unwrap(), words.next().unwrap());
        let (method, url) = request.split_once(' ').unwrap();
        let (method, url) = (unescaped(method), unescaped(url));
        let outcome = match HttpRequest::new(&method, &url) {
            Ok(_) => "ok".to_owned(),
            Err(refusal) => {
                assert_eq!(refusal.missing, None, "line {line}: {case}");
                assert!(!refusal.reason.contains(char::is_control), "line {line}: {case}");
                refusal.kind.to_string()
            }
        };
        assert_eq!(outcome, expected, "line {line}: {case}");
    }
}

#[test]
fn a_url_has_at_most_8_kib() {
    let url = |length: usize| format!("https://a.example/{}", "x".repeat(length - 18));
    assert!(HttpRequest::get(&url(8192)).is_ok());
    let refusal = HttpRequest::get(&url(8193)).unwrap_err();
    assert_eq!(refusal.kind.as_str(), "size");
}
