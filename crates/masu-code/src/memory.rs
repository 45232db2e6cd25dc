//! The arena's range of addresses: text, read-only data and writable data, in this order, one
//! reservation near the program.
//!
//! Relies on [`crate::kernel`]. *Sealed* memory (text and read-only data) is written in one of two ways.
//! [`Writing::Dual`] maps a file in memory twice, and writes through the second mapping, the *alias*; in the first
//! mapping only free OS pages become writable, for a generator that writes in place. [`Writing::Batches`] makes fresh
//! OS pages writable and executable afterwards. Text that may run is never made writable again.

use std::io;
use std::ops::Range as Bytes;

use crate::error::Error;
use crate::kernel::{self, Access};
use crate::options::{self, Options, Place, Writing};
use crate::relocation::{self, REACH};

/// The unit of the parts of the range, and the largest alignment of a section.
pub(crate) const PART: usize = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    Text,
    /// Readable: constants, GOT, unwind tables.
    Sealed,
    Data,
}

impl Region {
    /// The regions, each at the place of its number.
    pub(crate) const ALL: [Region; 3] = [Region::Text, Region::Sealed, Region::Data];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Region::Text => "text",
            Region::Sealed => "read-only data",
            Region::Data => "writable data",
        }
    }
}

/// The reserved addresses.
#[derive(Debug)]
pub(crate) struct Range {
    base: usize,
    size: usize,
    /// The second mapping, or `None` where pages are written in place.
    alias: Option<usize>,
    page: usize,
    owner: u32,
}

impl Range {
    /// Reserves and maps.
    pub(crate) fn open(options: &Options) -> Result<Range, Error> {
        let largest = relocation::HOST.largest;
        let size = if options.size == 0 { options::SIZE.min(largest) } else { options.size };
        if !(4 * PART..=largest).contains(&size) {
            let largest = largest >> 20;
            return Err(Error::Options(format!("size {size}: 1 to {largest} MiB can be used")));
        }
        let size = size.next_multiple_of(4 * PART);
        let base = reserve(size, options.place)?;
        let (page, owner) = (kernel::page_size(), std::process::id());
        let mut range = Range { base, size, alias: None, page, owner };
        let dual = match options.writing {
            Writing::Batches => None,
            // The kernel lets no debugger put a breakpoint into memory that is mapped twice.
            Writing::Any if options.tools.debugger && kernel::is_traced() => None,
            // perf takes a file's name as the name of a library, and then looks for no map.
            _ if options.tools.perf_map => Some(range.map_nameless().or_else(|_| {
                range.unmap_alias();
                range.map_dual()
            })),
            Writing::Any | Writing::Dual => Some(range.map_dual()),
        };
        match (options.writing, dual) {
            (_, Some(Ok(()))) => {}
            (Writing::Dual, Some(Err(why))) => {
                return Err(Error::kernel("cannot map code twice through a file in memory", why));
            }
            (_, why) => {
                range.unmap_alias();
                range.map_batches().map_err(|error| {
                    let before = why.and_then(Result::err).map_or(String::new(), |why| {
                        format!("; and not to map it twice, through a file in memory ({why})")
                    });
                    let what =
                        format!("the machine refuses to make written memory executable{before}");
                    Error::kernel(what, error)
                })?;
            }
        }
        range.name();
        Ok(range)
    }

    /// Maps text and read-only data from a file in memory, here and at an alias.
    fn map_dual(&mut self) -> io::Result<()> {
        let (text, sealed) = (self.bytes(Region::Text), self.bytes(Region::Sealed));
        let file = kernel::memory_file(c"masu-code", sealed.end - text.start)?;
        // SAFETY: The range is ours and holds nothing yet.
        unsafe { kernel::map_file(Some(text.start), text.len(), Access::Execute, &file, 0)? };
        // SAFETY: As above.
        unsafe {
            kernel::map_file(Some(sealed.start), sealed.len(), Access::Read, &file, text.len())?;
        }
        // SAFETY: A mapping anywhere replaces none.
        let alias =
            unsafe { kernel::map_file(None, sealed.end - text.start, Access::Write, &file, 0)? };
        self.alias = Some(alias);
        self.map_data()
    }

    /// The same with shared memory that has no name.
    fn map_nameless(&mut self) -> io::Result<()> {
        let (text, sealed) = (self.bytes(Region::Text), self.bytes(Region::Sealed));
        let alias = kernel::map_shared(sealed.end - text.start)?;
        self.alias = Some(alias);
        // SAFETY: The range is ours and holds nothing yet.
        unsafe { kernel::map_again(alias, text.len(), text.start, Access::Execute)? };
        let second = alias + text.len();
        // SAFETY: As above.
        unsafe { kernel::map_again(second, sealed.len(), sealed.start, Access::Read)? };
        self.map_data()
    }

    /// Ends the second mapping, also if it was only partly made.
    fn unmap_alias(&mut self) {
        if let Some(alias) = self.alias.take() {
            kernel::unmap(alias, self.bytes(Region::Data).start - self.base);
        }
    }

    /// Reserves addresses only, after one page was made executable as a test.
    fn map_batches(&mut self) -> io::Result<()> {
        let text = self.bytes(Region::Text).start;
        // SAFETY: The range is ours and holds nothing; mappings of a failed attempt are replaced.
        unsafe { kernel::map_private(self.base, self.size, Access::Nothing)? };
        // SAFETY: As above.
        unsafe { kernel::protect(text, self.page, Access::Write)? };
        // SAFETY: As above.
        unsafe { kernel::protect(text, self.page, Access::Execute)? };
        self.map_data()
    }

    fn map_data(&self) -> io::Result<()> {
        let data = self.bytes(Region::Data);
        // SAFETY: The range is ours and holds nothing yet.
        unsafe { kernel::map_private(data.start, data.len(), Access::Write) }
    }

    fn name(&self) {
        let data = self.bytes(Region::Data);
        kernel::name(data.start, data.len(), c"masu-code: data");
        if self.alias.is_none() {
            let (text, sealed) = (self.bytes(Region::Text), self.bytes(Region::Sealed));
            kernel::name(text.start, text.len(), c"masu-code: text");
            kernel::name(sealed.start, sealed.len(), c"masu-code: read-only data");
        }
    }

    /// The addresses of a part.
    pub(crate) fn bytes(&self, region: Region) -> Bytes<usize> {
        let (half, quarter) = (self.size / 2, self.size / 4);
        let (start, size) = match region {
            Region::Text => (0, half),
            Region::Sealed => (half, quarter),
            Region::Data => (half + quarter, quarter),
        };
        self.base + start..self.base + start + size
    }

    pub(crate) fn all(&self) -> Bytes<usize> {
        self.base..self.base + self.size
    }

    pub(crate) fn is_dual(&self) -> bool {
        self.alias.is_some()
    }

    pub(crate) fn page(&self) -> usize {
        self.page
    }

    /// Whether this process may load and unload: not a child that shares the code with its parent.
    pub(crate) fn is_ours(&self) -> bool {
        self.alias.is_none() || self.owner == std::process::id()
    }

    /// The address to write through for `address`.
    pub(crate) fn written(&self, address: usize) -> usize {
        match self.alias {
            Some(alias) if address < self.bytes(Region::Data).start => address - self.base + alias,
            _ => address,
        }
    }

    /// Makes free pages writable in place, however the range is mapped.
    ///
    /// # Safety
    ///
    /// - The bytes are whole OS pages, and nothing on them runs or is read.
    pub(crate) unsafe fn unseal(&self, pages: &Bytes<usize>) -> Result<(), Error> {
        // SAFETY: The caller's condition.
        unsafe { self.protect(pages, Access::Write) }
    }

    /// Seals bytes, with the whole of each OS page they touch.
    pub(crate) fn seal(&self, bytes: &Bytes<usize>, region: Region) -> Result<(), Error> {
        let access = if region == Region::Text { Access::Execute } else { Access::Read };
        // SAFETY: Writing is done.
        unsafe { self.protect(bytes, access) }
    }

    /// Makes sealed bytes writable where they are not mapped twice, with the whole of each OS page they touch.
    ///
    /// # Safety
    ///
    /// - For text: nothing on these OS pages can run.
    pub(crate) unsafe fn begin(&self, bytes: &Bytes<usize>) -> Result<(), Error> {
        if self.is_dual() {
            return Ok(());
        }
        // SAFETY: The caller's condition; read-only data stays readable.
        unsafe { self.protect(bytes, Access::Write) }
    }

    /// Seals the bytes again.
    pub(crate) fn end(&self, bytes: &Bytes<usize>, region: Region) -> Result<(), Error> {
        if self.is_dual() { Ok(()) } else { self.seal(bytes, region) }
    }

    /// # Safety
    ///
    /// - As for [`kernel::protect`].
    unsafe fn protect(&self, bytes: &Bytes<usize>, access: Access) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let pages = self.pages(bytes);
        // SAFETY: The caller's condition.
        let done = unsafe { kernel::protect(pages.start, pages.len(), access) };
        done.map_err(|error| Error::kernel("cannot change what code memory may be used for", error))
    }

    /// The OS pages that bytes touch.
    pub(crate) fn pages(&self, bytes: &Bytes<usize>) -> Bytes<usize> {
        bytes.start / self.page * self.page..bytes.end.next_multiple_of(self.page)
    }

    /// Forgets the alias's page table entries of bytes just written, so that memory is not counted
    /// twice in this process's RSS.
    pub(crate) fn forget_alias(&self, bytes: &Bytes<usize>) {
        if self.is_dual() && !bytes.is_empty() {
            let pages = self.pages(&(self.written(bytes.start)..self.written(bytes.end - 1) + 1));
            // SAFETY: The alias is ours, and the file keeps the contents.
            unsafe { kernel::drop_pages(pages.start, pages.len()) };
        }
    }

    /// Gives the memory behind whole OS pages back to the kernel.
    ///
    /// # Safety
    ///
    /// - Nothing uses the bytes, which are whole OS pages.
    pub(crate) unsafe fn purge(&self, bytes: &Bytes<usize>, region: Region) {
        let (start, end) = (bytes.start, bytes.end);
        if self.is_dual() && region != Region::Data {
            // SAFETY: The caller's condition; the file's pages go wherever they are mapped.
            unsafe { kernel::punch(self.written(start), end - start) };
        } else {
            // SAFETY: The caller's condition.
            unsafe { kernel::drop_pages(start, end - start) };
        }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        kernel::unmap(self.base, self.size);
        self.unmap_alias();
    }
}

fn reserve(size: usize, place: Place) -> Result<usize, Error> {
    // Low code must have its whole range, and 64 KiB at the bottom are the kernel's.
    let near = |address: usize| address.saturating_sub(REACH)..address.saturating_add(REACH);
    let window = match place {
        Place::Low => 0x1_0000..0x7fff_0000,
        Place::Near(address) => near(address),
        Place::NearLibraries => near(crate::process::library()),
        Place::NearProgram => {
            let text = crate::process::program();
            text.end.saturating_sub(REACH)..text.start.saturating_add(REACH)
        }
    };
    let mapped = mapped();
    let middle = window.start / 2 + window.end / 2;
    let hints = candidates(&mapped, size, &window, middle);
    for hint in hints {
        if let Ok(base) = kernel::reserve(Some(hint), size) {
            return Ok(base);
        }
    }
    if place == Place::Low {
        return Err(Error::Options(format!(
            "the lowest 2 GiB have no {size} bytes in one piece: try a smaller size"
        )));
    }
    // Farther away everything works too, through the GOT and stubs.
    let base = kernel::reserve(None, size + PART).map_err(|error| {
        Error::kernel(
            format!("cannot reserve {size} bytes of addresses: try a smaller size"),
            error,
        )
    })?;
    let aligned = base.next_multiple_of(PART);
    if aligned > base {
        kernel::unmap(base, aligned - base);
    }
    kernel::unmap(aligned + size, base + PART - aligned);
    Ok(aligned)
}

/// The mapped addresses, in order; none where `/proc` cannot be read. The kernel then refuses addresses that are taken.
fn mapped() -> Vec<Bytes<usize>> {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let parse = |line: &str| {
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        let hex = |digits| usize::from_str_radix(digits, 16).ok();
        Some(hex(start)?..hex(end)?)
    };
    text.lines().filter_map(parse).collect()
}

/// The addresses in the window where `size` bytes fit, the best first. In each gap this is the highest place, so that
/// heaps and libraries below can grow. Gaps below `middle` come first, the nearest before all.
fn candidates(
    mapped: &[Bytes<usize>],
    size: usize,
    window: &Bytes<usize>,
    middle: usize,
) -> Vec<usize> {
    // Keeps a distance to each mapping, for a guard page or the growth of a stack.
    const DISTANCE: usize = 1 << 20;
    let mut found = Vec::new();
    let mut before = 0;
    let ends = mapped.iter().cloned().chain(std::iter::once(usize::MAX..usize::MAX));
    for next in ends {
        let gap =
            before + if before > 0 { DISTANCE } else { 0 }..next.start - DISTANCE.min(next.start);
        before = before.max(next.end);
        let (low, high) = (gap.start.max(window.start), gap.end.min(window.end));
        let Some(base) = high.checked_sub(size).map(|base| base / PART * PART) else { continue };
        if base >= low && base > 0 {
            found.push(base);
        }
    }
    found.sort_by_key(|&base| (base > middle, base.abs_diff(middle)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    #[test]
    fn a_gap_below_is_taken_before_one_above() {
        let mapped = [100 * MB..110 * MB, 300 * MB..310 * MB];
        let found = candidates(&mapped, 16 * MB, &(0..1000 * MB), 300 * MB);
        assert_eq!(found, [(300 - 1 - 16) * MB, (100 - 1 - 16) * MB, (1000 - 16) * MB]);
    }

    #[test]
    fn a_gap_that_is_too_small_is_none() {
        let mapped = [0..10 * MB, 20 * MB..30 * MB];
        assert_eq!(candidates(&mapped, 10 * MB, &(0..30 * MB), 25 * MB), []);
    }
}
