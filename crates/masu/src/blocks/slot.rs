//! The thread slot: two words per thread that hold the address of its thread cache's stacks.
//!
//! Relies on ELF thread-local storage, with the initial-exec model unless the feature `tls-dynamic` is on. Stable Rust cannot
//! select that model, and `thread_local!` in a shared library costs a call per read, so the variable is defined in assembly
//! and its *value* is read with two instructions. The hard idea: the slot starts as the address of static stacks that are
//! empty and full at once, so no read ever tests for null; a call that finds nothing takes a slow path, which makes a cache.
//!
//! Only slow paths read the second word, while requests are counted: then the first word leads to stacks that all threads
//! share and that are empty and full at once (`threads/cache/counted.rs`), and the second word to the thread's hidden cache.

#[cfg(not(all(test, loom)))]
#[cfg_attr(all(target_arch = "aarch64", not(feature = "tls-dynamic")), path = "slot/aarch64.rs")]
#[cfg_attr(all(target_arch = "aarch64", feature = "tls-dynamic"), path = "slot/dynamic/aarch64.rs")]
#[cfg_attr(all(target_arch = "x86_64", not(feature = "tls-dynamic")), path = "slot/x86_64.rs")]
#[cfg_attr(all(target_arch = "x86_64", feature = "tls-dynamic"), path = "slot/dynamic/x86_64.rs")]
mod arch;
#[cfg(all(test, loom))]
#[path = "../../tests/models/slot.rs"]
mod arch;
#[cfg_attr(all(target_arch = "x86_64", not(all(test, loom))), path = "slot/register/x86_64.rs")]
#[cfg_attr(not(all(target_arch = "x86_64", not(all(test, loom)))), path = "slot/register/other.rs")]
mod register;
mod stacks;

use core::arch::global_asm;
use core::ptr;

use crate::memory::ranges::{Parked, SharedRanges, stripes};
use crate::platform::kernel;
use crate::platform::sync::{AtomicBool, Ordering};
#[cfg(not(feature = "secure"))]
pub(crate) use stacks::share_stack;
pub(crate) use stacks::{CAN_COUNT, CacheHead, EMPTY, Inert, Shared, Stack, Stacks, State, ended};

/// The variables' names continue with this after `masu_slot_` and `masu_hidden_`.
///
/// It has the crate's version, so that two versions in one program each have a slot. The rest is what a linker prints where
/// one version occurs twice, or where a program and a library that it links would share one: both are errors, and
/// `docs/life.md` says what to do.
macro_rules! suffix {
    () => {
        concat!(
            env!("CARGO_PKG_VERSION_MAJOR"),
            "_",
            env!("CARGO_PKG_VERSION_MINOR"),
            "_one_copy_in_one_program_or_library"
        )
    };
}

global_asm!(
    concat!(".pushsection .tdata.masu_slot_", suffix!(), ", \"awT\", @progbits"),
    concat!(".globl masu_slot_", suffix!()),
    concat!(".hidden masu_slot_", suffix!()),
    concat!(".type masu_slot_", suffix!(), ", @object"),
    concat!(".size masu_slot_", suffix!(), ", 8"),
    concat!(".globl masu_hidden_", suffix!()),
    concat!(".hidden masu_hidden_", suffix!()),
    concat!(".type masu_hidden_", suffix!(), ", @object"),
    concat!(".size masu_hidden_", suffix!(), ", 8"),
    // Both in one cache line.
    ".p2align 4",
    concat!("masu_slot_", suffix!(), ": .quad {empty}"),
    concat!("masu_hidden_", suffix!(), ": .quad 0"),
    ".popsection",
    empty = sym EMPTY,
);

/// This thread's stacks.
///
/// The compiler may merge reads, also across [`set`]: a thread that has just set the slot continues with the reference it
/// set.
#[inline(always)]
pub(crate) fn get() -> &'static Stacks {
    let stacks: *const Stacks = arch::read_word!("masu_slot_");
    // SAFETY: The slot holds the address of stacks from the thread's start, and they are never unmapped.
    unsafe { &*stacks }
}

/// The cache that is hidden by the shared stacks while this thread counts.
///
/// # Safety
///
/// - This thread's stacks were set by [`set_hiding`].
#[inline(always)]
pub(crate) unsafe fn hidden() -> &'static CacheHead {
    let head: *const CacheHead = arch::read_word!("masu_hidden_");
    // SAFETY: `set_hiding` wrote it, and caches are never unmapped.
    unsafe { &*head }
}

/// This thread's parked run, where it has a cache.
#[inline]
pub(crate) fn parked() -> Option<&'static Parked> {
    get().head().map(|head| &head.parked)
}

/// The ranges that this thread takes memory from.
#[inline]
pub(crate) fn ranges() -> &'static SharedRanges {
    stripes::for_thread(get().head().map_or(0, |head| head.number))
}

/// Makes `stacks` this thread's.
pub(crate) fn set(stacks: &'static Stacks) {
    arch::write_word!("masu_slot_", ptr::from_ref(stacks));
}

/// Makes `stacks` this thread's, hiding `head`.
pub(crate) fn set_hiding(stacks: &'static Stacks, head: &'static CacheHead) {
    // Written first, because a signal handler may run in between.
    arch::write_word!("masu_hidden_", ptr::from_ref(head));
    set(stacks);
}

/// Whether there was ever a second thread.
static SEVERAL: AtomicBool = AtomicBool::new(false);

/// Whether there was ever a second thread.
#[inline]
pub(crate) fn are_several() -> bool {
    // ORDERING: Relaxed: a thread that misses the change takes the longer way once.
    SEVERAL.load(Ordering::Relaxed)
}

/// Records that there is a second thread.
pub(crate) fn note_several() {
    // ORDERING: Relaxed, as above.
    SEVERAL.store(true, Ordering::Relaxed);
    kernel::allow_purge_batches();
}
