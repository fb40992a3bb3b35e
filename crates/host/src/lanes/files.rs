//! Whole files in granted directories, for lanes whose host functions read and write them.

use kitbag_base::ByteSize;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, HostDescriptor, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{FsError, FsResult};

use crate::grants::filesystem::FilesystemView;

/// The largest file that is read.
pub(super) const FILE_BYTES: ByteSize = ByteSize::mib(16);

/// Why a file was not read or written.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum FileError {
    #[error("the path has an empty name or `..`")]
    Path,
    #[error("it is not in a granted directory")]
    Outside,
    #[error("it has more than {FILE_BYTES}")]
    Size,
    #[error("{}", reason(*.0))]
    Refused(ErrorCode),
}

/// Reads a file. `path` is absolute.
///
/// # Errors
///
/// The outer error ends the call.
pub(super) async fn read(
    view: &mut FilesystemView<'_>,
    path: &str,
) -> wasmtime::Result<Result<Vec<u8>, FileError>> {
    let file = match open(view, path, OpenFlags::empty(), DescriptorFlags::READ).await? {
        Ok(file) => file,
        Err(error) => return Ok(Err(error)),
    };
    let handle = || Resource::new_borrow(file.rep());
    let mut bytes = Vec::new();
    let result = loop {
        match settled(view.read(handle(), FILE_BYTES.as_u64(), bytes.len() as u64).await)? {
            Err(error) => break Err(error),
            Ok((part, is_end)) => {
                bytes.extend_from_slice(&part);
                if bytes.len() > FILE_BYTES.as_usize() {
                    break Err(FileError::Size);
                }
                if is_end || part.is_empty() {
                    break Ok(bytes);
                }
            }
        }
    };
    HostDescriptor::drop(view, file)?;
    Ok(result)
}

/// Replaces the content of a file, and creates it if it does not exist. `path` is absolute.
///
/// # Errors
///
/// The outer error ends the call.
pub(super) async fn write(
    view: &mut FilesystemView<'_>,
    path: &str,
    content: &[u8],
) -> wasmtime::Result<Result<(), FileError>> {
    let creates = OpenFlags::CREATE | OpenFlags::TRUNCATE;
    let file = match open(view, path, creates, DescriptorFlags::WRITE).await? {
        Ok(file) => file,
        Err(error) => return Ok(Err(error)),
    };
    let mut written = 0;
    let result = loop {
        let Some(rest) = content.get(written..).filter(|rest| !rest.is_empty()) else {
            break Ok(());
        };
        let handle = Resource::new_borrow(file.rep());
        match settled(view.write(handle, rest.to_owned(), written as u64).await)? {
            Ok(count) => written += usize::try_from(count).unwrap_or(usize::MAX).min(rest.len()),
            Err(error) => break Err(error),
        }
    };
    HostDescriptor::drop(view, file)?;
    Ok(result)
}

async fn open(
    view: &mut FilesystemView<'_>,
    path: &str,
    open_flags: OpenFlags,
    flags: DescriptorFlags,
) -> wasmtime::Result<Result<Resource<Descriptor>, FileError>> {
    if !is_plain(path) {
        return Ok(Err(FileError::Path));
    }
    let directories = view.get_directories()?;
    let mut found: Option<(usize, &str)> = None;
    for (index, (_, guest)) in directories.iter().enumerate() {
        let guest = guest.trim_end_matches('/');
        let rest = path.strip_prefix(guest).and_then(|rest| rest.strip_prefix('/'));
        // The innermost directory.
        let is_nearer = |rest: &&str| found.is_none_or(|(_, other)| rest.len() < other.len());
        if let Some(rest) = rest.filter(is_nearer) {
            found = Some((index, rest));
        }
    }
    let file = match found {
        None => Ok(Err(FileError::Outside)),
        Some((index, rest)) => {
            let directory = Resource::new_borrow(directories[index].0.rep());
            let path_flags = PathFlags::SYMLINK_FOLLOW;
            settled(view.open_at(directory, path_flags, rest.to_owned(), open_flags, flags).await)
        }
    };
    for (directory, _) in directories {
        HostDescriptor::drop(view, directory)?;
    }
    file
}

/// Returns true for an absolute path that leads only down.
fn is_plain(path: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name != "." && name != "..";
    path.strip_prefix('/').is_some_and(|path| path.split('/').all(is_name))
}

/// Separates the errors of files from those that end the call.
fn settled<T>(result: FsResult<T>) -> wasmtime::Result<Result<T, FileError>> {
    match result.map_err(FsError::downcast) {
        Ok(value) => Ok(Ok(value)),
        Err(Ok(code)) => Ok(Err(FileError::Refused(code))),
        Err(Err(trap)) => Err(trap),
    }
}

fn reason(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::NoEntry => "it does not exist",
        ErrorCode::IsDirectory => "it is a directory",
        ErrorCode::NotDirectory => "a name on its path is not a directory",
        ErrorCode::Access | ErrorCode::NotPermitted | ErrorCode::ReadOnly => "it is not allowed",
        ErrorCode::Quota => "the limit on written bytes is exceeded",
        ErrorCode::InsufficientSpace => "there is no space",
        ErrorCode::Unsupported => "it is not a regular file",
        other => other.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_down_from_the_root() {
        for path in ["/a", "/a/b.txt", "/.system/x", "/..a"] {
            assert!(is_plain(path), "{path}");
        }
        for path in ["", "a", "/", "/a/", "/a//b", "/.", "/..", "/a/../b", "/./a"] {
            assert!(!is_plain(path), "{path}");
        }
    }
}
