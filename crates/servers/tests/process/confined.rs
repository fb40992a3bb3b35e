//! Escapes from confinement.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use kitbag_base::ByteSize;
use kitbag_policy::server::Confinement;
use kitbag_servers::process::{self, StartError};

use crate::world::{CONFINED, Mode, World, exists, in_runtime, is_available, own_program};

#[test]
fn files_that_are_not_granted_are_out_of_reach() {
    let world = World::new();
    let key = world.at("home/.ssh/id_rsa");
    for attack in [
        format!("read {key}"),
        format!("list {}", world.at("home/.ssh")),
        format!("list {}", world.at("")),
        format!("read {}", world.at("state/trust")),
        "read /etc/hosts".to_owned(),
        "list /etc".to_owned(),
        "list /home".to_owned(),
        "list /tmp".to_owned(),
        "list /dev".to_owned(),
    ] {
        world.assert_prevented(&attack);
    }
    // These change files: each has its own.
    let attacks = ["write", "truncate", "read-truncate", "chmod", "remove"];
    for attack in attacks {
        let path = world.path(&format!("other/{attack}"));
        for mode in [Mode::Unconfined, Mode::Namespaces, Mode::NoNamespaces] {
            if !is_available(mode) {
                continue;
            }
            fs::write(&path, "content").unwrap();
            let before = fs::metadata(&path).unwrap().permissions();
            let result = world.run(mode, &format!("{attack} {}", path.display()));
            assert_eq!(result.is_ok(), mode == Mode::Unconfined, "{attack} {mode:?}: {result:?}");
            if mode != Mode::Unconfined {
                assert_eq!(fs::read_to_string(&path).unwrap(), "content", "{attack} {mode:?}");
                assert_eq!(fs::metadata(&path).unwrap().permissions(), before);
            }
        }
    }
}

#[test]
fn granted_files_can_be_used() {
    let world = World::new();
    world.assert_possible(&[
        format!("read {}", world.at("read/page")),
        format!("list {}", world.at("read")),
        format!("write {}", world.at("write/new")),
        format!("rename {} {}", world.at("write/new"), world.at("write/newer")),
        format!("remove {}", world.at("write/newer")),
        "write relative".to_owned(),
        "temporary file".to_owned(),
        "write /dev/null".to_owned(),
        "read /proc/self/maps".to_owned(),
        "read /proc/meminfo".to_owned(),
        "run sh -c true".to_owned(),
        "threads 20".to_owned(),
        "forks 20".to_owned(),
    ]);
}

#[test]
fn granted_directories_to_read_cannot_be_changed() {
    let world = World::new();
    world.assert_prevented(&format!("write {}", world.at("read/page")));
    world.assert_prevented(&format!("write {}", world.at("read/new")));
    world.assert_prevented(&format!("read-truncate {}", world.at("read/page")));
}

#[test]
fn links_do_not_lead_out() {
    let world = World::new();
    let key = world.at("home/.ssh/id_rsa");
    symlink(&key, world.path("read/link")).unwrap();
    symlink(world.path("home"), world.path("write/home")).unwrap();
    world.assert_prevented(&format!("read {}", world.at("read/link")));
    world.assert_prevented(&format!("read {}", world.at("write/home/.ssh/id_rsa")));
    world.assert_prevented(&format!("read {}", world.at("write/../home/.ssh/id_rsa")));
    world.assert_prevented(&format!("read /proc/self/root{key}"));
    for (number, mode) in
        [Mode::Unconfined, Mode::Namespaces, Mode::NoNamespaces].iter().enumerate()
    {
        if !is_available(*mode) {
            continue;
        }
        let allowed = *mode == Mode::Unconfined;
        let link = world.at(&format!("write/symbolic{number}"));
        assert_eq!(world.run(*mode, &format!("symlink-read {key} {link}")).is_ok(), allowed);
        let link = world.at(&format!("write/hard{number}"));
        assert_eq!(world.run(*mode, &format!("link {key} {link}")).is_ok(), allowed);
        let moved = world.at(&format!("write/moved{number}"));
        fs::write(world.path("other/move"), "content").unwrap();
        let result = world.run(*mode, &format!("rename {} {moved}", world.at("other/move")));
        assert_eq!(result.is_ok(), allowed, "{mode:?}");
    }
}

#[test]
fn files_of_kitbag_in_a_granted_directory_are_fixed() {
    let world = World::new();
    let config = world.at("write/fixed/config");
    if !is_available(Mode::Namespaces) {
        return;
    }
    for attack in [
        format!("write {config}"),
        format!("write {}", world.at("write/fixed/new")),
        format!("remove {config}"),
        format!("chmod {config}"),
        format!("rename {} {}", world.at("write/fixed"), world.at("write/gone")),
    ] {
        let result = world.run(Mode::Namespaces, &attack);
        assert!(result.is_err(), "{attack}: {result:?}");
    }
    assert_eq!(world.run(Mode::Namespaces, &format!("read {config}")).as_deref(), Ok("content"));
    // Without confinement it can be changed.
    world.run(Mode::Unconfined, &format!("write {config}")).unwrap();
}

#[test]
fn files_of_kitbag_need_namespaces_in_granted_directories() {
    let world = World::new();
    let server = world.server("wait", Some(world.confinement()));
    let fixed = [world.path("write/fixed")];
    let error = in_runtime(async {
        process::start(
            &server,
            &process::Start {
                name: "test",
                secrets: &[],
                environment: &world.environment,
                temporary: &world.path("temporary"),
                hidden: &[],
                fixed: &fixed,
                namespaces: false,
            },
        )
        .unwrap_err()
    });
    let text = error.to_string();
    assert!(text.contains("can be protected only with namespaces"), "{text}");
}

#[test]
fn networks_are_out_of_reach() {
    let world = World::new();
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    world.assert_prevented(&format!("tcp {}", tcp.local_addr().unwrap()));
    world.assert_prevented(&format!("udp {}", udp.local_addr().unwrap()));
    world.assert_prevented("bind 127.0.0.1:0");
    if let Ok(tcp) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        world.assert_prevented(&format!("tcp {}", tcp.local_addr().unwrap()));
    }
    // Netlink.
    world.assert_prevented("socket 16 3 0");
    world.assert_prevented("socket 2 2 0");
    world.assert_prevented("socket 10 1 0");
}

#[test]
fn sockets_of_other_programs_are_out_of_reach() {
    let world = World::new();
    let path = world.at("write/socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let name = format!("kitbag-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let datagrams = world.at("write/datagrams");
    let _datagrams = UnixDatagram::bind(&datagrams).unwrap();
    world.assert_prevented(&format!("unix {path}"));
    world.assert_prevented(&format!("abstract {name}"));
    world.assert_prevented(&format!("pair-send {datagrams}"));
    // With network as well: buses and Docker start programs.
    for mode in CONFINED.into_iter().filter(|mode| is_available(*mode)) {
        for attack in [
            format!("unix {path}"),
            format!("abstract {name}"),
            format!("pair-send {datagrams}"),
            // Netlink of the kernel's log, and packets.
            "socket 16 3 9".to_owned(),
            "socket 17 3 0".to_owned(),
            "socket 40 1 0".to_owned(),
        ] {
            let confine = Confinement { network: true, ..world.confinement() };
            let result = world.run_confined(mode, Some(confine), &attack);
            assert!(result.is_err(), "{attack} {mode:?}: {result:?}");
        }
    }
}

#[test]
fn networks_can_be_granted() {
    let world = World::new();
    let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for mode in CONFINED.into_iter().filter(|mode| is_available(*mode)) {
        let confine = Confinement { network: true, ..world.confinement() };
        for action in [
            format!("tcp {}", tcp.local_addr().unwrap()),
            "bind 127.0.0.1:0".to_owned(),
            // Addresses of interfaces.
            "socket 16 3 0".to_owned(),
            "read /etc/hosts".to_owned(),
        ] {
            let result = world.run_confined(mode, Some(confine.clone()), &action);
            assert!(result.is_ok(), "{action} {mode:?}: {result:?}");
        }
    }
}

#[test]
fn other_processes_are_out_of_reach() {
    let world = World::new();
    // Like a program of the user: no child of the server, and of the same user.
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let process = child.id();
    for attack in [
        format!("signal {process}"),
        format!("read /proc/{process}/environ"),
        format!("read /proc/{process}/cmdline"),
        format!("limit {process}"),
        format!("priority {process}"),
        format!("ptrace {process}"),
    ] {
        world.assert_prevented(&attack);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let own = std::process::id();
    world.assert_prevented(&format!("signal {own}"));
    let byte = 7_u8;
    world.assert_prevented(&format!("peek {own} {}", (&raw const byte).addr()));
}

#[test]
fn the_keeper_is_out_of_reach() {
    let world = World::new();
    if !is_available(Mode::Namespaces) {
        return;
    }
    for attack in ["read /proc/1/environ", "read /proc/1/maps", "read /proc/1/mem", "ptrace 1"] {
        let result = world.run(Mode::Namespaces, attack);
        assert!(result.is_err(), "{attack}: {result:?}");
    }
}

#[test]
fn shared_memory_is_private() {
    let world = World::new();
    let name = format!("/dev/shm/kitbag-test-{}", std::process::id());
    world.run(Mode::Unconfined, &format!("write {name}")).unwrap();
    assert!(exists(&PathBuf::from(&name)));
    fs::remove_file(&name).unwrap();
    for mode in CONFINED.into_iter().filter(|mode| is_available(*mode)) {
        let result = world.run(mode, &format!("write {name}"));
        // With namespaces, there is another directory.
        assert_eq!(result.is_ok(), mode == Mode::Namespaces);
        assert!(!exists(&PathBuf::from(&name)));
    }
    world.run(Mode::Unconfined, "shared-memory").unwrap();
    let refused = world.run(Mode::NoNamespaces, "shared-memory");
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn temporary_directories_are_private() {
    let world = World::new();
    world.assert_prevented(&format!("write {}", world.at("temporary/other")));
    for mode in CONFINED.into_iter().filter(|mode| is_available(*mode)) {
        let path = world.run(mode, "temporary file").unwrap();
        assert!(path.starts_with(&world.at("temporary")), "{path}");
        assert!(!exists(&PathBuf::from(&path)), "{mode:?}: {path} remains");
        let home = world.run(mode, "variable HOME").unwrap();
        assert!(home.starts_with(&world.at("temporary")), "{home}");
    }
    assert_eq!(fs::read_dir(world.path("temporary")).unwrap().count(), 1, "only `other`");
}

#[test]
fn memory_is_limited() {
    let world = World::new();
    let bytes = 200 << 20;
    world.run(Mode::Unconfined, &format!("memory {bytes}")).unwrap();
    for mode in CONFINED.into_iter().filter(|mode| is_available(*mode)) {
        let memory = Some(ByteSize::mib(100));
        let confine = Confinement { memory, ..world.confinement() };
        let result = world.run_confined(mode, Some(confine), &format!("memory {bytes}"));
        assert!(result.is_err(), "{mode:?}");
        world.run(mode, &format!("memory {bytes}")).unwrap();
    }
}

#[test]
fn processes_are_limited() {
    let world = World::new();
    world.run(Mode::Unconfined, "forks 600").unwrap();
    if let Err(reason) = &process::support().processes {
        // The kernel of this system cannot; then the setting is refused.
        let confine = Confinement { processes: Some(400), ..world.confinement() };
        let server = world.server("wait", Some(confine));
        let error = in_runtime(async { world.start(&server, Mode::Namespaces).unwrap_err() });
        assert!(error.to_string().contains(reason), "{error}");
        return;
    }
    let confine = Confinement { processes: Some(400), ..world.confinement() };
    let result = world.run_confined(Mode::Namespaces, Some(confine.clone()), "forks 600");
    assert!(result.is_err(), "{result:?}");
    world.run_confined(Mode::Namespaces, Some(confine.clone()), "forks 200").unwrap();
    // The default.
    let result = world.run(Mode::Namespaces, "forks 600");
    assert!(result.is_err(), "{result:?}");
    let server = world.server("wait", Some(confine));
    let error = in_runtime(async { world.start(&server, Mode::NoNamespaces).unwrap_err() });
    assert!(matches!(error, StartError::Confinement(_)), "{error}");
}

#[test]
fn disks_cannot_be_filled() {
    let world = World::new();
    let bytes = 5_u64 << 30;
    world.assert_prevented(&format!("size {} {bytes}", world.at("write/large")));
    if is_available(Mode::Namespaces) {
        let action = format!("fill-temporary {}", 300_u64 << 20);
        assert!(world.run(Mode::Namespaces, &action).is_err());
        world.run(Mode::Namespaces, &format!("fill-temporary {}", 10_u64 << 20)).unwrap();
    }
}

#[test]
fn privileges_cannot_be_gained() {
    let world = World::new();
    let field = |mode, field| world.run(mode, &format!("status {field}")).unwrap();
    assert_eq!(field(Mode::Unconfined, "NoNewPrivs"), "0");
    for mode in CONFINED.into_iter().filter(|mode| is_available(*mode)) {
        assert_eq!(field(mode, "NoNewPrivs"), "1");
        // Root keeps `CAP_DAC_OVERRIDE`: files of others in granted directories.
        let capabilities = u64::from_str_radix(&field(mode, "CapBnd"), 16).unwrap()
            & u64::from_str_radix(&field(mode, "CapEff"), 16).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(capabilities, if is_root { 2 } else { 0 }, "{mode:?}");
    }
    world.assert_prevented("unshare");
    // A program that other users run with the rights of this one.
    world.assert_prevented(&format!("setuid {}", world.at("write/setuid")));
    world.assert_prevented(&format!("create-setuid {}", world.at("write/created")));
}

#[test]
fn setuid_programs_run_without_privileges() {
    let world = World::new();
    if !rustix::process::geteuid().is_root() {
        // Only root creates a program of another user; `NoNewPrivs` is tested for all users.
        return;
    }
    let program = world.path("read/whoami");
    fs::copy("/usr/bin/id", &program).unwrap();
    std::os::unix::fs::chown(&program, Some(65534), None).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    fs::set_permissions(&program, mode).unwrap();
    let run = format!("run {} -u", program.display());
    assert_eq!(world.run(Mode::Unconfined, &run).as_deref(), Ok("65534|"));
    for mode in CONFINED.into_iter().filter(|mode| is_available(*mode)) {
        assert_eq!(world.run(mode, &run).as_deref(), Ok("0|"), "{mode:?}");
    }
}

#[test]
fn detours_are_closed() {
    let world = World::new();
    world.assert_prevented("list /dev/pts");
    for mode in CONFINED.into_iter().filter(|mode| is_available(*mode)) {
        let errors = |attack| world.run(mode, attack).unwrap_err();
        assert!(errors("terminal-input").contains("os error 1)"), "{}", errors("terminal-input"));
        assert!(errors("key").contains("os error 1)"));
        assert!(errors("io-uring").contains("os error 38"));
        assert!(errors("clone3").contains("os error 38"));
    }
    let without = world.run(Mode::Unconfined, "clone3").unwrap_err();
    assert!(without.contains("os error 22"), "{without}");
    let without = world.run(Mode::Unconfined, "terminal-input").unwrap_err();
    assert!(without.contains("os error 25"), "{without}");
}

#[test]
fn descriptors_are_not_inherited() {
    let world = World::new();
    let (mut read, write) = std::io::pipe().unwrap();
    // A copy without `CLOEXEC`, as a careless library opens it.
    let copy = rustix::io::dup(&write).unwrap();
    for mode in [Mode::Unconfined, Mode::Namespaces, Mode::NoNamespaces] {
        if is_available(mode) {
            assert!(world.run(mode, "descriptors").is_err(), "{mode:?}");
        }
    }
    drop((write, copy));
    let mut rest = Vec::new();
    read.read_to_end(&mut rest).unwrap();
    // A server that runs holds no copy either.
    let server = world.server("wait", None);
    in_runtime(async {
        let (mut read, write) = std::io::pipe().unwrap();
        let running = world.start(&server, Mode::Unconfined).unwrap();
        drop(write);
        read.read_to_end(&mut rest).unwrap();
        drop(running);
    });
}

#[test]
fn granted_paths_must_exist_and_be_apart_from_kitbags_files() {
    let world = World::new();
    let error = |confine: Confinement| {
        let server = world.server("wait", Some(confine));
        in_runtime(async { world.start(&server, Mode::Namespaces).unwrap_err().to_string() })
    };
    let gone = Confinement { read: vec![world.path("gone")], ..Confinement::default() };
    let text = error(gone);
    assert!(text.starts_with("`confine.read`") && text.contains("/gone"), "{text}");
    for path in ["", "state", "state/trust"] {
        let text = error(Confinement { write: vec![world.path(path)], ..Confinement::default() });
        assert!(text.contains("no confined server may reach"), "{path}: {text}");
    }
}

#[test]
fn ordinary_users_are_protected_as_well() {
    if !rustix::process::geteuid().is_root() {
        // The other tests ran as an ordinary user.
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(directory.path(), Some(1234), Some(1234)).unwrap();
    let output = Command::new(own_program())
        .args(["--skip", "ordinary_users", "--test-threads", "2"])
        .env("TMPDIR", directory.path())
        .uid(1234)
        .gid(1234)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}
