//! Expressions: programs of a stack machine, in tables where no simple rule suffices.
//!
//! Relies on the reader. Linkers write them for PLT stubs, and C libraries for signal frames; the operations that those need
//! are supported, any other ends the walk (DWARF 5, section 2.5).

use super::memory::Memory;
use super::reader::Reader;
use super::registers::Registers;

const DEPTH: usize = 16;

struct Machine {
    words: [usize; DEPTH],
    count: usize,
}

impl Machine {
    #[inline(never)]
    fn push(&mut self, word: usize) -> Option<()> {
        *self.words.get_mut(self.count)? = word;
        self.count += 1;
        Some(())
    }

    #[inline(never)]
    fn pop(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        Some(self.words[self.count])
    }

    /// Replaces the two topmost words by the result of an operation.
    #[inline(never)]
    fn combine(&mut self, operation: u8) -> Option<()> {
        let top = self.pop()?;
        let below = self.pop()?;
        let order = below.cast_signed().cmp(&top.cast_signed());
        self.push(match operation {
            // and, minus, mul, or, plus, shl, shr
            0x1a => below & top,
            0x1c => below.wrapping_sub(top),
            0x1e => below.wrapping_mul(top),
            0x21 => below | top,
            0x22 => below.wrapping_add(top),
            0x24 => below.checked_shl(top as u32).unwrap_or(0),
            0x25 => below.checked_shr(top as u32).unwrap_or(0),
            // eq, ge, gt, le, lt, ne, of signed numbers
            0x29 => usize::from(order.is_eq()),
            0x2a => usize::from(order.is_ge()),
            0x2b => usize::from(order.is_gt()),
            0x2c => usize::from(order.is_le()),
            0x2d => usize::from(order.is_lt()),
            _ => usize::from(order.is_ne()),
        })
    }
}

/// The expression's value; `first` is on the stack before it runs.
pub(super) fn evaluate(
    mut code: Reader,
    registers: &Registers,
    first: Option<usize>,
    memory: &mut Memory,
) -> Option<usize> {
    let mut machine = Machine { words: [0; DEPTH], count: 0 };
    if let Some(first) = first {
        machine.push(first)?;
    }
    while !code.is_at_end() {
        match code.u8()? {
            // deref
            0x06 => {
                let address = machine.pop()?;
                machine.push(memory.word_at(address)?)?;
            }
            // const1u, const1s, const2u, const2s, const4u, const4s, const8u, constu, consts
            0x08 => machine.push(usize::from(code.u8()?))?,
            0x09 => machine.push(isize::from(code.u8()?.cast_signed()).cast_unsigned())?,
            0x0a => machine.push(usize::from(code.u16()?))?,
            0x0b => machine.push(isize::from(code.u16()?.cast_signed()).cast_unsigned())?,
            0x0c => machine.push(code.u32()? as usize)?,
            0x0d => machine.push((code.u32()?.cast_signed() as isize).cast_unsigned())?,
            0x0e => machine.push(code.u64()? as usize)?,
            0x10 => machine.push(code.uleb()?)?,
            0x11 => machine.push(code.sleb()?.cast_unsigned())?,
            // dup, drop
            0x12 => {
                let top = machine.pop()?;
                machine.push(top)?;
                machine.push(top)?;
            }
            0x13 => drop(machine.pop()?),
            // plus_uconst
            0x23 => {
                let (more, top) = (code.uleb()?, machine.pop()?);
                machine.push(top.wrapping_add(more))?;
            }
            operation @ (0x1a | 0x1c | 0x1e | 0x21 | 0x22 | 0x24 | 0x25 | 0x29..=0x2e) => {
                machine.combine(operation)?;
            }
            // lit0 to lit31, breg0 to breg31
            literal @ 0x30..=0x4f => machine.push(usize::from(literal - 0x30))?,
            register @ 0x70..=0x8f => {
                let value = registers.get(usize::from(register - 0x70))?;
                machine.push(value.wrapping_add_signed(code.sleb()?))?;
            }
            _ => return None,
        }
    }
    machine.pop()
}
