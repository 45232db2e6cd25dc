//! Blocks of heaps by their address: plain `free`, `realloc` and `malloc_usable_size`, and the slow paths by layout.
//!
//! Relies on slices to know their heap. Cached blocks are not checked: a pointer into the middle of a block ends the program
//! when the cached blocks are returned to their pages, as for blocks of no heap.

use core::ptr::{self, NonNull};

use crate::blocks::owner::{Owner, owner_of};
use crate::memory::arena::{self, Place};
use crate::memory::class::{Class, FOREIGN, HEAP, LARGEST_ALWAYS_SMALL, grows_large};
use crate::memory::map;
use crate::memory::ranges::Filling;
use crate::memory::slice::{Kind, Slice};
use crate::platform::fault::Fault;
use crate::requests::pointer::OfHeap;
use crate::threads::cache::heap_cache::{HeapCache, SIZE_MAX};
use crate::threads::statistics::page;
use crate::threads::thread;

/// Registers this thread, before it takes the lock of a heap: the only other thread may fork. Updates the statistics page as
/// well, which no other slow path does in a program that uses heaps alone.
#[inline(never)]
pub(crate) fn register() {
    page::refresh_if_stale();
    let _ = thread::cache();
}

/// Allocates `size` bytes aligned to `align`, a power of two; zeroed if `zeroed`. Null without memory.
#[inline(never)]
pub(crate) fn allocate(owner: &'static Owner, size: usize, align: usize, zeroed: bool) -> *mut u8 {
    register();
    // Slices may be known to be zero; blocks of a class must be cleared.
    let is_small = !zeroed || size <= LARGEST_ALWAYS_SMALL;
    let Some(class) = Class::of(size, align).filter(|_| is_small) else {
        return owner.allocate_large(size, align, Filling::of_new(size, zeroed), zeroed);
    };
    let block = allocate_class(owner, class);
    if zeroed && !block.is_null() {
        // SAFETY: The block is at least that long and the caller's.
        unsafe { block.write_bytes(0, size) };
    }
    block
}

/// Allocates a block of `class`; null without memory.
fn allocate_class(owner: &'static Owner, class: Class) -> *mut u8 {
    if class.size() <= SIZE_MAX
        && let Some(cached) =
            HeapCache::of(owner).or_else(|| HeapCache::take_place(thread::cache()?, owner))
    {
        let block = cached.pop(class.size());
        return if block.is_null() { cached.pop_slow(owner, class) } else { block };
    }
    let mut blocks = [0];
    owner.take(class, &mut blocks);
    ptr::with_exposed_provenance_mut(blocks[0])
}

/// Frees a block of a heap.
///
/// # Safety
///
/// - The class map says that it lies in a heap; the block was handed out, is not free, and is not used any more.
#[inline(never)]
pub(crate) unsafe fn free(block: NonNull<u8>) {
    // SAFETY: The address lies within the first GiB of an arena.
    let slice = unsafe { Slice::at(block.as_ptr().addr()) };
    let code = if slice.kind.is(Kind::HeapMixed) {
        owner_of(slice).mixed_code(block.as_ptr().addr())
    } else if slice.kind.is(Kind::HeapPage) {
        slice.code.get()
    } else {
        FOREIGN
    };
    if let Some(cached) = HeapCache::of_number(slice.belongs.number.get())
        && cached.push_code(code, block.as_ptr())
    {
        return;
    }
    // SAFETY: The caller's condition.
    unsafe { free_slow(block) };
}

/// The same where the thread caches no blocks of the heap, or has no room for the block.
///
/// # Safety
///
/// - As [`free`].
#[inline(never)]
unsafe fn free_slow(block: NonNull<u8>) {
    register();
    let what = OfHeap::at(block, Fault::FreedTwice);
    let owner = what.owner();
    match what {
        OfHeap::Small(_, class) => {
            match HeapCache::of(owner).filter(|_| class.size() <= SIZE_MAX) {
                Some(cached) => cached.push_slow(owner, class, block.as_ptr()),
                None => owner.put(class, &[block.as_ptr().expose_provenance()]),
            }
        }
        // SAFETY: The caller's condition.
        OfHeap::Large(first) => unsafe { owner.free_large(first) },
    }
}

/// Changes the size of a heap's block, keeping its contents up to the smaller size and this alignment, no more than it has.
/// The block stays in its heap. Null without memory; the block is then intact.
///
/// # Safety
///
/// - As [`free`]; after success the old pointer is not used any more.
#[inline(never)]
pub(crate) unsafe fn resize(block: NonNull<u8>, size: usize, align: usize) -> *mut u8 {
    register();
    let what = OfHeap::at(block, Fault::UsedFreed);
    let (owner, old_size) = (what.owner(), what.usable_size());
    let stays = match what {
        OfHeap::Small(..) => size <= old_size && size >= old_size / 2,
        OfHeap::Large(first) => {
            // SAFETY: The caller's condition.
            size > LARGEST_ALWAYS_SMALL && unsafe { owner.resize_large(first, size) }
        }
    };
    if stays {
        return block.as_ptr();
    }
    // SAFETY: The caller's condition.
    unsafe { move_to(owner, block, old_size, size, align) }
}

/// Moves a block of `old_size` bytes into a new one of `size` bytes of `owner`'s heap. Null without memory; the block is then
/// intact.
///
/// # Safety
///
/// - As [`resize`].
unsafe fn move_to(
    owner: &'static Owner,
    block: NonNull<u8>,
    old_size: usize,
    size: usize,
    align: usize,
) -> *mut u8 {
    let new = if grows_large(old_size, size) {
        owner.allocate_large(size, align, Filling::of_moved(size, old_size), false)
    } else {
        allocate(owner, size, align, false)
    };
    if !new.is_null() {
        // SAFETY: Both blocks are that long and do not overlap.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), new, size.min(old_size)) };
        // SAFETY: The caller's condition.
        unsafe { free(block) };
    }
    new
}

/// The owner of the heap that a slice belongs to; null where it belongs to none.
fn owner_in(slice: &Slice) -> *const Owner {
    match slice.kind.get() {
        Kind::HeapPage | Kind::HeapMixed | Kind::HeapLarge => slice.belongs.owner.get().cast(),
        _ => ptr::null(),
    }
}

/// The owner of the heap of a block; null where the block belongs to no heap.
///
/// # Safety
///
/// - The block is live, or not masu's.
#[inline(never)]
pub(crate) unsafe fn owner_of_block(block: NonNull<u8>) -> *const Owner {
    let address = block.addr().get();
    if arena::code_of(address) != HEAP {
        return ptr::null();
    }
    // SAFETY: The block is live, so its arena stays, and it starts within the first GiB.
    owner_in(unsafe { Slice::at(address) })
}

/// The same for any address: another thread may now destroy the heap at the address, and its arena with it.
#[inline(never)]
pub(crate) fn owner_at(address: usize) -> *const Owner {
    if map::is_established() && arena::code_of(address) != HEAP {
        return ptr::null();
    }
    // An arena that is in the table stays mapped while this is held.
    let _growth = arena::hold_growth();
    // The table, because the map does not read all bits of an address.
    match arena::place_of(address) {
        Place::In(slice) => owner_in(slice),
        Place::Outside | Place::Beyond => ptr::null(),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use core::alloc::Layout;

    use super::*;
    use crate::Heap;
    use crate::blocks::slot;

    #[test]
    fn a_thread_whose_first_call_takes_a_heaps_lock_is_registered() {
        /// Too long for a thread's cache.
        const LAYOUT: Layout = Layout::new::<[u64; 3000]>();
        // SAFETY: Each gets a block of the heap, which nothing else uses.
        let calls: [fn(Heap, NonNull<u8>); 6] = [
            |heap, _| drop(heap),
            |mut heap, _| heap.clear(),
            |heap, _| assert_eq!(heap.statistics().live_blocks, 1),
            |heap, _| assert!(heap.alloc(LAYOUT).is_some()),
            |heap, block| unsafe { heap.dealloc(block, LAYOUT) },
            |_, block| assert!(!unsafe { resize(block, 1, 1) }.is_null()),
        ];
        for (number, call) in calls.into_iter().enumerate() {
            let heap = Heap::new();
            let block = heap.alloc(LAYOUT).expect("memory").expose_provenance();
            let call = move || {
                assert!(slot::get().cache().is_none(), "it made no call");
                call(heap, NonNull::with_exposed_provenance(block));
                slot::get().cache().is_some()
            };
            assert!(std::thread::spawn(call).join().expect("it ends"), "{number}");
        }
    }
}
