//! Contents copied, relocations applied, GOT entries and stubs made.
//!
//! Relies on the table of the CPU. A GOT entry is made only where the instruction cannot be
//! rewritten, so code for a shared library, loaded near its targets, needs almost none.

use std::ops::Range as Bytes;

use object::LittleEndian;

use super::{Batch, Plan, Target, site};
use crate::error::Error;
use crate::kernel;
use crate::memory::Region;
use crate::object::{Object, Rela, Section};
use crate::process::ThreadLocal;
use crate::relocation::{
    Field, HOST, Origin, Quantity, Rewrite, Rule, STUB, Values, Wrong, aarch64, x86_64,
};
use crate::slots::{Shared, Slot};
use crate::storage::{self, Storage};
use crate::unwind;

/// A section while it is written.
struct Place<'b> {
    bytes: &'b mut [u8],
    /// The section's address when its code runs.
    start: usize,
    object: usize,
    section: usize,
}

impl<'a> Batch<'_, 'a> {
    /// Writes everything and seals it.
    pub(super) fn write(&mut self) -> Result<(), Error> {
        let sealed = self.plans.iter().map(|plan| plan.taken.sealed.clone());
        let sealed = self.sealed_pages(sealed);
        let piece = self.piece.clone();
        // SAFETY: The piece was free until now, in whole OS pages.
        unsafe { self.state.range.begin(&piece)? };
        let mut done = self.begin_sealed(&sealed);
        let mut plans = std::mem::take(&mut self.plans);
        if done.is_ok() {
            done =
                (0..plans.len()).try_for_each(|index| self.write_object(index, &mut plans[index]));
        }
        self.plans = plans;
        let filled = if done.is_ok() { self.fill_slots() } else { Ok(()) };
        let closed = self.state.range.end(&piece, Region::Text);
        done.and(filled).and(closed).and(self.end_sealed(&sealed))
    }

    fn begin_sealed(&self, pages: &[Bytes<usize>]) -> Result<(), Error> {
        pages.iter().try_for_each(|pages| {
            // SAFETY: Read-only data may be written by its owner.
            unsafe { self.state.range.begin(pages) }
        })
    }

    /// Seals all of them, whether one fails or not.
    fn end_sealed(&self, pages: &[Bytes<usize>]) -> Result<(), Error> {
        let ended = pages.iter().map(|pages| self.state.range.end(pages, Region::Sealed));
        ended.fold(Ok(()), Result::and)
    }

    /// The OS pages of pieces of read-only data, neighbors joined: one call of the kernel for all instead of one for
    /// each, and no page between them, which another batch may be writing in place. There are none where read-only data
    /// is written through the alias.
    fn sealed_pages(&self, pieces: impl Iterator<Item = Bytes<usize>>) -> Vec<Bytes<usize>> {
        if self.state.range.is_dual() {
            return Vec::new();
        }
        let pieces = pieces.filter(|bytes| !bytes.is_empty());
        let mut pages: Vec<_> = pieces.map(|bytes| self.state.range.pages(&bytes)).collect();
        pages.sort_unstable_by_key(|pages| pages.start);
        pages.dedup_by(|next, before| {
            let joins = next.start <= before.end;
            if joins {
                before.end = before.end.max(next.end);
            }
            joins
        });
        pages
    }

    fn write_object(&mut self, index: usize, plan: &mut Plan) -> Result<(), Error> {
        let inputs = self.inputs;
        let input = &inputs[index];
        for (number, section) in input.object.sections.iter().enumerate() {
            let Some(region) = section.region.filter(|_| !plan.drops(number)) else { continue };
            let start = plan.sections[number];
            let bytes = self.fill(section, region, start);
            let mut place = Place { bytes, start, object: index, section: number };
            for relocation in section.relocations {
                self.apply(&mut place, plan, relocation)?;
            }
            if section.is_frames {
                let texts = own_text(&input.object, plan);
                let frames = unwind::check(place.bytes, start, &texts)
                    .map_err(|why| Error::malformed(input.name, why))?;
                if !frames.is_empty() {
                    // From version 13 on, libgcc finds a table by the range of its code, and aborts where two ranges
                    // begin at one address.
                    if unwind::overlap(&plan.frames, &frames) {
                        let why = "it has two unwind tables of the same code";
                        return Err(Error::malformed(input.name, why));
                    }
                    plan.tables.push(start);
                    plan.frames.extend(frames);
                }
            }
        }
        let fresh = self.state.range.bytes(Region::Data).start + self.state.dirty(Region::Data);
        let clean = |address: usize, size: usize| {
            if address < fresh {
                // SAFETY: The room is this batch's own, and writable data.
                unsafe { std::ptr::write_bytes(address as *mut u8, 0, size) };
            }
        };
        for (_, common) in &plan.commons {
            clean(common.start, common.len());
        }
        let handle = plan.taken.more().handle;
        if handle != 0 {
            clean(handle, 8);
        }
        let text = &plan.taken.text;
        kernel::make_executable(self.state.range.written(text.start), text.start, text.len());
        Ok(())
    }

    /// Copies a section's contents to the place where they are written, with the zeros that belong to it.
    fn fill(&self, section: &Section<'_>, region: Region, start: usize) -> &'static mut [u8] {
        let end = if section.is_frames { super::layout::END_OF_FRAMES } else { 0 };
        let size = section.size + end;
        let copied = section.bytes.len().min(section.size);
        if size == 0 {
            return &mut [];
        }
        let written = self.state.range.written(start) as *mut u8;
        // SAFETY: The room was taken for this section with its size, is writable here, and has no
        // other owner until the batch is done; the slice does not outlive the batch.
        let bytes = unsafe { std::slice::from_raw_parts_mut(written, size) };
        bytes[..copied].copy_from_slice(&section.bytes[..copied]);
        // Fresh pages are zeros already, and long zeros should cost no memory.
        let offset = start - self.state.range.bytes(region).start;
        if copied > 0 || section.is_frames || offset < self.state.dirty(region) {
            bytes[copied..].fill(0);
        }
        bytes
    }

    fn apply(
        &mut self,
        place: &mut Place<'_>,
        plan: &mut Plan,
        relocation: &Rela,
    ) -> Result<(), Error> {
        let inputs = self.inputs;
        let input = &inputs[place.object];
        let number = place.section;
        let at = || site(input, number, relocation);
        let section = &input.object.sections[number];
        let kind = relocation.r_type(LittleEndian, false).0;
        let rule = HOST.rule(kind).ok_or_else(|| Error::Relocation(at()))?;
        let outside = || {
            let why = format!("{}: it lies outside its section", at());
            Error::malformed(input.name, why)
        };
        let offset = relocation.r_offset.get(LittleEndian);
        let offset = usize::try_from(offset).ok().filter(|&offset| offset < section.size);
        if rule.quantity == Quantity::Nothing && rule.rewrite == Rewrite::No {
            return Ok(());
        }
        let offset = offset.ok_or_else(outside)?;
        let symbol = relocation.r_sym(LittleEndian, false) as usize;
        let target = plan.targets.get(symbol).copied().flatten().unwrap_or(Target::Missing);
        let field = match (target, rule.field) {
            // A frame of a function that was dropped: address 0, which unwinders pass over.
            (Target::Discarded, Field::Bytes(..)) if is_of_frames(section) => {
                return rule.field.store(place.bytes, offset, 0).map_err(|_| outside());
            }
            (Target::Discarded, _) => return Err(Error::Discarded(at())),
            (_, field) => field,
        };
        if rule.quantity != Quantity::Branch
            && let Target::Address(address, _) = target
            && let Some((_, is_taken)) = self.entries.get_mut(&address)
        {
            *is_taken = true;
        }
        let addend = relocation.r_addend.get(LittleEndian);
        let here = place.start + offset;
        if let (Rewrite::GotLoad, Target::Address(address, _), -4) = (rule.rewrite, target, addend)
            && x86_64::relax(place.bytes, offset, here, address)
        {
            return Ok(());
        }
        let quantity =
            self.quantity(rule, target, addend, (place, offset, here), plan).map_err(|wrong| {
                match wrong {
                    Trouble::Storage(why) => Error::ThreadLocal { site: at(), why },
                    Trouble::Full(error) => error,
                }
            })?;
        let base = self.state.range.bytes(Region::Sealed).start;
        let value = rule.value(&Values { quantity, addend, place: here, base });
        match field.store(place.bytes, offset, value) {
            Ok(()) => {}
            Err(Wrong::Outside) => return Err(outside()),
            Err(Wrong::Range) if self.reach(rule, place, offset, target, addend, plan)? => {}
            Err(Wrong::Range) => {
                return Err(Error::OutOfRange { site: at(), value, remedy: remedy(rule) });
            }
        }
        if matches!(rule.rewrite, Rewrite::DescriptorLoad | Rewrite::Nop)
            && !aarch64::rewrite(place.bytes, offset, rule.rewrite)
        {
            return Err(outside());
        }
        Ok(())
    }

    /// For code of x86-64 that takes the address of a target too far away: makes the code load the address from the
    /// GOT, as code for shared libraries does. Returns `false` where the code does something else with the address.
    fn reach(
        &mut self,
        rule: &Rule,
        place: &mut Place<'_>,
        offset: usize,
        target: Target,
        addend: i64,
        plan: &mut Plan,
    ) -> Result<bool, Error> {
        let is_near_code = HOST.machine == x86_64::CPU.machine
            && (rule.quantity, rule.origin) == (Quantity::Symbol, Origin::Place);
        let Target::Address(address, _) = target else { return Ok(false) };
        if !is_near_code || !x86_64::is_address(place.bytes, offset) {
            return Ok(false);
        }
        let wanted = address.wrapping_add_signed(addend.wrapping_add(HOST.next) as isize);
        let slot = self.slot(Slot::Address(wanted), plan)?;
        Ok(x86_64::load_address(place.bytes, offset, place.start + offset, slot))
    }

    /// The first term of the rule's formula.
    fn quantity(
        &mut self,
        rule: &Rule,
        target: Target,
        addend: i64,
        (place, offset, here): (&Place<'_>, usize, usize),
        plan: &mut Plan,
    ) -> Result<i128, Trouble> {
        let address = match target {
            Target::Address(address, _) => address,
            Target::Thread(_) | Target::Missing | Target::Discarded => 0,
        };
        let thread = || match target {
            Target::Thread(variable) => Ok(variable),
            _ => Err(Trouble::Storage("it is no thread-local variable of the process")),
        };
        let distance = || {
            let ThreadLocal { module, from_pointer, .. } = thread()?;
            let why = if storage::is_own(module) { OWN_ELSEWHERE } else { LATE };
            from_pointer.ok_or(Trouble::Storage(why))
        };
        // The variable's place in the object's own module, where the code assumes that the variable is in this module.
        let own_module = plan.taken.more().storage.as_ref().map(Storage::module);
        let own = || {
            let variable = thread()?;
            let is_own = own_module == Some(variable.module);
            if is_own { Ok(variable) } else { Err(Trouble::Storage(NOT_OWN)) }
        };
        if matches!(target, Target::Thread(_)) && !is_for_threads(rule.quantity) {
            return Err(Trouble::Storage("a thread-local variable is used like another"));
        }
        Ok(match rule.quantity {
            Quantity::Nothing => 0,
            Quantity::Base => self.state.range.bytes(Region::Sealed).start as i128,
            Quantity::Size => match target {
                Target::Address(_, size) => i128::from(size),
                _ => 0,
            },
            Quantity::Symbol | Quantity::Branch => {
                let section = &self.inputs[place.object].object.sections[place.section];
                let jumps = matches!(rule.field, Field::Bits { .. })
                    || HOST.machine == x86_64::CPU.machine
                        && section.region == Some(Region::Text)
                        && matches!(rule.field, Field::Bytes(4, _))
                        && rule.origin == Origin::Place
                        && x86_64::is_branch(place.bytes, offset);
                let branches = rule.quantity == Quantity::Branch
                    || jumps && HOST.machine == x86_64::CPU.machine;
                let goal = (address as i128 + i128::from(addend)).unsigned_abs();
                let is_far = goal.abs_diff(here as u128) > HOST.branch as u128;
                if branches && is_far && rule.origin == Origin::Place {
                    // An instruction may jump to a place behind the symbol; data is a distance from the stub.
                    let behind = if jumps { addend.wrapping_add(HOST.next) as isize } else { 0 };
                    let stub =
                        self.stub(Slot::Address(address.wrapping_add_signed(behind)), plan)?;
                    stub as i128 - behind as i128
                } else {
                    address as i128
                }
            }
            Quantity::Slot => self.slot(Slot::Address(address), plan)? as i128,
            Quantity::Thread => i128::from(distance()?),
            Quantity::ThreadSlot => self.slot(Slot::Thread(distance()?), plan)? as i128,
            Quantity::ThreadPair => {
                let variable = thread()?;
                self.slot(Slot::Pair(variable.module, variable.offset), plan)? as i128
            }
            Quantity::ThreadModule => {
                let module = own()?.module;
                self.slot(Slot::Pair(module, 0), plan)? as i128
            }
            Quantity::ThreadPlace => i128::from(own()?.offset),
        })
    }

    /// The address of a GOT entry or stub, where it exists; the object uses it from now on.
    fn existing(&mut self, shared: Shared, plan: &mut Plan) -> Option<usize> {
        if plan.taken.shares(shared) {
            return self.state.slots.address(shared);
        }
        let address = self.state.slots.again(shared)?;
        plan.taken.share(shared);
        Some(address)
    }

    fn slot(&mut self, slot: Slot, plan: &mut Plan) -> Result<usize, Error> {
        let shared = Shared::Slot(slot);
        if let Some(address) = self.existing(shared, plan) {
            return Ok(address);
        }
        let taken = self.state.take_slot(slot);
        let address = taken.ok_or_else(|| self.state.full(Region::Sealed, 16))?;
        self.new.push((shared, address));
        plan.taken.share(shared);
        Ok(address)
    }

    pub(super) fn stub(&mut self, slot: Slot, plan: &mut Plan) -> Result<usize, Error> {
        let shared = Shared::Stub(slot);
        let address = match self.existing(shared, plan) {
            Some(address) => address,
            None => {
                let address = self.room_for_stub()?;
                self.state.slots.stub(slot, address);
                self.new.push((shared, address));
                plan.taken.share(shared);
                address
            }
        };
        // The stub's users are also users of the GOT entry that the stub reads.
        if !matches!(slot, Slot::Entry(_)) {
            self.slot(slot, plan)?;
        }
        Ok(address)
    }

    /// The stub that jumps to the target of an entry.
    pub(super) fn entry_stub(&mut self, entry: usize, plan: &mut Plan) -> Result<Target, Error> {
        let address = self.stub(Slot::Entry(entry), plan)?;
        self.entries.entry(address).or_insert((entry, false));
        Ok(Target::Address(address, STUB as u64))
    }

    fn room_for_stub(&mut self) -> Result<usize, Error> {
        if !self.state.range.is_dual() {
            let address = self.stubs.start;
            if address + STUB > self.stubs.end {
                return Err(self.state.full(Region::Text, STUB));
            }
            self.stubs.start += STUB;
            return Ok(address);
        }
        let (start, high) =
            (self.state.range.bytes(Region::Text).start, self.state.space(Region::Text).high());
        let taken = self.state.take(Region::Text, STUB, STUB)?;
        self.reuses_text |= taken.start - start < high;
        Ok(taken.start)
    }

    /// Writes the new GOT entries and stubs.
    fn fill_slots(&mut self) -> Result<(), Error> {
        let slots = self.new.iter().filter_map(|&(shared, address)| match shared {
            Shared::Slot(Slot::Pair(..)) => Some(address..address + 16),
            Shared::Slot(_) => Some(address..address + 8),
            Shared::Stub(_) => None,
        });
        let pages = self.sealed_pages(slots);
        self.begin_sealed(&pages)?;
        for &(shared, address) in &self.new {
            let words = |one: u64, other: u64| -> [u8; STUB] {
                (u128::from(other) << 64 | u128::from(one)).to_le_bytes()
            };
            let (bytes, size) = match shared {
                Shared::Slot(Slot::Address(value)) => (words(value as u64, 0), 8),
                // It is filled in when the function is chosen.
                Shared::Slot(Slot::Chosen(_)) => (words(0, 0), 8),
                Shared::Slot(Slot::Thread(value)) => (words(value.cast_unsigned(), 0), 8),
                Shared::Slot(Slot::Pair(module, offset)) => (words(module, offset), 16),
                Shared::Slot(Slot::Entry(_)) => continue,
                Shared::Stub(slot) => {
                    let reads = match slot {
                        Slot::Entry(entry) => Some(entry),
                        slot => self.state.slots.address(Shared::Slot(slot)),
                    };
                    ((HOST.stub)(address, reads.unwrap_or(0)), STUB)
                }
            };
            let written = self.state.range.written(address) as *mut u8;
            // SAFETY: The room was taken for this entry or stub, and is writable here.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), written, size) };
            if matches!(shared, Shared::Stub(_)) {
                kernel::make_executable(written as usize, address, size);
            }
        }
        self.end_sealed(&pages)
    }
}

/// The reason why a quantity cannot be computed.
enum Trouble {
    Storage(&'static str),
    Full(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Full(error)
    }
}

const LATE: &str = "the variable's library was loaded late, and each thread has it elsewhere: compile with -fPIC and \
     -ftls-model=global-dynamic, or link the program with the library";

const OWN_ELSEWHERE: &str = "a loaded object defines the variable, and each thread has it elsewhere: compile with -fPIC \
     and without -ftls-model (on aarch64 also with -mtls-dialect=trad)";

const NOT_OWN: &str = "the code takes this thread-local variable for one of its own object, and another defines it: \
     compile with -ftls-model=global-dynamic";

fn is_for_threads(quantity: Quantity) -> bool {
    use Quantity::{Nothing, Thread, ThreadModule, ThreadPair, ThreadPlace, ThreadSlot};
    matches!(quantity, Thread | ThreadSlot | ThreadPair | ThreadModule | ThreadPlace | Nothing)
}

/// The address ranges of an object's code.
fn own_text(object: &Object<'_>, plan: &Plan) -> Vec<Bytes<usize>> {
    let sections = object.sections.iter().zip(&plan.sections);
    let texts =
        sections.filter(|(section, start)| section.region == Some(Region::Text) && **start != 0);
    texts.map(|(section, start)| *start..*start + section.size).collect()
}

/// Tables in which a dropped function may be left out, as linkers do.
fn is_of_frames(section: &Section<'_>) -> bool {
    section.is_frames || section.name.starts_with(b".gcc_except_table")
}

/// The remedy for a value that does not fit.
fn remedy(rule: &Rule) -> &'static str {
    match (rule.quantity, rule.origin) {
        (Quantity::Symbol, Origin::Zero) => {
            "; this is code for fixed addresses: compile with -fPIC, or open the arena in the lowest \
             2 GiB (Place::Low, --low of `masu code load`)"
        }
        (Quantity::Symbol, Origin::Place | Origin::Frame) => {
            "; the symbol is too far away: compile with -fPIC, or open the arena near it \
             (Place::NearLibraries where a library has it, Place::Near)"
        }
        _ => "",
    }
}
