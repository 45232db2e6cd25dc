//! Pointers that masu did not hand out: passed to the program's next malloc, usually glibc's.
//!
//! Such pointers reach `free` where a library was loaded with `RTLD_DEEPBIND`, or took `malloc` from a handle of
//! `libc.so.6`. Another linker namespace (`dlmopen`) has a malloc of its own, which is not found. It relies on the
//! dynamic linker to find the next malloc's functions, at the first foreign pointer, because most programs never have
//! one. The hard idea: the dynamic linker may itself allocate and free during the search. A foreign pointer that it
//! frees then is leaked, which does not start a second search.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use core::{mem, ptr};

use alloc_core::c;

use crate::libc;

/// Registers the functions for foreign pointers with the allocator.
pub(crate) fn announce() {
    // A static program has one malloc: any other pointer is a bug, which the allocator reports.
    if libc::has_dynamic_linker() {
        static HOOKS: c::Foreign = c::Foreign { free, realloc, usable_size };
        c::set_foreign(&HOOKS);
    }
}

/// A function of the next malloc, found at its first use.
struct Next {
    /// The function's names, the best first: glibc's second names skip every other preloaded library.
    names: [&'static CStr; 2],
    address: AtomicPtr<c_void>,
}

/// The searching thread's number from [`this_thread`]; 0 for none.
static SEARCHER: AtomicUsize = AtomicUsize::new(0);

/// The lowest bit of the process's part of a thread's number. Addresses are shorter.
const PROCESS_SHIFT: u32 = 48;

/// The number of this thread. A forked child gives its threads other numbers: the parent's threads do not exist there,
/// and new threads may have their addresses.
fn this_thread() -> usize {
    libc::thread_address() ^ c::generation() << PROCESS_SHIFT
}

static NEXT_FREE: Next = Next::new(c"__libc_free", c"free");
static NEXT_REALLOC: Next = Next::new(c"__libc_realloc", c"realloc");
static NEXT_USABLE_SIZE: Next = Next::new(c"malloc_usable_size", c"malloc_usable_size");

impl Next {
    const fn new(best: &'static CStr, other: &'static CStr) -> Next {
        Next { names: [best, other], address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The function's address; `None` on a thread that is searching now. Ends the program where there is no such
    /// function.
    fn find(&self) -> Option<*mut c_void> {
        // ORDERING: Relaxed: the address publishes nothing; its code was mapped before this thread
        // could get a foreign pointer.
        let known = self.address.load(Ordering::Relaxed);
        if known.is_null() { self.find_slow() } else { Some(known) }
    }

    #[cold]
    #[inline(never)]
    fn find_slow(&self) -> Option<*mut c_void> {
        let me = this_thread();
        // ORDERING: Relaxed on the three accesses of SEARCHER: a thread only asks whether the
        // value is its own, and it sees its own stores in order. A second thread that searches at
        // the same time is not marked, which only matters if its search frees a foreign pointer.
        let other = SEARCHER.load(Ordering::Relaxed);
        if other == me {
            return None;
        }
        let is_free = other == 0 || (other ^ me) >> PROCESS_SHIFT != 0;
        let (set, otherwise) = (Ordering::Relaxed, Ordering::Relaxed);
        let marked = is_free && SEARCHER.compare_exchange(other, me, set, otherwise).is_ok();
        let found = self.names.iter().map(|name| libc::next_symbol(name)).find(|p| !p.is_null());
        if marked {
            // ORDERING: Relaxed, as above.
            SEARCHER.store(0, Ordering::Relaxed);
        }
        let Some(found) = found else {
            libc::die(
                c"masu: a pointer that no malloc of this program handed out was freed or \
                resized; run the program under valgrind to find where\n",
            )
        };
        // ORDERING: Relaxed, as at the load in `find`.
        self.address.store(found, Ordering::Relaxed);
        Some(found)
    }
}

/// The next malloc's `free`.
///
/// # Safety
///
/// - `block` belongs to the next malloc, and is not used any more.
unsafe extern "C" fn free(block: *mut u8) {
    let Some(next) = NEXT_FREE.find() else { return };
    // SAFETY: This is the next malloc's `free`, of this signature.
    let next: unsafe extern "C" fn(*mut u8) = unsafe { mem::transmute(next) };
    // SAFETY: The block is not masu's, so it is the next malloc's, or the caller's bug.
    unsafe { next(block) };
}

/// The next malloc's `realloc`.
///
/// # Safety
///
/// - As [`free`], if this succeeds.
unsafe extern "C" fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    let Some(next) = NEXT_REALLOC.find() else {
        libc::set_errno(libc::ENOMEM);
        return ptr::null_mut();
    };
    // SAFETY: This is the next malloc's `realloc`, of this signature.
    let next: unsafe extern "C" fn(*mut u8, usize) -> *mut u8 = unsafe { mem::transmute(next) };
    // SAFETY: The block is not masu's, so it is the next malloc's, or the caller's bug.
    unsafe { next(block, size) }
}

/// The next malloc's `malloc_usable_size`.
///
/// # Safety
///
/// - `block` belongs to the next malloc.
unsafe extern "C" fn usable_size(block: *mut u8) -> usize {
    let Some(next) = NEXT_USABLE_SIZE.find() else { return 0 };
    // SAFETY: This is the next malloc's `malloc_usable_size`, of this signature.
    let next: unsafe extern "C" fn(*mut u8) -> usize = unsafe { mem::transmute(next) };
    // SAFETY: The block is not masu's, so it is the next malloc's, or the caller's bug.
    unsafe { next(block) }
}
