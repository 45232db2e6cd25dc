//! The kind of memory that a pointer leads to: the one place that finds a block's kind, for every way to free, resize
//! and measure a block.
//!
//! Relies on the class map, then on the arenas and their slices. Fast paths trust the map or a layout; their slow paths come
//! here. The hard idea: the map has no code for most of masu's memory, because only the first slice of a large block has one,
//! and free memory has none. A pointer belongs to another malloc only if it lies in no arena, so the arenas are asked before
//! the C library's `free` is called, which trusts the bytes before a pointer; in the middle of a block of masu's, those are
//! the program's data.
//!
//! INVARIANT: code that hands out memory marks its slices with a [`Kind`] that is matched here; a feature that adds an owner
//! of blocks adds a variant.

use core::ptr::NonNull;

use crate::blocks::owner::{Owner, owner_of};
use crate::blocks::ownership::Shard;
use crate::blocks::page::Page;
use crate::diagnostics::guards;
use crate::memory::arena::{self, Place};
use crate::memory::class::{Class, FOREIGN, HEAP, LARGE, SAMPLED};
use crate::memory::map;
use crate::memory::ranges::large::usable_size;
use crate::memory::slice::{Kind, Slice};
use crate::platform::fault::{self, Fault};

/// The kind of a pointer that is to be freed, resized or measured.
pub(crate) enum Pointer {
    /// The pointer lies in no arena.
    Foreign,
    /// In a page of blocks of this class, with its code in the class map. Only [`Pointer::checked`] verifies that a
    /// block starts there; without that the page verifies it when the block is returned.
    Small(Class, u8),
    /// As `Small`, in a page of sampled blocks.
    Sampled(Class),
    /// In a guarded slot: [`guards`] knows whether a block starts there.
    Guarded,
    /// A large block, by its first slice.
    Large(&'static Slice),
    /// Memory of a first-class heap: see [`OfHeap::at`].
    Heap,
}

impl Pointer {
    /// The kind of `block`. Ends the program where it lies in masu's memory and is no live block; `freed` is the reason
    /// where the memory is free.
    #[inline(always)]
    pub(crate) fn of(block: NonNull<u8>, freed: Fault) -> Pointer {
        let address = block.addr().get();
        let mut code = (map::double_code(address) >> 1) as u8;
        if code == FOREIGN {
            code = code_without_map(address, freed);
            if code == FOREIGN {
                return Pointer::Foreign;
            }
        }
        // SAFETY: Memory with a code lies within the first GiB of an arena.
        Pointer::coded(block, code, unsafe { Slice::at(address) }, freed)
    }

    /// As [`Pointer::of`], and verifies that a small block starts there. `free` does not, because its slow path would
    /// take 5 % more instructions where big blocks come and go in random order.
    #[inline(always)]
    pub(crate) fn checked(block: NonNull<u8>, freed: Fault) -> Pointer {
        let what = Pointer::of(block, freed);
        if let Pointer::Small(class, _) | Pointer::Sampled(class) = what {
            // SAFETY: The block lies in a page.
            let slice = unsafe { Slice::at(block.addr().get()) };
            Page(slice.page()).index_of(class, block.addr().get());
        }
        what
    }

    /// The kind of `block`, which lies in `slice`, by its code.
    #[inline(always)]
    fn coded(block: NonNull<u8>, code: u8, slice: &'static Slice, freed: Fault) -> Pointer {
        if let Some(class) = Class::from_code(code) {
            return Pointer::Small(class, code);
        }
        match code {
            LARGE if slice.start() != block => no_block_in(slice, freed),
            LARGE if !slice.kind.is(Kind::Large) => fault::stop(freed),
            LARGE => Pointer::Large(slice),
            SAMPLED if guards::IS_BUILT_IN && slice.page().shard.get() == Shard::GUARDED.0 => {
                Pointer::Guarded
            }
            SAMPLED => {
                let class = Class::from_code(slice.page().sampled.get());
                let Some(class) = class else { fault::stop(freed) };
                Pointer::Sampled(class)
            }
            _ => {
                debug_assert!(code == HEAP, "a code without a variant");
                Pointer::Heap
            }
        }
    }

    /// The usable size of `block`, of this kind; `None` where it is foreign.
    pub(crate) fn usable_size(&self, block: NonNull<u8>) -> Option<usize> {
        match self {
            Pointer::Foreign => None,
            Pointer::Small(class, _) | Pointer::Sampled(class) => Some(class.size()),
            Pointer::Large(first) => Some(usable_size(first)),
            Pointer::Guarded => Some(guards::usable_size(block.addr().get())),
            Pointer::Heap => Some(OfHeap::at(block, Fault::UsedFreed).usable_size()),
        }
    }
}

/// The kind of a first-class heap's block.
pub(crate) enum OfHeap {
    /// In a page or in a mixed slice; this is the slice.
    Small(&'static Slice, Class),
    /// A block of whole slices, by the first slice.
    Large(&'static Slice),
}

impl OfHeap {
    /// The kind of `block`, for which [`Pointer::of`] returned `Heap`. Ends the program where no block starts there, as
    /// [`Pointer::of`] does.
    #[inline(always)]
    pub(crate) fn at(block: NonNull<u8>, freed: Fault) -> OfHeap {
        let address = block.addr().get();
        // SAFETY: Memory of a heap lies within the first GiB of an arena, except for the rest of a large block.
        let slice = unsafe { Slice::at(address) };
        match slice.kind.get() {
            Kind::HeapPage => {
                let Some(class) = Class::from_code(slice.code.get()) else { fault::stop(freed) };
                Page(slice.page()).index_of(class, address);
                OfHeap::Small(slice, class)
            }
            Kind::HeapMixed => OfHeap::Small(slice, owner_of(slice).mixed_class(address)),
            Kind::HeapLarge if slice.start() == block => OfHeap::Large(slice),
            Kind::HeapLarge => fault::stop(Fault::NotABlock),
            _ => fault::stop(freed),
        }
    }

    pub(crate) fn owner(&self) -> &'static Owner {
        let (OfHeap::Small(slice, _) | OfHeap::Large(slice)) = *self;
        owner_of(slice)
    }

    pub(crate) fn usable_size(&self) -> usize {
        match self {
            OfHeap::Small(_, class) => class.size(),
            OfHeap::Large(first) => usable_size(first),
        }
    }
}

/// The code of an address for which the class map has none, either because the address is foreign or because there is
/// no map. Ends the program where no block starts in its slice.
#[cold]
#[inline(never)]
fn code_without_map(address: usize, freed: Fault) -> u8 {
    let slice = match arena::place_of(address) {
        Place::Outside => return FOREIGN,
        // An arena this long holds one block, which starts earlier.
        Place::Beyond => fault::stop(Fault::NotABlock),
        Place::In(slice) => slice,
    };
    match arena::code_in(slice) {
        FOREIGN => no_block_in(slice, freed),
        // With a map, this is a page or block that another thread is freeing now.
        _ if map::is_established() => fault::stop(freed),
        code => code,
    }
}

/// Ends the program because no block starts at a pointer into `slice`.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.refused.no_block_in")]
fn no_block_in(slice: &'static Slice, freed: Fault) -> ! {
    if !slice.arena().has_handed_out(slice) {
        fault::stop(Fault::NeverHandedOut);
    }
    let (first, distance) = run_before(slice);
    let is_inside = distance < first.count.get() as usize;
    fault::stop(match first.kind.get() {
        Kind::Large | Kind::HeapLarge if is_inside => Fault::NotABlock,
        Kind::Metadata if distance == 0 => Fault::NeverHandedOut,
        _ => freed,
    })
}

/// The nearest slice that has a kind, from `slice` on backwards, and its distance: only the first slice of a run knows the
/// kind of the run. Other threads may change the kind at the same time; then only a message is less accurate.
pub(crate) fn run_before(slice: &'static Slice) -> (&'static Slice, usize) {
    let (mut first, mut distance) = (slice, 0);
    while first.kind.is(Kind::Opaque) && first.arena().has_handed_out(first) {
        distance += 1;
        // SAFETY: There are slices before a slice that was handed out, at least those of the arena's head.
        first = unsafe { slice.behind(distance) };
    }
    (first, distance)
}
