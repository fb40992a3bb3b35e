//! The quantities that grow, and their measurements.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::library::Work;
use crate::series::{Family, Point, Series};
use crate::support::memory::{peak_kib, peak_of};
use crate::support::session::Session;
use crate::support::workspace::{Workspace, unsaid_tool};
use crate::support::{median, time};

/// Limits that are high enough for all measured sizes.
const LIMITS: [&str; 6] = ["--memory", "1GiB", "--output", "128MiB", "--time", "10m"];

pub(crate) struct Measure {
    pub(crate) binary: PathBuf,
    pub(crate) is_quick: bool,
}

/// Measures a family.
type Measured = fn(&Measure) -> Family;

impl Measure {
    pub(crate) const FAMILIES: [(&str, Measured); 5] = [
        ("arguments", Self::arguments),
        ("answers", Self::answers),
        ("tools", Self::tools),
        ("subjects", Self::subjects),
        ("calls", Self::calls),
    ];

    /// Measures growing arguments of a call, in bytes of JSON.
    fn arguments(&self) -> Family {
        let workspace = self.with_probe();
        let sizes = self.powers(2, 10..=20, 18);
        let file = |bytes: usize| {
            let frame = json!({ "do": "output", "bytes": 1, "text": "" }).to_string().len();
            let text = "x".repeat(bytes - frame);
            let arguments = json!({ "do": "output", "bytes": 1, "text": text });
            workspace.file(&format!("arguments-{bytes}.json"), arguments.to_string())
        };
        let files: Vec<_> = sizes.iter().map(|size| file(*size)).collect();
        let read = |size: usize| {
            let position = sizes.iter().position(|known| *known == size).unwrap();
            File::open(&files[position]).unwrap().into()
        };
        let run = |_| self.run(&workspace, &["--args", "-"]);
        let call = |bytes: usize| {
            let text = "x".repeat(bytes - 50);
            json!({ "name": "probe", "arguments": { "do": "output", "bytes": 1, "text": text } })
        };
        Family {
            name: "arguments",
            size: "bytes of the arguments",
            memory: "peak of the process",
            end: "arguments have at most 1 MiB, `ARGUMENTS_BYTES` in crates/base/src/json.rs",
            series: vec![
                self.library("a call in the library, a text", &workspace, &sizes, Work::Text),
                self.library("a call in the library, a list", &workspace, &sizes, Work::List),
                self.library("a call in the library, an object", &workspace, &sizes, Work::Object),
                self.session("a call over MCP, a text", &workspace, &sizes, |size| {
                    call(size).to_string()
                }),
                self.process("`kitbag run`, a text", &sizes, run, read),
            ],
        }
    }

    /// Measures growing answers of a call, in bytes.
    fn answers(&self) -> Family {
        let workspace = self.with_probe();
        let sizes = self.powers(4, 5..=13, 11);
        let run = |size| self.run(&workspace, &["do=output", &format!("bytes:={size}")]);
        let call = |size| {
            json!({ "name": "probe", "arguments": { "do": "output", "bytes": size } }).to_string()
        };
        Family {
            name: "answers",
            size: "bytes of the answer",
            memory: "peak of the process",
            end: "64 MiB were asked for; without `limits.output` an answer has 1 MiB",
            series: vec![
                self.library("a call in the library", &workspace, &sizes, Work::Answer),
                self.session("a call over MCP", &workspace, &sizes, call),
                self.process("`kitbag run`", &sizes, run, |_| Stdio::null()),
            ],
        }
    }

    /// Tools that are not called.
    fn tools(&self) -> Family {
        let sizes = self.powers(10, 0..=4, 3);
        let configured: Vec<_> =
            sizes.iter().map(|size| (*size, Workspace::with_idle_tools(*size))).collect();
        let found = self.powers(10, 0..=3, 2);
        let found: Vec<_> =
            found.iter().map(|size| (*size, Workspace::with_found_tools(*size))).collect();
        Family {
            name: "tools",
            size: "tools",
            memory: "peak of the process",
            end: "a file of configuration has at most 1 MiB, which is 15,000 of the shortest \
                  tables, `MAX_BYTES` in crates/config/src/file.rs",
            series: vec![
                self.list("`kitbag list`, in config.toml", &configured),
                self.list("`kitbag list`, in .kitbag/tools", &found),
                self.serve("`kitbag serve` to `initialize`", &configured, |_, _| {}),
                self.serve(
                    "`kitbag serve` to all of `tools/list`",
                    &configured,
                    |session, size| {
                        assert_eq!(session.tools(), size + 1);
                    },
                ),
            ],
        }
    }

    /// Files in a topic.
    fn subjects(&self) -> Family {
        let sizes = self.powers(10, 1..=5, 4);
        let workspace = |size: usize| {
            let workspace = Workspace::new("[knowledge.topic]\nsubjects = \"kb\"\n");
            workspace.subjects("kb", size, 100);
            (size, workspace)
        };
        let workspaces: Vec<_> = sizes.iter().map(|size| workspace(*size)).collect();
        let learn = |title, subjects: &'static [&str]| {
            let command = |size| {
                let mut command = find(&workspaces, size).command(&self.binary);
                command.args(["run", "learn", "topic=topic"]).args(subjects).args(LIMITS);
                command
            };
            self.process(title, &sizes, command, |_| Stdio::null())
        };
        Family {
            name: "subjects",
            size: "files in the topic",
            memory: "peak of the process",
            end: "a topic has at most 100,000 files, `ENTRIES` in guest-tools/learn/src/catalog.rs",
            series: vec![
                learn("list them", &[]),
                learn("load one", &["subjects=subject-3"]),
                learn("load all", &["subjects=**"]),
            ],
        }
    }

    /// Calls that wait at once.
    fn calls(&self) -> Family {
        let workspace = self.with_probe();
        let sizes = self.powers(10, 0..=3, 2);
        let measure = |size| Work::Waiting.measure(&workspace, size, self.rounds(5));
        let points = sizes.iter().map(|size| measure(*size)).collect();
        Family {
            name: "calls",
            size: "calls at once",
            memory: "growth of the process",
            end: "1,000 were asked for; 16 run at once on two processors without \
                  `Builder::concurrency`",
            series: vec![Series { title: "calls that wait, in the library", points }],
        }
    }

    /// Powers of a number, up to a lower exponent with `--quick`; for base ten also the halfway
    /// points.
    fn powers(&self, base: usize, exponents: RangeInclusive<u32>, quick: u32) -> Vec<usize> {
        let (first, last) = exponents.into_inner();
        let last = if self.is_quick { quick } else { last };
        let mut powers: Vec<_> = (first..=last).map(|exponent| base.pow(exponent)).collect();
        if base == 10 {
            let halfway: Vec<_> = powers.iter().map(|power| power * 3).collect();
            powers.extend(&halfway[..halfway.len() - 1]);
            powers.sort_unstable();
        }
        powers
    }

    fn rounds(&self, usual: usize) -> usize {
        if self.is_quick { usual.div_ceil(3) } else { usual }
    }

    fn with_probe(&self) -> Workspace {
        let workspace = Workspace::new(&unsaid_tool("probe"));
        workspace.compile(&self.binary, "probe");
        workspace
    }

    fn run(&self, workspace: &Workspace, arguments: &[&str]) -> Command {
        let mut command = workspace.command(&self.binary);
        command.args(["run", "probe"]).args(arguments).args(LIMITS);
        command
    }

    fn library(
        &self,
        title: &'static str,
        workspace: &Workspace,
        sizes: &[usize],
        work: Work,
    ) -> Series {
        let measure = |size| work.measure(workspace, size, self.rounds(15));
        Series { title, points: sizes.iter().map(|size| measure(*size)).collect() }
    }

    /// Measures whole processes, all sizes in turn.
    fn process(
        &self,
        title: &'static str,
        sizes: &[usize],
        command: impl Fn(usize) -> Command,
        input: impl Fn(usize) -> Stdio,
    ) -> Series {
        let once = |size| {
            let mut command = command(size);
            command.stdin(input(size)).stdout(Stdio::null());
            time(|| assert!(command.status().unwrap().success(), "{command:?}"))
        };
        let peak = |size| peak_of(&command(size), input(size));
        self.in_turn(title, sizes, once, peak)
    }

    fn list(&self, title: &'static str, workspaces: &[(usize, Workspace)]) -> Series {
        let sizes: Vec<_> = workspaces.iter().map(|(size, _)| *size).collect();
        let command = |size| {
            let mut command = find(workspaces, size).command(&self.binary);
            command.arg("list");
            command
        };
        self.process(title, &sizes, command, |_| Stdio::null())
    }

    /// Measures a server from its start until some work after `initialize` is done.
    fn serve(
        &self,
        title: &'static str,
        workspaces: &[(usize, Workspace)],
        beyond: impl Fn(&mut Session, usize),
    ) -> Series {
        let sizes: Vec<_> = workspaces.iter().map(|(size, _)| *size).collect();
        let start = |size| {
            let mut session = Session::start(&self.binary, find(workspaces, size), &[]);
            beyond(&mut session, size);
            session
        };
        let once = |size| {
            let begun = Instant::now();
            let _running = start(size);
            begun.elapsed()
        };
        self.in_turn(title, &sizes, once, |size| peak_kib(start(size).process()))
    }

    /// Measures calls of one server for each size.
    fn session(
        &self,
        title: &'static str,
        workspace: &Workspace,
        sizes: &[usize],
        call: impl Fn(usize) -> String,
    ) -> Series {
        let measure = |size| {
            let call = call(size);
            let mut session = Session::start(&self.binary, workspace, &LIMITS);
            session.call(&call);
            let rounds = self.rounds(15);
            let mut times: Vec<_> = (0..rounds).map(|_| time(|| session.call(&call))).collect();
            let memory_kib = peak_kib(session.process());
            Point { size, time: median(&mut times), memory_kib }
        };
        Series { title, points: sizes.iter().map(|size| measure(*size)).collect() }
    }

    /// Measures all sizes in rounds, so that a slow minute of the machine affects each size
    /// equally.
    fn in_turn(
        &self,
        title: &'static str,
        sizes: &[usize],
        once: impl Fn(usize) -> Duration,
        peak_kib: impl Fn(usize) -> u64,
    ) -> Series {
        let mut times = vec![Vec::new(); sizes.len()];
        for _ in 0..self.rounds(9) {
            for (position, size) in sizes.iter().enumerate() {
                times[position].push(once(*size));
            }
        }
        let point = |(size, mut times): (&usize, Vec<_>)| Point {
            size: *size,
            time: median(&mut times),
            memory_kib: peak_kib(*size),
        };
        Series { title, points: sizes.iter().zip(times).map(point).collect() }
    }
}

fn find(workspaces: &[(usize, Workspace)], wanted: usize) -> &Workspace {
    let (_, workspace) = workspaces.iter().find(|(size, _)| *size == wanted).unwrap();
    workspace
}
