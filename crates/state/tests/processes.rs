//! Several processes that keep something in one file: nothing is lost.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kitbag_base::ByteSize;
use kitbag_policy::StorageGrant;
use kitbag_state::storage::{Namespace, Storage};

/// What makes this test one of the processes that write: the state directory.
const STATE: &str = "KITBAG_STORAGE_TEST_STATE";

/// How often one of them increments: a number, or without an end.
const TIMES: &str = "KITBAG_STORAGE_TEST_TIMES";

/// How often those do that are not killed.
const OTHERS_TIMES: u64 = 2000;

fn namespace(state: &Path) -> Namespace {
    let storage = Storage::new(state, Path::new("/w"));
    storage.namespace("counter", StorageGrant::default(), ByteSize::mib(1), None)
}

#[test]
fn several_processes_lose_nothing_also_when_one_is_killed() {
    if let Some(state) = std::env::var_os(STATE) {
        let times = std::env::var(TIMES).unwrap().parse().unwrap();
        return write(&namespace(Path::new(&state)), times);
    }
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let mut killed = start(&state, u64::MAX);
    let others: Vec<_> = (0..3).map(|_| start(&state, OTHERS_TIMES)).collect();
    // Every number that it says is kept. It ends somewhere in the next ones.
    let mut said = BufReader::new(killed.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut said = said.by_ref().filter_map(|line| Some(line.strip_prefix("kept ")?.to_owned()));
    let before: u64 = said.by_ref().take(300).count() as u64;
    assert_eq!(before, 300);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let said = before + said.count() as u64;
    for mut child in others {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let kept = lines.filter(|line| line.as_ref().unwrap().starts_with("kept ")).count();
        assert!(child.wait().unwrap().success());
        assert_eq!(kept as u64, OTHERS_TIMES);
    }
    let counter = namespace(&state);
    let sum = counter.increment("n", 0).unwrap();
    let rest = sum - 3 * OTHERS_TIMES;
    // One may have been kept and not said.
    assert!(rest == said || rest == said + 1, "{said} said, {rest} kept");
    // What each wrote besides is whole, too.
    let pairs = counter.get_many(&["a", "b"]).unwrap();
    let values: Vec<_> = pairs.into_iter().map(|pair| pair.unwrap().1).collect();
    assert_eq!(values[0], values[1], "both of a pair are from one process at one time");
}

fn start(state: &Path, times: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture"]);
    command.arg("several_processes_lose_nothing_also_when_one_is_killed");
    command.env(STATE, state).env(TIMES, times.to_string());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// What one process does.
#[expect(clippy::print_stdout, reason = "the test reads it")]
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
