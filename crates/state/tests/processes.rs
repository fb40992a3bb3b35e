//! Several processes that write to the same file: nothing is lost.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kitbag_base::ByteSize;
use kitbag_policy::StorageGrant;
use kitbag_state::storage::{Namespace, Storage};

/// The variable that makes this test a writing process: the state directory.
const STATE: &str = "KITBAG_STORAGE_TEST_STATE";

/// The variable with the number of increments; unlimited if it is not set.
const TIMES: &str = "KITBAG_STORAGE_TEST_TIMES";

/// The number of increments in processes that are not killed.
const OTHERS_TIMES: u64 = 2000;

fn namespace(state: &Path) -> Namespace {
    let storage = Storage::new(state, Path::new("/w"));
    storage.namespace("counter", StorageGrant::default(), ByteSize::mib(1), None)
}

#[test]
fn killed_processes_lose_nothing() {
    if let Some(state) = std::env::var_os(STATE) {
        let times = std::env::var(TIMES).unwrap().parse().unwrap();
        return write(&namespace(Path::new(&state)), times);
    }
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let mut killed = start(&state, u64::MAX);
    let others: Vec<_> = (0..3).map(|_| start(&state, OTHERS_TIMES)).collect();
    // Every printed number is stored. The process is killed during one of the next increments.
    let mut printed = BufReader::new(killed.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut printed =
        printed.by_ref().filter_map(|line| Some(line.strip_prefix("kept ")?.to_owned()));
    let before: u64 = printed.by_ref().take(300).count() as u64;
    assert_eq!(before, 300);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let printed = before + printed.count() as u64;
    for mut child in others {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let kept = lines.filter(|line| line.as_ref().unwrap().starts_with("kept ")).count();
        assert!(child.wait().unwrap().success());
        assert_eq!(kept as u64, OTHERS_TIMES);
    }
    let counter = namespace(&state);
    let sum = counter.increment("n", 0).unwrap();
    let rest = sum - 3 * OTHERS_TIMES;
    // One increment may have been stored but not printed.
    assert!(rest == printed || rest == printed + 1, "{printed} printed, {rest} stored");
    // The other values of each process are complete as well.
    let pairs = counter.get_many(&["a", "b"]).unwrap();
    let values: Vec<_> = pairs.into_iter().map(|pair| pair.unwrap().1).collect();
    assert_eq!(values[0], values[1], "both values of a pair are from the same write");
}

fn start(state: &Path, times: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture"]);
    command.arg("killed_processes_lose_nothing");
    command.env(STATE, state).env(TIMES, times.to_string());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// Runs one writing process.
#[expect(clippy::print_stdout, reason = "the test reads the output")]
fn write(counter: &Namespace, times: u64) {
    let process = std::process::id();
    println!();
    for number in 0..times {
        counter.increment("n", 1).unwrap();
        println!("kept {number}");
        let value = format!("{process} {number}");
        counter.set_many(&[("a", &value), ("b", &value)]).unwrap();
    }
}

#[test]
fn threads_of_one_process_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::new(&directory.path().join("state"), Path::new("/w"));
    let grant = StorageGrant::default();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let counter = storage.namespace("counter", grant, ByteSize::mib(1), None);
                for _ in 0..500 {
                    counter.increment("n", 1).unwrap();
                }
            });
        }
    });
    assert_eq!(namespace(&directory.path().join("state")).increment("n", 0), Ok(4000));
}
