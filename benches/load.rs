//! Loading a local tool in a second process: from its file to a callable tool, with the artifact in
//! the cache.
//!
//! `cargo bench --bench load` prints the medians for the test tool and for a component of 18 MB,
//! half of it code, like an interpreter; another size can be named in MB,
//! `cargo bench --bench load -- 4`. The engine has started already, and the files are in the page
//! cache.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kitbag::contract::Limits;
use kitbag::host::{ComponentSource, DiskCache, Host, HostOptions, Metering, RunContext};

#[path = "../tests/support/crafted.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod crafted;

use crate::support::workspace::guest;
use crate::support::{median, time};

const ROUNDS: u64 = 200;

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let megabytes = given.map_or(18, |given| given.parse().expect("a size in MB"));
    let probe = directory.path().join("probe.wasm");
    std::fs::copy(guest("probe"), &probe).unwrap();
    let large = directory.path().join("large.wasm");
    std::fs::write(&large, crafted::beside(&core(megabytes << 20))).unwrap();
    println!(
        "{:12} {:>12} {:>12} {:>14} {:>10} {:>10}",
        "", "component", "entry", "first use", "found", "loaded"
    );
    for (name, path) in [("probe", probe), ("large", large)] {
        let row = measure(&path, DiskCache::new(directory.path().join(name)));
        let [component, entry] = row.bytes.map(|bytes| format!("{} KB", bytes / 1000));
        let [first, found, loaded] = row.times.map(|time| format!("{time:.1?}"));
        println!("{name:12} {component:>12} {entry:>12} {first:>14} {found:>10} {loaded:>10}");
    }
}

/// The measurements of one component.
struct Row {
    /// The size of the component, and the size of its cache entry.
    bytes: [u64; 2],
    /// The times to compile and load it; to find its entry and read the description; to find,
    /// verify and load it.
    times: [Duration; 3],
}

fn measure(path: &Path, cache: DiskCache) -> Row {
    let source = ComponentSource::File(path.to_owned().into());
    let host = || {
        let options = HostOptions { cache: Some(cache.clone()), ..HostOptions::default() };
        Host::new(options)
    };
    let first_time = time(|| {
        let first = host().component(&source, &Limits::default(), &RunContext::default()).unwrap();
        assert!(first.was_compiled() && first.cache_problems().is_empty());
    });
    // A host that loads nothing, and so has nothing in memory.
    let finding = host();
    let found = median_round(|_| {
        finding.known_description(&source, Metering::Off).expect("it is in the cache");
    });
    let loading = host();
    loading.component(&source, &Limits::default(), &RunContext::default()).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    let loaded = median_round(|round| {
        // A changed file is loaded again.
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(round)).unwrap();
        assert!(
            !loading
                .component(&source, &Limits::default(), &RunContext::default())
                .unwrap()
                .was_compiled()
        );
    });
    let size = |path: PathBuf| std::fs::metadata(path).unwrap().len();
    let entry = cache.entries().unwrap().remove(0).name;
    Row {
        bytes: [size(path.to_owned()), size(cache.path().join(entry))],
        times: [first_time, found, loaded],
    }
}

/// A core module of about this size: half code, half initial memory.
fn core(bytes: usize) -> String {
    const STEPS: usize = 200;
    // Size of one step of the module.
    const STEP_BYTES: usize = 13;
    let mut text = format!("(memory {}) (data (i32.const 0) \"", bytes / 2 / 65536 + 1);
    for index in 0..bytes / 2 {
        let byte = (index.wrapping_mul(2_654_435_761) >> 13) as u8;
        write!(text, "\\{byte:02x}").unwrap();
    }
    text.push_str("\")\n");
    for number in 0..bytes / 2 / (STEPS * STEP_BYTES) {
        text.push_str("(func (param i32) (result i32) ");
        for step in 0..STEPS {
            let value = number * STEPS + step;
            write!(text, "(local.set 0 (i32.add (i32.load (local.get 0)) (i32.const {value}))) ")
                .unwrap();
        }
        text.push_str("local.get 0)\n");
    }
    text
}

/// Median time of a round. The work receives the number of the round.
fn median_round(mut work: impl FnMut(u64)) -> Duration {
    median(&mut (0..ROUNDS).map(|round| time(|| work(round))).collect::<Vec<_>>())
}
