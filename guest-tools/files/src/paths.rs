//! `make_dir`, `move_path` and `remove_path`.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;

use kitbag_sdk::{Ask, Call, ErrorInfo, Stop};
use kitbag_workspace::{
    Kind, Location, check_changeable, explain, is_sealed, list, stat, stat_link,
};
use serde::Deserialize;

use crate::change::{make_directories, remove_directories};
use crate::leftover::{Purpose, leftovers, temporary_name};
use crate::numbers::{count, size};

/// Maximum number of entries that are counted before a directory is removed.
const COUNTED: u64 = 100_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Make {
    path: String,
    /// Only the host sets this, here and below: callers do not have this argument.
    #[serde(default)]
    preview: bool,
}

pub(crate) fn make(call: &Call) -> Result<String, Stop> {
    let arguments: Make = call.arguments()?;
    let location = Location::new(call, &arguments.path)?;
    let failed = |error| match stat(&location.path) {
        Ok(found) if found.kind != Kind::Directory => {
            ErrorInfo::new(format!("`{}` already exists and is not a directory", location.given))
        }
        _ => explain(&location, "made", &error),
    };
    if arguments.preview {
        return Ok(match stat(&location.path) {
            Ok(found) if found.kind == Kind::Directory => "[exists already]\n".into(),
            _ => format!("[would create the directory `{}`]\n", location.given),
        });
    }
    let made = make_directories(&location.path).map_err(failed)?;
    Ok(match made.len() {
        0 => "[exists already]\n".into(),
        1 => "[made]\n".into(),
        more => format!("[created, with {} above it]\n", count(more as u64 - 1, "other", "others")),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Move {
    path: String,
    to: String,
    #[serde(default)]
    overwrite: bool,
    #[serde(default)]
    preview: bool,
}

pub(crate) fn rename(call: &Call) -> Result<String, Stop> {
    let arguments: Move = call.arguments()?;
    let from = Location::new(call, &arguments.path)?;
    let to = Location::new(call, &arguments.to)?;
    let found = stat_link(&from.path).map_err(|error| explain(&from, "moved", &error))?;
    let [from_name, to_name] = [&from, &to].map(|it| it.split().map(|(_, name)| name.to_owned()));
    if found.kind != Kind::Directory && arguments.to.ends_with('/') && stat(&to.path).is_err() {
        return Err(ErrorInfo::new(format!(
            "`{}` does not exist; `to` is the whole new path of the file",
            arguments.to
        ))
        .into());
    }
    let (Some(from_name), Some(_)) = (from_name, to_name) else {
        return Err(ErrorInfo::new("a path to move must end in a name, not in `.` or `/`").into());
    };
    match stat_link(&to.path) {
        Ok(there) if there.kind == Kind::Directory => {
            let inside = to.join(&from_name).given;
            return Err(ErrorInfo::new(format!(
                "`{}` is a directory; to move `{}` into it, name `{inside}`",
                to.given, from.given
            ))
            .into());
        }
        Ok(_) if from.path == to.path => return Ok("[it is already there]\n".into()),
        Ok(_) if found.kind == Kind::Directory => {
            return Err(ErrorInfo::new(format!(
                "`{}` is a file, but `{}` is a directory",
                to.given, from.given
            ))
            .into());
        }
        Ok(there) => {
            if !arguments.overwrite {
                let message = format!(
                    "`{}` already exists ({}); `overwrite` replaces it",
                    to.given,
                    size(there.size)
                );
                return Err(ErrorInfo::new(message).into());
            }
            if arguments.preview {
                return Ok(format!(
                    "[would replace `{}` ({}) by `{}` ({})]\n",
                    to.given,
                    size(there.size),
                    from.given,
                    size(found.size)
                ));
            }
            check_changeable(&from, "moved")?;
            check_changeable(&to, "written")?;
            let question = format!(
                "Replace `{}` ({}) by `{}` ({})?",
                to.given,
                size(there.size),
                from.given,
                size(found.size)
            );
            if !call.ask(Ask::consent("overwrite", question))? {
                return Err(refused("the replacement"));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(explain(&to, "written", &error).into()),
    }
    if arguments.preview {
        return Ok(format!("[would move `{}` to `{}`]\n", from.given, to.given));
    }
    let mut made = Vec::new();
    if let Some((above, _)) = to.split() {
        made = make_directories(&above.path).map_err(|error| explain(&above, "made", &error))?;
    }
    if let Err(error) = fs::rename(&from.path, &to.path) {
        remove_directories(&made);
        return Err(match error.raw_os_error() {
            Some(libc::EINVAL) => {
                ErrorInfo::new(format!("`{}` cannot be moved into itself", from.given))
            }
            // If the old path is protected, the error is about it; otherwise about the new path.
            Some(libc::EPERM) if !is_kept(&from) => explain(&to, "made", &error),
            _ => explain(&from, "moved", &error),
        }
        .into());
    }
    for above in [from.split(), to.split()].into_iter().flatten() {
        sync(&above.0);
    }
    Ok("[moved]\n".into())
}

/// Returns true if no tool may change a path, by its names.
fn is_kept(location: &Location) -> bool {
    location.path.split('/').any(is_sealed)
        || stat(&location.path).is_ok_and(|found| found.kind == Kind::Secret)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remove {
    path: String,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    preview: bool,
}

pub(crate) fn remove(call: &Call) -> Result<String, Stop> {
    let arguments: Remove = call.arguments()?;
    let location = Location::new(call, &arguments.path)?;
    let given = &location.given;
    let failed = |error: io::Error| explain(&location, "removed", &error);
    let found = stat_link(&location.path).map_err(failed)?;
    let Some((above, name)) = location.split() else {
        return Err(ErrorInfo::new(format!(
            "`{given}` is the working directory or above it; name another path"
        ))
        .into());
    };
    let inside = match found.kind {
        Kind::Directory => Some(look_into(&location)?),
        _ => None,
    };
    let what = match (&inside, found.kind) {
        (Some(inside), _) if inside.entries == 0 => "an empty directory".to_owned(),
        (Some(inside), _) => format!("a directory with {}", inside.shown()),
        (None, Kind::Link) => "a link; its target stays".to_owned(),
        (None, _) => size(found.size),
    };
    if let Some(inside) = &inside {
        if let Some(sealed) = &inside.sealed {
            let message = format!("`{given}` contains `{sealed}`, which tools may not remove");
            return Err(ErrorInfo::new(message).into());
        }
        if inside.entries > 0 && !arguments.recursive {
            let message = format!("`{given}` is {what}; `recursive` removes it with all of that");
            return Err(ErrorInfo::new(message).into());
        }
    }
    if arguments.preview {
        return Ok(format!("[would remove `{given}`: {what}]\n"));
    }
    check_changeable(&location, "removed")?;
    if !call.ask(Ask::consent("remove", format!("Remove `{given}` ({what})?")))? {
        return Err(refused("the removal"));
    }
    let rests = leftovers(&above.path, name);
    if inside.is_some() {
        // First moved away atomically, then removed in steps: if the call is killed, the rest has a
        // name that the next call removes.
        let away = format!(
            "{}/{}",
            above.path.trim_end_matches('/'),
            temporary_name(Purpose::Remove, name)
        );
        fs::rename(&location.path, &away).map_err(failed)?;
        if let Err(error) = fs::remove_dir_all(&away) {
            let _ = fs::rename(&away, &location.path);
            return Err(failed(error).into());
        }
    } else {
        fs::remove_file(&location.path).map_err(failed)?;
    }
    for rest in rests {
        if fs::remove_file(&rest).is_err() {
            let _ = fs::remove_dir_all(&rest);
        }
    }
    sync(&above);
    Ok(format!("[removed: {what}]\n"))
}

fn refused(what: &str) -> Stop {
    ErrorInfo::new(format!("{what} was declined; nothing was changed")).into()
}

fn sync(directory: &Location) {
    // Some file systems do not support this; the names exist anyway.
    let _ = File::open(format!("{}/.", directory.path)).and_then(|it| it.sync_all());
}

/// The content of a directory to remove.
#[derive(Default)]
struct Inside {
    entries: u64,
    bytes: u64,
    /// The directory has more entries than were counted.
    is_more: bool,
    /// The path of an entry that no tool may remove.
    sealed: Option<String>,
}

impl Inside {
    fn shown(&self) -> String {
        let more = if self.is_more { "more than " } else { "" };
        format!("{more}{}, {}", count(self.entries, "entry", "entries"), size(self.bytes))
    }
}

fn look_into(top: &Location) -> Result<Inside, ErrorInfo> {
    let mut inside = Inside::default();
    let mut directories = vec![top.clone()];
    while let Some(directory) = directories.pop() {
        let mut files = Vec::new();
        let listed = list(&directory.path, |name, kind| {
            inside.entries += 1;
            if is_sealed(name) || kind == Kind::Secret {
                inside.sealed.get_or_insert_with(|| directory.join(name).given);
            }
            match kind {
                Kind::Directory => directories.push(directory.join(name)),
                Kind::File => files.push(directory.join(name).path),
                Kind::Link | Kind::Secret | Kind::Other => {}
            }
            inside.is_more = inside.entries >= COUNTED;
            match inside.is_more || inside.sealed.is_some() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        let listed = listed.map_err(|error| explain(&directory, "removed", &error))?;
        if listed.unnamed > 0 {
            let message = format!(
                "`{}` contains a name that is not Unicode, which tools cannot remove",
                directory.given
            );
            return Err(ErrorInfo::new(message));
        }
        for file in files {
            inside.bytes += stat_link(&file).map_or(0, |found| found.size);
        }
        if inside.is_more || inside.sealed.is_some() {
            break;
        }
    }
    Ok(inside)
}
