//! Thread-local variables that loaded objects define: a block for each object and thread, made at the thread's first
//! access.
//!
//! Relies on the C library's thread-specific data, which ends after all destructors of thread-local variables. Code
//! calls `__tls_get_addr` with a module's number. The dynamic linker's numbers are small; the arena's have the highest
//! bit set, and all other numbers are passed on.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::OnceLock;

use crate::process;
use crate::sync;
use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};

/// Set in the number of each module of the arena's.
const OWN: u64 = 1 << 63;

/// An object's storage while it is loaded: its module.
#[derive(Debug)]
pub(crate) struct Storage {
    module: u64,
}

/// The initial contents and layout of a module's blocks.
#[derive(Debug, Clone, Copy)]
struct Module {
    image: usize,
    layout: Layout,
}

/// A thread's blocks by the place of their modules, 0 where the thread has no block.
///
/// INVARIANT: Only the thread itself replaces the list, under the lock; others clear single places, under the lock.
type Blocks = Vec<AtomicUsize>;

struct Known {
    modules: Vec<Option<Module>>,
    threads: Vec<*mut Blocks>,
}

// SAFETY: The lists of threads are used as their type says.
unsafe impl Send for Known {}

static KNOWN: Mutex<Known> = Mutex::new(Known { modules: Vec::new(), threads: Vec::new() });

fn known() -> MutexGuard<'static, Known> {
    sync::hold(&KNOWN)
}

/// The lock, if no thread has it.
pub(crate) fn try_hold() -> Option<MutexGuard<'static, impl Sized>> {
    sync::try_hold(&KNOWN)
}

thread_local! {
    static BLOCKS: Cell<*mut Blocks> = const { Cell::new(std::ptr::null_mut()) };
}

/// Whether a module is a loaded object's.
pub(crate) fn is_own(module: u64) -> bool {
    module & OWN != 0
}

impl Storage {
    /// A module whose blocks are copies of `image`; `None` where such a block is impossible.
    pub(crate) fn open(image: &Range<usize>, align: usize) -> Option<Storage> {
        let layout =
            Layout::from_size_align(image.len(), align).ok().filter(|_| !image.is_empty())?;
        let module = Some(Module { image: image.start, layout });
        let mut known = known();
        let place = known.modules.iter().position(Option::is_none).unwrap_or(known.modules.len());
        match known.modules.get_mut(place) {
            Some(free) => *free = module,
            None => known.modules.push(module),
        }
        Some(Storage { module: OWN | place as u64 })
    }

    pub(crate) fn module(&self) -> u64 {
        self.module
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let place = (self.module & !OWN) as usize;
        let mut known = known();
        let Some(Module { layout, .. }) = known.modules[place].take() else { return };
        for &thread in &known.threads {
            // SAFETY: The list is a live thread's, and does not change while the lock is held.
            let block = unsafe { &*thread }.get(place);
            // ORDERING: The thread does not look at a module whose object is gone, and the lock orders the others.
            let block = block.map_or(0, |block| block.swap(0, Ordering::Relaxed));
            if block != 0 {
                // SAFETY: The block was allocated with this layout, and the object's code no longer runs.
                unsafe { dealloc(block as *mut u8, layout) };
            }
        }
    }
}

/// `__tls_get_addr` for loaded code: the address of the variable that a pair of GOT entries names.
///
/// # Safety
///
/// - The arena or the dynamic linker wrote the pair, and its module is loaded.
pub(crate) unsafe extern "C" fn address(pair: *const [u64; 2]) -> *mut c_void {
    // SAFETY: The caller's condition.
    let [module, offset] = unsafe { *pair };
    if !is_own(module) {
        // SAFETY: The caller's condition.
        return unsafe { of_process()(pair) };
    }
    let place = (module & !OWN) as usize;
    // SAFETY: Null, or this thread's own list, which no other thread replaces.
    let block = unsafe { BLOCKS.get().as_ref() }.and_then(|blocks| blocks.get(place));
    // ORDERING: Only this thread stores blocks of modules that it asks for.
    let mut block = block.map_or(0, |block| block.load(Ordering::Relaxed));
    if block == 0 {
        block = block_slow(place);
    }
    (block + offset as usize) as *mut c_void
}

type GetAddress = unsafe extern "C" fn(*const [u64; 2]) -> *mut c_void;

/// The dynamic linker's own function.
fn of_process() -> GetAddress {
    static FOUND: OnceLock<GetAddress> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // A pair of the process's was made only because some library has thread-local variables.
        let address = process::symbol(b"__tls_get_addr").unwrap_or_else(|| std::process::abort());
        // SAFETY: By the ABI the function takes such a pair.
        unsafe { std::mem::transmute::<usize, GetAddress>(address) }
    })
}

/// A new block for this thread.
#[cold]
#[inline(never)]
fn block_slow(place: usize) -> usize {
    let mut known = known();
    let mut blocks = BLOCKS.get();
    if blocks.is_null() {
        blocks = Box::into_raw(Box::default());
        known.threads.push(blocks);
        BLOCKS.set(blocks);
        process::at_thread_end(end_thread, blocks.cast());
    }
    // Code that asks for a module which was never opened is broken beyond help.
    let module = known.modules.get(place).copied().flatten();
    let Module { image, layout } = module.unwrap_or_else(|| std::process::abort());
    // SAFETY: The layout has a size.
    let block = unsafe { alloc(layout) };
    if block.is_null() {
        handle_alloc_error(layout);
    }
    // SAFETY: The image is in memory while the module is open, and the block is as long.
    unsafe { std::ptr::copy_nonoverlapping(image as *const u8, block, layout.size()) };
    // SAFETY: This thread's own list, and the lock is held.
    let blocks = unsafe { &mut *blocks };
    if blocks.len() <= place {
        blocks.resize_with(place + 1, AtomicUsize::default);
    }
    // ORDERING: As in `address`.
    blocks[place].store(block as usize, Ordering::Relaxed);
    block as usize
}

/// Frees the blocks of a thread that ends.
///
/// # Safety
///
/// - `blocks` is the thread's list.
unsafe extern "C" fn end_thread(blocks: *mut c_void) {
    let mut known = known();
    let blocks = blocks.cast::<Blocks>();
    BLOCKS.set(std::ptr::null_mut());
    known.threads.retain(|&thread| thread != blocks);
    // SAFETY: The list came from a box, and no reference to it is left.
    let blocks = unsafe { Box::from_raw(blocks) };
    for (block, module) in blocks.iter().zip(&known.modules) {
        // ORDERING: As in `address`.
        let block = block.load(Ordering::Relaxed);
        if let Some(Module { layout, .. }) = module
            && block != 0
        {
            // SAFETY: The block was allocated with this layout, and this thread's code no longer runs.
            unsafe { dealloc(block as *mut u8, *layout) };
        }
    }
}
