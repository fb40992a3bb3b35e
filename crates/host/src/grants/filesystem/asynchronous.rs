//! `wasi:filesystem` of WASI 0.3, carried out by the guarded operations of WASI 0.2.
//!
//! A file operation blocks the thread of its call, so each operation ends when it is first polled,
//! unless another call holds the lock of a directory. Nothing here opens a path itself.

#[cfg(test)]
mod tests;

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use wasmtime::StoreContextMut;
use wasmtime::component::{
    Access, Accessor, Destination, FutureReader, Linker, Resource, Source, StreamConsumer,
    StreamProducer, StreamReader, StreamResult, VecBuffer,
};
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{self as sync, HostDescriptor as _};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, StreamError};
use wasmtime_wasi::p3::bindings::clocks::system_clock::Instant;
use wasmtime_wasi::p3::bindings::filesystem::preopens;
use wasmtime_wasi::p3::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode,
    Filesize, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p3::filesystem::{FilesystemError, FilesystemResult};

use super::bindings::GuardedFilesystem;
use super::change::FilesystemView;
use super::listing::Listing;
use crate::call::state::State;

/// Maximum number of bytes that a stream moves at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Maximum number of directory entries that a stream delivers at once.
const CHUNK_ENTRIES: usize = 64;

/// How long an operation waits before it is tried again, if another call holds a lock.
const PAUSE: Duration = Duration::from_millis(1);

type Guarded = Accessor<State, GuardedFilesystem>;
type GuardedAccess<'a> = Access<'a, State, GuardedFilesystem>;
type Ended = FutureReader<Result<(), ErrorCode>>;

pub(super) fn link_types(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, GuardedFilesystem>(linker, State::guarded)
}

pub(super) fn link_preopens(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    preopens::add_to_linker::<_, GuardedFilesystem>(linker, State::guarded)
}

/// Polls an operation once.
fn now<T>(operation: impl Future<Output = T>) -> Poll<T> {
    pin!(operation).poll(&mut Context::from_waker(Waker::noop()))
}

/// Carries out an operation of WASI 0.2, from its start if it has to wait.
async fn carry_out<T>(
    store: &Guarded,
    operation: impl AsyncFn(&mut FilesystemView<'_>) -> FsResult<T>,
) -> FilesystemResult<T> {
    loop {
        match store.with(|mut access| now(operation(&mut access.get()))) {
            Poll::Ready(result) => return result.map_err(error),
            Poll::Pending => tokio::time::sleep(PAUSE).await,
        }
    }
}

fn borrow(fd: &Resource<Descriptor>) -> Resource<Descriptor> {
    Resource::new_borrow(fd.rep())
}

impl types::Host for FilesystemView<'_> {
    fn convert_error_code(&mut self, error: FilesystemError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }
}

impl preopens::Host for FilesystemView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        wasmtime_wasi::p2::bindings::filesystem::preopens::Host::get_directories(self)
    }
}

impl types::HostDescriptor for FilesystemView<'_> {
    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        sync::HostDescriptor::drop(self, fd)
    }
}

impl types::HostDescriptorWithStore<State> for GuardedFilesystem {
    fn read_via_stream(
        mut store: GuardedAccess<'_>,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> wasmtime::Result<(StreamReader<u8>, Ended)> {
        let mut view = store.get();
        let opened = view.read_via_stream(borrow(&fd), offset);
        let opened = opened.and_then(|stream| Ok(view.wasi.table.delete(stream)?));
        match code_or_trap(opened)? {
            Ok(stream) => {
                let (end, ended) = End::new(&mut store)?;
                Ok((StreamReader::new(&mut store, Reading { stream, end })?, ended))
            }
            Err(code) => {
                let ended = failed(&mut store, code)?;
                Ok((StreamReader::new(&mut store, std::iter::empty())?, ended))
            }
        }
    }

    fn write_via_stream(
        mut store: GuardedAccess<'_>,
        fd: Resource<Descriptor>,
        data: StreamReader<u8>,
        offset: Filesize,
    ) -> wasmtime::Result<Ended> {
        let opened = store.get().write_via_stream(borrow(&fd), offset);
        written(store, opened, data)
    }

    fn append_via_stream(
        mut store: GuardedAccess<'_>,
        fd: Resource<Descriptor>,
        data: StreamReader<u8>,
    ) -> wasmtime::Result<Ended> {
        let opened = store.get().append_via_stream(borrow(&fd));
        written(store, opened, data)
    }

    fn read_directory(
        mut store: GuardedAccess<'_>,
        fd: Resource<Descriptor>,
    ) -> wasmtime::Result<(StreamReader<DirectoryEntry>, Ended)> {
        let mut view = store.get();
        let opened = match now(view.read_directory(borrow(&fd))) {
            Poll::Ready(opened) => opened,
            Poll::Pending => return Err(waits()),
        };
        let listing = opened.and_then(|stream| {
            Ok(view.wasi.table.delete(Resource::<Listing>::new_own(stream.rep()))?)
        });
        match code_or_trap(listing)? {
            Ok(listing) => {
                let (end, ended) = End::new(&mut store)?;
                Ok((StreamReader::new(&mut store, Entries { listing, end })?, ended))
            }
            Err(code) => {
                let ended = failed(&mut store, code)?;
                Ok((StreamReader::new(&mut store, std::iter::empty())?, ended))
            }
        }
    }

    async fn advise(
        store: &Guarded,
        fd: Resource<Descriptor>,
        offset: Filesize,
        length: Filesize,
        advice: Advice,
    ) -> FilesystemResult<()> {
        let advice = match advice {
            Advice::Normal => sync::Advice::Normal,
            Advice::Sequential => sync::Advice::Sequential,
            Advice::Random => sync::Advice::Random,
            Advice::WillNeed => sync::Advice::WillNeed,
            Advice::DontNeed => sync::Advice::DontNeed,
            Advice::NoReuse => sync::Advice::NoReuse,
        };
        carry_out(store, async |view| view.advise(borrow(&fd), offset, length, advice).await).await
    }

    async fn sync_data(store: &Guarded, fd: Resource<Descriptor>) -> FilesystemResult<()> {
        carry_out(store, async |view| view.sync_data(borrow(&fd)).await).await
    }

    async fn get_flags(
        store: &Guarded,
        fd: Resource<Descriptor>,
    ) -> FilesystemResult<DescriptorFlags> {
        let flags = carry_out(store, async |view| view.get_flags(borrow(&fd)).await).await?;
        Ok(FLAGS
            .iter()
            .filter(|(_, of)| flags.contains(*of))
            .fold(DescriptorFlags::empty(), |all, (flag, _)| all | *flag))
    }

    async fn get_type(
        store: &Guarded,
        fd: Resource<Descriptor>,
    ) -> FilesystemResult<DescriptorType> {
        carry_out(store, async |view| view.get_type(borrow(&fd)).await).await.map(descriptor_type)
    }

    async fn set_size(
        store: &Guarded,
        fd: Resource<Descriptor>,
        size: Filesize,
    ) -> FilesystemResult<()> {
        carry_out(store, async |view| view.set_size(borrow(&fd), size).await).await
    }

    async fn set_times(
        store: &Guarded,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FilesystemResult<()> {
        let (accessed, modified) = (timestamp(accessed)?, timestamp(modified)?);
        carry_out(store, async |view| view.set_times(borrow(&fd), accessed, modified).await).await
    }

    async fn sync(store: &Guarded, fd: Resource<Descriptor>) -> FilesystemResult<()> {
        carry_out(store, async |view| view.sync(borrow(&fd)).await).await
    }

    async fn create_directory_at(
        store: &Guarded,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FilesystemResult<()> {
        let create = async |view: &mut FilesystemView<'_>| {
            view.create_directory_at(borrow(&fd), path.clone()).await
        };
        carry_out(store, create).await
    }

    async fn stat(store: &Guarded, fd: Resource<Descriptor>) -> FilesystemResult<DescriptorStat> {
        carry_out(store, async |view| view.stat(borrow(&fd)).await).await.map(descriptor_stat)
    }

    async fn stat_at(
        store: &Guarded,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FilesystemResult<DescriptorStat> {
        let stat = async |view: &mut FilesystemView<'_>| {
            view.stat_at(borrow(&fd), path_flags(flags), path.clone()).await
        };
        carry_out(store, stat).await.map(descriptor_stat)
    }

    async fn set_times_at(
        store: &Guarded,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FilesystemResult<()> {
        let (accessed, modified) = (timestamp(accessed)?, timestamp(modified)?);
        let set = async |view: &mut FilesystemView<'_>| {
            let flags = path_flags(flags);
            view.set_times_at(borrow(&fd), flags, path.clone(), accessed, modified).await
        };
        carry_out(store, set).await
    }

    async fn link_at(
        store: &Guarded,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        old: String,
        new_fd: Resource<Descriptor>,
        new: String,
    ) -> FilesystemResult<()> {
        let link = async |view: &mut FilesystemView<'_>| {
            let (from, to) = (borrow(&fd), borrow(&new_fd));
            view.link_at(from, path_flags(flags), old.clone(), to, new.clone()).await
        };
        carry_out(store, link).await
    }

    async fn open_at(
        store: &Guarded,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        open: OpenFlags,
        access: DescriptorFlags,
    ) -> FilesystemResult<Resource<Descriptor>> {
        let opened = [
            (OpenFlags::CREATE, sync::OpenFlags::CREATE),
            (OpenFlags::DIRECTORY, sync::OpenFlags::DIRECTORY),
            (OpenFlags::EXCLUSIVE, sync::OpenFlags::EXCLUSIVE),
            (OpenFlags::TRUNCATE, sync::OpenFlags::TRUNCATE),
        ];
        let opened = opened.iter().filter(|(flag, _)| open.contains(*flag));
        let opened = opened.fold(sync::OpenFlags::empty(), |all, (_, of)| all | *of);
        let access = FLAGS.iter().filter(|(flag, _)| access.contains(*flag));
        let access = access.fold(sync::DescriptorFlags::empty(), |all, (_, of)| all | *of);
        let open = async |view: &mut FilesystemView<'_>| {
            view.open_at(borrow(&fd), path_flags(flags), path.clone(), opened, access).await
        };
        carry_out(store, open).await
    }

    async fn readlink_at(
        store: &Guarded,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FilesystemResult<String> {
        let read =
            async |view: &mut FilesystemView<'_>| view.readlink_at(borrow(&fd), path.clone()).await;
        carry_out(store, read).await
    }

    async fn remove_directory_at(
        store: &Guarded,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FilesystemResult<()> {
        let remove = async |view: &mut FilesystemView<'_>| {
            view.remove_directory_at(borrow(&fd), path.clone()).await
        };
        carry_out(store, remove).await
    }

    async fn rename_at(
        store: &Guarded,
        fd: Resource<Descriptor>,
        old: String,
        new_fd: Resource<Descriptor>,
        new: String,
    ) -> FilesystemResult<()> {
        let rename = async |view: &mut FilesystemView<'_>| {
            let (from, to) = (borrow(&fd), borrow(&new_fd));
            view.rename_at(from, old.clone(), to, new.clone()).await
        };
        carry_out(store, rename).await
    }

    async fn symlink_at(
        store: &Guarded,
        fd: Resource<Descriptor>,
        target: String,
        path: String,
    ) -> FilesystemResult<()> {
        let link = async |view: &mut FilesystemView<'_>| {
            view.symlink_at(borrow(&fd), target.clone(), path.clone()).await
        };
        carry_out(store, link).await
    }

    async fn unlink_file_at(
        store: &Guarded,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FilesystemResult<()> {
        let unlink = async |view: &mut FilesystemView<'_>| {
            view.unlink_file_at(borrow(&fd), path.clone()).await
        };
        carry_out(store, unlink).await
    }

    async fn is_same_object(
        store: &Guarded,
        a: Resource<Descriptor>,
        b: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        store.with(|mut access| match now(access.get().is_same_object(borrow(&a), borrow(&b))) {
            Poll::Ready(is_same) => is_same,
            Poll::Pending => Err(waits()),
        })
    }

    async fn metadata_hash(
        store: &Guarded,
        fd: Resource<Descriptor>,
    ) -> FilesystemResult<MetadataHashValue> {
        let hash = carry_out(store, async |view| view.metadata_hash(borrow(&fd)).await).await?;
        Ok(MetadataHashValue { lower: hash.lower, upper: hash.upper })
    }

    async fn metadata_hash_at(
        store: &Guarded,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FilesystemResult<MetadataHashValue> {
        let hash = async |view: &mut FilesystemView<'_>| {
            view.metadata_hash_at(borrow(&fd), path_flags(flags), path.clone()).await
        };
        let hash = carry_out(store, hash).await?;
        Ok(MetadataHashValue { lower: hash.lower, upper: hash.upper })
    }
}

/// The error of an operation that waits although it must not.
fn waits() -> wasmtime::Error {
    wasmtime::Error::msg("a file operation did not end")
}

/// Connects a stream of the guest to a file.
fn written(
    mut store: GuardedAccess<'_>,
    opened: FsResult<Resource<DynOutputStream>>,
    mut data: StreamReader<u8>,
) -> wasmtime::Result<Ended> {
    let view = store.get();
    let opened = opened.and_then(|stream| Ok(view.wasi.table.delete(stream)?));
    match code_or_trap(opened)? {
        Ok(stream) => {
            let (end, ended) = End::new(&mut store)?;
            data.pipe(&mut store, Writing { stream, end })?;
            Ok(ended)
        }
        Err(code) => {
            data.close(&mut store)?;
            failed(&mut store, code)
        }
    }
}

/// Returns a future that has failed.
fn failed(store: &mut GuardedAccess<'_>, code: ErrorCode) -> wasmtime::Result<Ended> {
    FutureReader::new(store, async { wasmtime::error::Ok(Err(code)) })
}

/// The result of a stream, which the guest receives as a future. A stream that is dropped ended
/// without an error.
struct End(Option<oneshot::Sender<Result<(), ErrorCode>>>);

impl End {
    fn new(store: &mut GuardedAccess<'_>) -> wasmtime::Result<(Self, Ended)> {
        let (sender, receiver) = oneshot::channel();
        let result = async { wasmtime::error::Ok(receiver.await.unwrap_or(Ok(()))) };
        Ok((Self(Some(sender)), FutureReader::new(store, result)?))
    }

    /// Ends the stream after an error of its file.
    fn fail(&mut self, error: StreamError) -> Poll<wasmtime::Result<StreamResult>> {
        let code = match error {
            StreamError::Closed => Ok(()),
            StreamError::LastOperationFailed(error) => match error.downcast::<std::io::Error>() {
                Ok(error) => Err(ErrorCode::from(error)),
                Err(_) => Err(ErrorCode::Io),
            },
            StreamError::Trap(error) => return Poll::Ready(Err(error)),
        };
        if let Some(sender) = self.0.take() {
            // The guest may have dropped the future.
            let _ = sender.send(code);
        }
        Poll::Ready(Ok(StreamResult::Dropped))
    }
}

/// Bytes of a file.
struct Reading {
    stream: DynInputStream,
    end: End,
}

impl StreamProducer<State> for Reading {
    type Item = u8;
    type Buffer = Bytes;

    fn poll_produce<'a>(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut store: StoreContextMut<'a, State>,
        mut destination: Destination<'a, u8, Bytes>,
        _: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let Self { stream, end } = self.get_mut();
        let room = destination.remaining(&mut store).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        if room == 0 {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        match now(stream.blocking_read(room)) {
            Poll::Ready(Ok(bytes)) => {
                destination.set_buffer(bytes);
                Poll::Ready(Ok(StreamResult::Completed))
            }
            Poll::Ready(Err(error)) => end.fail(error),
            Poll::Pending => Poll::Ready(Err(waits())),
        }
    }
}

/// Bytes for a file, counted by its stream.
struct Writing {
    stream: DynOutputStream,
    end: End,
}

impl StreamConsumer<State> for Writing {
    type Item = u8;

    fn poll_consume(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        store: StoreContextMut<'_, State>,
        source: Source<'_, u8>,
        _: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let Self { stream, end } = self.get_mut();
        let mut source = source.as_direct(store);
        let bytes = source.remaining();
        if bytes.is_empty() {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let bytes = Bytes::copy_from_slice(&bytes[..bytes.len().min(CHUNK_BYTES)]);
        let length = bytes.len();
        match now(stream.blocking_write_and_flush(bytes)) {
            Poll::Ready(Ok(())) => {
                source.mark_read(length);
                Poll::Ready(Ok(StreamResult::Completed))
            }
            Poll::Ready(Err(error)) => end.fail(error),
            Poll::Pending => Poll::Ready(Err(waits())),
        }
    }
}

/// Entries of a directory.
struct Entries {
    listing: Listing,
    end: End,
}

impl StreamProducer<State> for Entries {
    type Item = DirectoryEntry;
    type Buffer = VecBuffer<DirectoryEntry>;

    fn poll_produce<'a>(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut store: StoreContextMut<'a, State>,
        mut destination: Destination<'a, DirectoryEntry, VecBuffer<DirectoryEntry>>,
        _: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let Self { listing, end } = self.get_mut();
        let room = destination.remaining(&mut store).unwrap_or(1).min(CHUNK_ENTRIES);
        let view = store.data_mut().guarded();
        let mut entries = Vec::with_capacity(room);
        let mut last = Ok(StreamResult::Completed);
        while entries.len() < room {
            match listing.next(view.granted).map_err(error) {
                Ok(Some(entry)) => entries
                    .push(DirectoryEntry { type_: descriptor_type(entry.type_), name: entry.name }),
                Ok(None) => {
                    last = Ok(StreamResult::Dropped);
                    break;
                }
                Err(error) => {
                    last = match error.downcast() {
                        Ok(code) => {
                            if let Some(sender) = end.0.take() {
                                let _ = sender.send(Err(code));
                            }
                            Ok(StreamResult::Dropped)
                        }
                        Err(error) => Err(error),
                    };
                    break;
                }
            }
        }
        destination.set_buffer(entries.into());
        Poll::Ready(last)
    }
}

/// The flags of descriptors, and their counterparts in WASI 0.2.
const FLAGS: &[(DescriptorFlags, sync::DescriptorFlags)] = &[
    (DescriptorFlags::READ, sync::DescriptorFlags::READ),
    (DescriptorFlags::WRITE, sync::DescriptorFlags::WRITE),
    (DescriptorFlags::FILE_INTEGRITY_SYNC, sync::DescriptorFlags::FILE_INTEGRITY_SYNC),
    (DescriptorFlags::DATA_INTEGRITY_SYNC, sync::DescriptorFlags::DATA_INTEGRITY_SYNC),
    (DescriptorFlags::REQUESTED_WRITE_SYNC, sync::DescriptorFlags::REQUESTED_WRITE_SYNC),
    (DescriptorFlags::MUTATE_DIRECTORY, sync::DescriptorFlags::MUTATE_DIRECTORY),
];

fn path_flags(flags: PathFlags) -> sync::PathFlags {
    match flags.contains(PathFlags::SYMLINK_FOLLOW) {
        true => sync::PathFlags::SYMLINK_FOLLOW,
        false => sync::PathFlags::empty(),
    }
}

fn descriptor_type(kind: sync::DescriptorType) -> DescriptorType {
    match kind {
        sync::DescriptorType::Unknown => DescriptorType::Other(None),
        sync::DescriptorType::BlockDevice => DescriptorType::BlockDevice,
        sync::DescriptorType::CharacterDevice => DescriptorType::CharacterDevice,
        sync::DescriptorType::Directory => DescriptorType::Directory,
        sync::DescriptorType::Fifo => DescriptorType::Fifo,
        sync::DescriptorType::SymbolicLink => DescriptorType::SymbolicLink,
        sync::DescriptorType::RegularFile => DescriptorType::RegularFile,
        sync::DescriptorType::Socket => DescriptorType::Socket,
    }
}

fn descriptor_stat(stat: sync::DescriptorStat) -> DescriptorStat {
    let time = |time: Option<sync::Datetime>| {
        let time = time?;
        Some(Instant { seconds: time.seconds.try_into().ok()?, nanoseconds: time.nanoseconds })
    };
    DescriptorStat {
        type_: descriptor_type(stat.type_),
        link_count: stat.link_count,
        size: stat.size,
        data_access_timestamp: time(stat.data_access_timestamp),
        data_modification_timestamp: time(stat.data_modification_timestamp),
        status_change_timestamp: time(stat.status_change_timestamp),
    }
}

/// Converts a time. WASI 0.2 has none before 1970.
fn timestamp(time: NewTimestamp) -> Result<sync::NewTimestamp, ErrorCode> {
    Ok(match time {
        NewTimestamp::NoChange => sync::NewTimestamp::NoChange,
        NewTimestamp::Now => sync::NewTimestamp::Now,
        NewTimestamp::Timestamp(Instant { seconds, nanoseconds }) => {
            let seconds = seconds.try_into().map_err(|_| ErrorCode::Unsupported)?;
            sync::NewTimestamp::Timestamp(sync::Datetime { seconds, nanoseconds })
        }
    })
}

/// Separates the codes that the guest receives from failures of the host.
fn code_or_trap<T>(result: FsResult<T>) -> wasmtime::Result<Result<T, ErrorCode>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(failure) => error(failure).downcast().map(Err),
    }
}

fn error(error: FsError) -> FilesystemError {
    match error.downcast() {
        Ok(code) => error_code(code).into(),
        Err(error) => FilesystemError::trap(error),
    }
}

fn error_code(code: sync::ErrorCode) -> ErrorCode {
    match code {
        sync::ErrorCode::Access => ErrorCode::Access,
        // Only sockets block.
        sync::ErrorCode::WouldBlock => ErrorCode::Other(None),
        sync::ErrorCode::Already => ErrorCode::Already,
        sync::ErrorCode::BadDescriptor => ErrorCode::BadDescriptor,
        sync::ErrorCode::Busy => ErrorCode::Busy,
        sync::ErrorCode::Deadlock => ErrorCode::Deadlock,
        sync::ErrorCode::Quota => ErrorCode::Quota,
        sync::ErrorCode::Exist => ErrorCode::Exist,
        sync::ErrorCode::FileTooLarge => ErrorCode::FileTooLarge,
        sync::ErrorCode::IllegalByteSequence => ErrorCode::IllegalByteSequence,
        sync::ErrorCode::InProgress => ErrorCode::InProgress,
        sync::ErrorCode::Interrupted => ErrorCode::Interrupted,
        sync::ErrorCode::Invalid => ErrorCode::Invalid,
        sync::ErrorCode::Io => ErrorCode::Io,
        sync::ErrorCode::IsDirectory => ErrorCode::IsDirectory,
        sync::ErrorCode::Loop => ErrorCode::Loop,
        sync::ErrorCode::TooManyLinks => ErrorCode::TooManyLinks,
        sync::ErrorCode::MessageSize => ErrorCode::MessageSize,
        sync::ErrorCode::NameTooLong => ErrorCode::NameTooLong,
        sync::ErrorCode::NoDevice => ErrorCode::NoDevice,
        sync::ErrorCode::NoEntry => ErrorCode::NoEntry,
        sync::ErrorCode::NoLock => ErrorCode::NoLock,
        sync::ErrorCode::InsufficientMemory => ErrorCode::InsufficientMemory,
        sync::ErrorCode::InsufficientSpace => ErrorCode::InsufficientSpace,
        sync::ErrorCode::NotDirectory => ErrorCode::NotDirectory,
        sync::ErrorCode::NotEmpty => ErrorCode::NotEmpty,
        sync::ErrorCode::NotRecoverable => ErrorCode::NotRecoverable,
        sync::ErrorCode::Unsupported => ErrorCode::Unsupported,
        sync::ErrorCode::NoTty => ErrorCode::NoTty,
        sync::ErrorCode::NoSuchDevice => ErrorCode::NoSuchDevice,
        sync::ErrorCode::Overflow => ErrorCode::Overflow,
        sync::ErrorCode::NotPermitted => ErrorCode::NotPermitted,
        sync::ErrorCode::Pipe => ErrorCode::Pipe,
        sync::ErrorCode::ReadOnly => ErrorCode::ReadOnly,
        sync::ErrorCode::InvalidSeek => ErrorCode::InvalidSeek,
        sync::ErrorCode::TextFileBusy => ErrorCode::TextFileBusy,
        sync::ErrorCode::CrossDevice => ErrorCode::CrossDevice,
    }
}
