//! Skills in components for ACT: the section `act:skill`, a tar archive.
//!
//! The archive is unpacked into the cache by its digest, and becomes a topic of skills, so that all
//! rules of `learn` apply. The component chooses neither the id of the topic nor the directory.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use kitbag_base::text::shown;
use kitbag_config::{ConfiguredTool, Sourced, ToolSource, Topic};
use kitbag_contract::ToolName;
use sha2::{Digest, Sha256};
use tar::{Archive, EntryType};

use crate::builtins::skills::{BYTES, FILES, hex};
use crate::registry::ToolboxState;

/// The end of the id of a topic, after the name of the first tool of the component.
const TOPIC_END: &str = "-skill";

/// The directory of unpacked skills in the cache.
const DIRECTORY: &str = "skills";

/// The maximum number of entries of an archive, with directories and headers.
const ENTRIES: usize = 4 * FILES;

/// The topics of the skills in components.
#[derive(Debug, Default)]
pub(crate) struct ComponentSkills {
    /// The topics, by id.
    pub(crate) topics: BTreeMap<String, Topic>,
    /// The reasons why skills are missing.
    pub(crate) problems: Vec<String>,
}

impl ComponentSkills {
    /// Reads the components of the enabled tools. Compiles and runs nothing.
    pub(crate) fn read(state: &ToolboxState) -> Self {
        let (mut skills, mut seen) = (Self::default(), HashSet::new());
        for (name, tool) in state.config.tools.iter().filter(|(_, tool)| tool.is_enabled()) {
            if !matches!(tool.source.value, ToolSource::Local(_) | ToolSource::Bytes(_)) {
                continue;
            }
            // A call of the tool reports a missing component.
            let Ok(source) = state.component_source(&tool.source.value) else { continue };
            if !seen.insert(source.clone()) {
                continue;
            }
            let Ok(Some(archive)) = state.host.act_skill(&source) else { continue };
            match directory(state, &archive) {
                Ok(directory) => {
                    let topic = topic(name, tool, directory);
                    if !state.config.topics.contains_key(&topic.id) {
                        skills.topics.insert(topic.id.clone(), topic);
                    }
                }
                Err(problem) => skills.problems.push(format!(
                    "the skill in the component of `{name}` is not served: {problem}"
                )),
            }
        }
        skills
    }
}

fn topic(name: &ToolName, tool: &ConfiguredTool, directory: PathBuf) -> Topic {
    let origin = tool.source.origin.clone();
    Topic::of_skills(format!("{name}{TOPIC_END}"), Sourced { value: directory, origin })
}

/// Returns the directory with the files of an archive, which is unpacked if it is not yet.
fn directory(state: &ToolboxState, archive: &[u8]) -> Result<PathBuf, String> {
    let Some(cache) = state.host.cache_path() else {
        return Err("kitbag has no private directory for its cache".to_owned());
    };
    // The name of the directory depends on the bytes, so that a tool cannot choose it.
    let (skills, name) = (cache.join(DIRECTORY), hex(&Sha256::digest(archive)));
    let directory = skills.join(name);
    if directory.is_dir() {
        return Ok(directory);
    }
    let failed = |error: io::Error| format!("it cannot be unpacked: {error}");
    fs::create_dir_all(&skills).map_err(failed)?;
    let temporary = tempfile::tempdir_in(&skills).map_err(failed)?;
    unpack(archive, temporary.path())?;
    match fs::rename(temporary.path(), &directory) {
        Ok(()) => drop(temporary.keep()),
        // Another process was faster.
        Err(_) if directory.is_dir() => {}
        Err(error) => return Err(failed(error)),
    }
    Ok(directory)
}

/// Writes the files of an archive into an empty directory.
fn unpack(archive: &[u8], directory: &Path) -> Result<(), String> {
    let failed = |error: io::Error| {
        let error = error.to_string();
        format!("its archive cannot be read: {}", shown(&error))
    };
    let (mut files, mut bytes) = (0, 0_u64);
    let mut archive = Archive::new(archive);
    for (count, entry) in archive.entries().map_err(failed)?.enumerate() {
        if count == ENTRIES {
            return Err(format!("its archive has more than {ENTRIES} entries"));
        }
        let mut entry = entry.map_err(failed)?;
        let path = entry.path().map_err(failed)?.into_owned();
        let shown_path = path.to_string_lossy().into_owned();
        let Some(plain) = plain(&path) else {
            return Err(format!("the path `{}` leads out of its archive", shown(&shown_path)));
        };
        let target = directory.join(plain);
        match entry.header().entry_type() {
            EntryType::Directory => fs::create_dir_all(target).map_err(failed)?,
            EntryType::Regular | EntryType::Continuous => {
                (files, bytes) = (files + 1, bytes.saturating_add(entry.size()));
                if files > FILES || bytes > BYTES {
                    let mib = BYTES >> 20;
                    return Err(format!("it has more than {FILES} files or {mib} MiB"));
                }
                if let Some(parent) = target.parent() {
                    fs::create_dir_all(parent).map_err(failed)?;
                }
                let mut file = fs::File::create_new(target).map_err(failed)?;
                io::copy(&mut entry.by_ref().take(BYTES), &mut file).map_err(failed)?;
            }
            EntryType::XGlobalHeader => {}
            _ => {
                return Err(format!("`{}` is not a file or directory", shown(&shown_path)));
            }
        }
    }
    Ok(())
}

/// Returns a path without `.`. `None` if it is absolute or has `..`.
fn plain(path: &Path) -> Option<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let parts = parts.map(|part| match part {
        Component::Normal(part) => Some(part),
        _ => None,
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use tar::{Builder, Header};

    use super::*;

    fn archive(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (path, kind, data) in entries {
            let mut header = Header::new_ustar();
            // `set_path` refuses the paths of attacks.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(data.len() as u64);
            header.set_mode(0o777);
            header.set_cksum();
            builder.append(&header, *data).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn unpacked(archive: &[u8]) -> Result<Vec<String>, String> {
        let outer = tempfile::tempdir().unwrap();
        let directory = outer.path().join("in");
        fs::create_dir(&directory).unwrap();
        let result = unpack(archive, &directory);
        let names = |path: &Path| {
            let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> =
                entries.map(|name| name.to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(outer.path()), ["in"], "nothing is written elsewhere");
        result.map(|()| names(&directory))
    }

    #[test]
    fn files_and_directories_are_unpacked() {
        use EntryType::{Directory, Regular};
        let found = unpacked(&archive(&[
            ("./", Directory, b""),
            ("./SKILL.md", Regular, b"text"),
            ("references/a.md", Regular, b"a"),
        ]));
        assert_eq!(found, Ok(vec!["SKILL.md".to_owned(), "references".to_owned()]));
    }

    #[test]
    fn archives_of_attackers_are_refused() {
        use EntryType::{Char, Link, Regular, Symlink};
        for (entries, problem) in [
            (&[("../x", Regular, &b"a"[..])][..], "the path `../x` leads out of its archive"),
            (&[("a/../../x", Regular, b"a")], "the path `a/../../x` leads out of its archive"),
            (&[("/tmp/x", Regular, b"a")], "the path `/tmp/x` leads out of its archive"),
            (&[("a", Symlink, b"")], "`a` is not a file or directory"),
            (&[("a", Link, b"")], "`a` is not a file or directory"),
            (&[("a", Char, b"")], "`a` is not a file or directory"),
        ] {
            assert_eq!(unpacked(&archive(entries)), Err(problem.to_owned()));
        }
        let twice = archive(&[("a", Regular, b"1"), ("./a", Regular, b"2")]);
        assert!(unpacked(&twice).unwrap_err().contains("cannot be read"));
        assert!(unpacked(&[b'x'; 512]).is_err());
    }

    #[test]
    fn large_archives_are_refused() {
        let problem = Err("it has more than 512 files or 16 MiB".to_owned());
        let data = vec![0; BYTES as usize + 1];
        assert_eq!(unpacked(&archive(&[("a", EntryType::Regular, &data)])), problem);
        let names: Vec<_> = (0..=FILES).map(|number| number.to_string()).collect();
        let entries: Vec<_> =
            names.iter().map(|name| (&**name, EntryType::Regular, &b""[..])).collect();
        assert_eq!(unpacked(&archive(&entries)), problem);
        assert!(unpacked(&archive(&entries[..FILES])).is_ok());
    }
}
