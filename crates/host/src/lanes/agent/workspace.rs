//! Reading files of the workspace, through the granted directories.

use kitbag_base::ByteSize;
use kitbag_contract::WORKSPACE_GUEST_PATH;
use wasmtime::StoreContextMut;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, HostDescriptor, OpenFlags, PathFlags,
};

use crate::call::state::State;
use crate::grants::filesystem::FilesystemView;

/// The largest file that is read.
const FILE_BYTES: ByteSize = ByteSize::mib(16);

/// Returns the text of a file. `None` if it does not exist, is not text, is too large, or may not
/// be read. `path` is relative to the workspace.
pub(super) async fn read(
    mut store: StoreContextMut<'_, State>,
    path: &str,
) -> wasmtime::Result<Option<String>> {
    if !is_relative(path) {
        return Ok(None);
    }
    let path = format!("{WORKSPACE_GUEST_PATH}/{path}");
    let mut view = store.data_mut().guarded();
    let directories = view.get_directories()?;
    let mut found: Option<(usize, &str)> = None;
    for (index, (_, guest)) in directories.iter().enumerate() {
        let rest = path.strip_prefix(&**guest).and_then(|rest| rest.strip_prefix('/'));
        // The innermost directory.
        let is_nearer = |rest: &&str| found.is_none_or(|(_, other)| rest.len() < other.len());
        if let Some(rest) = rest.filter(is_nearer) {
            found = Some((index, rest));
        }
    }
    let text = match found {
        Some((index, rest)) => {
            let directory = Resource::new_borrow(directories[index].0.rep());
            text_of(&mut view, directory, rest).await.ok().flatten()
        }
        None => None,
    };
    for (directory, _) in directories {
        HostDescriptor::drop(&mut view, directory)?;
    }
    Ok(text)
}

/// Returns true for a path that leads down from a directory.
fn is_relative(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|name| !name.is_empty() && name != "." && name != "..")
}

async fn text_of(
    view: &mut FilesystemView<'_>,
    directory: Resource<Descriptor>,
    path: &str,
) -> FsResult<Option<String>> {
    let (path_flags, flags) = (PathFlags::SYMLINK_FOLLOW, DescriptorFlags::READ);
    let file = view.open_at(directory, path_flags, path.to_owned(), OpenFlags::empty(), flags);
    let file = file.await?;
    let handle = || Resource::new_borrow(file.rep());
    let mut bytes = Vec::new();
    let whole = loop {
        match view.read(handle(), FILE_BYTES.as_u64(), bytes.len() as u64).await {
            Ok((part, is_end)) => {
                bytes.extend_from_slice(&part);
                if bytes.len() > FILE_BYTES.as_usize() {
                    break false;
                }
                if is_end || part.is_empty() {
                    break true;
                }
            }
            Err(_) => break false,
        }
    };
    HostDescriptor::drop(view, file).map_err(wasmtime_wasi::p2::FsError::trap)?;
    Ok(whole.then(|| String::from_utf8(bytes).ok()).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_down_from_the_workspace() {
        for path in ["a", "a/b.txt", ".system/x", "..a"] {
            assert!(is_relative(path), "{path}");
        }
        for path in ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a"] {
            assert!(!is_relative(path), "{path}");
        }
    }
}
