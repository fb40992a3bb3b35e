//! Measures the rules: recall on the corpus, and findings in the files of a directory.
//!
//! `cargo run --release -p kitbag-secrets --example measure_leaks -- [DIRECTORY]`
//!
//! Prints each finding of a masking rule with its file, so that a person can judge it. Counts key
//! blocks separately, since they are always genuine key blocks.

#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

use kitbag_secrets::{Leaks, OnAnswer};

const POSITIVES: &str = include_str!("../data/positives.txt");

fn main() {
    let leaks = Leaks::new(Vec::new());
    recall(&leaks);
    if let Some(directory) = env::args_os().nth(1) {
        findings(&leaks, directory.into());
    }
}

/// Prints how many positives of each rule are found.
fn recall(leaks: &Leaks) {
    let mut found = BTreeMap::<&str, (usize, usize)>::new();
    let lines = POSITIVES.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    for (rule, text) in lines.filter_map(|line| line.split_once(' ')) {
        let text = text.replace("{}", "").replace("\\n", "\n");
        let (hits, all) = found.entry(rule).or_default();
        *hits += usize::from(leaks.find(text.as_bytes()).any(|leak| leak.rule == rule));
        *all += 1;
    }
    let total = found.values().fold((0, 0), |(a, b), (hits, all)| (a + hits, b + all));
    for (rule, (hits, all)) in found.iter().filter(|(_, (hits, all))| hits < all) {
        println!("{rule}: {hits} of {all}");
    }
    println!("recall: {} of {} texts of {} rules", total.0, total.1, found.len());
}

/// Prints the findings in the files of a directory and their number.
fn findings(leaks: &Leaks, directory: PathBuf) {
    let (mut files, mut bytes, mut blocks) = (0u64, 0u64, 0u64);
    let mut rules = BTreeMap::<(bool, String), (u64, u64)>::new();
    let mut directories = vec![directory];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                directories.push(path);
                continue;
            }
            // Files that are not UTF-8 are not masked.
            let Some(text) = fs::read(&path).ok().and_then(|it| String::from_utf8(it).ok()) else {
                continue;
            };
            files += 1;
            bytes += text.len() as u64;
            let mut last = String::new();
            for leak in leaks.find(text.as_bytes()) {
                let is_masked = leak.on_answer == OnAnswer::Redact;
                if leak.rule == "private-key" {
                    blocks += 1;
                    continue;
                }
                let (all, of_files) = rules.entry((is_masked, leak.rule.to_owned())).or_default();
                *all += 1;
                *of_files += u64::from(last != leak.rule);
                leak.rule.clone_into(&mut last);
                if is_masked || env::var_os("ALL").is_some() {
                    let line = text[..leak.span.start].matches('\n').count() + 1;
                    let shown: String = text[leak.span.clone()].chars().take(60).collect();
                    println!("{}: {}:{line}: {shown}", leak.rule, path.display());
                }
            }
        }
    }
    println!("{files} files, {} MiB, {blocks} key blocks", bytes >> 20);
    for ((is_masked, rule), (all, of_files)) in rules {
        let what = if is_masked { "masked" } else { "marked" };
        println!("{what}: {rule}: {all} in {of_files} files");
    }
}
