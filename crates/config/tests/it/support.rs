//! A workspace on disk, and its configuration.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_config::{
    BuiltinTool, Config, ConfigErrors, Lock, LockedServer, Origin, Sourced, Sources, TrustSource,
    Variables, load,
};
use kitbag_policy::server::{Era, ToolDefinition};
use tempfile::TempDir;

use crate::case_output::builtins;

/// A temporary directory with a workspace `w`, a home directory `h` and other files of a test.
pub(crate) struct Fixture {
    directory: TempDir,
    has_user_file: bool,
    has_home: bool,
    environment: Vec<(String, String)>,
    variables: Vec<(OsString, OsString)>,
    all_variables: Variables,
    builtins: &'static [BuiltinTool<'static>],
}

impl Fixture {
    /// Creates a workspace with this `.kitbag/config.toml`.
    pub(crate) fn new(config: &str) -> Self {
        Self::empty().file("w/.kitbag/config.toml", config)
    }

    /// Creates a workspace without files.
    pub(crate) fn empty() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("w/.kitbag")).unwrap();
        fs::create_dir(directory.path().join("h")).unwrap();
        Self {
            directory,
            has_user_file: false,
            has_home: true,
            environment: Vec::new(),
            variables: Vec::new(),
            all_variables: Variables::default(),
            builtins: builtins("default"),
        }
    }

    /// Writes a file, and creates its parent directories.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Adds the record of a server to a lock file: a definition of a tool in each line, or only its
    /// name.
    pub(crate) fn record(self, path: &str, server: &str, definitions: &str) -> Self {
        let file = self.path(path);
        let text = fs::read_to_string(&file).unwrap_or_else(|_| "version = 2\n".to_owned());
        let mut lock = Lock::read(&text, &file, &file).unwrap();
        let definition = |line: &str| match serde_json::from_str::<ToolDefinition>(line) {
            Ok(definition) => definition,
            Err(_) => ToolDefinition {
                name: line.to_owned(),
                title: None,
                description: Some(format!("Does {line}")),
                input_schema: serde_json::json!({ "type": "object" }),
                output_schema: None,
                annotations: None,
            },
        };
        let tools = definitions.lines().map(definition);
        let tools = tools.map(|tool| (tool.name.clone(), Arc::new(tool))).collect();
        let record = LockedServer { era: Some(Era::Initialize), tools, ..LockedServer::default() };
        lock.servers.insert(server.parse().unwrap(), record);
        self.file(path, lock.to_string())
    }

    /// Creates a directory and its parents.
    pub(crate) fn directory(self, path: &str) -> Self {
        fs::create_dir_all(self.path(path)).unwrap();
        self
    }

    pub(crate) fn link(self, path: &str, to: &str) -> Self {
        std::os::unix::fs::symlink(to, self.path(path)).unwrap();
        self
    }

    pub(crate) fn user(mut self, config: &str) -> Self {
        self.has_user_file = true;
        self.file("h/config.toml", config)
    }

    /// Removes the home directory, and with it the usual place of the user config.
    pub(crate) fn homeless(mut self) -> Self {
        self.has_home = false;
        self
    }

    /// Sets an environment variable of kitbag.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the environment variables that tools can be granted.
    pub(crate) fn variables<const N: usize>(self, variables: [(&str, &[u8]); N]) -> Self {
        variables.iter().fold(self, |this, (name, value)| this.granted_variable(name, value))
    }

    pub(crate) fn granted_variable(mut self, name: &str, value: &[u8]) -> Self {
        self.variables.push((name.into(), OsStr::from_bytes(value).to_owned()));
        self.all_variables = self.variables.iter().cloned().collect();
        self
    }

    /// Sets the built-in tools, instead of `learn` and `notes`.
    pub(crate) fn builtins(self, builtins: &'static [BuiltinTool<'static>]) -> Self {
        Self { builtins, ..self }
    }

    /// Returns a path below the temporary directory, without symbolic links.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(path)
    }

    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources {
            start: self.path("w"),
            user_file: self.has_user_file.then(|| self.path("h/config.toml")),
            usual_user_file: self.has_home.then(|| self.path("h/config.toml")),
            home: self.has_home.then(|| self.path("h")),
            environment: self.environment.clone(),
            variables: Some(&self.all_variables),
            trust: TrustSource::Said(Sourced { value: true, origin: Origin::Caller }),
            builtins: self.builtins,
            ..Sources::default()
        }
    }

    pub(crate) fn try_load(&self) -> Result<Config, ConfigErrors> {
        load(&self.sources())
    }

    /// Loads the configuration, which must have no mistakes.
    pub(crate) fn load(&self) -> Config {
        self.try_load().unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// Returns all mistakes as they are displayed, with `/t` as the temporary directory.
    pub(crate) fn shown(&self) -> String {
        self.redact(&self.try_load().expect_err("something is wrong").to_string())
    }

    /// Returns all mistakes, one line each, without excerpts: the place and the problem, then the
    /// hint.
    pub(crate) fn problems(&self) -> String {
        problems(&self.try_load(), self)
    }

    /// Replaces the temporary directory in a text with `/t`.
    pub(crate) fn redact(&self, text: &str) -> String {
        text.replace(self.path("").to_str().unwrap().trim_end_matches('/'), "/t")
    }
}

/// Returns the same as [`Fixture::problems`]; empty if there are no mistakes.
pub(crate) fn problems(result: &Result<Config, ConfigErrors>, fixture: &Fixture) -> String {
    let diagnostics = result.as_ref().err().map_or(&[][..], ConfigErrors::diagnostics);
    let lines = diagnostics.iter().map(|diagnostic| {
        let hint = diagnostic.hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"));
        format!("{}: {}{hint}\n", diagnostic.place, diagnostic.message)
    });
    fixture.redact(&lines.collect::<String>())
}

/// Compares the mistakes in a `.kitbag/config.toml` with one line for each.
#[track_caller]
pub(crate) fn check_problems(config: &str, expected: &[&str]) {
    check_problems_of(&Fixture::new(config), expected);
}

/// Compares the mistakes in a workspace with one line for each, which has `C` for
/// `.kitbag/config.toml`.
#[track_caller]
pub(crate) fn check_problems_of(fixture: &Fixture, expected: &[&str]) {
    let expected: String = expected
        .iter()
        .map(|line| match line.strip_prefix("C:") {
            Some(rest) => format!(".kitbag/config.toml:{rest}\n"),
            None => format!("{line}\n"),
        })
        .collect();
    let actual = match fixture.try_load() {
        Ok(_) => String::new(),
        Err(_) => fixture.problems(),
    };
    assert_eq!(actual, expected, "\n--- actual\n{actual}\n--- expected\n{expected}");
}

/// Compares values and their origins.
#[track_caller]
pub(crate) fn check_rows(fixture: &Fixture, prefix: &str, expected: &[&str]) {
    let rows = fixture.load().rows();
    let rows: Vec<_> = rows
        .iter()
        .filter(|row| Path::new(&row.key.replace('.', "/")).starts_with(prefix.replace('.', "/")))
        .map(|row| fixture.redact(&format!("{} = {} # {}", row.key, row.value, row.origin)))
        .collect();
    assert_eq!(rows, expected, "\n{}", rows.join("\n"));
}
