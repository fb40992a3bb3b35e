//! Directories and environment variables of the user.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kitbag_config::{Origin, Sourced, Variables};
use kitbag_host::USUAL_PLACES;

use crate::secret_sources::PASSPHRASE_VARIABLE;

/// The user's directories for configuration, compiled tools and state, and the environment
/// variables.
///
/// The default is empty: nothing outside the workspace is read or written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// The workspace, if `KITBAG_WORKSPACE` is set.
    pub workspace: Option<Sourced<PathBuf>>,
    /// The user's `config.toml`, if it exists.
    pub user_file: Option<PathBuf>,
    /// The user's configuration directory, which may not exist.
    pub config_dir: Option<PathBuf>,
    /// The cache directory for compiled tools.
    pub cache: Option<PathBuf>,
    /// The state directory, with the variable that set it.
    pub state: Option<Sourced<PathBuf>>,
    /// The home directory, for `~/`.
    pub home: Option<PathBuf>,
    /// The variables `KITBAG_*`.
    pub environment: Vec<(String, String)>,
    /// The other variables, which tools can be granted by name.
    pub variables: Variables,
}

impl Places {
    /// Returns the usual places: `KITBAG_WORKSPACE`, `KITBAG_CONFIG` or
    /// `$XDG_CONFIG_HOME/kitbag/config.toml`, `KITBAG_CACHE_DIR` or `$XDG_CACHE_HOME/kitbag`,
    /// `KITBAG_STATE_DIR` or `$XDG_STATE_HOME/kitbag`, with the defaults `~/.config`, `~/.cache`
    /// and `~/.local/state` if the XDG variables are not set to an absolute path.
    ///
    /// `variables` are the environment variables.
    ///
    /// Source: XDG Base Directory Specification 0.8.
    pub fn from_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut variables: Vec<_> = variables.into_iter().collect();
        let own: Vec<_> = variables
            .extract_if(.., |(name, _)| name.as_encoded_bytes().starts_with(b"KITBAG_"))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let path = |wanted: &str| {
            let found = own.iter().chain(&variables).find(|(name, _)| name == wanted);
            found.map(|(_, value)| PathBuf::from(value)).filter(|path| !path.as_os_str().is_empty())
        };
        let absolute = |wanted: &str| path(wanted).filter(|path| path.is_absolute());
        let home = absolute("HOME");
        let base = |variable: &str, below_home: &str| {
            absolute(variable).or_else(|| home.as_ref().map(|home| home.join(below_home)))
        };
        let config_dir = base("XDG_CONFIG_HOME", ".config").map(|base| base.join("kitbag"));
        // A file that was named explicitly must exist; the usual file may be absent, or a dangling
        // link. If its existence cannot be determined, such as in a directory that cannot be
        // entered, reading it is an error: otherwise its denials would be ignored.
        let usual = config_dir.as_ref().map(|dir| dir.join("config.toml"));
        let user_file = path("KITBAG_CONFIG").or_else(|| usual.filter(|file| is_there(file)));
        let cache = path("KITBAG_CACHE_DIR")
            .or_else(|| base("XDG_CACHE_HOME", ".cache").map(|base| base.join("kitbag")));
        let named = path("KITBAG_STATE_DIR")
            .map(|value| Sourced { value, origin: Origin::environment("KITBAG_STATE_DIR") });
        let usual = || base("XDG_STATE_HOME", ".local/state").map(|base| base.join("kitbag"));
        let state = named.or_else(|| usual().map(Sourced::default));
        let workspace = path("KITBAG_WORKSPACE")
            .map(|value| Sourced { value, origin: Origin::environment("KITBAG_WORKSPACE") });
        let environment = own
            .iter()
            // The passphrase is read when it is used, and not stored.
            .filter(|(name, _)| name != PASSPHRASE_VARIABLE)
            .map(|(name, value)| {
                (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
            })
            .collect();
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Self {
            workspace,
            user_file: user_file.map(absolute),
            config_dir,
            cache: cache.map(absolute),
            state: state.map(|state| state.map(absolute)),
            home,
            environment,
            variables: Variables::from_iter(variables),
        }
    }

    /// Returns the paths that no tool may write to, regardless of its grants. They always include
    /// the usual places, even if the environment sets others: another process may have another
    /// environment.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        let below = |home: &PathBuf| USUAL_PLACES.map(|place| home.join(place));
        let usual = self.home.iter().flat_map(below);
        // The file may be a dangling link.
        let file = self.config_dir.as_ref().map(|directory| directory.join("config.toml"));
        let named = [&self.config_dir, &file, &self.user_file, &self.cache].into_iter().flatten();
        named.cloned().chain(usual).collect()
    }
}

fn is_there(path: &Path) -> bool {
    let found = path.metadata().map_err(|error| error.kind());
    !matches!(found, Err(ErrorKind::NotFound | ErrorKind::NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_file_is_absent_only_if_known_to_be_missing() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join(".config/kitbag");
        let found = || places(&[("HOME", home.path().to_str().unwrap())]).user_file;
        assert_eq!(found(), None);
        std::fs::create_dir_all(&directory).unwrap();
        assert_eq!(found(), None);
        let file = directory.join("config.toml");
        std::os::unix::fs::symlink("nowhere", &file).unwrap();
        assert_eq!(found(), None);
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("config.toml", &file).unwrap();
        assert_eq!(found(), Some(file));
        assert_eq!(places(&[("HOME", "/dev/null")]).user_file, None);
    }

    fn places(variables: &[(&str, &str)]) -> Places {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        Places::from_environment(variables)
    }

    #[test]
    fn the_usual_places_are_below_the_home_directory() {
        let places = places(&[("HOME", "/home/ada")]);
        assert_eq!(places.cache, Some("/home/ada/.cache/kitbag".into()));
        assert_eq!(places.config_dir, Some("/home/ada/.config/kitbag".into()));
        let state = Sourced::default("/home/ada/.local/state/kitbag".into());
        assert_eq!(places.state, Some(state));
        assert_eq!(places.user_file, None);
        let own = places.own();
        assert!(own.contains(&"/home/ada/.local/state/kitbag".into()), "{own:?}");
    }

    #[test]
    fn a_relative_xdg_directory_is_ignored() {
        let places = places(&[("HOME", "/home/ada"), ("XDG_CACHE_HOME", "cache")]);
        assert_eq!(places.cache, Some("/home/ada/.cache/kitbag".into()));
    }

    #[test]
    fn explicitly_named_places_take_precedence() {
        let places = places(&[
            ("HOME", "/home/ada"),
            ("XDG_CACHE_HOME", "/cache"),
            ("KITBAG_CACHE_DIR", "/mine"),
            ("XDG_STATE_HOME", "/state"),
            ("KITBAG_STATE_DIR", "/mine/state"),
            ("KITBAG_CONFIG", "/etc/kitbag.toml"),
            ("KITBAG_WORKSPACE", "/work"),
            ("UNRELATED", "x"),
        ]);
        assert_eq!(places.cache, Some("/mine".into()));
        assert_eq!(places.user_file, Some("/etc/kitbag.toml".into()));
        assert_eq!(places.workspace.map(|workspace| workspace.value), Some("/work".into()));
        let origin = Origin::environment("KITBAG_STATE_DIR");
        assert_eq!(places.state, Some(Sourced { value: "/mine/state".into(), origin }));
        assert_eq!(places.environment.len(), 4);
        let others =
            [("HOME", "/home/ada"), ("XDG_CACHE_HOME", "/cache"), ("XDG_STATE_HOME", "/state")];
        let others = others.into_iter().chain([("UNRELATED", "x")]);
        let others = others.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(places.variables, Variables::from_iter(others));
    }

    #[test]
    fn without_a_home_only_the_workspace_is_used() {
        assert_eq!(places(&[]), Places::default());
    }
}
