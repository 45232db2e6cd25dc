//! What a pointer is: the one place that knows whose a block is, for every way of freeing, resizing and
//! asking for the size.
//!
//! Relies on the class map, and where that says nothing on the arenas and their slices. Fast paths believe the map or
//! a layout; their slow paths come here. The hard idea: the map says "not ours" of most of what is ours, for only the
//! first slice of a large block has a code, and free memory has none. A pointer is another malloc's only if
//! it lies in no arena, so that is asked of the arenas before the C library sees it: its `free` believes what lies in front
//! of a pointer, which in the middle of our block is the program's data.
//!
//! INVARIANT: code that hands memory out has its slices say so, by a [`Kind`] that is matched here; a feature that adds an
//! owner of blocks adds a variant.

use core::ptr::NonNull;

use crate::blocks::owner::{Owner, owner_of};
use crate::blocks::page::Page;
use crate::blocks::whose::Shard;
use crate::diagnostics::guards;
use crate::memory::arena::{self, Place};
use crate::memory::class::{Class, FOREIGN, HEAP, LARGE, SAMPLED};
use crate::memory::map;
use crate::memory::ranges::large::usable_size;
use crate::memory::slice::{Kind, Slice};
use crate::platform::fault::{self, Fault};

/// What a pointer is that may be freed.
pub(crate) enum Pointer {
    /// It lies in no arena of ours.
    Foreign,
    /// In a page of blocks of a class, with the code that the class map has for it. Whether it is a block's start,
    /// [`Pointer::checked`] has looked; else that is found when it goes home.
    Small(Class, u8),
    /// The same of a page of sampled blocks.
    Sampled(Class),
    /// In a slot of a guarded block: [`guards`] says whether one begins there.
    Guarded,
    /// A large block, named by its first slice.
    Large(&'static Slice),
    /// Memory of a first-class heap; [`OfHeap::at`] says what.
    Heap,
}

impl Pointer {
    /// What `block` is. Ends the program where it lies in memory of ours and is no block that is handed out, with
    /// `freed` as the reason where what was there is free.
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
        // SAFETY: What has a code lies within the first GiB of an arena.
        Pointer::coded(block, code, unsafe { Slice::at(address) }, freed)
    }

    /// The same, and a small block starts there. A `free` that is slow anyway would take 5 % more instructions where
    /// big blocks come and go in random order.
    #[inline(always)]
    pub(crate) fn checked(block: NonNull<u8>, freed: Fault) -> Pointer {
        let what = Pointer::of(block, freed);
        if let Pointer::Small(class, _) | Pointer::Sampled(class) = what {
            // SAFETY: It lies in a page.
            let slice = unsafe { Slice::at(block.addr().get()) };
            Page(slice.page()).index_of(class, block.addr().get());
        }
        what
    }

    /// What `block` is, which lies in `slice`, of which its code says what it holds.
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

    /// Bytes of the block, which is `block`, that may be used; `None` where it is not ours.
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

/// What a first-class heap's block is.
pub(crate) enum OfHeap {
    /// One of a page or of a mixed slice, in this slice of it.
    Small(&'static Slice, Class),
    /// Slices of its own, named by the first.
    Large(&'static Slice),
}

impl OfHeap {
    /// What `block` is, of which [`Pointer::of`] says that it is a heap's. Ends the program where it is not the start
    /// of one, as there.
    #[inline(always)]
    pub(crate) fn at(block: NonNull<u8>, freed: Fault) -> OfHeap {
        let address = block.addr().get();
        // SAFETY: What is a heap's lies within the first GiB of an arena, but for the rest of a large block.
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

/// The code of the memory at an address of which the class map says nothing: it is not ours, which is what is left to
/// say of it, or there is no map. Ends the program where no block starts in its slice.
#[cold]
#[inline(never)]
fn code_without_map(address: usize, freed: Fault) -> u8 {
    let slice = match arena::place_of(address) {
        Place::Outside => return FOREIGN,
        // So long an arena holds one block, whose start lies before.
        Place::Beyond => fault::stop(Fault::NotABlock),
        Place::In(slice) => slice,
    };
    match arena::code_in(slice) {
        FOREIGN => no_block_in(slice, freed),
        // While there is a map, this is a page or a block that another thread gives back just now.
        _ if map::is_established() => fault::stop(freed),
        code => code,
    }
}

/// Ends the program because of a pointer into `slice`, at which no block starts.
#[cold]
#[inline(never)]
fn no_block_in(slice: &'static Slice, freed: Fault) -> ! {
    if !slice.arena().has_handed_out(slice) {
        fault::stop(Fault::NeverHandedOut);
    }
    // Whose it is only the first slice of a run knows. Other threads may change it while this one looks: then
    // the message is less to the point.
    let (mut first, mut distance) = (slice, 0);
    while first.kind.is(Kind::Opaque) && first.arena().has_handed_out(first) {
        distance += 1;
        // SAFETY: Before a slice that was handed out lies another one, at the latest the head's last.
        first = unsafe { slice.behind(distance) };
    }
    let is_inside = distance < first.count.get() as usize;
    fault::stop(match first.kind.get() {
        Kind::Large | Kind::HeapLarge if is_inside => Fault::NotABlock,
        Kind::Metadata if distance == 0 => Fault::NeverHandedOut,
        _ => freed,
    })
}
