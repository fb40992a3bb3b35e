//! `find_files`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::time::Duration;

use kitbag_sdk::{Call, ErrorInfo};
use kitbag_workspace::Kind;

use crate::answer::{ANSWER_BYTES, COUNTED, FULL, add_passed_over, count};
use crate::arguments::{FindFiles, Wanted};
use crate::place::{SearchRoot, in_words, shown};
use crate::walk::{Found, walk};

/// The state of one listing.
struct Listing<'a> {
    arguments: &'a FindFiles,
    /// Paths to show. The oldest one is on top; without times, the last in order.
    paths: BinaryHeap<(Reverse<Duration>, String)>,
    /// The length in bytes.
    bytes: usize,
    left_out: u64,
    /// The answer has no room for further paths, although the limit is not reached.
    is_full: bool,
    is_stopped: bool,
}

/// Runs a call.
pub(crate) fn run(call: &Call, arguments: &FindFiles) -> Result<String, ErrorInfo> {
    let place = SearchRoot::find(call, &arguments.path)?;
    let filter = arguments.filter(&place)?;
    let mut listing = Listing {
        arguments,
        paths: BinaryHeap::new(),
        bytes: 0,
        left_out: 0,
        is_full: false,
        is_stopped: false,
    };
    let mut in_order = Vec::new();
    let passed = walk(&place, &filter, &mut |found, _| listing.visit(&found, &mut in_order))
        .map_err(|error| ErrorInfo::new(format!("`{}` {}", arguments.path, in_words(&error))))?;
    let newest = listing.paths.into_sorted_vec().into_iter().map(|(_, path)| path);
    let paths = newest.chain(in_order);
    let mut answer = String::new();
    for path in paths {
        answer.push_str(&place.shown_root);
        answer.push_str(&shown(&path));
        answer.push('\n');
    }
    answer.truncate(answer.trim_end_matches('\n').len());
    if answer.is_empty() && listing.left_out == 0 {
        answer.push_str("nothing found");
        let leaves_out = !arguments.hidden || !arguments.ignored;
        if leaves_out && !arguments.globs.is_empty() {
            answer.push_str("; see `hidden`, `ignored`");
        }
    }
    if listing.left_out > 0 {
        let at_least = if listing.is_stopped { "at least " } else { "" };
        let more = count(listing.left_out, "path", "paths");
        let why = match listing.is_full {
            true => FULL,
            false => "`limit`",
        };
        answer.push_str(&format!("\n[omitted: {at_least}{more} ({why})]"));
    }
    add_passed_over(&mut answer, &passed);
    Ok(answer)
}

impl Listing<'_> {
    fn visit(&mut self, found: &Found<'_>, in_order: &mut Vec<String>) -> ControlFlow<()> {
        let is_wanted = match self.arguments.kind {
            Wanted::File => found.kind == Kind::File,
            Wanted::Directory => found.kind == Kind::Directory,
            Wanted::Any => true,
        };
        if !is_wanted {
            return ControlFlow::Continue(());
        }
        let limit = usize::try_from(self.arguments.limit).unwrap_or(usize::MAX);
        let path = || match found.kind {
            Kind::Directory => format!("{}/", found.path),
            _ => found.path.to_owned(),
        };
        if !self.arguments.newest {
            if in_order.len() < limit && self.bytes < ANSWER_BYTES {
                let path = path();
                self.bytes += path.len() + 1;
                in_order.push(path);
                return ControlFlow::Continue(());
            }
            self.is_full = in_order.len() < limit;
            self.left_out += 1;
            self.is_stopped = self.left_out >= COUNTED;
            return match self.is_stopped {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
        }
        let modified = found.directory.modified(found.name).unwrap_or_default();
        let path = path();
        self.bytes += path.len() + 1;
        self.paths.push((Reverse(modified), path));
        while self.paths.len() > limit || self.bytes > ANSWER_BYTES {
            self.is_full = self.paths.len() <= limit;
            let Some((_, oldest)) = self.paths.pop() else { break };
            self.bytes -= oldest.len() + 1;
            self.left_out += 1;
        }
        ControlFlow::Continue(())
    }
}
