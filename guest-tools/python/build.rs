//! Selects the modules of Python's standard library that are compiled into the component.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Files and directories of the standard library that a script cannot use: they need processes,
/// sockets, a terminal or native code, or they are tools for developers.
const OMITTED: &[&str] = &[
    "__hello__.py",
    "__phello__",
    "__pycache__",
    "_aix_support.py",
    "_android_support.py",
    "_apple_support.py",
    "_dummy_os.py",
    "_ios_support.py",
    "_osx_support.py",
    "_pyio.py",
    "_pyrepl",
    "antigravity.py",
    "bdb.py",
    "cmd.py",
    "code.py",
    "compileall.py",
    "ctypes",
    "curses",
    "dbm",
    "distutils",
    "doctest.py",
    "ensurepip",
    "ftplib.py",
    "getpass.py",
    "idlelib",
    "imaplib.py",
    "lib2to3",
    "mailbox.py",
    "modulefinder.py",
    "multiprocessing",
    "netrc.py",
    "pdb.py",
    "pickletools.py",
    "poplib.py",
    "profile.py",
    "pstats.py",
    "pty.py",
    "py_compile.py",
    "pyclbr.py",
    "pydoc.py",
    "pydoc_data",
    "rlcompleter.py",
    "smtplib.py",
    "socketserver.py",
    "sqlite3",
    "ssl.py",
    "symtable.py",
    "tabnanny.py",
    "tarfile.py",
    "test",
    "tests",
    "this.py",
    "tkinter",
    "trace.py",
    "tty.py",
    "turtle.py",
    "turtledemo",
    "venv",
    "wave.py",
    "webbrowser.py",
    "wsgiref",
    "xmlrpc",
    "zipapp.py",
    // Of `http`, the statuses remain.
    "client.py",
    "cookiejar.py",
    "cookies.py",
    "server.py",
];

/// The size of the stack in the component's memory.
///
/// The interpreter raises `RecursionError` near its end. Recursion uses about as much of the native
/// stack, which ends a call at 512 KiB (`kitbag_engine::STACK_BYTES`).
const STACK_BYTES: usize = 480 << 10;

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let library = out.join("Lib");
    if library.exists() {
        fs::remove_dir_all(&library)?;
    }
    copy(Path::new(rustpython_pylib::LIB_PATH), &library)?;
    // The macro takes paths relative to the crate only.
    let frozen = format!(
        "rustpython_vm::py_freeze!(dir = {library:?}, crate_name = \"rustpython_compiler_core\")"
    );
    fs::write(out.join("frozen.rs"), frozen)?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-cdylib=-zstack-size={STACK_BYTES}");
    Ok(())
}

/// Copies the modules that are not omitted.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if OMITTED.contains(&name) {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else if name.ends_with(".py") {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}
