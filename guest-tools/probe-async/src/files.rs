//! File operations, with paths that the host receives unchanged.

use serde_json::Value;

use crate::bindings::wasi::clocks::system_clock::Instant;
use crate::bindings::wasi::filesystem::preopens::get_directories;
use crate::bindings::wasi::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, NewTimestamp,
    OpenFlags, PathFlags,
};
use crate::bindings::wit_stream;
use crate::sentence::{Tried, content, count, kebab, list, refused, sentence, shown};
use crate::{Answer, flag_or, number, text, texts};

const DONE: &str = "done";

/// Maximum number of entries in `list`.
const ENTRIES: usize = 100;

/// The directory of relative paths without a preopen.
const ROOT: &str = "/workspace";

/// The directories that the host preopened.
struct Places(Vec<(Descriptor, String)>);

/// A path in a preopened directory.
struct Place<'a> {
    directory: &'a Descriptor,
    path: String,
}

impl Places {
    /// A command also has its first directory as `/`, which `probe` has not.
    fn open() -> Self {
        let directories = get_directories();
        let has_others = directories.len() > 1;
        Self(directories.into_iter().filter(|(_, name)| !has_others || name != "/").collect())
    }

    fn find(
        &self,
        arguments: &Value,
        [path, preopen]: [&str; 2],
    ) -> Result<Result<Place<'_>, String>, String> {
        let path = text(arguments, path)?;
        Ok(match arguments[preopen].as_str() {
            Some(preopen) => self.at(preopen, path),
            None => self.split(path),
        })
    }

    fn at(&self, preopen: &str, path: &str) -> Result<Place<'_>, String> {
        let found = self.0.iter().find(|(_, name)| name == preopen);
        let (directory, _) = found.ok_or("refused (no directory)")?;
        Ok(Place { directory, path: path.to_owned() })
    }

    /// Finds the longest preopen that contains a path.
    fn split(&self, path: &str) -> Result<Place<'_>, String> {
        if !path.starts_with('/') && self.0.iter().any(|(_, name)| name == ROOT) {
            return self.at(ROOT, path);
        }
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("{ROOT}/{path}"),
        };
        let inside = self.0.iter().filter_map(|(directory, name)| {
            let rest = path.strip_prefix(name.trim_end_matches('/'))?;
            let rest = match rest.strip_prefix('/') {
                Some(rest) => rest,
                None if rest.is_empty() => rest,
                None => return None,
            };
            Some((name.len(), directory, rest))
        });
        let (_, directory, rest) =
            inside.max_by_key(|(length, ..)| *length).ok_or("refused (no directory)")?;
        Ok(Place { directory, path: if rest.is_empty() { "." } else { rest }.to_owned() })
    }
}

impl Place<'_> {
    async fn open(&self, open: OpenFlags, flags: DescriptorFlags) -> Result<Descriptor, ErrorCode> {
        self.directory.open_at(PathFlags::SYMLINK_FOLLOW, self.path.clone(), open, flags).await
    }
}

/// Tries an operation on files.
pub(crate) async fn act(action: &str, arguments: &Value) -> Answer {
    let places = Places::open();
    match action {
        "preopens" => {
            let mut names: Vec<_> = places.0.iter().map(|(_, name)| name.clone()).collect();
            names.sort();
            Ok(format!("preopens: {}", list(&names)))
        }
        "link" | "rename" => {
            let old = places.find(arguments, ["old", "old_preopen"])?;
            let new = places.find(arguments, ["new", "new_preopen"])?;
            let result = match (old, new) {
                (Ok(old), Ok(new)) => between(action, arguments, &old, &new).await,
                (Err(refusal), _) | (_, Err(refusal)) => Err(refusal),
            };
            let [old, new] = ["old", "new"].map(|key| text(arguments, key).map(shown));
            Ok(sentence(&format!("{action} {} to {}", old?, new?), result))
        }
        _ => {
            let tried = match action {
                "symlink" => format!(" to {}", shown(text(arguments, "target")?)),
                _ => String::new(),
            };
            let result = match places.find(arguments, ["path", "preopen"])? {
                Ok(place) => at(action, arguments, &place).await?,
                Err(refusal) => Err(refusal),
            };
            let tried = format!("{action} {}{tried}", shown(text(arguments, "path")?));
            Ok(sentence(&tried, result))
        }
    }
}

async fn between(action: &str, arguments: &Value, old: &Place<'_>, new: &Place<'_>) -> Tried {
    let (from, to) = (old.path.clone(), new.path.clone());
    let done = match action {
        "link" => {
            let follow = path_flags(arguments, false);
            old.directory.link_at(follow, from, new.directory, to).await
        }
        _ => old.directory.rename_at(from, new.directory, to).await,
    };
    done.map(|()| DONE.to_owned()).map_err(|code| refused(&code))
}

/// Tries an operation on one path. The outer error is one of the arguments.
async fn at(action: &str, arguments: &Value, place: &Place<'_>) -> Result<Tried, String> {
    let path = place.path.clone();
    let done = |done: Result<(), ErrorCode>| done.map(|()| DONE.to_owned());
    let tried = match action {
        "read" => read(arguments, place).await,
        "write" => write(text(arguments, "text")?, place, false).await,
        "append" => write(text(arguments, "text")?, place, true).await,
        "truncate" => truncate(place).await,
        "set-size" => {
            let flags = match flag_or(arguments, "write", false) {
                true => DescriptorFlags::WRITE,
                false => DescriptorFlags::READ,
            };
            let bytes = number(arguments, "bytes")?;
            match place.open(OpenFlags::empty(), flags).await {
                Ok(file) => match file.set_size(bytes).await {
                    Err(_) if flag_or(arguments, "abort", false) => std::process::abort(),
                    result => done(result),
                },
                Err(code) => Err(code),
            }
        }
        "open" => return open(arguments, place).await,
        "list" => entries(place).await,
        "stat" => stat(PathFlags::SYMLINK_FOLLOW, place).await,
        "lstat" => stat(PathFlags::empty(), place).await,
        "readlink" => place.directory.readlink_at(path).await.map(|target| shown(&target)),
        "mkdir" => done(place.directory.create_directory_at(path).await),
        "rmdir" => done(place.directory.remove_directory_at(path).await),
        "remove" => done(place.directory.unlink_file_at(path).await),
        "set-times" => set_times(arguments, place).await,
        "symlink" => {
            done(place.directory.symlink_at(text(arguments, "target")?.to_owned(), path).await)
        }
        _ => return Err(format!("invalid arguments: there is no action `{action}`")),
    };
    Ok(tried.map_err(|code| refused(&code)))
}

async fn read(arguments: &Value, place: &Place<'_>) -> Result<String, ErrorCode> {
    let limit = arguments["limit"].as_u64().unwrap_or(1 << 20);
    let file = place.open(OpenFlags::empty(), DescriptorFlags::READ).await?;
    let (stream, ended) = file.read_via_stream(0);
    let mut bytes = stream.collect().await;
    ended.await?;
    bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let length = count(bytes.len(), "byte", "bytes");
    Ok(if bytes.is_empty() { length } else { format!("{length}: {}", content(&bytes)) })
}

async fn write(text: &str, place: &Place<'_>, is_appended: bool) -> Result<String, ErrorCode> {
    let open = match is_appended {
        true => OpenFlags::CREATE,
        false => OpenFlags::CREATE | OpenFlags::TRUNCATE,
    };
    let file = place.open(open, DescriptorFlags::WRITE).await?;
    let (mut writer, reader) = wit_stream::new();
    let ended = match is_appended {
        true => file.append_via_stream(reader),
        false => file.write_via_stream(reader, 0),
    };
    writer.write_all(text.as_bytes().to_vec()).await;
    drop(writer);
    ended.await?;
    Ok(count(text.len(), "byte", "bytes"))
}

async fn truncate(place: &Place<'_>) -> Result<String, ErrorCode> {
    let file = place.open(OpenFlags::TRUNCATE, DescriptorFlags::READ).await?;
    let size = usize::try_from(file.stat().await?.size).unwrap_or(usize::MAX);
    Ok(format!("opened, {} left", count(size, "byte", "bytes")))
}

async fn open(arguments: &Value, place: &Place<'_>) -> Result<Tried, String> {
    let open = flags("open", &texts(arguments, "open"), OPEN_FLAGS)?;
    let open = open.into_iter().fold(OpenFlags::empty(), |all, flag| all | flag);
    let flags = flags("flags", &texts(arguments, "flags"), DESCRIPTOR_FLAGS)?;
    let flags = flags.into_iter().fold(DescriptorFlags::empty(), |all, flag| all | flag);
    let follow = path_flags(arguments, true);
    let tried = async {
        let opened = place.directory.open_at(follow, place.path.clone(), open, flags).await?;
        let has = opened.get_flags().await?;
        let known = DESCRIPTOR_FLAGS.iter().filter(|(_, flag)| has.contains(*flag));
        let names: Vec<_> = known.map(|(name, _)| (*name).to_owned()).collect();
        Ok(format!("a {} with {}", type_name(&opened.get_type().await?), list(&names)))
    };
    Ok(tried.await.map_err(|code: ErrorCode| refused(&code)))
}

async fn entries(place: &Place<'_>) -> Result<String, ErrorCode> {
    let directory = place.open(OpenFlags::DIRECTORY, DescriptorFlags::READ).await?;
    let (stream, ended) = directory.read_directory();
    let entries = stream.collect().await;
    ended.await?;
    let mut names: Vec<_> = entries
        .iter()
        .map(|entry| format!("{} ({})", shown(&entry.name), type_name(&entry.type_)))
        .collect();
    names.sort();
    let more = names.len().saturating_sub(ENTRIES);
    names.truncate(ENTRIES);
    Ok(match (names.is_empty(), more) {
        (true, _) => "empty".to_owned(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    })
}

async fn stat(follow: PathFlags, place: &Place<'_>) -> Result<String, ErrorCode> {
    let stat = place.directory.stat_at(follow, place.path.clone()).await?;
    Ok(described(&stat))
}

async fn set_times(arguments: &Value, place: &Place<'_>) -> Result<String, ErrorCode> {
    let seconds = arguments["seconds"].as_u64().unwrap_or(0);
    // WASI 0.2 has unsigned seconds.
    let time = || match i64::try_from(seconds) {
        Ok(seconds) => NewTimestamp::Timestamp(Instant { seconds, nanoseconds: 0 }),
        Err(_) => NewTimestamp::Timestamp(Instant { seconds: i64::MAX, nanoseconds: 0 }),
    };
    if flag_or(arguments, "held", false) {
        let file = place.open(OpenFlags::empty(), DescriptorFlags::READ).await?;
        file.set_times(time(), time()).await?;
        return Ok(DONE.to_owned());
    }
    let follow = path_flags(arguments, true);
    place.directory.set_times_at(follow, place.path.clone(), time(), time()).await?;
    Ok(DONE.to_owned())
}

fn path_flags(arguments: &Value, follow: bool) -> PathFlags {
    match flag_or(arguments, "follow", follow) {
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

fn flags<T: Copy>(key: &str, names: &[&str], known: &[(&str, T)]) -> Result<Vec<T>, String> {
    let find = |name: &&str| {
        let flag = known.iter().find(|(known, _)| known == name).map(|(_, flag)| *flag);
        flag.ok_or_else(|| format!("invalid arguments: `{key}` has no flag `{name}`"))
    };
    names.iter().map(find).collect()
}

/// Returns the name of a type in WASI 0.2.
fn type_name(kind: &DescriptorType) -> String {
    match kind {
        DescriptorType::Other(_) => "unknown".to_owned(),
        kind => kebab(kind),
    }
}

fn described(stat: &DescriptorStat) -> String {
    let kind = type_name(&stat.type_);
    match stat.type_ {
        DescriptorType::RegularFile | DescriptorType::SymbolicLink => {
            let size = usize::try_from(stat.size).unwrap_or(usize::MAX);
            format!("{kind}, {}", count(size, "byte", "bytes"))
        }
        // Other entries have sizes that depend on the file system.
        _ => kind,
    }
}
