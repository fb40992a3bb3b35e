//! File operations through WASI directly: `std` would check, resolve and translate paths before the
//! host receives them.

use kitbag_sdk::{Call, ErrorInfo, Stop};
use wasip2::clocks::monotonic_clock;
use wasip2::clocks::wall_clock::Datetime;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, NewTimestamp,
    OpenFlags, PathFlags, filesystem_error_code,
};
use wasip2::io::streams::StreamError;

use crate::arguments::Arguments;
use crate::places::{Place, Places};
use crate::sentence::{Refusal, Tried, content, count, list as listed, sentence, shown};

const DONE: &str = "done";

/// Maximum number of entries in `list`.
const ENTRIES: usize = 100;

/// The file that `tmp` creates.
const MARKER: &str = "/tmp/kitbag-probe-marker";

pub(crate) fn preopens(_: &Call, _: &Arguments) -> Result<String, Stop> {
    Ok(format!("preopens: {}", listed(&Places::open().names())))
}

pub(crate) fn read(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let limit = arguments.number_or("limit", 1 << 20);
    let answer = at_path(call, arguments, "read", |place| {
        let file = place.open(OpenFlags::empty(), DescriptorFlags::READ)?;
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < limit {
            let (chunk, is_end) = file.read(limit - bytes.len() as u64, bytes.len() as u64)?;
            bytes.extend_from_slice(&chunk);
            if is_end || chunk.is_empty() {
                break;
            }
        }
        let length = count(bytes.len(), "byte", "bytes");
        Ok(if bytes.is_empty() { length } else { format!("{length}: {}", content(&bytes)) })
    })?;
    // Like a tool that cannot continue without the file.
    match arguments.flag_or("must", false) && answer.contains("refused") {
        true => Err(ErrorInfo::new(answer).into()),
        false => Ok(answer),
    }
}

pub(crate) fn write(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let text = arguments.text("text")?;
    at_path(call, arguments, "write", |place| {
        let file = place.open(OpenFlags::CREATE | OpenFlags::TRUNCATE, DescriptorFlags::WRITE)?;
        let mut written = 0;
        while written < text.len() {
            written += file.write(&text.as_bytes()[written..], written as u64)? as usize;
        }
        Ok(count(written, "byte", "bytes"))
    })
}

pub(crate) fn gather(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let until = arguments.text("until")?;
    at_path(call, arguments, "gather", |place| {
        place.open(OpenFlags::CREATE, DescriptorFlags::WRITE)?;
        let places = Places::open();
        let signal = places.find_path(call.root(), until).map_err(|_| ErrorCode::NoEntry)?;
        while signal.directory.stat_at(PathFlags::empty(), &signal.path).is_err() {
            monotonic_clock::subscribe_duration(20_000_000).block();
        }
        while arguments.text_or("then", "") == "spin" {
            std::hint::spin_loop();
        }
        Ok("let go".into())
    })
}

pub(crate) fn append(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let text = arguments.text("text")?;
    at_path(call, arguments, "append", |place| {
        let file = place.open(OpenFlags::CREATE, DescriptorFlags::WRITE)?;
        let stream = file.append_via_stream()?;
        for chunk in text.as_bytes().chunks(4096) {
            stream.blocking_write_and_flush(chunk).map_err(stream_refusal)?;
        }
        Ok(count(text.len(), "byte", "bytes"))
    })
}

pub(crate) fn truncate(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    at_path(call, arguments, "truncate", |place| {
        let file = place.open(OpenFlags::TRUNCATE, DescriptorFlags::READ)?;
        let size = usize::try_from(file.stat()?.size).unwrap_or(usize::MAX);
        Ok(format!("opened, {} left", count(size, "byte", "bytes")))
    })
}

pub(crate) fn set_size(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let bytes = arguments.number("bytes")?;
    let abort = arguments.flag_or("abort", false);
    let flags = match arguments.flag_or("write", false) {
        true => DescriptorFlags::WRITE,
        false => DescriptorFlags::READ,
    };
    at_path(call, arguments, "set-size", |place| {
        let file = place.open(OpenFlags::empty(), flags)?;
        match file.set_size(bytes) {
            Err(_) if abort => std::process::abort(),
            done => done?,
        }
        Ok(DONE.into())
    })
}

pub(crate) fn open(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let path_flags = path_flags(arguments, true);
    let open_flags = flags("open", &arguments.texts("open"), OPEN_FLAGS)?;
    let open_flags = open_flags.into_iter().fold(OpenFlags::empty(), |all, flag| all | flag);
    let descriptor_flags = flags("flags", &arguments.texts("flags"), DESCRIPTOR_FLAGS)?;
    let descriptor_flags =
        descriptor_flags.into_iter().fold(DescriptorFlags::empty(), |all, flag| all | flag);
    at_path(call, arguments, "open", |place| {
        let opened =
            place.directory.open_at(path_flags, &place.path, open_flags, descriptor_flags)?;
        let has = opened.get_flags()?;
        let has: Vec<String> = DESCRIPTOR_FLAGS
            .iter()
            .filter(|(_, flag)| has.contains(*flag))
            .map(|(name, _)| (*name).to_owned())
            .collect();
        Ok(format!("a {} with {}", type_name(opened.get_type()?), listed(&has)))
    })
}

pub(crate) fn list(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    at_path(call, arguments, "list", |place| {
        let mut names: Vec<String> = entries(&place)?
            .into_iter()
            .map(|entry| match entry {
                Ok((name, kind)) => format!("{} ({})", shown(&name), type_name(kind)),
                Err(code) => format!("? ({})", code.name()),
            })
            .collect();
        names.sort();
        let more = names.len().saturating_sub(ENTRIES);
        names.truncate(ENTRIES);
        Ok(match (names.is_empty(), more) {
            (true, _) => "empty".into(),
            (false, 0) => names.join(", "),
            (false, more) => format!("{} and {more} more", names.join(", ")),
        })
    })
}

pub(crate) fn list_all(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    at_path(call, arguments, "list-all", |place| {
        let (mut files, mut directories, mut links, mut others, mut refused) = (0, 0, 0, 0, 0);
        let mut ahead = vec![place.path.clone()];
        while let Some(path) = ahead.pop() {
            let found = match entries(&Place { directory: place.directory, path: path.clone() }) {
                Ok(found) => found,
                // A refusal of the first path is the answer; refusals below it are counted.
                Err(code) if path == place.path => return Err(code.into()),
                Err(_) => {
                    refused += 1;
                    continue;
                }
            };
            for entry in found {
                match entry {
                    Ok((_, DescriptorType::RegularFile)) => files += 1,
                    Ok((_, DescriptorType::SymbolicLink)) => links += 1,
                    Ok((name, DescriptorType::Directory)) => {
                        directories += 1;
                        ahead.push(format!("{path}/{name}"));
                    }
                    Ok(_) => others += 1,
                    Err(_) => refused += 1,
                }
            }
        }
        Ok(format!(
            "{}, {}, {}, {}, {refused} refused",
            count(files, "file", "files"),
            count(directories, "directory", "directories"),
            count(links, "link", "links"),
            count(others, "other", "others"),
        ))
    })
}

pub(crate) fn stat(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    at_path(call, arguments, "stat", |place| {
        Ok(described(place.directory.stat_at(PathFlags::SYMLINK_FOLLOW, &place.path)?))
    })
}

pub(crate) fn lstat(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    at_path(call, arguments, "lstat", |place| {
        Ok(described(place.directory.stat_at(PathFlags::empty(), &place.path)?))
    })
}

pub(crate) fn readlink(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    at_path(call, arguments, "readlink", |place| {
        Ok(shown(&place.directory.readlink_at(&place.path)?))
    })
}

pub(crate) fn mkdir(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    at_path(call, arguments, "mkdir", |place| {
        place.directory.create_directory_at(&place.path)?;
        Ok(DONE.into())
    })
}

pub(crate) fn rmdir(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    at_path(call, arguments, "rmdir", |place| {
        place.directory.remove_directory_at(&place.path)?;
        Ok(DONE.into())
    })
}

pub(crate) fn remove(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    at_path(call, arguments, "remove", |place| {
        place.directory.unlink_file_at(&place.path)?;
        Ok(DONE.into())
    })
}

pub(crate) fn set_times(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let follow = path_flags(arguments, true);
    let time = Datetime { seconds: arguments.number_or("seconds", 0), nanoseconds: 0 };
    let time = NewTimestamp::Timestamp(time);
    let held = arguments.flag_or("held", false);
    at_path(call, arguments, "set-times", |place| {
        if held {
            place.open(OpenFlags::empty(), DescriptorFlags::READ)?.set_times(time, time)?;
            return Ok(DONE.into());
        }
        place.directory.set_times_at(follow, &place.path, time, time)?;
        Ok(DONE.into())
    })
}

pub(crate) fn symlink(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let target = arguments.text("target")?;
    let places = Places::open();
    let result = places.find(call, arguments, ["path", "preopen"])?.and_then(|place| {
        place.directory.symlink_at(target, &place.path)?;
        Ok(DONE.into())
    });
    let tried = format!("symlink {} to {}", shown(arguments.text("path")?), shown(target));
    Ok(sentence(&tried, result))
}

pub(crate) fn link(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let follow = path_flags(arguments, false);
    between(call, arguments, "link", |old, new| {
        old.directory.link_at(follow, &old.path, new.directory, &new.path)
    })
}

pub(crate) fn rename(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    between(call, arguments, "rename", |old, new| {
        old.directory.rename_at(&old.path, new.directory, &new.path)
    })
}

pub(crate) fn held(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let name = arguments.text("name")?;
    let places = Places::open();
    let held = places.find(call, arguments, ["path", "preopen"])?.and_then(|place| {
        let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
        Ok(place.open(OpenFlags::DIRECTORY, flags)?)
    });
    let old = places.find(call, arguments, ["old", "old_preopen"])?;
    let new = places.find(call, arguments, ["new", "new_preopen"])?;
    let result = held.and_then(|held| {
        let (old, new) = (old?, new?);
        old.directory.rename_at(&old.path, new.directory, &new.path)?;
        let (open, flags) = (OpenFlags::CREATE, DescriptorFlags::WRITE);
        held.open_at(PathFlags::empty(), name, open, flags)?;
        Ok("written".into())
    });
    let [held, old, new] = ["path", "old", "new"].map(|key| arguments.text(key).map(shown));
    Ok(sentence(&format!("held {}, rename {} to {}", held?, old?, new?), result))
}

pub(crate) fn tmp(_: &Call, _: &Arguments) -> Result<String, Stop> {
    let places = Places::open();
    let Ok(place) = places.find_path("/", MARKER) else {
        return Ok("tmp: no directory".into());
    };
    if place.directory.stat_at(PathFlags::empty(), &place.path).is_ok() {
        return Ok("tmp: marker present".into());
    }
    let left = place.open(OpenFlags::CREATE, DescriptorFlags::WRITE);
    Ok(match left {
        Ok(_) => "tmp: marker absent, left one".into(),
        Err(code) => format!("tmp: marker absent, leaving one was refused ({})", code.name()),
    })
}

impl Place<'_> {
    fn open(&self, open: OpenFlags, flags: DescriptorFlags) -> Result<Descriptor, ErrorCode> {
        self.directory.open_at(PathFlags::SYMLINK_FOLLOW, &self.path, open, flags)
    }
}

/// Converts the end of a stream to a file system code.
pub(crate) fn stream_refusal(error: StreamError) -> Refusal {
    match error {
        StreamError::Closed => Refusal::of("closed"),
        StreamError::LastOperationFailed(error) => {
            Refusal::of(filesystem_error_code(&error).map_or("failed", |code| code.name()))
        }
    }
}

/// Tries an operation on one path.
fn at_path(
    call: &Call,
    arguments: &Arguments,
    action: &str,
    attempt: impl FnOnce(Place<'_>) -> Tried,
) -> Result<String, Stop> {
    let places = Places::open();
    let result = places.find(call, arguments, ["path", "preopen"])?.and_then(attempt);
    Ok(sentence(&format!("{action} {}", shown(arguments.text("path")?)), result))
}

/// Tries an operation on two paths.
fn between(
    call: &Call,
    arguments: &Arguments,
    action: &str,
    attempt: impl FnOnce(&Place<'_>, &Place<'_>) -> Result<(), ErrorCode>,
) -> Result<String, Stop> {
    let places = Places::open();
    let old = places.find(call, arguments, ["old", "old_preopen"])?;
    let new = places.find(call, arguments, ["new", "new_preopen"])?;
    let result = old.and_then(|old| {
        attempt(&old, &new?)?;
        Ok(DONE.into())
    });
    let (old, new) = (shown(arguments.text("old")?), shown(arguments.text("new")?));
    Ok(sentence(&format!("{action} {old} to {new}"), result))
}

/// An entry's name and type, or the error.
type Entry = Result<(String, DescriptorType), ErrorCode>;

fn entries(place: &Place<'_>) -> Result<Vec<Entry>, ErrorCode> {
    let directory = place.open(OpenFlags::DIRECTORY, DescriptorFlags::READ)?;
    let stream = directory.read_directory()?;
    let next = || stream.read_directory_entry().transpose();
    let entries = std::iter::from_fn(next);
    Ok(entries.map(|entry| entry.map(|entry| (entry.name, entry.type_))).collect())
}

fn path_flags(arguments: &Arguments, follow: bool) -> PathFlags {
    match arguments.flag_or("follow", follow) {
        true => PathFlags::SYMLINK_FOLLOW,
        false => PathFlags::empty(),
    }
}

const OPEN_FLAGS: &[(&str, OpenFlags)] = &[
    ("create", OpenFlags::CREATE),
    ("directory", OpenFlags::DIRECTORY),
    ("exclusive", OpenFlags::EXCLUSIVE),
    ("truncate", OpenFlags::TRUNCATE),
];

const DESCRIPTOR_FLAGS: &[(&str, DescriptorFlags)] = &[
    ("read", DescriptorFlags::READ),
    ("write", DescriptorFlags::WRITE),
    ("file-integrity-sync", DescriptorFlags::FILE_INTEGRITY_SYNC),
    ("data-integrity-sync", DescriptorFlags::DATA_INTEGRITY_SYNC),
    ("requested-write-sync", DescriptorFlags::REQUESTED_WRITE_SYNC),
    ("mutate-directory", DescriptorFlags::MUTATE_DIRECTORY),
];

fn flags<T: Copy>(key: &str, names: &[&str], known: &[(&str, T)]) -> Result<Vec<T>, ErrorInfo> {
    let find = |name: &&str| {
        let flag = known.iter().find(|(known, _)| known == name).map(|(_, flag)| *flag);
        flag.ok_or_else(|| {
            ErrorInfo::new(format!("invalid arguments: `{key}` has no flag `{name}`"))
        })
    };
    names.iter().map(find).collect()
}

fn described(stat: DescriptorStat) -> String {
    let kind = type_name(stat.type_);
    match stat.type_ {
        DescriptorType::RegularFile | DescriptorType::SymbolicLink => {
            let size = usize::try_from(stat.size).unwrap_or(usize::MAX);
            format!("{kind}, {}", count(size, "byte", "bytes"))
        }
        // Other entries have sizes that depend on the file system.
        _ => kind.to_owned(),
    }
}

fn type_name(kind: DescriptorType) -> &'static str {
    match kind {
        DescriptorType::Unknown => "unknown",
        DescriptorType::BlockDevice => "block-device",
        DescriptorType::CharacterDevice => "character-device",
        DescriptorType::Directory => "directory",
        DescriptorType::Fifo => "fifo",
        DescriptorType::SymbolicLink => "symbolic-link",
        DescriptorType::RegularFile => "regular-file",
        DescriptorType::Socket => "socket",
    }
}
