//! Fuzz target for HTTP grants. `cargo fuzz` runs it for any duration, and
//! `crates/policy/tests/fuzzing.rs` runs it over the corpus with every `cargo test`.

use kitbag_base::text::is_hidden;
use kitbag_policy::{HttpGrant, HttpGrants, HttpRequest, UrlPattern};

/// Checks a pattern, a method and a URL, one per line: a parsed pattern is printed unchanged, the
/// grant that a request needs allows the request, and a pattern that allows the request covers its
/// URL.
pub(crate) fn requests(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let (pattern, method) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let url = lines.next().unwrap_or("");
    let pattern = UrlPattern::parse(pattern);
    if let Ok(pattern) = &pattern {
        assert_eq!(pattern.to_string().parse().as_ref(), Ok(pattern));
        assert!(pattern.holds(pattern), "{pattern}");
    }
    let request = match HttpRequest::new(method, url) {
        Ok(request) => request,
        Err(refusal) => {
            assert_eq!(refusal.missing, None);
            assert!(!refusal.reason.contains(is_hidden), "{:?}", refusal.reason);
            return;
        }
    };
    let narrowest = HttpGrant::allowing(&request);
    assert_eq!(narrowest.url.to_string().parse().as_ref(), Ok(&narrowest.url));
    let decide = |grant: HttpGrant| HttpGrants::from(vec![grant]).decide(&request).is_ok();
    assert!(decide(narrowest.clone()), "{request}");
    if let Ok(pattern) = pattern {
        let is_allowed = decide(HttpGrant { url: pattern.clone(), ..narrowest.clone() });
        // An address outside the public internet must be named.
        assert!(!is_allowed || pattern.holds(&narrowest.url), "{pattern} {request}");
    }
}
