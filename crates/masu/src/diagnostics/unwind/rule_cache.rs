//! A cache of rules by address: programs allocate from few places, so most walks read no table, only a few words of
//! each frame.
//!
//! Relies on the C library's count of loaded and unloaded objects. Only simple rules are cached: the frame's end is a
//! register plus an offset, and saved registers lie in the frame. The hard idea is invalidation. An address on this
//! thread's stack lies in an object that is loaded now. If its cached rules belong to another object that lay there
//! before, that object was unloaded since, and the count was lower when the rules were cached.

use super::memory::Memory;
use super::registers::{RETURN, Registers, STACK_POINTER};
use super::rules::{Base, Row, Rule};
use crate::platform::kernel::{self, Protection};
use crate::platform::sync::{Guard, Lock, Visit};

/// The most registers that one function saves.
const SAVED_MAX: usize = 12;

/// The rules at one address, where they are simple.
#[derive(Clone, Copy)]
pub(super) struct SimpleRow {
    /// 0 for none: no function is there.
    address: usize,
    /// The frame's end, in bytes from the register's value.
    base_offset: i32,
    base_register: u8,
    /// Whether this is the thread's first function, which has no caller.
    is_first: bool,
    count: u8,
    registers: [u8; SAVED_MAX],
    /// The places of the saved registers, in words from the frame's end.
    places: [i16; SAVED_MAX],
}

const NONE: SimpleRow = SimpleRow {
    address: 0,
    base_offset: 0,
    base_register: 0,
    is_first: false,
    count: 0,
    registers: [0; SAVED_MAX],
    places: [0; SAVED_MAX],
};

const WORD: isize = size_of::<usize>() as isize;

impl SimpleRow {
    /// The rules of `address` in this form, if they are simple.
    pub(super) fn of(address: usize, row: &Row) -> Option<SimpleRow> {
        let Base::Register(register, offset) = row.base else { return None };
        if row.is_signal_frame || !row.is_same(STACK_POINTER) {
            return None;
        }
        let (base_register, base_offset) = (register.try_into().ok()?, offset.try_into().ok()?);
        let mut simple = SimpleRow { address, base_offset, base_register, ..NONE };
        for (register, rule) in row.rules.iter().enumerate() {
            match *rule {
                Rule::Same if register == RETURN => return None,
                Rule::Same => {}
                Rule::Undefined if register == RETURN => simple.is_first = true,
                Rule::SavedAt(offset) if offset % WORD == 0 => {
                    let count = usize::from(simple.count);
                    *simple.registers.get_mut(count)? = register.try_into().ok()?;
                    simple.places[count] = (offset / WORD).try_into().ok()?;
                    simple.count += 1;
                }
                _ => return None,
            }
        }
        Some(simple)
    }

    /// Replaces the registers by the caller's. `None` where there is no caller, or memory cannot be read.
    #[inline]
    pub(super) fn step(&self, registers: &mut Registers, memory: &mut Memory) -> Option<()> {
        let base = registers.get(usize::from(self.base_register))?;
        let base = base.wrapping_add_signed(self.base_offset as isize);
        if self.is_first {
            return None;
        }
        let saved = self.registers.iter().zip(&self.places).take(usize::from(self.count));
        for (register, place) in saved {
            let value = memory.word_at(base.wrapping_add_signed(isize::from(*place) * WORD))?;
            registers.set(usize::from(*register), value);
        }
        registers.enter_caller_simple(base);
        Some(())
    }
}

/// The cache: each address has one place, where another may replace it.
pub(super) struct RuleCache {
    /// The count of object changes for which the places are valid.
    changes: u64,
    places: Option<&'static mut [SimpleRow; PLACES]>,
}

const PLACES: usize = 1024;
const BYTES: usize = size_of::<[SimpleRow; PLACES]>();

static CACHE: Lock<RuleCache> = Lock::new(RuleCache { changes: 0, places: None });

/// The cache, if it is valid while objects have changed `changes` times. A thread that holds its lock takes no lock of
/// the dynamic linker's, because the holder of that lock may wait for this one.
pub(super) fn valid_at(changes: u64) -> Option<Guard<'static, RuleCache>> {
    let mut cache = CACHE.lock();
    cache.is_valid_at(changes).then_some(cache)
}

impl RuleCache {
    /// Whether the cache is valid for this count of changes; clears it where the count is newer.
    fn is_valid_at(&mut self, changes: u64) -> bool {
        if changes > self.changes {
            self.changes = changes;
            if let Some(places) = self.places.as_deref_mut() {
                places.fill(NONE);
            }
        }
        changes == self.changes
    }

    /// The cached rules at `address`.
    #[inline]
    pub(super) fn find(&self, address: usize) -> Option<&SimpleRow> {
        let simple = &self.places.as_deref()?[place_of(address)];
        (simple.address == address).then_some(simple)
    }

    /// Caches rules, unless there is no memory.
    pub(super) fn insert(&mut self, simple: SimpleRow) {
        if self.places.is_none() {
            let Ok(start) = kernel::map(BYTES, Protection::ReadWrite) else { return };
            let places = start.as_ptr().cast::<[SimpleRow; PLACES]>();
            // SAFETY: There are as many bytes, aligned to an OS page, and nothing else uses them.
            unsafe { places.write([NONE; PLACES]) };
            // SAFETY: Written just now, never freed, and reached through the lock alone.
            self.places = Some(unsafe { &mut *places });
        }
        if let Some(places) = self.places.as_deref_mut() {
            places[place_of(simple.address)] = simple;
        }
    }
}

fn place_of(address: usize) -> usize {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - PLACES.ilog2())
}

/// Visits this module's lock, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    visit.see(CACHE.raw());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simple(address: usize) -> SimpleRow {
        SimpleRow { address, ..NONE }
    }

    #[test]
    fn rules_of_unloaded_objects_are_forgotten() {
        let mut cache = RuleCache { changes: 7, places: None };
        assert!(cache.find(16).is_none());
        cache.insert(simple(16));
        cache.insert(simple(32));
        assert!(cache.find(16).is_some() && cache.find(32).is_some() && cache.find(48).is_none());
        assert!(cache.is_valid_at(7) && cache.find(16).is_some());
        assert!(!cache.is_valid_at(6), "it may be of what is not loaded any more");
        assert!(cache.find(16).is_some());
        assert!(cache.is_valid_at(8) && cache.find(16).is_none() && cache.find(32).is_none());
    }

    #[test]
    fn unusual_rules_are_not_kept() {
        let rules = [Rule::Same; crate::diagnostics::unwind::registers::COUNT];
        let base = Base::Register(STACK_POINTER, 16);
        let mut row = Row { base, rules, is_signal_frame: false };
        assert!(SimpleRow::of(16, &row).is_none(), "nothing says where the caller goes on");
        row.rules[RETURN] = Rule::SavedAt(-WORD);
        assert!(
            SimpleRow::of(16, &row).is_some_and(|simple| simple.count == 1 && !simple.is_first)
        );
        assert!(SimpleRow::of(16, &Row { is_signal_frame: true, ..row }).is_none());
        assert!(SimpleRow::of(16, &Row { base: Base::Unknown, ..row }).is_none());
        row.rules[RETURN] = Rule::SavedAt(-4);
        assert!(SimpleRow::of(16, &row).is_none());
        row.rules[RETURN] = Rule::Undefined;
        assert!(SimpleRow::of(16, &row).is_some_and(|simple| simple.is_first));
    }
}
