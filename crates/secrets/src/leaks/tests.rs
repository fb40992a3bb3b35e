use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::*;

/// Text without findings that resembles keys and tokens.
const NEGATIVES: &str = include_str!("../../data/negatives.txt");

/// One line per finding: the rule and the text, with `{}` inside so that scanners of repositories
/// do not report it.
const POSITIVES: &str = include_str!("../../data/positives.txt");

fn positives() -> impl Iterator<Item = (&'static str, String)> {
    let lines = POSITIVES.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| {
        let (rule, text) = line.split_once(' ').unwrap();
        (rule, text.replace("{}", "").replace("\\n", "\n"))
    })
}

fn positive(rule: &str) -> String {
    positives().find(|(name, _)| *name == rule).unwrap().1
}

#[test]
fn rules_are_sorted_and_have_a_positive() {
    let rules = rules();
    for rule in &rules {
        let behind = rule.behind.as_ref().map_or(0, |behind| behind.least);
        let prefix = rule.prefixes.iter().map(String::len).min().unwrap();
        let shortest = match rule.form {
            Form::Token | Form::Block => prefix + rule.least + behind,
            Form::Assignment | Form::Password | Form::Url => rule.least,
        };
        assert!(rule.is_generic() || shortest >= 16, "{}", rule.name);
        assert!(rule.least <= rule.most, "{}", rule.name);
        let mask = MASK_START.len() + rule.mask_name().len() + 1;
        let is_masked = rule.on_answer == OnAnswer::Redact;
        assert!(!is_masked || mask <= shortest, "the mask of {} has {mask}", rule.name);
        // A run is compared with the rule once, unless only its length and characters are checked,
        // which are known for each part of it.
        let is_apart = |prefix: &String| prefix.bytes().any(|byte| !rule.chars.has(byte));
        let is_once = rule.alone || rule.prefixes.iter().all(is_apart);
        let is_exact = rule.least == rule.most;
        let is_plain = rule.parts.is_empty()
            && rule.contains.is_none()
            && !rule.mixed
            && rule.check.is_none()
            && rule.is_severe();
        // An operator is between a name and its value, and a run contains one value.
        let is_formed = matches!(rule.form, Form::Password | Form::Assignment | Form::Url);
        assert!(is_once || is_plain || is_exact || is_formed, "{}", rule.name);
        assert!(positives().any(|(name, _)| name == rule.name), "{}", rule.name);
        assert!(rule.prefixes.iter().all(|prefix| prefix.is_ascii() && prefix.len() >= 3));
    }
    let names: HashSet<_> = rules.iter().map(|rule| &rule.name).collect();
    assert_eq!(names.len(), rules.len());
    let masks: HashSet<_> = rules.iter().map(Rule::mask_name).collect();
    assert_eq!(masks.len(), rules.len());
    // A position that one prefix settles is settled for the prefixes in it.
    let tokens = || rules.iter().filter(|rule| rule.form == Form::Token && rule.is_severe());
    for (own, inner) in tokens().flat_map(|own| tokens().map(move |inner| (own, inner))) {
        for (prefix, within) in own.prefixes.iter().flat_map(|prefix| {
            inner.prefixes.iter().map(move |within| (prefix.as_bytes(), within.as_bytes()))
        }) {
            let ends = (0..prefix.len()).filter(|at| prefix[*at..].starts_with(within));
            for rest in ends.map(|at| &prefix[at + within.len()..]).filter(|r| !r.is_empty()) {
                let is_apart = rest.iter().any(|byte| !inner.chars.has(*byte));
                assert!(is_apart || inner.alone, "{} in {}", inner.name, own.name);
            }
        }
    }
    let mut prefixes = rules.iter().flat_map(|rule| &rule.prefixes);
    assert!(prefixes.all(|prefix| prefix.len() <= LONGEST_PREFIX));
}

/// Returns a token in the contexts of files, requests and answers.
fn in_context(token: &str) -> Vec<String> {
    vec![
        token.to_owned(),
        format!("{token}\n"),
        format!("Bearer {token}\n"),
        format!("{{\"k\":\"{token}\"}}"),
        format!("first\\n{token}\\nlast"),
        format!("export KEY='{token}'\n"),
        format!("a=b&key={token}&c=d"),
        format!("<key>{token}</key>"),
        format!("the key is {token}, and more"),
    ]
}

#[test]
fn positives_are_found_only_by_their_rule() {
    let leaks = Leaks::new(Vec::new());
    for (rule, token) in positives() {
        let own = leaks.rules.iter().find(|own| own.name == rule);
        let own = own.unwrap_or_else(|| panic!("there is no rule {rule}"));
        let contexts = in_context(&token);
        // The context of a value decides whether it is a finding.
        let is_free = own.form == Form::Token && own.check.is_none();
        for text in &contexts[..if is_free { contexts.len() } else { 2 }] {
            let found: Vec<_> = leaks.find(text.as_bytes()).collect();
            let is_generic = |leak: &&Leak<'_>| leak.on_answer == OnAnswer::Warn;
            let of_vendors: Vec<_> = match own.on_answer {
                OnAnswer::Redact => found.iter().filter(|leak| !is_generic(leak)).collect(),
                OnAnswer::Warn => found.iter().filter(|leak| leak.rule == rule).collect(),
            };
            assert_eq!(of_vendors.len(), 1, "{rule}: {text}: {found:?}");
            assert_eq!(of_vendors[0].rule, rule, "{text}");
            if own.form == Form::Token && own.check.is_none() {
                let span = of_vendors[0].span.clone();
                assert!(text[span].starts_with(token.trim_end()), "{rule}: {text}: {found:?}");
            }
        }
    }
}

#[test]
fn at_least_95_percent_of_each_vendor_are_found() {
    let leaks = Leaks::new(Vec::new());
    let mut found = BTreeMap::<_, (usize, usize)>::new();
    for (rule, token) in positives() {
        for text in in_context(&token) {
            let (hits, all) = found.entry(rule).or_default();
            *hits += usize::from(leaks.find(text.as_bytes()).any(|leak| leak.rule == rule));
            *all += 1;
        }
    }
    for (rule, (hits, all)) in found {
        let own = leaks.rules.iter().find(|own| own.name == rule).unwrap();
        assert!(own.is_generic() || hits * 100 >= all * 95, "{rule}: {hits} of {all}");
    }
}

#[test]
fn masks_replace_the_whole_value() {
    let leaks = Leaks::new(Vec::new());
    for (rule, token) in positives() {
        let own = leaks.rules.iter().find(|own| own.name == rule).unwrap();
        for text in [token.clone(), format!("{{\"k\":{}}}", serde_json::json!(token))] {
            let mut masked = text.clone();
            leaks.redact(&mut masked);
            if own.on_answer == OnAnswer::Warn {
                assert_eq!(masked, text);
                continue;
            }
            let mask = format!("{MASK_START}{}]", own.mask_name());
            assert!(masked.contains(&mask), "{rule}: {masked}");
            assert!(masked.len() <= text.len(), "{rule}: {masked}");
            assert!(leaks.find(masked.as_bytes()).next().is_none(), "{rule}: {masked}");
            if text != token {
                serde_json::from_str::<serde_json::Value>(&masked).expect("it is still JSON");
            }
        }
    }
}

#[test]
fn private_keys_are_masked_with_their_last_line() {
    let leaks = Leaks::new(Vec::new());
    let data = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    let check = |begin: &str, end: &str, expected: &str| {
        let mut text = format!("a\n{begin}{data}{data}{end}b");
        leaks.redact(&mut text);
        assert_eq!(text, expected);
    };
    let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
    let mask = format!("{MASK_START}private-key]");
    check(&format!("{begin}\n"), &format!("\n{end}\n"), &format!("a\n{mask}\nb"));
    check(&format!("{begin}\\n"), &format!("\\n{end}\\n\""), &format!("a\n{mask}\\n\"b"));
    check(&format!("{begin}\n"), "\\\"", &format!("a\n{mask}\\\"b"));
    check(
        "-----BEGIN+PRIVATE+KEY-----%0A",
        "%0A-----END+PRIVATE+KEY-----%0A&",
        &format!("a\n{mask}%0A&b"),
    );
    let headers = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0123456789ABCDEF\n\n";
    check(&format!("{begin}\n{headers}"), &format!("\n{end}"), &format!("a\n{mask}b"));
}

#[test]
fn truncated_tokens_are_masked() {
    let leaks = Leaks::new(Vec::new());
    let token = positive("github-token");
    let check = |length: usize, expected: &str| {
        let mark = "\n[cut]";
        let mut text = format!("key {}{mark}", &token[..length]);
        let cut = text.len() - mark.len();
        leaks.redact_cut(&mut text, Some(cut));
        assert_eq!(text, format!("key {expected}{mark}"));
    };
    check(6, &token[..6]);
    check(12, "************");
    check(39, &format!("{MASK_START}github-token]"));
    check(token.len(), &format!("{MASK_START}github-token]"));
}

/// Adds a backslash before each of these characters.
fn escaped(text: &str, of: &str) -> String {
    let escaped = |c| if of.contains(c) { format!("\\{c}") } else { String::from(c) };
    text.chars().map(escaped).collect()
}

#[test]
fn keys_with_escaped_punctuation_are_masked() {
    let leaks = Leaks::new(Vec::new());
    for (rule, token) in positives() {
        let own = leaks.rules.iter().find(|own| own.name == rule).unwrap();
        // Characters that Markdown escapes, all characters of keys, and single characters.
        let marks = ["_*[]`", "_-.~+/=@:#!$%*?^|&", "_", "-", ".", "+", "/", "=", ":"];
        for text in marks.map(|marks| format!("the key\n{}\nis", escaped(&token, marks))) {
            let is_masked = own.on_answer == OnAnswer::Redact;
            let json = is_masked.then(|| serde_json::json!(text).to_string());
            for text in [text].into_iter().chain(json) {
                let found: Vec<_> = leaks.find(text.as_bytes()).map(|leak| leak.rule).collect();
                assert!(found.contains(&rule), "{rule}: {text}: {found:?}");
                if !is_masked {
                    continue;
                }
                let mut masked = text.clone();
                leaks.redact(&mut masked);
                let mask = format!("{MASK_START}{}]", own.mask_name());
                assert!(masked.contains(&mask), "{rule}: {text}: {masked}");
                assert!(masked.len() <= text.len(), "{rule}: {masked}");
                let left: Vec<_> = leaks.find(masked.as_bytes()).map(|leak| leak.rule).collect();
                assert!(!left.contains(&rule), "{rule}: {masked}");
                if text.starts_with('"') {
                    serde_json::from_str::<String>(&masked).expect(&masked);
                }
            }
        }
    }
}

#[test]
fn escaped_keys_have_the_same_fingerprint() {
    let token = positive("github-token");
    let text = format!("a {} b", escaped(&token, "_"));
    let all = Leaks::new(Vec::new());
    let leak = all.find(text.as_bytes()).next().unwrap();
    assert_eq!(leak.fingerprint, Fingerprint::of(token.as_bytes()));
    assert_eq!(&text[leak.span], escaped(&token, "_"));
    let leaks = Leaks::new(vec![AllowedLeak::Fingerprint(leak.fingerprint)]);
    assert!(leaks.find(text.as_bytes()).next().is_none());
}

#[test]
fn truncated_escaped_tokens_are_masked() {
    let leaks = Leaks::new(Vec::new());
    let token = escaped(&positive("github-token"), "_");
    for cut in [12, 30, token.len()] {
        let mut text = format!("a\\_b {}\\\n[cut]", &token[..cut]);
        leaks.redact_cut(&mut text, Some("a\\_b ".len() + cut + 1));
        assert!(!text.contains("ghp"), "{text}");
    }
}

/// Returns the lines of a block with `count` lines of data. The last data line is short.
fn block_lines(kind: &str, count: usize) -> Vec<String> {
    const CHARS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 7u64;
    let mut line = |length: usize| -> String {
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(CHARS[(state >> 58) as usize])
        };
        (0..length).map(next).collect()
    };
    let mut lines = vec![format!("-----BEGIN {kind}-----")];
    lines.extend((1..count).map(|_| line(64)));
    lines.extend([line(22) + "==", format!("-----END {kind}-----")]);
    lines
}

/// Forms in which tools show the lines of a file.
fn shown_lines(lines: &[String]) -> Vec<String> {
    let numbered = |form: fn(usize, &String) -> String| -> String {
        lines.iter().enumerate().map(|(number, line)| form(number + 9, line)).collect()
    };
    let array = serde_json::json!(lines);
    let (first, rest) = lines.split_at(lines.len() / 2);
    let joined = |mark: &str, lines: &[String]| -> String {
        lines.iter().map(|line| format!("{mark}{line}\n")).collect()
    };
    vec![
        numbered(|_, line| format!("+{line}\n")),
        numbered(|_, line| format!("-{line}\n")),
        numbered(|number, line| format!("{}{line}\n", if number < 12 { ' ' } else { '-' })),
        numbered(|number, line| format!("{}{line}\n", if number % 2 == 0 { '+' } else { '-' })),
        numbered(|number, line| format!("{number}:{line}\n")),
        numbered(|number, line| format!("{number:>6}\t{line}\n")),
        numbered(|number, line| format!("{number}-{line}\n")),
        numbered(|number, line| {
            format!("deploy/keys-of-examples/server_key.pem:{number}-{line}\n")
        }),
        numbered(|_, line| format!("> {line}\n")),
        numbered(|_, line| format!("| {line}\r\n")),
        numbered(|_, line| format!("{line}  \n")),
        numbered(|_, line| format!("{line}<br>\n")),
        numbered(|_, line| format!("{line}\\\n")),
        numbered(|_, line| format!("    \"{line}\\n\" +\n")),
        numbered(|_, line| format!("{{\"line\":\"{line}\"}}\n")),
        format!(
            "@@ -1,9 +1,9 @@\n{}@@ -40,9 +52,9 @@ fn key() {{\n{}",
            joined("-", first),
            joined("-", rest)
        ),
        joined("-", lines) + &joined("+", lines),
        array.to_string(),
        format!("{array:#}"),
        serde_json::json!({ "content": format!("{array:#}") }).to_string(),
    ]
}

#[track_caller]
fn check_masked(lines: &[String], text: &str) {
    let leaks = Leaks::new(Vec::new());
    let mut masked = text.to_owned();
    let found = leaks.redact(&mut masked);
    assert!(found.iter().any(|leak| leak.rule == "private-key"), "{text}");
    for line in lines.iter().filter(|line| !line.contains("---")) {
        assert!(!masked.contains(&line[..line.len() - 2]), "{line}: {masked}");
    }
    assert!(masked.len() <= text.len());
    if serde_json::from_str::<serde_json::Value>(text).is_ok() {
        serde_json::from_str::<serde_json::Value>(&masked).expect(&masked);
    }
}

#[test]
fn private_keys_with_line_prefixes_are_masked() {
    for kind in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"] {
        let lines = block_lines(kind, 25);
        for text in shown_lines(&lines) {
            check_masked(&lines, &text);
        }
    }
}

#[test]
fn incomplete_private_keys_are_masked() {
    let lines = block_lines("PRIVATE KEY", 25);
    let last = lines.len() - 1;
    for text in shown_lines(&lines[1..]) {
        check_masked(&lines[1..], &text);
    }
    for text in shown_lines(&lines[..last - 1]) {
        check_masked(&lines[..last - 1], &text);
    }
    // Two lines and the end of another are enough.
    for text in shown_lines(&lines[last - 3..]) {
        check_masked(&lines[last - 3..], &text);
    }
}

#[test]
fn text_around_private_keys_is_kept() {
    let leaks = Leaks::new(Vec::new());
    let certificate = block_lines("CERTIFICATE", 9).join("\n");
    let public = block_lines("PUBLIC KEY", 9).join("\n");
    let key = block_lines("PRIVATE KEY", 9);
    let mask = format!("{MASK_START}private-key]");
    let check = |key: &[String], expected: &str| {
        let around = |own: &str| format!("{certificate}\n{public}\n{own}\n{certificate}\n{public}");
        let mut text = around(&key.join("\n"));
        leaks.redact(&mut text);
        assert_eq!(text, around(expected));
    };
    check(&key, &mask);
    // First and last line without data.
    check(&[key[0].clone(), key[10].clone()], &format!("{}\n{}", key[0], key[10]));
    check(&key[10..], &key[10]);
    for lines in [block_lines("CERTIFICATE", 25), block_lines("PUBLIC KEY", 25)] {
        for text in shown_lines(&lines) {
            assert_eq!(leaks.find(text.as_bytes()).count(), 0, "{text}");
        }
    }
    // Digests and words.
    let digests: String =
        (0..9).map(|of| format!("{} file-{of}.txt\n", "0a1b2c3d".repeat(8))).collect();
    let text = format!("{}\n{digests}{}\n", key[0].replace("-----", "`-----`"), key[10]);
    assert_eq!(leaks.find(text.as_bytes()).count(), 0, "{text}");
}

#[test]
fn findings_are_found_after_overlapping_findings() {
    let of = |rule: &str, text: &str| {
        positives().find(|(name, token)| *name == rule && token.starts_with(text)).unwrap().1
    };
    let one = of("slack-token", "xoxb-");
    let other = of("slack-token", "xoxe.");
    let mut text = format!("{one}{other}");
    Leaks::new(Vec::new()).redact(&mut text);
    assert_eq!(text, format!("{MASK_START}slack-token]").repeat(2));
}

#[test]
fn negatives_have_no_findings() {
    let leaks = Leaks::new(Vec::new());
    for line in NEGATIVES.lines() {
        let found: Vec<_> = leaks.find(line.as_bytes()).collect();
        assert!(found.is_empty(), "{line}: {found:?}");
    }
}

#[test]
fn findings_are_allowed_by_rule_or_fingerprint() {
    let (rule, token) = positives().find(|(rule, _)| *rule == "github-token").unwrap();
    let all = Leaks::new(Vec::new());
    let fingerprint = all.find(token.as_bytes()).next().unwrap().fingerprint;
    let other = token.replace('1', "2");
    let check = |allowed: AllowedLeak, expected: (usize, usize)| {
        let leaks = Leaks::new(vec![allowed]);
        let count = |text: &str| leaks.find(text.as_bytes()).count();
        assert_eq!((count(&token), count(&other)), expected);
    };
    check(AllowedLeak::Rule(rule.into()), (0, 0));
    check(AllowedLeak::Rule("npm-token".into()), (1, 1));
    check(AllowedLeak::Fingerprint(fingerprint), (0, 1));
}

/// In 0.1.0, the fingerprint of an assigned secret included the name, and the fingerprint of a private key
/// excluded the last line.
#[test]
fn fingerprints_of_0_1_0_still_apply() {
    let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYNOTAREAL12";
    let data = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    let begin = concat!("-----BEGIN", " PRIVATE KEY-----");
    let check = |text: &str, fingerprint: &str| {
        assert_eq!(Leaks::new(Vec::new()).find(text.as_bytes()).count(), 1, "{text}");
        let allowed = AllowedLeak::Fingerprint(fingerprint.parse().unwrap());
        assert_eq!(Leaks::new(vec![allowed]).find(text.as_bytes()).count(), 0, "{text}");
    };
    let of = |text: &str| Fingerprint::of(text.as_bytes()).to_string();
    for name in ["aws_secret_access_key=", "aws_secret_access_key = ", "AWS_SECRET_ACCESS_KEY="] {
        check(&format!("{name}{secret}\n"), &of(&format!("{name}{secret}")));
    }
    let json = format!("\"SecretAccessKey\":\"{secret}");
    check(&format!("{{{json}\"}}"), &of(&json));
    let block = format!("{begin}\n{data}\n");
    check(&format!("{block}-----END PRIVATE KEY-----\n"), &of(&block));
}

#[test]
fn fingerprint_comparisons_are_bounded() {
    let token = positive("github-token");
    let fingerprint = Fingerprint::of(token.as_bytes());
    let leaks = Leaks::new(vec![AllowedLeak::Fingerprint(fingerprint)]);
    let text = format!("{token} ").repeat(MOST_HASHED);
    assert_eq!(leaks.find(text.as_bytes()).count(), 0);
    assert_eq!(leaks.find(format!("{text}{token}").as_bytes()).count(), 1);
}

#[test]
fn answers_are_masked_as_the_rule_requires() {
    let leaks = Leaks::new(Vec::new());
    let (token, web) = (positive("npm-token"), positive("json-web-token"));
    let mut text = format!("ä {token} ö {web}");
    let found = leaks.redact(&mut text);
    assert_eq!(text, format!("ä {MASK_START}npm-token] ö {web}"));
    let rules: Vec<_> = found.iter().map(|leak| leak.rule).collect();
    assert_eq!(rules, ["npm-token", "json-web-token"]);
    // A fingerprint names a finding without showing it.
    assert!(!format!("{found:?}").contains(&token));
}

/// Masks a text as `leaks.toml` specifies for rules of tokens, without regard to speed.
fn masked_plainly(rules: &[Rule], text: &str) -> Vec<bool> {
    let mut masked = vec![false; text.len()];
    let bytes = text.as_bytes();
    for (at, rule) in (0..bytes.len()).flat_map(|at| rules.iter().map(move |rule| (at, rule))) {
        if rule.form != Form::Token || rule.on_answer != OnAnswer::Redact {
            continue;
        }
        let here = rule.prefixes.iter().filter(|own| bytes[at..].starts_with(own.as_bytes()));
        let Some(prefix) = here.map(String::len).max() else { continue };
        let run = bytes[at + prefix..].iter().take_while(|byte| rule.chars.has(**byte));
        let end = at + prefix + run.count();
        let is_alone = at == 0
            || !rule.chars.has(bytes[at - 1])
            || bytes[at - 1] == b'='
            || at > 1 && bytes[at - 2] == b'\\' && b"nrtbf".contains(&bytes[at - 1])
            || at > 2
                && bytes[at - 3] == b'%'
                && bytes[at - 2..at].iter().all(u8::is_ascii_hexdigit);
        let run = &bytes[at + prefix..end];
        let different: HashSet<_> = run.iter().collect();
        let lower = String::from_utf8_lossy(run).to_lowercase();
        let is_example = lower.contains("example") || lower.contains("xxxxx");
        let start = match &rule.behind {
            None => Some(at),
            Some(behind) => {
                let own = bytes[..at].iter().rev();
                let length =
                    own.take_while(|byte| behind.chars.has(**byte) && **byte != b'=').count();
                (behind.least..=behind.most).contains(&length).then(|| at - length)
            }
        };
        let is_found =
            (is_alone || !rule.alone) && different.len() >= 6 && !is_example && rule.fits(run);
        if let Some(start) = start.filter(|_| is_found) {
            masked[start..end].fill(true);
        }
    }
    masked
}

proptest! {
    #[test]
    fn masking_matches_the_plain_model(
        pieces in proptest::collection::vec((0usize..1000, 0usize..80), 0..12),
        fill in "[a-cA-C0-2_.=/ -]{0,40}",
    ) {
        let leaks = Leaks::new(Vec::new());
        let tokens = leaks.rules.iter().filter(|rule| rule.form == Form::Token);
        let all: Vec<_> = tokens.flat_map(|rule| rule.prefixes.clone())
            .chain(positives().map(|(_, token)| token)).collect();
        let text: String = pieces.iter().map(|(piece, length)| {
            let start: String = all[piece % all.len()].chars().take(*length).collect();
            start + &fill[..fill.len().min(*length)]
        }).collect();
        let mut masked = vec![false; text.len()];
        let mut expected = masked_plainly(&leaks.rules, &text);
        let mut others = Vec::new();
        for finding in leaks.findings(text.as_bytes(), None) {
            let rule = &leaks.rules[finding.rule];
            match rule.form == Form::Token {
                _ if rule.on_answer != OnAnswer::Redact => {}
                true => masked[finding.span].fill(true),
                false => others.push(finding.span),
            }
        }
        // A token in a private key is masked with the key.
        for span in others {
            masked[span.clone()].fill(true);
            expected[span].fill(true);
        }
        prop_assert_eq!(masked, expected, "{}", text);
    }

    #[test]
    fn spans_are_in_order_and_within_the_text(pieces in proptest::collection::vec(0usize..1000, 0..40), noise in "[ -~é]{0,20}") {
        let leaks = Leaks::new(Vec::new());
        let all: Vec<_> = leaks.rules.iter().flat_map(|rule| rule.prefixes.clone())
            .chain(positives().map(|(_, token)| token)).chain([noise]).collect();
        let text: String = pieces.iter().map(|piece| &*all[piece % all.len()]).collect();
        for leak in leaks.find(text.as_bytes()) {
            prop_assert!(leak.span.start < leak.span.end && leak.span.end <= text.len());
        }
        let mut masked = text.clone();
        leaks.redact(&mut masked);
        prop_assert!(masked.len() <= text.len());
    }
}
