//! The fuzz target of HTTP grants over its corpus and over inputs derived from it. The inputs are
//! the same on every machine.

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/requests.rs"]
mod target;

/// The number of inputs derived from each seed.
const MUTATIONS: u64 = 2000;

/// xorshift64.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Changes, adds, removes or repeats up to four bytes of a seed.
fn mutated(seed: &[u8], state: &mut u64) -> Vec<u8> {
    const PIECES: [&str; 8] = ["%2e", "%2F", "*", "**", "/", "..", "\n", "%25"];
    let mut data = seed.to_owned();
    for _ in 0..=next(state) % 4 {
        let at = usize::try_from(next(state)).unwrap() % (data.len() + 1);
        match next(state) % 4 {
            0 => data.insert(at, next(state).to_le_bytes()[0]),
            1 if at < data.len() => drop(data.remove(at)),
            2 if at < data.len() => data[at] = next(state).to_le_bytes()[0] % 128,
            _ => {
                let piece = PIECES[usize::try_from(next(state) % 8).unwrap()];
                data.splice(at..at, piece.bytes());
            }
        }
    }
    data
}

#[test]
fn requests_are_parsed_as_written_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/requests");
    let mut files: Vec<_> =
        fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", corpus.display());
    let mut state = 0x6b69_7462_6167;
    for file in files {
        let seed = fs::read(&file).unwrap();
        target::requests(&seed);
        for _ in 0..MUTATIONS {
            target::requests(&mutated(&seed, &mut state));
        }
    }
}
