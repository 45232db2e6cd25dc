//! Reports of the hardened build: the call, the pointer, and the memory that the pointer leads to.
//!
//! Relies on `fault` to write and to end the program. The message is built in an array on the stack, because the heap
//! may be broken. The search for the memory behind a wrong pointer may be slow, since the program ends.

use crate::blocks::shard::hardened::Wrong;
use crate::memory::arena::{self, Place};
use crate::memory::slice::{Kind, Slice};
use crate::platform::fault;
use crate::platform::kernel;
use crate::platform::libc;
use crate::requests::pointer::run_before;
use crate::settings::line::Line;

/// The call that was passed a wrong pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Malloc,
    Free,
    Realloc,
    UsableSize,
    /// A free with a size: C's or C++'s.
    Delete,
    /// Rust's `dealloc` and `realloc`, with a layout.
    Dealloc,
}

impl Call {
    const fn name(self) -> &'static str {
        match self {
            Call::Malloc => "malloc",
            Call::Free => "free",
            Call::Realloc => "realloc",
            Call::UsableSize => "malloc_usable_size",
            Call::Delete => "sized free",
            Call::Dealloc => "dealloc",
        }
    }
}

/// The reason why the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Wrong(Wrong),
    /// The canary behind a block of this size was overwritten.
    Overrun {
        size: usize,
    },
    /// A block of this size was freed with another size, or with an alignment it does not have.
    OtherSize {
        size: usize,
        expected: usize,
    },
}

/// Ends the program with a message about `pointer`, which was passed to `call`.
#[cold]
#[inline(never)]
pub(crate) fn stop(call: Call, pointer: usize, reason: Reason) -> ! {
    let mut message = Line::new();
    message.text("masu: ").text(call.name()).text("(").address(pointer).text("): ");
    match reason {
        Reason::Wrong(wrong) => describe(&mut message, pointer, wrong),
        Reason::Overrun { size } => {
            message.text("written beyond its end: a block of ").count(size);
        }
        Reason::OtherSize { size, expected } if size == expected => {
            message.text("not aligned as it was freed: a block of ").count(size);
        }
        Reason::OtherSize { size, expected } => {
            message.text("freed as ").count(expected).text(": a block of ").count(size);
        }
    }
    fault::abort_with(message.end())
}

fn describe(message: &mut Line, pointer: usize, wrong: Wrong) {
    match wrong {
        Wrong::NoPage => place(message, pointer),
        Wrong::BehindLast => {
            message.text("lies behind the last block of a page, in none");
        }
        Wrong::Inside { offset, size, live } => {
            message.text("lies ").count(offset).text(" into a ");
            message.text(if live { "block of " } else { "free block of at most " }).count(size);
        }
        Wrong::FreedTwice { size } => {
            message.text("freed twice: a block of at most ").count(size);
        }
        Wrong::IsFree { size } => {
            message
                .text("is free, by an earlier free if it ever was a block: at most ")
                .count(size);
        }
        Wrong::Written { block, offset, size } => {
            message.text("a free block was written to, ").count(offset).text(" into it: ");
            message.address(block).text(", at most ").count(size);
        }
    }
}

/// Describes an address in no page of blocks.
fn place(message: &mut Line, pointer: usize) {
    match arena::place_of(pointer) {
        Place::In(slice) => in_arena(message, pointer, slice),
        Place::Beyond => {
            message.text("lies more than a GiB into a block");
        }
        Place::Outside => {
            message.text("is no block of masu's");
            message.text(elsewhere(pointer));
        }
    }
}

/// Describes an address in an arena, in this slice.
fn in_arena(message: &mut Line, pointer: usize, slice: &'static Slice) {
    if let Some((first, is_live)) = large_around(slice) {
        let size = first.belongs.number.get();
        let offset = pointer.wrapping_sub(first.address());
        if offset < size {
            message.text("lies ").count(offset).text(" into a ");
            message.text(if is_live { "block of " } else { "block that was freed, of " });
        } else {
            message.text("lies beside a block of ");
        }
        message.count(size);
        return;
    }
    let (first, distance) = run_before(slice);
    let is_inside = distance < first.count.get() as usize;
    message.text("is no block of masu's");
    message.text(match first.kind.get() {
        _ if !slice.arena().has_handed_out(slice) => ": it lies in memory never handed out",
        Kind::Metadata => ": it lies in masu's own memory",
        Kind::HeapMixed | Kind::HeapPage => ": it lies in a heap of the program's",
        Kind::HeapLarge if is_inside => ": it lies in a heap of the program's",
        _ => ": it lies in memory that is free, by an earlier free if it ever was one",
    });
}

/// The first slice of the large block whose run contains a slice, and whether the block is live.
fn large_around(slice: &'static Slice) -> Option<(&'static Slice, bool)> {
    // The guard before a block is not marked: the next marked slice says how far back its run reaches.
    let marked = |slice: &'static Slice| match slice.kind.get() {
        Kind::Large => Some(true),
        Kind::Parked => Some(false),
        _ => None,
    };
    let mut distance = 0;
    while distance < slice.index() {
        // SAFETY: There are that many slices before this one.
        let before = unsafe { slice.behind(distance) };
        if let Some(is_live) = marked(before) {
            let slices = before.count.get() as usize - before.back.get() as usize;
            return (distance < slices).then_some((before, is_live));
        }
        if !matches!(before.kind.get(), Kind::Opaque) {
            break;
        }
        distance += 1;
    }
    // SAFETY: As above.
    let behind = unsafe { slice.ahead_or_end(1) }?;
    marked(behind).map(|is_live| (behind, is_live))
}

/// Describes an address outside all arenas, as far as that can be known.
fn elsewhere(pointer: usize) -> &'static str {
    let here = 0_u8;
    let frame = (&raw const here).addr();
    if !kernel::is_readable(pointer & !7) {
        return ": nothing is mapped there";
    }
    if lies_on_this_stack(frame, pointer) {
        return ": it lies on this thread's stack";
    }
    let mut is_static = false;
    libc::for_each_object(&mut |object| {
        is_static |= object.segments().iter().any(|segment| {
            let start = object.address.wrapping_add(segment.address);
            segment.kind == libc::Segment::LOADED && pointer.wrapping_sub(start) < segment.length
        });
        !is_static
    });
    if is_static {
        ": it lies in the program or a library, a variable or a constant"
    } else {
        ": another malloc's, or a mapping"
    }
}

/// Whether everything between this frame and a higher address is mapped, as a stack is.
fn lies_on_this_stack(frame: usize, pointer: usize) -> bool {
    const STACK_MAX: usize = 64 << 20;
    let step = kernel::page_size();
    pointer >= frame
        && pointer - frame < STACK_MAX
        && (frame..pointer).step_by(step).all(|address| kernel::is_readable(address & !7))
}
