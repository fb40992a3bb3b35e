//! Runs each fuzz target over its corpus, and over deterministic mutations of it. `fuzz/README.md`
//! describes longer runs.

use std::cell::RefCell;
use std::fs;

use crate::support::repository;

#[path = "../../fuzz/targets.rs"]
mod targets;

/// Number of inputs derived from each seed.
const MUTATIONS: u64 = 200;

fn run(name: &str) {
    let (_, target) = targets::TARGETS.iter().find(|(target, _)| *target == name).unwrap();
    let corpus = repository().join("fuzz/corpus").join(name);
    let mut files: Vec<_> =
        fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", corpus.display());
    let state = RefCell::new(0x6b69_7462_6167);
    for file in files {
        let seed = fs::read(&file).unwrap();
        target(&seed);
        for number in 0..MUTATIONS {
            target(&targets::mutated(&seed, number, &state));
        }
    }
}

#[test]
fn configurations_are_read_or_refused() {
    run("configuration");
}

#[test]
fn arguments_are_accepted_or_refused() {
    run("arguments");
}

#[test]
fn components_are_loaded_or_refused_and_end() {
    run("component");
}

#[test]
fn results_of_core_modules_are_read_or_refused() {
    run("core");
}

#[test]
fn plugins_stay_within_their_limits() {
    run("plugin");
}

#[test]
fn functions_return_their_arguments() {
    run("functions");
}

#[test]
fn data_of_act_components_is_read_or_refused() {
    run("act");
}

#[test]
fn skills_stay_within_their_limits() {
    run("skill");
}

#[test]
fn learn_accepts_the_same_subjects_as_a_simple_model() {
    run("learn");
}

#[test]
fn output_never_acts_on_a_terminal() {
    run("output");
}

#[test]
fn every_target_has_a_fuzzer() {
    for (name, _) in targets::TARGETS {
        let file = repository().join(format!("fuzz/fuzz_targets/{name}.rs"));
        assert!(fs::read_to_string(&file).unwrap().contains(&format!("targets::{name}(")));
    }
}
