//! The report: how a guarded block was misused, and the stacks that allocated and freed it.
//!
//! Relies on the slots' records and on the list of loaded objects. It is written in a signal handler, piece by piece to
//! standard error, so nothing is allocated or formatted. Each address is printed with its object and its offset there, which
//! `addr2line -e OBJECT OFFSET` turns into a source line.

use super::slots::{FRAMES_MAX, Slot, State};
use crate::platform::kernel;
use crate::platform::libc::{self, Segment};
use crate::settings::line::Line;

/// The kind of misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misuse {
    /// A closed address was read or written, as far as the kernel says which.
    Access { write: Option<bool> },
    /// A block was freed twice.
    FreedTwice,
    /// No block begins at the address that was freed, resized or asked for its size.
    NotABlock,
    /// A freed block was resized or asked for its size.
    UsedFreed,
    /// The pattern beside a block was overwritten, as its free found.
    Written,
}

/// Writes the report about `address`, in this slot; `frames` is the stack of the misuse.
#[cold]
#[inline(never)]
pub(super) fn write(slot: &Slot, address: usize, misuse: Misuse, frames: &[usize]) {
    let mut line = Line::new();
    let thread = kernel::thread_number();
    if slot.state() == State::Unused {
        line.text("masu: an access between guarded blocks: ").address(address);
        line.text(" lies where there was none yet (thread ").number(thread).text(")").write();
        return stack(&mut line, frames);
    }
    describe(&mut line, slot, address, misuse);
    line.text(" (thread ").number(thread).text(")").write();
    stack(&mut line, frames);
    let mut kept = [0; FRAMES_MAX];
    let (thread, count) = slot.allocated(&mut kept);
    line.text("  allocated by thread ").number(thread).text(":").write();
    stack(&mut line, &kept[..count]);
    let (thread, count) = slot.freed(&mut kept);
    if count > 0 {
        line.text("  freed by thread ").number(thread).text(":").write();
        stack(&mut line, &kept[..count]);
    }
    line.text("masu: end of the report; `addr2line -e OBJECT PLACE` says which line of the source")
        .write();
}

/// The kind of misuse, and the address relative to the block.
fn describe(line: &mut Line, slot: &Slot, address: usize, misuse: Misuse) {
    let (block, size) = (slot.address(), slot.size());
    let is_freed = slot.state() != State::Live && misuse != Misuse::Written;
    let is_before = address < block;
    let is_inside = address.wrapping_sub(block) < size;
    let beyond = if is_before { "masu: buffer underflow: " } else { "masu: buffer overflow: " };
    line.text(match misuse {
        Misuse::FreedTwice => "masu: double free: ",
        Misuse::NotABlock => "masu: invalid free: ",
        Misuse::UsedFreed => "masu: use after free: realloc or malloc_usable_size of ",
        Misuse::Written => beyond,
        Misuse::Access { .. } if is_freed => "masu: use after free: ",
        Misuse::Access { .. } => beyond,
    });
    match misuse {
        Misuse::Access { write: None } => line.text("an access at "),
        Misuse::Access { write: Some(true) } => line.text("a write at "),
        Misuse::Access { write: Some(false) } => line.text("a read at "),
        Misuse::Written => line.text("a write seen when the block was freed, at "),
        _ => line,
    };
    line.address(address).text(", ");
    if is_before {
        line.count(block - address).text(" before a ");
    } else if is_inside {
        line.count(address - block).text(" into a ");
    } else {
        line.count(address - block - size).text(" behind the end of a ");
    }
    line.text(if is_freed { "freed block of " } else { "block of " }).count(size);
    line.text(" at ").address(block);
}

/// Writes each frame with its object.
fn stack(line: &mut Line, frames: &[usize]) {
    for (index, frame) in frames.iter().enumerate() {
        line.text("    #").number(index).text(" ").address(*frame);
        libc::for_each_object(&mut |object| {
            let holds = object.segments().iter().any(|segment| {
                let start = object.address.wrapping_add(segment.address);
                segment.kind == Segment::LOADED && frame.wrapping_sub(start) < segment.length
            });
            if holds {
                line.text(" ").raw(object.name().to_bytes()).text("+");
                line.address(frame.wrapping_sub(object.address));
            }
            !holds
        });
        line.write();
    }
}
