//! Relocations as data: one table for each CPU.
//!
//! A type is a *formula* (a quantity plus the addend, less an origin) and a *field* (the bits that take the value, and
//! its limits), as the ABI supplements of the ELF specification write them; only rewritten instructions need code.

pub(crate) mod aarch64;
mod field;
pub(crate) mod x86_64;

pub(crate) use field::{Field, Fits, Wrong};

/// The reach of a signed displacement of 32 bits, less the most that instructions and addends may add.
pub(crate) const REACH: usize = (2 << 30) - (1 << 20);

/// The first term of a formula. The letters are those of the ABI supplements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Nothing is stored.
    Nothing,
    /// S: the symbol's address.
    Symbol,
    /// L: the symbol's address, or the address of a stub that jumps there, where the symbol is out of reach.
    Branch,
    /// G: the address of the GOT entry with the symbol's address.
    Slot,
    /// The address that the GOT is counted from.
    Base,
    /// Z: the symbol's size.
    Size,
    /// The thread-local variable's distance from the thread pointer.
    Thread,
    /// The address of the GOT entry with that distance.
    ThreadSlot,
    /// The address of two GOT entries: the variable's module and its place there.
    ThreadPair,
    /// The address of two GOT entries: the object's own module and 0.
    ThreadModule,
    /// The variable's place in the object's own module.
    ThreadPlace,
}

/// The term that a formula subtracts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Zero,
    /// P: the address of the place that is patched.
    Place,
    /// The address that the GOT is counted from.
    Base,
    /// The 4 KiB frame of P, which is subtracted from the frame of the sum.
    Frame,
    /// The 4 KiB frame of the GOT's beginning.
    BaseFrame,
}

/// Instructions that are rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewrite {
    No,
    /// x86-64: a load from the GOT becomes the address itself, where it is in reach.
    GotLoad,
    /// aarch64: the load of a TLS descriptor becomes the load of a distance.
    DescriptorLoad,
    /// aarch64: an instruction that is not needed any more.
    Nop,
}

/// A type of relocation.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    pub(crate) quantity: Quantity,
    pub(crate) origin: Origin,
    pub(crate) field: Field,
    pub(crate) rewrite: Rewrite,
}

const fn rule(number: u32, name: &'static str, formula: (Quantity, Origin), field: Field) -> Rule {
    Rule { number, name, quantity: formula.0, origin: formula.1, field, rewrite: Rewrite::No }
}

/// A CPU: its table and its stubs.
pub(crate) struct Cpu {
    pub(crate) machine: u16,
    pub(crate) name: &'static str,
    rules: &'static [Rule],
    /// The reach of a branch, in bytes.
    pub(crate) branch: usize,
    /// The distance from the field of a branch to the place that it counts from, in bytes.
    pub(crate) next: i64,
    /// The largest range whose text branches can cross.
    pub(crate) largest: usize,
    /// Makes the bytes of a stub at `at` that jumps to the address in the GOT entry at `slot`.
    pub(crate) stub: fn(at: usize, slot: usize) -> [u8; STUB],
}

/// Bytes of a stub.
pub(crate) const STUB: usize = 16;

impl Cpu {
    /// The rule for a type; `None` where the table has none.
    pub(crate) fn rule(&self, number: u32) -> Option<&'static Rule> {
        // Types are dense at the front of x86-64's table, so most are found at once.
        match self.rules.get(number as usize) {
            Some(rule) if rule.number == number => Some(rule),
            _ => self.rules.iter().find(|rule| rule.number == number),
        }
    }
}

/// The CPU that this program runs on.
#[cfg(target_arch = "x86_64")]
pub(crate) const HOST: &Cpu = &x86_64::CPU;

/// The CPU that this program runs on.
#[cfg(target_arch = "aarch64")]
pub(crate) const HOST: &Cpu = &aarch64::CPU;

/// Every CPU that has a table.
pub(crate) static CPUS: [&Cpu; 2] = [&x86_64::CPU, &aarch64::CPU];

/// The terms of one relocation; terms that its rule does not use are 0.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Values {
    /// The value of the rule's [`Quantity`].
    pub(crate) quantity: i128,
    pub(crate) addend: i64,
    pub(crate) place: usize,
    pub(crate) base: usize,
}

impl Rule {
    /// The value to store.
    pub(crate) fn value(&self, values: &Values) -> i128 {
        let Values { quantity, addend, place, base } = *values;
        let sum = quantity + i128::from(addend);
        let frame = |address: i128| address & !0xfff;
        match self.origin {
            Origin::Zero => sum,
            Origin::Place => sum - place as i128,
            Origin::Base => sum - base as i128,
            Origin::Frame => frame(sum) - frame(place as i128),
            Origin::BaseFrame => sum - frame(base as i128),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_type_stands_twice_in_a_table() {
        for cpu in CPUS {
            let mut numbers: Vec<u32> = cpu.rules.iter().map(|rule| rule.number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), cpu.rules.len(), "{}", cpu.name);
        }
    }
}
