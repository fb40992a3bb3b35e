//! Attacks that a server performs: words in a variable. The result is printed.

#![expect(unsafe_code, reason = "system calls without a safe function")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the output of a server")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Error, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::Path;
use std::time::Duration;

pub(crate) const VARIABLE: &str = "ATTACK";

pub(crate) fn perform(attack: &str) {
    // SAFETY: no function of ours handles the signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let words: Vec<&str> = attack.split(' ').collect();
    let result = match (words[0], &words[1..]) {
        ("read", [path]) => fs::read_to_string(path),
        ("list", [path]) => fs::read_dir(path).map(|entries| entries.count().to_string()),
        ("write", [path]) => fs::write(path, "changed").map(|()| "written".to_owned()),
        ("truncate", [path]) => truncate(path),
        ("read-truncate", [path]) => open_and_truncate(path),
        ("chmod", [path]) => {
            fs::set_permissions(path, fs::Permissions::from_mode(0o666)).map(|()| String::new())
        }
        ("setuid", [path]) => File::create(path)
            .and_then(|file| file.set_permissions(fs::Permissions::from_mode(0o4755)))
            .map(|()| String::new()),
        ("create-setuid", [path]) => {
            let path = std::ffi::CString::new(*path).unwrap();
            let flags = libc::O_CREAT | libc::O_WRONLY;
            // SAFETY: the path ends with NUL.
            result(unsafe { libc::open(path.as_ptr(), flags, 0o4755) })
        }
        ("remove", [path]) => fs::remove_file(path).map(|()| String::new()),
        ("rename", [from, to]) => fs::rename(from, to).map(|()| String::new()),
        ("link", [from, to]) => fs::hard_link(from, to).map(|()| String::new()),
        ("symlink-read", [to, link]) => {
            std::os::unix::fs::symlink(to, link).and_then(|()| fs::read_to_string(link))
        }
        ("size", [path, bytes]) => File::create(path)
            .and_then(|file| file.set_len(bytes.parse().unwrap()))
            .map(|()| String::new()),
        ("fill", [path, bytes]) => fill(path, bytes.parse().unwrap()),
        ("tcp", [address]) => TcpStream::connect(address).map(|_| String::new()),
        ("udp", [address]) => udp(address),
        ("bind", [address]) => std::net::TcpListener::bind(address).map(|_| String::new()),
        ("unix", [path]) => UnixStream::connect(path).map(|_| String::new()),
        ("abstract", [name]) => SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixStream::connect_addr(&address))
            .map(|_| String::new()),
        ("pair-send", [path]) => {
            UnixDatagram::pair().and_then(|(one, _)| one.send_to(b"x", path)).map(|_| String::new())
        }
        ("socket", [family, kind, protocol]) => {
            let number = |it: &str| it.parse::<i32>().unwrap();
            // SAFETY: no pointers.
            result(unsafe { libc::socket(number(family), number(kind), number(protocol)) })
        }
        // SAFETY: no pointers.
        ("signal", [process]) => result(unsafe { libc::kill(process.parse().unwrap(), 0) }),
        ("ptrace", [process]) => ptrace(process.parse().unwrap()),
        ("peek", [process, address]) => peek(process.parse().unwrap(), address.parse().unwrap()),
        ("limit", [process]) => limit(process.parse().unwrap()),
        ("priority", [process]) => {
            // SAFETY: no pointers.
            result(unsafe { libc::setpriority(libc::PRIO_PROCESS, process.parse().unwrap(), 19) })
        }
        ("forks", [count]) => forks(count.parse().unwrap()),
        ("threads", [count]) => threads(count.parse().unwrap()),
        ("memory", [bytes]) => memory(bytes.parse().unwrap()),
        ("unshare", []) => unshare(),
        ("io-uring", []) => io_uring(),
        ("clone3", []) => clone3(),
        ("terminal-input", []) => terminal_input(),
        ("key", []) => key(),
        ("shared-memory", []) => shared_memory(),
        ("descriptors", []) => descriptors(),
        ("status", [field]) => status(field),
        ("variables", []) => {
            let names = std::env::vars().map(|(name, _)| name);
            let mut names: Vec<_> = names.collect();
            names.sort();
            Ok(names.join(","))
        }
        ("variable", [name]) => {
            std::env::var(name).map_err(|_| Error::from(io::ErrorKind::NotFound))
        }
        ("temporary", [name]) => {
            let path = Path::new(&std::env::var_os("TMPDIR").unwrap_or_default()).join(name);
            fs::write(&path, "x").map(|()| path.to_str().unwrap().to_owned())
        }
        ("fill-temporary", [bytes]) => {
            let path = Path::new(&std::env::var_os("TMPDIR").unwrap()).join("large");
            fill(path.to_str().unwrap(), bytes.parse().unwrap())
        }
        ("run", command) => run(command),
        ("errors", [count]) => {
            for number in 0..count.parse::<u32>().unwrap() {
                eprintln!("line {number} \u{1b}[31m");
            }
            Ok(String::new())
        }
        ("daemon", [file]) => daemon(file),
        ("wait", []) => {
            println!("RESULT ok waiting");
            loop {
                std::thread::sleep(Duration::from_secs(60));
            }
        }
        ("stubborn", [file]) => {
            // SAFETY: no function of ours handles the signal.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
            let _ = daemon(file);
            println!("RESULT ok waiting");
            loop {
                std::thread::sleep(Duration::from_secs(60));
            }
        }
        ("end-of-input", []) => {
            println!("RESULT ok waiting");
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).unwrap();
            std::process::exit(7);
        }
        ("exit", [status]) => {
            println!("RESULT ok");
            std::process::exit(status.parse().unwrap());
        }
        ("abort", []) => std::process::abort(),
        _ => panic!("unknown attack {attack}"),
    };
    match result {
        Ok(text) => println!("\nRESULT ok {}", text.replace('\n', "|")),
        Err(error) => println!("\nRESULT error {error}"),
    }
    io::stdout().flush().unwrap();
    std::process::exit(0);
}

fn result(number: i32) -> io::Result<String> {
    if number < 0 { Err(Error::last_os_error()) } else { Ok(number.to_string()) }
}

fn truncate(path: &str) -> io::Result<String> {
    let path = std::ffi::CString::new(path).unwrap();
    // SAFETY: the path ends with NUL.
    result(unsafe { libc::truncate(path.as_ptr(), 1) })
}

fn open_and_truncate(path: &str) -> io::Result<String> {
    let path = std::ffi::CString::new(path).unwrap();
    // SAFETY: the path ends with NUL.
    result(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_TRUNC) })
}

fn fill(path: &str, bytes: i64) -> io::Result<String> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    // SAFETY: no pointers.
    let filled = result(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes) });
    let _ = fs::remove_file(path);
    filled
}

fn udp(address: &str) -> io::Result<String> {
    let socket = UdpSocket::bind(if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" })?;
    socket.send_to(b"x", address).map(|_| String::new())
}

fn ptrace(process: i32) -> io::Result<String> {
    // SAFETY: no memory of ours is accessed.
    let number = unsafe { libc::ptrace(libc::PTRACE_SEIZE, process, 0, 0) };
    result(i32::try_from(number).unwrap_or(-1))
}

fn peek(process: i32, address: usize) -> io::Result<String> {
    let mut byte = 0_u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: 1 };
    // SAFETY: the kernel writes one byte.
    let count =
        unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    result(i32::try_from(count).unwrap_or(-1))
}

fn limit(process: i32) -> io::Result<String> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes the current limit.
    result(unsafe { libc::prlimit(process, libc::RLIMIT_CORE, std::ptr::null(), &raw mut limit) })
}

/// Starts processes that wait, and ends them.
fn forks(count: u32) -> io::Result<String> {
    let mut error = None;
    for _ in 0..count {
        // SAFETY: the child calls only `pause`.
        match unsafe { libc::fork() } {
            0 => loop {
                // SAFETY: no pointers.
                unsafe { libc::pause() };
            },
            -1 => {
                error = Some(Error::last_os_error());
                break;
            }
            _ => {}
        }
    }
    // The keeper ends them.
    error.map_or(Ok(String::new()), Err)
}

/// Creates a namespace of users, in a process with one thread.
fn unshare() -> io::Result<String> {
    let mut status = 0;
    // SAFETY: the child makes two system calls.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(libc::unshare(libc::CLONE_NEWUSER));
        }
        libc::waitpid(child, &raw mut status, 0);
    }
    if status == 0 { Ok(String::new()) } else { Err(Error::from_raw_os_error(libc::EPERM)) }
}

fn threads(count: u32) -> io::Result<String> {
    for _ in 0..count {
        std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(|| std::thread::sleep(Duration::from_secs(60)))?;
    }
    Ok(String::new())
}

fn memory(bytes: usize) -> io::Result<String> {
    let mut memory = Vec::<u8>::new();
    memory.try_reserve_exact(bytes).map_err(Error::other)?;
    memory.resize(bytes, 1);
    Ok(memory.iter().step_by(4096).map(|it| u64::from(*it)).sum::<u64>().to_string())
}

fn io_uring() -> io::Result<String> {
    let mut parameters = [0_u8; 120];
    // SAFETY: the structure has 120 bytes.
    let number = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    result(i32::try_from(number).unwrap())
}

fn clone3() -> io::Result<String> {
    // SAFETY: the kernel refuses a structure of no bytes.
    let number = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<u8>(), 0) };
    result(i32::try_from(number).unwrap())
}

fn terminal_input() -> io::Result<String> {
    // SAFETY: the kernel reads one byte.
    result(unsafe { libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()) })
}

fn shared_memory() -> io::Result<String> {
    // SAFETY: no pointers.
    let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o600) };
    result(segment)?;
    // SAFETY: removing takes no structure.
    result(unsafe { libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut()) })
}

fn key() -> io::Result<String> {
    // SAFETY: strings end with NUL, and the payload has one byte.
    let number = unsafe {
        libc::syscall(
            libc::SYS_add_key,
            c"user".as_ptr(),
            c"kitbag-test".as_ptr(),
            c"x".as_ptr(),
            1,
            -2, // The keyring of the process.
        )
    };
    result(i32::try_from(number).unwrap_or(i32::MAX))
}

/// Returns an error if there is none but the standard streams.
fn descriptors() -> io::Result<String> {
    let mut found = Vec::new();
    for number in 3..200 {
        // SAFETY: no pointers.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0 {
            found.push(number.to_string());
        }
    }
    if found.is_empty() { Err(Error::from(io::ErrorKind::NotFound)) } else { Ok(found.join(",")) }
}

fn status(field: &str) -> io::Result<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    Ok(line.unwrap_or_default().trim().to_owned())
}

fn run(command: &[&str]) -> io::Result<String> {
    let output = std::process::Command::new(command[0]).args(&command[1..]).output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr).replace('\n', "|");
        return Err(Error::other(format!("{}: {errors}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Leaves a process behind, in a session of its own.
fn daemon(file: &str) -> io::Result<String> {
    // SAFETY: this process has one thread that matters; the children only sleep and write a file.
    unsafe {
        if libc::fork() == 0 {
            libc::setsid();
            if libc::fork() == 0 {
                let _ = fs::write(file, "started");
                loop {
                    libc::sleep(60);
                }
            }
            libc::_exit(0);
        }
    }
    while fs::read(file).is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(String::new())
}
