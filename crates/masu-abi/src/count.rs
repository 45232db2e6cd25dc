//! Counts of the memory requests of the program and of every program it starts.
//!
//! It relies on the C library's door to map the file that `MASU_COUNT_FILE` names, made by `masu-lab`'s `count.rs`. The
//! hard idea: a request never tests whether there is such a file. It adds to the page behind a pointer, at first a page
//! of the process that no observer reads. When the constructor finds the shared page it turns the pointer and adds the
//! counts so far. A forked child inherits the mapping and an executed program maps it again, so a process tree adds to
//! one page.
//!
//! Built with the feature `count` only; `count/off.rs` takes its place elsewhere.

use core::ffi::CStr;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use alloc_core::c::Environment;

use crate::libc;

/// The variable that names the page's file.
const VARIABLE: &str = "MASU_COUNT_FILE";

// COUPLING: `crates/masu-run/src/count.rs` has the same layout; a change of either is a new version.
const MAGIC: u64 = u64::from_ne_bytes(*b"masucnt\0");
const VERSION: u64 = 2;
const PAGE_BYTES: usize = 4096;

/// The start of the shared page; the rest of it is for later versions.
#[repr(C)]
struct Page {
    magic: AtomicU64,
    version: AtomicU64,
    /// Programs that found the page; forked processes are not counted again.
    programs: AtomicU64,
    requests: AtomicU64,
    requested_bytes: AtomicU64,
}

/// Receives the counts until there is a shared page; no observer reads it where there is no shared page.
static OWN: Page = Page {
    magic: AtomicU64::new(MAGIC),
    version: AtomicU64::new(VERSION),
    programs: AtomicU64::new(0),
    requests: AtomicU64::new(0),
    requested_bytes: AtomicU64::new(0),
};

static PAGE: AtomicPtr<Page> = AtomicPtr::new((&raw const OWN).cast_mut());

#[inline(always)]
fn page() -> &'static Page {
    // ORDERING: Relaxed: the only change is the constructor's, before the program has a second thread.
    let page = PAGE.load(Ordering::Relaxed);
    // SAFETY: It leads to the static page or to a mapping that is never unmapped.
    unsafe { &*page }
}

#[inline(always)]
fn add(counter: &AtomicU64, count: u64) {
    // ORDERING: Relaxed: a count publishes nothing; the reader of the sum waits for the processes to
    // end.
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Counts a block asked for, or a resize to `size` bytes.
#[inline(always)]
pub(crate) fn request(size: usize) {
    add(&page().requests, 1);
    add(&page().requested_bytes, size as u64);
}

/// Finds the shared page, where the environment names one.
pub(crate) fn begin(environment: Option<&Environment>) {
    let Some(path) = environment.and_then(|environment| environment.get(VARIABLE)) else { return };
    let Some(shared) = map(path) else {
        return libc::warn(
            c"masu: MASU_COUNT_FILE names no count page of this version of masu, or one that \
            this program may not write; its requests are not counted\n",
        );
    };
    // ORDERING: Relaxed, as in `page`.
    PAGE.store(shared.as_ptr(), Ordering::Relaxed);
    let page = page();
    add(&page.programs, 1);
    // ORDERING: Relaxed: one thread counted all of it.
    let before = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    add(&page.requests, before(&OWN.requests));
    add(&page.requested_bytes, before(&OWN.requested_bytes));
}

/// Maps the file at `path`, for good.
fn map(path: &CStr) -> Option<NonNull<Page>> {
    let start = libc::map_shared(path, PAGE_BYTES)?.cast::<Page>();
    // SAFETY: The mapping is longer than a page's start, aligned, and stays.
    let page = unsafe { start.as_ref() };
    // ORDERING: Relaxed: these words were written before this program was started.
    let is_ours = page.magic.load(Ordering::Relaxed) == MAGIC
        && page.version.load(Ordering::Relaxed) == VERSION;
    is_ours.then_some(start)
}

const _: () = assert!(size_of::<Page>() <= PAGE_BYTES);
