//! Workspaces for measurements.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use kitbag::Places;
use kitbag::config::Sourced;

/// A workspace in a temporary directory, with its own home and cache.
pub(crate) struct Workspace(tempfile::TempDir);

/// Path of a guest of the tests: `probe`, which does the work that a call requests, or `echo`,
/// which answers with its arguments.
pub(crate) fn guest(name: &str) -> PathBuf {
    Path::new(env!("TEST_GUESTS")).join(format!("kitbag_{name}.wasm"))
}

/// The tables of a tool that is a guest of the same name. They declare its arguments, so that it
/// need not be loaded to list them.
pub(crate) fn local_tool(name: &str) -> String {
    format!(
        "[tools.{name}]\nsource = \"local\"\nwasm = {:?}\ndescription = \"echoes\"\n\
         [tools.{name}.parameters]\ndo.type = \"string\"\ntext.type = \"string\"\n",
        guest(name)
    )
}

/// The table of a tool that is `probe`, which must be loaded to list its arguments.
pub(crate) fn unsaid_tool(name: &str) -> String {
    format!("[tools.{name}]\nsource = \"local\"\nwasm = {:?}\n", guest("probe"))
}

impl Workspace {
    pub(crate) fn new(config: &str) -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        fs::create_dir(workspace.home()).unwrap();
        // A directory that others can write to is not accepted as a cache.
        fs::DirBuilder::new().mode(0o700).create(workspace.cache()).unwrap();
        workspace.file(".kitbag/config.toml", config);
        workspace
    }

    /// A workspace with this many tools that are not called. Their tables are short, since a
    /// configuration file may have 1 MiB.
    pub(crate) fn with_idle_tools(count: usize) -> Self {
        let table = |number| {
            let name = format!("[tools.t{number:05}]\n");
            name + "source = \"local\"\nwasm = \"p.wasm\"\ndescription = \"idle\"\n"
        };
        let workspace = Self::new(&(0..count).map(table).collect::<String>());
        fs::copy(guest("probe"), workspace.root().join("p.wasm")).unwrap();
        workspace
    }

    /// A workspace with this many components in `.kitbag/tools`, which are tools without any
    /// configuration.
    pub(crate) fn with_found_tools(count: usize) -> Self {
        let workspace = Self::new("");
        let first = workspace.file(".kitbag/tools/t00000.wasm", fs::read(guest("probe")).unwrap());
        for number in 1..count {
            fs::hard_link(&first, first.with_file_name(format!("t{number:05}.wasm"))).unwrap();
        }
        workspace
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.path().join("workspace")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.0.path().join("cache")
    }

    fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    /// Writes a file, and creates its parent directories.
    pub(crate) fn file(&self, relative: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes the user config.
    pub(crate) fn own_config(&self, config: &str) {
        fs::create_dir_all(self.own_file().parent().unwrap()).unwrap();
        fs::write(self.own_file(), config).unwrap();
    }

    fn own_file(&self) -> PathBuf {
        self.home().join(".config/kitbag/config.toml")
    }

    /// Writes this many subjects of this many bytes: `subject-0.md` and so on.
    pub(crate) fn subjects(&self, directory: &str, count: usize, bytes: usize) {
        let line = "A line of text.\n";
        let text = line.repeat(bytes.div_ceil(line.len()));
        let root = self.root().join(directory);
        fs::create_dir_all(&root).unwrap();
        for number in 0..count {
            fs::write(root.join(format!("subject-{number}.md")), &text[..bytes]).unwrap();
        }
    }

    /// A program in this workspace, with only the variables that kitbag needs.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.home())
            .env("KITBAG_TRUST_WORKSPACE", "1")
            .env("KITBAG_CACHE_DIR", self.cache());
        command
    }

    /// Compiles a tool into the cache, which the library shares with the binary.
    pub(crate) fn compile(&self, binary: &Path, tool: &str) {
        let run = self.command(binary).args(["run", tool, "do=echo", "text=here"]).output();
        let run = run.unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }

    /// The paths of this workspace for the library.
    pub(crate) fn places(&self) -> Places {
        Places {
            user_file: Some(self.own_file()).filter(|file| file.exists()),
            cache: Some(self.cache()),
            state: Some(Sourced::default(self.home().join(".local/state/kitbag"))),
            home: Some(self.home()),
            ..Places::default()
        }
    }
}
