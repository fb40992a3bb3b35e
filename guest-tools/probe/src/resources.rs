//! Exhausts resources: time, memory, tables of the host.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use kitbag_sdk::{Call, ErrorInfo, Stop};
use wasip2::clocks::monotonic_clock;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, DirectoryEntryStream, ErrorCode, OpenFlags,
    PathFlags,
};
use wasip2::io::poll::poll;
use wasip2::io::streams::InputStream;
use wasip2::random::random::get_random_bytes;

use crate::arguments::Arguments;
use crate::places::{Place, Places};
use crate::sentence::{Refusal, sentence};

/// The host's page size. WebAssembly memory grows in larger pages.
const PAGE_BYTES: usize = 4096;

const NANOSECONDS: u64 = 1_000_000;

pub(crate) fn spin(_: &Call, _: &Arguments) -> Result<String, Stop> {
    endless()
}

/// Loops forever without calls.
pub(crate) fn endless() -> ! {
    let mut number = 0_u64;
    loop {
        number = black_box(number.wrapping_add(1));
    }
}

pub(crate) fn spin_hostcall(_: &Call, _: &Arguments) -> Result<String, Stop> {
    loop {
        black_box(monotonic_clock::now());
    }
}

pub(crate) fn sleep(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let ms = arguments.number("ms")?;
    monotonic_clock::subscribe_duration(ms.saturating_mul(NANOSECONDS)).block();
    Ok(format!("sleep {ms} ms: awake"))
}

pub(crate) fn allocate(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let bytes = arguments.number("bytes")?;
    let step = arguments.number_or("step", bytes).clamp(1, bytes.max(1));
    let steps = bytes.div_ceil(step);
    let must = arguments.flag_or("abort", false);
    let tried = format!("allocate {bytes} bytes");
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for number in 1..=steps {
        let length = step.min(bytes - (number - 1) * step);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let mut piece = Vec::new();
        if must {
            piece.reserve_exact(length);
        } else if piece.try_reserve_exact(length).is_err() {
            return Ok(format!("{tried}: refused in step {number} of {steps}"));
        }
        piece.resize(length, 0);
        piece.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 1);
        pieces.push(black_box(piece));
    }
    Ok(format!("{tried}: done"))
}

pub(crate) fn recurse(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let bottom = match arguments.flag_or("memory", false) {
        true => descend_in_memory(1),
        false => descend(1),
    };
    Ok(format!("recurse: came back from {bottom}"))
}

pub(crate) fn output(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let bytes = arguments.number("bytes")?;
    let bytes = usize::try_from(bytes)
        .map_err(|_| ErrorInfo::new("invalid arguments: `bytes` is more than there can be"))?;
    Ok("x".repeat(bytes))
}

pub(crate) fn random(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let bytes = arguments.number("bytes")?;
    Ok(format!("random {bytes} bytes: {} bytes", get_random_bytes(bytes).len()))
}

/// A handle that stays in the host's table until it is dropped.
enum Handle {
    Descriptor(#[expect(dead_code, reason = "held open")] Descriptor),
    Stream(#[expect(dead_code, reason = "held open")] InputStream),
    Listing(#[expect(dead_code, reason = "held open")] DirectoryEntryStream),
}

pub(crate) fn handles(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let n = arguments.number("n")?;
    let of = arguments.text_or("of", "descriptors");
    let tried = format!("handles {n} {of}");
    let places = Places::open();
    let root = match places.find_path(call.root(), "") {
        Ok(place) => Place { path: ".".into(), ..place },
        Err(refusal) => return Ok(sentence(&tried, Err(refusal))),
    };
    let file = match of {
        "streams" => first_file(&root).map_err(|code| Refusal::of(code.name())),
        _ => Ok(None),
    };
    let file = match file {
        Ok(file) => file,
        Err(refusal) => return Ok(sentence(&tried, Err(refusal))),
    };
    let open = || match (of, &file) {
        ("descriptors", _) => root
            .directory
            .open_at(PathFlags::empty(), &root.path, OpenFlags::DIRECTORY, DescriptorFlags::READ)
            .map(Handle::Descriptor),
        ("listings", _) => root.directory.read_directory().map(Handle::Listing),
        ("streams", Some(file)) => file.read_via_stream(0).map(Handle::Stream),
        _ => Err(ErrorCode::Unsupported),
    };
    let mut held = Vec::new();
    for _ in 0..n {
        match open() {
            Ok(handle) => held.push(handle),
            Err(code) => {
                return Ok(format!(
                    "{tried}: {} are open, then refused ({})",
                    held.len(),
                    code.name()
                ));
            }
        }
    }
    Ok(format!("{tried}: {} are open", black_box(held).len()))
}

pub(crate) fn pollables(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let n = arguments.number("n")?;
    let waits = arguments.flag_or("poll", false);
    // One hour, which is longer than any deadline, or 0 to be ready at once.
    let duration = if waits { 0 } else { 3_600_000 * NANOSECONDS };
    let held: Vec<_> = (0..n).map(|_| monotonic_clock::subscribe_duration(duration)).collect();
    if !waits {
        return Ok(format!("pollables {n}: {} are open", black_box(held).len()));
    }
    held.iter().for_each(|pollable| pollable.block());
    let ready = poll(&held.iter().collect::<Vec<_>>());
    Ok(format!("pollables {n}: {} are ready", ready.len()))
}

pub(crate) fn state(_: &Call, _: &Arguments) -> Result<String, Stop> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    static MARKER: Mutex<String> = Mutex::new(String::new());

    let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    let mut marker = MARKER.lock().unwrap_or_else(PoisonError::into_inner);
    let was = if marker.is_empty() { "absent" } else { "present" };
    "left by the call before".clone_into(&mut marker);
    Ok(format!("state: call {calls} of this instance, marker {was}"))
}

/// Exhausts the host's stack: a call uses hardly any of the tool's own memory, and work after it
/// prevents a tail call.
#[expect(unconditional_recursion, reason = "the point of it")]
fn descend(depth: u64) -> u64 {
    descend(depth + 1) ^ black_box(depth)
}

/// Exhausts the stack in the tool's own memory.
#[expect(unconditional_recursion, reason = "the point of it")]
fn descend_in_memory(depth: u64) -> u64 {
    let frame = black_box([depth; 4096]);
    descend_in_memory(depth + 1) ^ frame[0]
}

fn first_file(root: &Place<'_>) -> Result<Option<Descriptor>, ErrorCode> {
    let entries = root.directory.read_directory()?;
    let names = std::iter::from_fn(|| entries.read_directory_entry().transpose());
    let mut files = names.flatten().filter(|entry| entry.type_ == DescriptorType::RegularFile);
    let Some(entry) = files.next() else { return Ok(None) };
    let (open, flags) = (OpenFlags::empty(), DescriptorFlags::READ);
    root.directory.open_at(PathFlags::empty(), &entry.name, open, flags).map(Some)
}
