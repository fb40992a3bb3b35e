//! Memory and open files of processes.

use std::fmt::Display;
use std::fs;
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};

/// Tells a copy of the benchmark to run a program and print its peak memory.
const PEAK: &str = "--peak-of";

/// Current resident memory of a process, in KiB.
pub(crate) fn resident_kib(process: impl Display) -> u64 {
    status(process, "VmRSS:")
}

/// Peak resident memory of a process, in KiB.
pub(crate) fn peak_kib(process: impl Display) -> u64 {
    status(process, "VmHWM:")
}

fn status(process: impl Display, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    // A process that has just ended holds no memory.
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Number of open files of a process.
pub(crate) fn open_files(process: impl Display) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

/// Runs a program to its end, and returns its peak resident memory in KiB.
///
/// The system includes the memory of the process *before* it became that program, which is the
/// memory of its parent. The parent is therefore a fresh copy of this benchmark, which must begin
/// with [`run_if_asked`] and uses little memory; a program that needs less than that is reported
/// with that amount.
///
/// The command inherits no variables from the environment of this process.
pub(crate) fn peak_of(command: &Command, input: Stdio) -> u64 {
    let mut copy = Command::new(std::env::current_exe().unwrap());
    copy.arg(PEAK).arg(command.get_program()).args(command.get_args()).env_clear();
    copy.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    copy.current_dir(command.get_current_dir().unwrap());
    // The program's own output is discarded; this is the output of the copy.
    let output = copy.stdin(input).stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.trim().parse().unwrap_or_else(|_| panic!("{command:?} failed"))
}

/// Does the work that [`peak_of`] requests from a copy of this benchmark, and exits.
#[expect(clippy::print_stdout, reason = "it is how the copy answers")]
pub(crate) fn run_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != PEAK) {
        return;
    }
    let mut command = Command::new(arguments.next().unwrap());
    let status = command.args(arguments).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
    println!("{}", getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss());
    std::process::exit(0);
}
