//! Measures the search for keys and tokens, and for secret values, in 1 MiB.
//!
//! `cargo bench -p kitbag-secrets`

use divan::Bencher;
use divan::counter::BytesCount;
use kitbag_secrets::{AllowedLeak, Leak, Leaks, OnRequest, Redactor, SecretValue};

const SIZE: usize = 1 << 20;

/// The searched samples, by name.
const TEXTS: [&str; 14] = [
    "json",
    "base64",
    "starts",
    "short starts",
    "long starts",
    "starts in one run",
    "starts in one word",
    "starts that are not alone",
    "filler",
    "too short",
    "too long",
    "almost",
    "tokens",
    "warnings",
];

fn main() {
    divan::main();
}

/// JSON as services return it.
fn json() -> Vec<u8> {
    let entry = r#"{"id":1296269,"name":"Hello-World","url":"https:\/\/api.example.com\/repos","description":"keys, tokens and skies"},"#;
    entry.bytes().cycle().take(SIZE).collect()
}

/// Samples that are designed to be slow to search, by name.
const HOSTILE: [(&str, &str); 12] = [
    // Starts of tokens without the rest.
    ("starts", "glpat-sk-proj-eyJhvs.xoxb-"),
    ("short starts", "sk-"),
    ("long starts", "sk-abcdef"),
    ("starts in one run", "gldt-"),
    ("starts in one word", "sbp_"),
    ("starts that are not alone", "eyJ"),
    // One run for many rules, with too few different characters.
    (
        "filler",
        "gldt-sk-ant-pypi-AgEIcHlwaS5vcmcsbp_sntrys_ghp_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
      AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA ",
    ),
    // A run that is one character too short, and one that is too long.
    ("too short", "sk-or-v1-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde "),
    ("too long", "AKIA0123456789ABCDEFG "),
    (
        "almost",
        "sk-T3BlbkFI23456789abcdefghijklmnopqrstuvwxyzABCDEF eyJ0123456789abcdefghijklmnopqrstuvwxyz.ABCDEFGHIJ.0123456789 ",
    ),
    ("tokens", "ghp_0123456789abcdefghijklmnopqrstuvwxyz "),
    ("warnings", "eyJ0123456789abcdefghijklmnopqrstu.eyJ012345678901234.A "),
];

fn hostile(name: &str) -> Vec<u8> {
    let (_, text) = HOSTILE.iter().find(|(own, _)| *own == name).expect("one of them");
    text.bytes().cycle().take(SIZE).collect()
}

fn base64() -> Vec<u8> {
    // A linear congruential generator is random enough.
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[(state >> 26) as usize]
    };
    (0..SIZE).map(|_| next()).collect()
}

/// A request is searched until the finding that refuses it.
#[divan::bench(args = TEXTS)]
fn request(bencher: Bencher, text: &str) {
    let (leaks, text) = (Leaks::new(Vec::new()), of(text));
    let is_refused = |leak: Leak<'_>| leak.on_request == OnRequest::Block;
    bencher.counter(BytesCount::new(SIZE)).bench(|| leaks.find(&text).any(is_refused));
}

/// An answer is searched completely and masked.
#[divan::bench(args = TEXTS)]
fn answer(bencher: Bencher, text: &str) {
    answer_without(bencher, text, Vec::new());
}

/// If anything is allowed, the first 10,000 findings are hashed.
#[divan::bench(args = ["tokens", "warnings"])]
fn allowing(bencher: Bencher, text: &str) {
    let fingerprint = "0123456789abcdef".parse().expect("a fingerprint");
    answer_without(bencher, text, vec![AllowedLeak::Fingerprint(fingerprint)]);
}

fn answer_without(bencher: Bencher, text: &str, allowed: Vec<AllowedLeak>) {
    let (leaks, text) = (Leaks::new(allowed), of(text));
    let text = String::from_utf8(text).expect("the mask keeps it UTF-8");
    bencher
        .counter(BytesCount::new(SIZE))
        .with_inputs(|| text.clone())
        .bench_local_refs(|text| leaks.redact(text).len());
}

#[divan::bench(args = ["json", "starts", "base64"])]
fn values(bencher: Bencher, text: &str) {
    let value = SecretValue::new(b"a-value-that-is-not-in-there".to_vec()).expect("long enough");
    let (redactor, text) = (Redactor::new([&value]), of(text));
    bencher.counter(BytesCount::new(SIZE)).bench(|| redactor.finds(&text));
}

/// The setup of a call with a secret.
#[divan::bench]
fn redactor(bencher: Bencher) {
    let value = SecretValue::new(vec![b'x'; 40]).expect("long enough");
    bencher.bench(|| Redactor::new([&value]));
}

#[divan::bench]
fn rules() -> Leaks {
    Leaks::new(Vec::new())
}

fn of(text: &str) -> Vec<u8> {
    match text {
        "json" => json(),
        "base64" => base64(),
        hostile => self::hostile(hostile),
    }
}
