//! Pages of the hardened build: each has a record of every block, and some have a guard behind them.
//!
//! Relies on its parent for what all pages have. A record is two bytes per block in the allocator's own memory: the
//! requested size of a live block, else its state. So a pointer is classified without reading the block, and nothing
//! that a program writes changes the record.

use core::cell::Cell;
use core::ptr::{self, NonNull};

use super::Page;
use crate::blocks::ownership;
use crate::memory::class::{Class, LARGEST_SMALL};
use crate::memory::map;
use crate::memory::metadata;
use crate::memory::ranges::stripes;
use crate::memory::slice::{Kind, SLICE_BYTES, Slice};
use crate::platform::kernel::{self, Protection};
use crate::platform::sync::{AtomicUsize, Ordering};

/// The record of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// Handed out, with this requested size.
    Live(usize),
    /// Freed, and in quarantine.
    Quarantined,
    /// Free, with every byte zero unless the program wrote to it since.
    Zeroed,
    /// Never handed out, with unknown contents.
    Unknown,
}

const QUARANTINED: u16 = u16::MAX;
const ZEROED: u16 = u16::MAX - 1;
const UNKNOWN: u16 = u16::MAX - 2;

/// The largest requested size that a record can hold, in bytes.
pub(crate) const LIVE_MAX: usize = LARGEST_SMALL - 8;

const _: () = assert!(LIVE_MAX < UNKNOWN as usize);

/// The most pages with a guard: each may take two of the 65,530 mappings of a process.
const GUARDED_MAX: usize = 8 << 10;
/// Their number now.
static GUARDED: AtomicUsize = AtomicUsize::new(0);

impl Page {
    /// A new page of `class` that belongs to `shard`, with all blocks free, and with a guard behind it if `guarded`;
    /// `None` without memory.
    #[inline(never)]
    pub(crate) fn create_hardened(class: Class, shard: u8, guarded: bool) -> Option<Page> {
        let (slices, blocks) = (class.page_slices(), class.page_blocks());
        let words = metadata::words(blocks.div_ceil(size_of::<usize>() / size_of::<u16>()))?;
        let guarded = guarded && enter_guarded();
        let Some(run) =
            stripes::first().lock().allocate(slices + usize::from(guarded), 1, Kind::Page)
        else {
            // SAFETY: The array was taken just now.
            unsafe { metadata::give_back(NonNull::from(&mut words[0]), words.len()) };
            leave_guarded(guarded);
            return None;
        };
        let page = Page::begin(run.first, class, Kind::Page);
        let code = class.laned().code_in(shard);
        page.0.code.set(code);
        ownership::note_page(page.0, shard);
        page.0.belongs.number.set(words.as_mut_ptr().expose_provenance());
        let first = if run.zero { Record::Zeroed } else { Record::Unknown };
        (0..blocks).for_each(|index| page.set_record(index, first));
        if guarded {
            // SAFETY: Nothing uses the last slice of the run. If refused, there is no guard.
            let _ = unsafe { kernel::protect(page.guard(class), SLICE_BYTES, Protection::None) };
        }
        map::set(page.0.address(), slices, code);
        Some(page)
    }

    /// The slice behind the page.
    fn guard(self, class: Class) -> NonNull<u8> {
        // SAFETY: A page with a guard is shorter than its run by one slice.
        unsafe { self.0.ahead(class.page_slices()) }.start()
    }

    /// Frees the slices and guards of some pages.
    ///
    /// # Safety
    ///
    /// - The condition of [`Page::release`], for each.
    pub(crate) unsafe fn release_all(class: Class, pages: &[Option<Page>]) {
        pages.iter().flatten().for_each(|page| page.free_slices(class));
    }

    #[inline(never)]
    fn free_slices(self, class: Class) {
        let (slices, all) = (class.page_slices(), self.0.count.get() as usize);
        let records = self.0.belongs.number.get();
        let count = class.page_blocks().div_ceil(size_of::<usize>() / size_of::<u16>());
        let dirty = self.close(class);
        if let Some(array) = NonNull::new(ptr::with_exposed_provenance_mut(records)) {
            let count = count.next_power_of_two().max(metadata::WORDS_MIN);
            // SAFETY: The array was this page's, which is gone.
            unsafe { metadata::give_back(array, count) };
        }
        // SAFETY: The run was handed out to this page, whose blocks are all free.
        unsafe { stripes::first().lock().free(self.0, slices, dirty) };
        if all > slices {
            // SAFETY: A page with a guard is shorter than its run by one slice.
            let guard = unsafe { self.0.ahead(slices) };
            // SAFETY: It was handed out with the page.
            let _ = unsafe { stripes::first().free_closed(guard, all - slices) };
        }
        leave_guarded(all > slices);
    }

    fn records(self) -> *const Cell<u16> {
        ptr::with_exposed_provenance(self.0.belongs.number.get())
    }

    /// The record of the block with this index.
    #[inline]
    pub(crate) fn record(self, index: usize) -> Record {
        // SAFETY: There is a record for each block of the page.
        match unsafe { &*self.records().add(index) }.get() {
            QUARANTINED => Record::Quarantined,
            ZEROED => Record::Zeroed,
            UNKNOWN => Record::Unknown,
            bytes => Record::Live(usize::from(bytes)),
        }
    }

    #[inline]
    pub(crate) fn set_record(self, index: usize, record: Record) {
        let value = match record {
            Record::Live(bytes) => bytes as u16,
            Record::Quarantined => QUARANTINED,
            Record::Zeroed => ZEROED,
            Record::Unknown => UNKNOWN,
        };
        // SAFETY: As above.
        unsafe { &*self.records().add(index) }.set(value);
    }

    /// Takes the first free block from index `from` on, wrapping around at the end; the page has one. Returns its
    /// index.
    #[inline]
    pub(crate) fn take_from(self, class: Class, from: usize) -> usize {
        let words = self.0.bitmap(class.page_blocks().div_ceil(64));
        let mut place = from / 64;
        let mut free = words[place].get() & (u64::MAX << (from % 64));
        while free == 0 {
            place = if place + 1 == words.len() { 0 } else { place + 1 };
            free = words[place].get();
        }
        let bit = free.trailing_zeros() as usize;
        words[place].set(words[place].get() & !(1 << bit));
        self.0.free_blocks.set(self.0.free_blocks.get() - 1);
        let index = place * 64 + bit;
        if self.0.dirty.get() > 0 {
            self.mark_used(index * class.size(), (index + 1) * class.size());
        }
        index
    }

    /// Marks the block with this index, which is not free, free.
    #[inline]
    pub(crate) fn put_back(self, class: Class, index: usize) {
        let word = &self.0.bitmap(class.page_blocks().div_ceil(64))[index / 64];
        word.set(word.get() | 1 << (index % 64));
        self.0.free_blocks.set(self.0.free_blocks.get() + 1);
    }

    /// The address of the block with this index.
    #[inline]
    pub(crate) fn block(self, class: Class, index: usize) -> usize {
        self.0.address() + index * class.size()
    }
}

/// Counts one more page with a guard; whether it may have one.
fn enter_guarded() -> bool {
    // ORDERING: Relaxed: a count.
    let enters = GUARDED.fetch_add(1, Ordering::Relaxed) < GUARDED_MAX;
    leave_guarded(!enters);
    enters
}

/// Counts one page with a guard less, if it is one.
fn leave_guarded(is_guarded: bool) {
    // ORDERING: Relaxed: a count.
    GUARDED.fetch_sub(usize::from(is_guarded), Ordering::Relaxed);
}

/// The page that contains `address` now.
///
/// # Safety
///
/// - The address lies within the first GiB of an arena.
pub(crate) unsafe fn page_at(address: usize) -> Page {
    // SAFETY: The caller's condition.
    Page(unsafe { Slice::at(address) }.page())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options;
    use crate::platform::alone::{self, run_alone};

    #[test]
    fn a_page_without_memory_counts_as_none_with_a_guard() {
        run_alone!();
        // Metadata have a slice from here on.
        assert!(metadata::words(metadata::WORDS_MIN).is_some());
        options::set("memory_limit", Some(1 << 20)).expect("an option");
        while stripes::first().lock().allocate(1, 1, Kind::Page).is_some() {}
        let before = GUARDED.load(Ordering::Relaxed);
        assert!(Page::create_hardened(Class::of_size(5_000), 0, true).is_none());
        assert_eq!(GUARDED.load(Ordering::Relaxed), before);
    }

    #[test]
    fn a_page_of_purged_memory_is_not_away() {
        let class = Class::of_size(5_000);
        for _ in 0..2 {
            let page = Page::create_hardened(class, 0, false).expect("memory");
            assert!(!page.is_away());
            // SAFETY: Nothing was taken from the page, and it is in no list.
            unsafe { page.release(class) };
            stripes::trim(0);
        }
    }

    #[test]
    fn a_page_released_among_others_returns_its_guard() {
        let class = Class::of_size(5_000);
        let page = Page::create_hardened(class, 0, true).expect("memory");
        let guard = page.guard(class).addr().get();
        assert!(!kernel::is_readable(guard));
        // SAFETY: Nothing was taken from the page, and it is in no list.
        unsafe { Page::release_all(class, &[Some(page)]) };
        assert!(kernel::is_readable(guard));
    }
}
