use std::{env, fs, path::{Path, PathBuf}};
const OUT: &[&str] = &["test","idlelib","tkinter","turtledemo","lib2to3","ensurepip","distutils","unittest","pydoc_data","curses","dbm","sqlite3","multiprocessing","venv","xmlrpc","wsgiref","_pyrepl","ctypes","turtle.py","antigravity.py","this.py","ssl.py","ftplib.py","imaplib.py","poplib.py","smtplib.py","socketserver.py","mailbox.py","pdb.py","bdb.py","cmd.py","code.py","profile.py","pstats.py","trace.py","webbrowser.py","pty.py","tty.py","doctest.py","pydoc.py","rlcompleter.py","netrc.py","_aix_support.py","_android_support.py","_apple_support.py","_ios_support.py","_osx_support.py","_pyio.py","compileall.py","py_compile.py","zipapp.py","getpass.py","tarfile.py","wave.py","http","_dummy_os.py","__hello__.py","__phello__","symtable.py","tabnanny.py","timeit.py","modulefinder.py","pyclbr.py","pickletools.py"];
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for e in fs::read_dir(from).unwrap() {
        let e = e.unwrap(); let name = e.file_name(); let name = name.to_str().unwrap();
        if OUT.contains(&name) || name == "__pycache__" || name == "tests" { continue; }
        let p = e.path();
        if p.is_dir() { copy(&p, &to.join(name)); } else if name.ends_with(".py") { fs::copy(&p, to.join(name)).unwrap(); }
    }
}
fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").unwrap()).join("Lib");
    let _ = fs::remove_dir_all(&out);
    copy(Path::new(rustpython_pylib::LIB_PATH), &out);
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("frozen.rs"), format!("rustpython_vm::py_freeze!(dir = {:?}, crate_name = \"rustpython_compiler_core\")", out)).unwrap();
    println!("cargo:rerun-if-changed=build.rs");
}
