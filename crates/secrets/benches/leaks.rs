//! What it takes to look for keys and tokens, and for values, in 1 MiB.
//!
//! `cargo bench -p kitbag-secrets`

use divan::Bencher;
use divan::counter::BytesCount;
use kitbag_secrets::{Leaks, Redactor, SecretValue};

const SIZE: usize = 1 << 20;

fn main() {
    divan::main();
}

/// JSON as services answer it.
fn json() -> Vec<u8> {
    let entry = r#"{"id":1296269,"name":"Hello-World","url":"https:\/\/api.example.com\/repos","description":"keys, tokens and skies"},"#;
    entry.bytes().cycle().take(SIZE).collect()
}

/// Starts of tokens, and no end.
fn hostile() -> Vec<u8> {
    b"glpat-sk-proj-eyJhvs.xoxb-".iter().copied().cycle().take(SIZE).collect()
}

fn base64() -> Vec<u8> {
    // A generator of numbers will do.
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[(state >> 26) as usize]
    };
    (0..SIZE).map(|_| next()).collect()
}

#[divan::bench(args = ["json", "hostile", "base64"])]
fn leaks(bencher: Bencher, text: &str) {
    let (leaks, text) = (Leaks::new(Vec::new()), of(text));
    bencher.counter(BytesCount::new(SIZE)).bench(|| leaks.find(&text).count());
}

#[divan::bench(args = ["json", "hostile", "base64"])]
fn values(bencher: Bencher, text: &str) {
    let value = SecretValue::new(b"a-value-that-is-not-in-there".to_vec()).expect("long enough");
    let (redactor, text) = (Redactor::new([&value]), of(text));
    bencher.counter(BytesCount::new(SIZE)).bench(|| redactor.finds(&text));
}

/// What a call with a secret has to set up.
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
        "hostile" => hostile(),
        _ => base64(),
    }
}
