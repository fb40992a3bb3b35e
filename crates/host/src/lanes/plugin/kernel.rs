//! The memory that an Extism plugin shares with its host.
//!
//! Offsets, block sizes and the reuse of freed blocks are those of Extism's kernel 1.x, which is a
//! WebAssembly module. Here the blocks' headers are not part of the memory: a plugin that writes
//! over them changes nothing. Sizes that overflow the kernel's 32-bit arithmetic are refused.
//!
//! Every function is given offsets and lengths that the guest controls.

use wasmtime::ResourceLimiter;

use crate::schedule::limiter::Limiter;

/// Size of a page of WebAssembly memory.
const PAGE: u64 = 64 << 10;

/// Pages that the kernel's memory has at the start. Only the first is used until it grows.
const FIRST_PAGES: u64 = 16;

/// Maximum number of pages: offsets have 32 bits.
const MOST_PAGES: u64 = 1 << 16;

/// Size of the kernel's own data, which starts at offset 1.
const ROOT: u64 = 64;

/// Offset of the first block's header.
const BLOCKS: u64 = 1 + ROOT;

/// Size of a block's header.
const HEADER: u64 = 12;

/// Number of bytes that are left over when a freed block is split.
const SPLIT: u64 = 128;

/// The memory and the values that refer to it.
#[derive(Debug)]
pub(super) struct Kernel {
    /// Bytes from offset 0. Bytes that nothing has been written to are not allocated.
    bytes: Vec<u8>,
    pages: u64,
    /// Blocks in the order of their offsets.
    blocks: Vec<Block>,
    /// Size of all blocks with their headers.
    position: u64,
    /// Size of the pages in use, without the root.
    length: u64,
    error: u64,
    input: Range,
    output: Range,
}

#[derive(Debug)]
struct Block {
    /// Offset of the data.
    offset: u32,
    size: u32,
    used: u32,
    is_active: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Range {
    offset: u64,
    length: u64,
}

/// An access beyond the end of the memory, for which the kernel traps.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutOfBounds;

impl Default for Kernel {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            pages: FIRST_PAGES,
            blocks: Vec::new(),
            position: 0,
            length: PAGE - ROOT,
            error: 0,
            input: Range::default(),
            output: Range::default(),
        }
    }
}

impl Kernel {
    /// Allocates a block. Returns 0 if its size is 0 or there is no memory for it.
    pub(super) fn alloc(&mut self, size: u64, limiter: &mut Limiter) -> u64 {
        let Some(size) = u32::try_from(size).ok().filter(|size| *size != 0) else { return 0 };
        let whole = u64::from(size) + HEADER;
        let left = self.length - self.position - ROOT;
        let mut more = 0;
        if whole >= left {
            if whole <= self.position
                && let Some(offset) = self.reuse(size, limiter)
            {
                return offset;
            }
            more = (whole - left).div_ceil(PAGE);
        }
        let offset = BLOCKS + self.position + HEADER;
        let fits = self.pages + more <= MOST_PAGES;
        if !fits || !self.reserve(offset + u64::from(size), self.blocks.len() + 1, limiter) {
            return 0;
        }
        self.pages += more;
        self.length += more * PAGE;
        self.position += whole;
        self.blocks.push(Block { offset: narrow(offset), size, used: size, is_active: true });
        offset
    }

    /// Returns the first freed block that is large enough. The rest of a much larger one stays free.
    fn reuse(&mut self, size: u32, limiter: &mut Limiter) -> Option<u64> {
        let fits = |block: &Block| !block.is_active && block.size >= size;
        let index = self.blocks.iter().position(fits)?;
        let rest = self.blocks[index].size - size;
        if u64::from(rest) < SPLIT {
            let block = &mut self.blocks[index];
            (block.used, block.is_active) = (size, true);
            return Some(u64::from(block.offset));
        }
        if !self.reserve(self.bytes.len() as u64, self.blocks.len() + 1, limiter) {
            return None;
        }
        let first = &mut self.blocks[index];
        first.size = rest - narrow(HEADER);
        first.used = 0;
        let offset = first.offset + first.size + narrow(HEADER);
        self.blocks.insert(index + 1, Block { offset, size, used: size, is_active: true });
        Some(u64::from(offset))
    }

    /// Frees a block. Other offsets are ignored.
    pub(super) fn free(&mut self, offset: u64) {
        let Some(block) = self.find(offset) else { return };
        self.blocks[block].is_active = false;
        if offset == self.input.offset {
            self.input.length = 0;
        }
    }

    /// Returns the size of a block that is not freed, or 0.
    pub(super) fn length(&self, offset: u64) -> u64 {
        self.find(offset).map_or(0, |block| u64::from(self.blocks[block].used))
    }

    fn find(&self, offset: u64) -> Option<usize> {
        let offset = u32::try_from(offset).ok()?;
        let block = self.blocks.binary_search_by_key(&offset, |block| block.offset).ok()?;
        self.blocks[block].is_active.then_some(block)
    }

    /// Loads bytes. All are 0 if the last one is outside the memory.
    pub(super) fn load<const N: usize>(&self, offset: u64) -> Result<[u8; N], OutOfBounds> {
        match self.end(offset, N)? {
            Some(_) => Ok(self.read(offset)),
            None => Ok([0; N]),
        }
    }

    /// Stores bytes, unless the last one is outside the memory.
    pub(super) fn store(
        &mut self,
        offset: u64,
        value: &[u8],
        limiter: &mut Limiter,
    ) -> Result<(), OutOfBounds> {
        let Some(end) = self.end(offset, value.len())? else { return Ok(()) };
        if !self.reserve(end, self.blocks.len(), limiter) {
            return Err(OutOfBounds);
        }
        let start = index(offset);
        self.bytes[start..start + value.len()].copy_from_slice(value);
        Ok(())
    }

    /// Returns the end of an access, or `None` if it has no effect. The kernel compares the last
    /// byte with the size of the memory and forgets that the size itself is outside.
    fn end(&self, offset: u64, bytes: usize) -> Result<Option<u64>, OutOfBounds> {
        let size = self.pages * PAGE;
        let Some(end) = offset.checked_add(bytes as u64) else { return Ok(None) };
        match end - 1 {
            last if last < ROOT || last > size => Ok(None),
            last if last == size => Err(OutOfBounds),
            _ => Ok(Some(end)),
        }
    }

    /// Reads bytes within the memory; those that were never written are 0.
    fn read<const N: usize>(&self, offset: u64) -> [u8; N] {
        let mut value = [0; N];
        let rest = self.bytes.get(index(offset)..).unwrap_or_default();
        let length = rest.len().min(N);
        value[..length].copy_from_slice(&rest[..length]);
        value
    }

    /// Sets the input, unless it is outside the memory.
    pub(super) fn input_set(&mut self, offset: u64, length: u64) {
        if self.has(offset, length) {
            self.input = Range { offset, length };
        }
    }

    pub(super) fn input_offset(&self) -> u64 {
        self.input.offset
    }

    pub(super) fn input_length(&self) -> u64 {
        self.input.length
    }

    /// Loads bytes of the input. All are 0 if the last one is outside the input.
    pub(super) fn input_load<const N: usize>(&self, offset: u64) -> [u8; N] {
        let is_inside = offset.checked_add(N as u64).is_some_and(|end| end <= self.input.length);
        if is_inside { self.read(self.input.offset + offset) } else { [0; N] }
    }

    /// Sets the output, unless it is outside the memory.
    pub(super) fn output_set(&mut self, offset: u64, length: u64) {
        if self.has(offset, length) {
            self.output = Range { offset, length };
        }
    }

    pub(super) fn output_offset(&self) -> u64 {
        self.output.offset
    }

    pub(super) fn output_length(&self) -> u64 {
        self.output.length
    }

    /// Returns a copy of the output.
    pub(super) fn output(&self) -> Vec<u8> {
        self.copy(self.output)
    }

    /// Sets the error message. 0 removes it; other offsets outside the memory are ignored.
    pub(super) fn error_set(&mut self, offset: u64) {
        if offset == 0 || self.has(offset, 1) {
            self.error = offset;
        }
    }

    pub(super) fn error_get(&self) -> u64 {
        self.error
    }

    /// Returns the error message, if the plugin set one.
    pub(super) fn error(&self) -> Option<Vec<u8>> {
        self.block(self.error)
    }

    /// Returns a copy of a block that is not freed.
    pub(super) fn block(&self, offset: u64) -> Option<Vec<u8>> {
        let length = self.length(offset);
        (length != 0).then(|| self.copy(Range { offset, length }))
    }

    /// Allocates a block with this content. Returns 0 for no content, and `None` if there is no
    /// memory for it.
    pub(super) fn insert(&mut self, content: &[u8], limiter: &mut Limiter) -> Option<u64> {
        if content.is_empty() {
            return Some(0);
        }
        let offset = self.alloc(content.len() as u64, limiter);
        if offset == 0 {
            return None;
        }
        let start = index(offset);
        self.bytes[start..start + content.len()].copy_from_slice(content);
        Some(offset)
    }

    /// Removes all blocks, the input, the output and the error.
    pub(super) fn reset(&mut self) {
        let end = self.bytes.len().min(index(BLOCKS + self.position));
        if let Some(used) = self.bytes.get_mut(index(BLOCKS)..end) {
            used.fill(0);
        }
        self.blocks.clear();
        self.position = 0;
        self.error = 0;
        (self.input, self.output) = (Range::default(), Range::default());
    }

    /// Returns the size of the memory in use.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.length
    }

    /// Returns true if a range is within the pages in use. An empty range counts as its first byte
    /// and the one before.
    fn has(&self, offset: u64, length: u64) -> bool {
        let is_inside = |offset: u64| (BLOCKS..BLOCKS + self.length).contains(&offset);
        let last = offset.checked_add(length).and_then(|end| end.checked_sub(1));
        is_inside(offset) && last.is_some_and(is_inside)
    }

    fn copy(&self, Range { offset, length }: Range) -> Vec<u8> {
        let end = index(offset + length);
        let mut copy = self
            .bytes
            .get(index(offset)..end.min(self.bytes.len()))
            .map_or_else(Vec::new, <[u8]>::to_vec);
        copy.resize(index(length), 0);
        copy
    }

    /// Makes room for bytes up to an end and for a number of blocks, within the memory limit of the
    /// call.
    fn reserve(&mut self, end: u64, blocks: usize, limiter: &mut Limiter) -> bool {
        let bytes = index(end.next_multiple_of(PAGE)).max(self.bytes.len());
        let room = match blocks > self.blocks.capacity() {
            true => blocks.next_power_of_two().max(64),
            false => self.blocks.capacity(),
        };
        let used = cost(self.bytes.len(), self.blocks.capacity());
        let needed = cost(bytes, room);
        if needed > used && !matches!(limiter.memory_growing(used, needed, None), Ok(true)) {
            return false;
        }
        self.blocks.reserve_exact(room - self.blocks.len());
        self.bytes.reserve_exact(bytes - self.bytes.len());
        self.bytes.resize(bytes, 0);
        true
    }
}

/// Returns the memory that counts as the guest's.
fn cost(bytes: usize, blocks: usize) -> usize {
    bytes.saturating_add(blocks.saturating_mul(size_of::<Block>()))
}

/// Converts an offset within the memory.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn narrow(offset: u64) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limiter() -> Limiter {
        Limiter::new(16 << 20)
    }

    #[test]
    fn blocks_follow_each_other_after_their_headers() {
        let (mut kernel, mut limiter) = (Kernel::default(), limiter());
        assert_eq!(kernel.alloc(10, &mut limiter), 77);
        assert_eq!(kernel.alloc(1, &mut limiter), 77 + 10 + 12);
        assert_eq!(kernel.alloc(0, &mut limiter), 0);
        assert_eq!((kernel.length(77), kernel.length(78), kernel.length(0)), (10, 0, 0));
    }

    #[test]
    fn freed_blocks_are_reused_when_the_page_is_full() {
        let (mut kernel, mut limiter) = (Kernel::default(), limiter());
        let first = kernel.alloc(60_000, &mut limiter);
        kernel.free(first);
        // There is room for a new block.
        let second = kernel.alloc(1_000, &mut limiter);
        assert_eq!(second, first + 60_000 + HEADER);
        // There is no more room, so that the freed block is split from its end.
        let third = kernel.alloc(50_000, &mut limiter);
        assert_eq!(third, first + 10_000);
        assert_eq!((kernel.length(first), kernel.length(third)), (0, 50_000));
        // The block is taken whole if little would be left.
        let fourth = kernel.alloc(9_900, &mut limiter);
        assert_eq!((fourth, kernel.length(first)), (first, 9_900));
        kernel.free(fourth);
        assert_eq!(kernel.alloc(9_988, &mut limiter), first);
        assert_eq!(kernel.memory_bytes(), PAGE - ROOT);
        let fifth = kernel.alloc(9_988, &mut limiter);
        assert_eq!(fifth, second + 1_000 + HEADER);
        assert_eq!(kernel.memory_bytes(), 2 * PAGE - ROOT);
    }

    #[test]
    fn freeing_twice_or_a_wrong_offset_changes_nothing() {
        let (mut kernel, mut limiter) = (Kernel::default(), limiter());
        let block = kernel.insert(b"abc", &mut limiter).unwrap();
        for offset in [0, 1, 64, block - 1, block + 1, u64::MAX, 1 << 32 | block] {
            kernel.free(offset);
            assert_eq!(kernel.length(offset), 0, "{offset}");
        }
        assert_eq!(kernel.block(block).unwrap(), b"abc");
        kernel.free(block);
        kernel.free(block);
        assert_eq!(kernel.block(block), None);
    }

    #[test]
    fn freed_input_is_empty() {
        let (mut kernel, mut limiter) = (Kernel::default(), limiter());
        let block = kernel.insert(b"abc", &mut limiter).unwrap();
        kernel.input_set(block, 3);
        assert_eq!(kernel.input_load::<1>(2), *b"c");
        assert_eq!(kernel.input_load::<1>(3), [0]);
        assert_eq!(kernel.input_load::<8>(0), [0; 8]);
        assert_eq!(kernel.input_load::<8>(u64::MAX - 3), [0; 8]);
        kernel.free(block);
        assert_eq!(kernel.input_length(), 0);
        assert_eq!(kernel.input_load::<1>(0), [0]);
    }

    #[test]
    fn accesses_end_at_the_end_of_the_memory() {
        let (mut kernel, mut limiter) = (Kernel::default(), limiter());
        let size = FIRST_PAGES * PAGE;
        assert_eq!(kernel.store(size - 8, &[1; 8], &mut limiter), Ok(()));
        assert_eq!(kernel.load(size - 8), Ok([1; 8]));
        assert_eq!(kernel.load::<8>(size - 7), Err(OutOfBounds));
        assert_eq!(kernel.load::<1>(size), Err(OutOfBounds));
        assert_eq!(kernel.store(size, &[1], &mut limiter), Err(OutOfBounds));
        for offset in [size + 1, 1 << 32, u64::MAX - 7, u64::MAX, 0, 1, 63] {
            assert_eq!(kernel.store(offset, &[1], &mut limiter), Ok(()));
            assert_eq!(kernel.load::<1>(offset), Ok([0]), "{offset}");
        }
        assert_eq!(kernel.bytes.len() as u64, size);
    }

    #[test]
    fn ranges_outside_the_memory_are_ignored() {
        let (mut kernel, mut limiter) = (Kernel::default(), limiter());
        let block = kernel.insert(b"abc", &mut limiter).unwrap();
        kernel.output_set(block, 3);
        let end = BLOCKS + PAGE - ROOT;
        for (offset, length) in
            [(0, 0), (64, 1), (end, 1), (block, end), (block, u64::MAX), (u64::MAX, 2)]
        {
            kernel.output_set(offset, length);
            kernel.input_set(offset, length);
        }
        assert_eq!(kernel.output(), b"abc");
        assert_eq!(kernel.input_length(), 0);
        kernel.output_set(end - 2, 2);
        assert_eq!(kernel.output(), [0, 0]);
        kernel.error_set(block);
        kernel.error_set(end);
        assert_eq!(kernel.error().unwrap(), b"abc");
        kernel.error_set(0);
        assert_eq!(kernel.error(), None);
    }

    #[test]
    fn the_memory_limit_of_the_call_holds() {
        let mut limiter = Limiter::new(1 << 20);
        let mut kernel = Kernel::default();
        assert_eq!(kernel.alloc(2 << 20, &mut limiter), 0);
        assert_eq!(kernel.alloc(u64::MAX, &mut limiter), 0);
        assert_eq!(kernel.alloc(u64::from(u32::MAX), &mut limiter), 0);
        let mut kernel = Kernel::default();
        let mut blocks = 0;
        while kernel.alloc(1, &mut limiter) != 0 {
            blocks += 1;
        }
        // Each block takes a byte, its header, and its entry in the host.
        assert!((1 << 14..1 << 16).contains(&blocks), "{blocks}");
        assert!(limiter.memory_used() <= 1 << 20);
    }

    #[test]
    fn reset_removes_all_data() {
        let (mut kernel, mut limiter) = (Kernel::default(), limiter());
        let block = kernel.insert(b"secret", &mut limiter).unwrap();
        kernel.output_set(block, 6);
        kernel.error_set(block);
        kernel.reset();
        assert_eq!((kernel.length(block), kernel.error(), kernel.output()), (0, None, vec![]));
        assert_eq!(kernel.load(block), Ok([0; 6]));
        assert_eq!(kernel.alloc(1, &mut limiter), block);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Alloc(u64),
        Free(usize),
        FreeAt(u64),
        Store(u64, u64),
        Load(u64),
        Output(u64, u64),
        Input(u64, u64),
        Error(u64),
        Reset,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let offset = prop_oneof![
            0..300u64,
            0..2 * FIRST_PAGES * PAGE,
            (FIRST_PAGES * PAGE - 10)..(FIRST_PAGES * PAGE + 10),
            any::<u64>(),
            (u64::MAX - 20)..=u64::MAX,
        ];
        let size = prop_oneof![0..200u64, 0..3 * PAGE, any::<u64>()];
        let step = prop_oneof![
            6 => size.clone().prop_map(Step::Alloc),
            4 => (0..50usize).prop_map(Step::Free),
            1 => offset.clone().prop_map(Step::FreeAt),
            2 => (offset.clone(), any::<u64>()).prop_map(|(at, value)| Step::Store(at, value)),
            2 => offset.clone().prop_map(Step::Load),
            1 => (offset.clone(), size.clone()).prop_map(|(at, size)| Step::Output(at, size)),
            1 => (offset.clone(), size).prop_map(|(at, size)| Step::Input(at, size)),
            1 => offset.prop_map(Step::Error),
            1 => Just(Step::Reset),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// Blocks in use never overlap, keep their content, and the limit holds.
        #[test]
        fn blocks_keep_their_content(steps in steps()) {
            let mut limiter = Limiter::new(4 << 20);
            let mut kernel = Kernel::default();
            let mut live: Vec<(u64, u64, u8)> = Vec::new();
            let mut next = 0u8;
            for step in steps {
                match step {
                    Step::Alloc(size) => {
                        let offset = kernel.alloc(size, &mut limiter);
                        if offset == 0 { continue }
                        prop_assert_eq!(kernel.length(offset), size);
                        for (other, length, _) in &live {
                            prop_assert!(offset + size <= *other || other + length <= offset);
                        }
                        next = next.wrapping_add(1);
                        let content = vec![next; size as usize];
                        let written = kernel.store(offset, &content, &mut limiter);
                        prop_assert_eq!(written, Ok(()));
                        live.push((offset, size, next));
                    }
                    Step::Free(at) if !live.is_empty() => {
                        let (offset, ..) = live.swap_remove(at % live.len());
                        kernel.free(offset);
                        prop_assert_eq!(kernel.length(offset), 0);
                    }
                    Step::Free(_) => {}
                    Step::FreeAt(offset) => {
                        kernel.free(offset);
                        live.retain(|(own, ..)| *own != offset);
                    }
                    // Writes outside of blocks have no effect on them.
                    Step::Store(offset, value) => {
                        let touches = live.iter().any(|(own, size, _)| {
                            offset < own + size && offset.saturating_add(8) > *own
                        });
                        if !touches {
                            let _ = kernel.store(offset, &value.to_le_bytes(), &mut limiter);
                        }
                    }
                    Step::Load(offset) => { let _ = kernel.load::<8>(offset); }
                    Step::Output(offset, length) => {
                        kernel.output_set(offset, length);
                        prop_assert_eq!(kernel.output().len() as u64, kernel.output_length());
                    }
                    Step::Input(offset, length) => {
                        kernel.input_set(offset, length);
                        let _ = kernel.input_load::<8>(offset);
                    }
                    Step::Error(offset) => {
                        kernel.error_set(offset);
                        let _ = kernel.error();
                    }
                    Step::Reset => {
                        kernel.reset();
                        live.clear();
                    }
                }
                prop_assert!(limiter.memory_used() <= 4 << 20);
            }
            for (offset, size, value) in live {
                prop_assert_eq!(kernel.block(offset), Some(vec![value; size as usize]));
            }
        }
    }
}
