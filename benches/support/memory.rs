//! What processes hold.

use std::fmt::Display;
use std::fs;
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};

/// Tells a copy of the benchmark that it is to run a program and print what that
/// held at most.
const PEAK: &str = "--peak-of";

/// Resident memory of a process now, in KiB.
pub(crate) fn resident_kib(process: impl Display) -> u64 {
    status(process, "VmRSS:")
}

/// The most resident memory that a process has had so far, in KiB.
pub(crate) fn peak_kib(process: impl Display) -> u64 {
    status(process, "VmHWM:")
}

fn status(process: impl Display, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    // A process that has just ended holds nothing.
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// How many files a process has open.
pub(crate) fn open_files(process: impl Display) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

/// Runs a program to its end, and returns the most resident memory that it had,
/// in KiB.
///
/// The system counts what the process held *before* it became that program too:
/// as much as the one that started it. So that is a fresh copy of this benchmark,
/// which has to begin with [`run_if_asked`], and which holds little; a program
/// that needs less than it is asked to need as much.
///
/// The command begins with nothing of the environment of this process.
pub(crate) fn peak_of(command: &Command, input: Stdio) -> u64 {
    let mut copy = Command::new(std::env::current_exe().unwrap());
    copy.arg(PEAK).arg(command.get_program()).args(command.get_args()).env_clear();
    copy.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    copy.current_dir(command.get_current_dir().unwrap());
    // The program's own output goes nowhere; this is what the copy says.
    let output = copy.stdin(input).stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.trim().parse().unwrap_or_else(|_| panic!("{command:?} failed"))
}

/// Does what [`peak_of`] asks a copy of this benchmark for, and ends.
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
