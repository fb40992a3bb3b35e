//! Starting and ending servers.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use kitbag_policy::server::{ServerProcess, ServerValue, ServerVariable};
use kitbag_servers::process::Ended;
use tokio::io::AsyncReadExt;

use crate::world::{Mode, World, in_runtime, is_available, own_program};

/// Tells a process to be [`host`].
pub(crate) const HOST: &str = "HOST_OF_SERVERS";

const MODES: [Mode; 3] = [Mode::Unconfined, Mode::Namespaces, Mode::NoNamespaces];

fn modes() -> impl Iterator<Item = Mode> {
    MODES.into_iter().filter(|mode| is_available(*mode))
}

fn server(world: &World, mode: Mode, attack: &str) -> ServerProcess {
    world.server(attack, (mode != Mode::Unconfined).then(|| world.confinement()))
}

#[test]
fn servers_inherit_only_named_variables() {
    let world = World::new();
    let names = world.run(Mode::Unconfined, "variables").unwrap();
    let expected = ["ATTACK", "HOME", "LANG", "PATH", "WORLD"];
    assert!(names.split(',').all(|name| expected.contains(&name)), "{names}");
    let mut server = world.server("variable TOKEN_OF_KITBAG", None);
    server.environment.push(ServerVariable {
        name: "TOKEN_OF_KITBAG".parse().unwrap(),
        value: ServerValue::Inherit,
    });
    let output = in_runtime(async {
        let mut running = world.start(&server, Mode::Unconfined).unwrap();
        let mut output = String::new();
        running.stdout.read_to_string(&mut output).await.unwrap();
        output
    });
    assert!(output.contains("RESULT ok hunter2"), "{output}");
}

#[test]
fn the_end_of_a_server_is_reported() {
    let world = World::new();
    for mode in modes() {
        let ended = |attack| {
            in_runtime(async {
                let mut running = world.start(&server(&world, mode, attack), mode).unwrap();
                running.process.ended().await
            })
        };
        assert_eq!(ended("exit 3"), Ended::Status(3), "{mode:?}");
        assert_eq!(ended("abort"), Ended::Signal(6), "{mode:?}");
    }
}

#[test]
fn servers_end_when_their_input_ends() {
    let world = World::new();
    for mode in modes() {
        let ended = in_runtime(async {
            let mut running = world.start(&server(&world, mode, "end-of-input"), mode).unwrap();
            drop(running.stdin);
            running.process.end(Duration::from_secs(40)).await
        });
        assert_eq!(ended, Ended::Status(7), "{mode:?}");
    }
}

#[test]
fn servers_end_by_a_signal() {
    let world = World::new();
    for mode in modes() {
        let ended = in_runtime(async {
            let mut running = world.start(&server(&world, mode, "wait"), mode).unwrap();
            wait_for_result(&mut running.stdout).await;
            running.process.end(Duration::from_millis(200)).await
        });
        assert_eq!(ended, Ended::Signal(15), "{mode:?}");
    }
}

#[test]
fn stubborn_servers_and_their_daemons_are_killed() {
    let world = World::new();
    for mode in modes() {
        let attack = format!("stubborn {}", world.at(&format!("write/{mode:?}")));
        let ended = in_runtime(async {
            let mut running = world.start(&server(&world, mode, &attack), mode).unwrap();
            wait_for_result(&mut running.stdout).await;
            assert_eq!(world.processes().len(), 2, "{mode:?}");
            running.process.end(Duration::from_millis(100)).await
        });
        assert_eq!(ended, Ended::Signal(9), "{mode:?}");
        assert_eq!(world.processes(), [""; 0], "{mode:?}");
    }
}

#[test]
fn daemons_end_with_their_server() {
    let world = World::new();
    for mode in modes() {
        world.run(mode, &format!("daemon {}", world.at(&format!("write/{mode:?}")))).unwrap();
        assert_eq!(world.processes(), [""; 0], "{mode:?}");
    }
}

#[test]
fn dropped_servers_end() {
    let world = World::new();
    for mode in modes() {
        in_runtime(async {
            let mut running = world.start(&server(&world, mode, "wait"), mode).unwrap();
            wait_for_result(&mut running.stdout).await;
        });
        assert_eq!(world.processes(), [""; 0], "{mode:?}");
    }
}

#[test]
fn servers_end_when_kitbag_is_killed() {
    for mode in modes() {
        let world = World::new();
        let mut host = Command::new(own_program())
            .args(["host", "--exact", "--nocapture", "--test-threads=1"])
            .env(HOST, format!("{mode:?}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
        let mark = lines
            .find_map(|line| line.unwrap().split_once("HOSTED ").map(|(_, mark)| mark.to_owned()));
        let mark = mark.unwrap();
        let count = || {
            let found = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
                let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|it| it == mark.as_bytes())
            });
            found.count()
        };
        assert_eq!(count(), 2, "{mode:?}: the server and its daemon");
        host.kill().unwrap();
        host.wait().unwrap();
        world.wait_until("the server remains", |_| count() == 0);
    }
}

#[test]
fn servers_end_with_their_keeper() {
    for mode in modes() {
        let world = World::new();
        let attack = format!("stubborn {}", world.at("write/daemon"));
        in_runtime(async {
            let mut running = world.start(&server(&world, mode, &attack), mode).unwrap();
            wait_for_result(&mut running.stdout).await;
            let keeper = running.process.id().cast_signed();
            let keeper = rustix::process::Pid::from_raw(keeper).unwrap();
            rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
            assert_eq!(running.process.ended().await, Ended::Signal(9), "{mode:?}");
            // Without a namespace of processes, its daemon remains.
            let rest = usize::from(mode != Mode::Namespaces);
            world.wait_until("the server remains", |world| world.processes().len() <= rest);
        });
        for process in world.processes() {
            let process = rustix::process::Pid::from_raw(process.parse().unwrap()).unwrap();
            rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        }
    }
}

/// Starts a server that leaves a daemon, prints its mark, and waits to be killed.
#[expect(clippy::print_stdout, reason = "read by the test")]
pub(crate) fn host() {
    let world = World::new();
    let mode = std::env::var(HOST).unwrap();
    let mode = MODES.into_iter().find(|it| format!("{it:?}") == mode).unwrap();
    let attack = format!("stubborn {}", world.at("write/daemon"));
    in_runtime(async {
        let mut running = world.start(&server(&world, mode, &attack), mode).unwrap();
        wait_for_result(&mut running.stdout).await;
        println!("\nHOSTED WORLD={}", world.at(""));
        tokio::time::sleep(Duration::from_secs(50)).await;
    });
}

#[test]
fn programs_that_cannot_start_are_reported() {
    let world = World::new();
    let error = |command: &str, mode: Mode| {
        let mut server = server(&world, mode, "wait");
        server.command = vec![command.to_owned()];
        in_runtime(async { world.start(&server, mode).unwrap_err().to_string() })
    };
    let text = error("no-such-server", Mode::Unconfined);
    assert_eq!(text, "cannot start `no-such-server`: no such program in `PATH`");
    std::fs::write(world.path("write/text"), "not a program").unwrap();
    for mode in modes() {
        let text = error("./text", mode);
        assert!(text.starts_with("cannot start `./text`: executing the program: "), "{text}");
    }
    assert_eq!(world.processes(), [""; 0]);
}

#[test]
fn last_lines_of_errors_are_kept_without_escapes() {
    let world = World::new();
    let errors = in_runtime(async {
        let mut running =
            world.start(&world.server("errors 1000", None), Mode::Unconfined).unwrap();
        running.process.ended().await;
        loop {
            let errors = running.process.last_errors();
            if errors.contains("line 999") {
                break errors;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(!errors.contains('\u{1b}') && !errors.contains("line 900"), "{errors}");
    assert_eq!(errors.lines().count(), 20, "{errors}");
}

#[test]
fn keepers_release_the_memory_of_kitbag() {
    let world = World::new();
    // Shared with the clone until one of both changes it.
    let mut large = vec![1_u8; 64 << 20];
    in_runtime(async {
        let mut running = world.start(&world.server("wait", None), Mode::Unconfined).unwrap();
        wait_for_result(&mut running.stdout).await;
        large.fill(2);
        let path = format!("/proc/{}/status", running.process.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kib < 2048, "the keeper holds {kib} KiB");
    });
    assert_eq!(large[7], 2);
}

/// Reads until the server has printed its result.
async fn wait_for_result(output: &mut (impl AsyncReadExt + Unpin)) {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&text).contains("RESULT ") {
        let count = output.read(&mut buffer).await.unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&buffer[..count]);
    }
}
