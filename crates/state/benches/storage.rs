//! Measures storing and reading values.
//!
//! `cargo bench -p kitbag-state --features storage`

use std::path::Path;

use divan::Bencher;
use kitbag_base::ByteSize;
use kitbag_policy::StorageGrant;
use kitbag_state::storage::{Namespace, Storage};
use tempfile::TempDir;

fn main() {
    divan::main();
}

/// Creates a namespace with 1,000 values of 100 bytes.
fn filled() -> (TempDir, Namespace) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let storage = Storage::new(&directory.path().join("state"), Path::new("/w"));
    let notes = storage.namespace("notes", StorageGrant::default(), ByteSize::mib(1), None);
    let entries: Vec<_> = (0..1000).map(|number| (format!("key-{number}"), [7; 100])).collect();
    notes.set_many(&entries).expect("an empty directory");
    (directory, notes)
}

#[divan::bench]
fn get(bencher: Bencher<'_, '_>) {
    let (_directory, notes) = filled();
    bencher.bench_local(|| notes.get("key-500").expect("the value is readable"));
}

#[divan::bench]
fn exists(bencher: Bencher<'_, '_>) {
    let (_directory, notes) = filled();
    bencher.bench_local(|| notes.exists("key-500").expect("the value is readable"));
}

#[divan::bench]
fn get_many_100(bencher: Bencher<'_, '_>) {
    let (_directory, notes) = filled();
    let keys: Vec<_> = (0..100).map(|number| format!("key-{number}")).collect();
    bencher.bench_local(|| notes.get_many(&keys).expect("the value is readable"));
}

#[divan::bench]
fn list_1000(bencher: Bencher<'_, '_>) {
    let (_directory, notes) = filled();
    bencher.bench_local(|| notes.list_keys(None).expect("the value is readable"));
}

#[divan::bench]
fn set(bencher: Bencher<'_, '_>) {
    let (_directory, notes) = filled();
    bencher.bench_local(|| notes.set("key-500", &[8; 100]).expect("the value is writable"));
}

#[divan::bench]
fn increment(bencher: Bencher<'_, '_>) {
    let (_directory, notes) = filled();
    bencher.bench_local(|| notes.increment("n", 1).expect("the value is writable"));
}

/// Measures the first use in a process.
#[divan::bench]
fn open_and_get(bencher: Bencher<'_, '_>) {
    let (directory, _notes) = filled();
    bencher.bench_local(|| {
        let storage = Storage::new(&directory.path().join("state"), Path::new("/w"));
        let notes = storage.namespace("notes", StorageGrant::default(), ByteSize::mib(1), None);
        notes.get("key-500").expect("the value is readable")
    });
}
