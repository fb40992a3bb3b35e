use super::*;

fn pattern(text: &str) -> TextPattern {
    TextPattern::new(text).unwrap()
}

#[track_caller]
fn check(text: &str, fits: &[&str], others: &[(&str, Misfit)]) {
    for value in fits {
        assert_eq!(pattern(text).check(value), Ok(()), "{text} {value:?}");
    }
    for (value, misfit) in others {
        assert_eq!(pattern(text).check(value), Err(*misfit), "{text} {value:?}");
    }
}

#[test]
fn patterns_without_wildcards_match_one_string() {
    use Misfit::Differs;
    check("a/../b", &["a/../b"], &[("b", Differs), ("a/../B", Differs), ("", Differs)]);
    check("", &[""], &[(" ", Differs)]);
    check("a\n", &["a\n"], &[("a", Differs)]);
    check("[a-z]?", &["[a-z]?"], &[("a", Differs)]);
}

#[test]
fn stars_match_within_and_across_segments() {
    use Misfit::Differs;
    check("src/*.rs", &["src/a.rs", "src/.rs"], &[("src/a/b.rs", Differs), ("a.rs", Differs)]);
    check("src/*", &["src/a"], &[("src/", Differs), ("src", Differs), ("src/a/b", Differs)]);
    check("src/**", &["src", "src/", "src/a", "src/a/b"], &[("srca", Differs), ("", Differs)]);
    check("**/b", &["b", "a/b", "a/a/b"], &[("ab", Differs), ("b/a", Differs)]);
    check("**", &["", "a", "/etc/passwd"], &[]);
    check("*", &["a", "a b?c[d]"], &[("", Differs), ("a/b", Differs)]);
    check("a/**/**/b", &["a/b", "a/x/y/b"], &[("a", Differs)]);
    check("?[a]*", &["?[a]b"], &[("xab", Differs)]);
}

#[test]
fn values_are_never_normalized() {
    use Misfit::{Control, Dots, Long};
    let long = format!("src/{}", "a".repeat(TextPattern::TEXT_BYTES - 3));
    check(
        "src/**",
        &[&long[..TextPattern::TEXT_BYTES], "src/a..b", "src/...", "src/100%", "src/a%zz"],
        &[
            (&long, Long),
            ("src/../a", Dots),
            ("src/./a", Dots),
            ("src/..", Dots),
            ("src\\..\\a", Dots),
            ("src/%2e%2e/a", Dots),
            ("src/%2E./a", Dots),
            ("src/..%2fa", Dots),
            ("src/..%5ca", Dots),
            ("src/%252e%252e/a", Dots),
            ("src/%25252e%25252e%25252fa", Dots),
            ("src/\u{ff0e}\u{ff0e}/a", Dots),
            ("src/..;x/a", Dots),
            ("src/.. /a", Dots),
            ("src/%c0%ae%c0%ae/a", Control),
            ("src/a\nb", Control),
            ("src/a\0", Control),
            ("src/a%00", Control),
            ("src/a%250a", Control),
            ("src/a\u{85}", Control),
        ],
    );
}

#[test]
fn url_patterns_keep_their_host() {
    use Misfit::{Differs, Slash};
    check(
        "https://docs.rs/**",
        &["https://docs.rs", "https://docs.rs/", "https://docs.rs/a/b?q=/x#y"],
        &[
            ("http://docs.rs/a", Differs),
            ("https://docs.rs.evil.example/", Differs),
            ("https://docs.rs@evil.example/", Differs),
            ("https://docs.rs:8443/", Differs),
            ("https://user@docs.rs/", Differs),
            ("https:/docs.rs/", Differs),
            ("HTTPS://docs.rs/", Differs),
            ("https://docs.rs?@evil.example/", Differs),
            ("https://docs.rs#@evil.example/", Differs),
            ("https://docs.rs\\@evil.example/", Slash),
            ("https://docs.rs%2f@evil.example/", Slash),
            ("https://docs.rs/a\\b", Slash),
            ("https://docs.rs/a%252fb", Slash),
        ],
    );
    check(
        "https://*.docs.rs/**",
        &["https://a.docs.rs/x", "https://a.b.docs.rs"],
        &[
            ("https://evil.example?.docs.rs/", Differs),
            ("https://evil.example#.docs.rs/", Differs),
            ("https://evil.example/.docs.rs/", Differs),
            ("https://evil.example\\.docs.rs/", Slash),
            ("https://evil.example%2f.docs.rs/", Slash),
            ("https://evil.example%23.docs.rs/", Differs),
            ("https://u@evil.example:80.docs.rs/", Differs),
            ("https://evil.example:80.docs.rs/", Differs),
            ("https://evil.example\u{ff0f}.docs.rs/", Differs),
            ("https://evil.example .docs.rs/", Differs),
        ],
    );
    check(
        "https://docs.rs/*/latest",
        &["https://docs.rs/serde/latest"],
        &[
            ("https://docs.rs/evil?/latest", Differs),
            ("https://docs.rs/evil#/latest", Differs),
            ("https://docs.rs/a/latest?x", Differs),
            ("https://docs.rs//latest", Differs),
        ],
    );
    check(
        "https://api.example/*?v=1",
        &["https://api.example/a?v=1"],
        &[("https://api.example/a?v=1&x", Differs), ("https://api.example/a", Differs)],
    );
    check(
        "http://localhost:*/a",
        &["http://localhost:80/a"],
        &[("http://localhost/a", Differs), ("http://localhost:80:90/a", Differs)],
    );
}

#[test]
fn invalid_patterns_are_refused() {
    use TextPatternProblem::{Host, Long, Nothing, Query, Scheme, Stars};
    let check = |text: &str, problem: TextPatternProblem| {
        assert_eq!(TextPattern::new(text).unwrap_err().problem, problem, "{text}");
    };
    check(&"a".repeat(TextPattern::PATTERN_BYTES + 1), Long);
    check("a**", Stars);
    check("***", Stars);
    check("src/../*", Nothing);
    check("src/%2e%2e/*", Nothing);
    check("a\n*", Nothing);
    check("https://a/%2f*", Nothing);
    check("*://docs.rs/a", Scheme);
    check("h*s://docs.rs/a", Scheme);
    check("https://u@*.docs.rs/", Host);
    check("https://**/a", Host);
    check("https://*:1:2/", Host);
    check("https://docs.rs/?q=*", Query);
    check("https://docs.rs/#**", Query);
    assert!(TextPattern::new("https://**").is_ok());
    assert!(TextPattern::new("**://a").is_err());
    assert!(TextPattern::new("a/*://b").is_ok(), "no scheme has a slash");
    assert!(TextPattern::new("a?b://*").is_ok(), "nor a question mark");
}

#[test]
fn patterns_cover_narrower_patterns() {
    let check = |own: &str, other: &str, expected: bool| {
        assert_eq!(pattern(own).holds(&pattern(other)), expected, "{own} {other}");
    };
    check("a", "a", true);
    check("a", "*", false);
    check("*", "a", true);
    check("*", "a/b", false);
    check("**", "a/*/**", true);
    check("**", "https://a/**", true);
    check("**", "https://a/*?b", false);
    check("a/**", "a/../b", false);
    check("a/*", "a/b*", true);
    check("a/*", "a/**", false);
    check("https://*.a/**", "https://b.a/**", true);
    check("https://*.a/**", "https://c:1.a/**", false);
    check("https://*.a/**", "https://u@c.a/**", false);
    check("https://*.a/**", "https://*.b.a/*", true);
    check("https://a/**", "https://a/*?q", true);
    check("https://a/*", "https://a/*?q", false);
    check("https://a/*?q", "https://a/b?q", true);
    check("https://a/*/b", "https://a/**", false);
    check("https://**", "https://*/a", true);
    check("https://**", "**", false);
}
