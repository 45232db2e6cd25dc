//! Rules: where a function saves its caller's registers, from the object's unwind tables.
//!
//! Relies on the reader. A table of contents sorted by address (`.eh_frame_hdr`) leads to a function's entry (FDE),
//! which leads to an entry that many functions share (CIE). Both hold instructions that fill in a row of rules; they
//! are run up to the address in question.

use super::objects::Tables;
use super::reader::Reader;
use super::registers::COUNT;

/// The end of the frame (the CFA), which the other rules refer to.
#[derive(Clone, Copy)]
pub(super) enum Base {
    Unknown,
    Register(usize, isize),
    /// The place of an expression.
    Expression(usize),
}

/// The place of a register of the caller.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    Same,
    Undefined,
    /// In memory, at this offset from the base.
    SavedAt(isize),
    /// The base plus this offset.
    Is(isize),
    Register(usize),
    /// The place of an expression: a reader would make a row twice as long, and the smallest stack of a thread holds six.
    SavedAtExpression(usize),
    IsExpression(usize),
}

/// The rules at one address.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) base: Base,
    pub(super) rules: [Rule; COUNT],
    /// Whether a signal made the frame, so that its "caller" was interrupted and did not call.
    pub(super) is_signal_frame: bool,
}

impl Row {
    #[inline(never)]
    fn empty(is_signal_frame: bool) -> Row {
        Row { base: Base::Unknown, rules: core::array::from_fn(|_| Rule::Same), is_signal_frame }
    }

    pub(super) fn is_same(&self, register: usize) -> bool {
        self.rules.get(register).is_none_or(|rule| matches!(rule, Rule::Same))
    }

    #[inline(never)]
    fn set(&mut self, register: usize, rule: Rule) {
        // Vector registers and the like are ignored.
        if let Some(place) = self.rules.get_mut(register) {
            *place = rule;
        }
    }
}

/// The entry that functions share (CIE).
struct Common {
    code_unit: usize,
    data_unit: isize,
    pointers: u8,
    has_augmentation: bool,
    is_signal_frame: bool,
    instructions: Reader,
}

/// The rules at `address`, which these tables cover. Not inlined: its rows leave the stack before the walk goes on.
#[inline(never)]
pub(super) fn find(tables: &Tables, address: usize) -> Option<Row> {
    let mut entry = entry_for(tables, address)?;
    let length = entry.u32()? as usize;
    let mut body = entry.split(length)?;
    let at = body.place();
    let distance = body.u32()? as usize;
    let common = Common::at(tables.all.at(at.checked_sub(distance)?)?)?;
    let start = body.pointer(common.pointers, tables.contents_start)?;
    let span = body.pointer(common.pointers & 0x0f, 0)?;
    if address.wrapping_sub(start) >= span {
        return None;
    }
    if common.has_augmentation {
        let length = body.uleb()?;
        body.split(length)?;
    }
    let mut run = Run {
        row: Row::empty(common.is_signal_frame),
        first: Row::empty(false),
        remembered: [None; REMEMBERED],
        remembered_count: 0,
        location: start,
        address,
    };
    run.instructions(&common, common.instructions)?;
    run.first = run.row;
    run.instructions(&common, body)?;
    Some(run.row)
}

/// The entry (FDE) of the function that holds `address`.
#[inline(never)]
fn entry_for(tables: &Tables, address: usize) -> Option<Reader> {
    // All linkers write pairs of 4-byte numbers relative to the table's start.
    const SORTED_PAIRS: u8 = 0x3b;
    const VERSION: u8 = 1;
    let mut contents = tables.contents;
    let data = tables.contents_start;
    let [version, tables_encoding, count_encoding, pairs_encoding] = contents.bytes()?;
    if version != VERSION || pairs_encoding != SORTED_PAIRS {
        return None;
    }
    contents.pointer(tables_encoding, data)?;
    let count = contents.pointer(count_encoding, data)?;
    let pairs = contents;
    let distance = address.wrapping_sub(data).cast_signed();
    let row = pairs.sorted_up_to(count, 2, distance)?.checked_sub(1)?;
    let mut pair = pairs.at(pairs.place() + row * 8)?;
    pair.pointer(SORTED_PAIRS, data)?;
    tables.all.at(pair.pointer(SORTED_PAIRS, data)?)
}

impl Common {
    /// `units` of data in bytes. Wraps, because a wrong table may have any number; addresses made of it are checked before
    /// they are read.
    fn offset(&self, units: isize) -> isize {
        units.wrapping_mul(self.data_unit)
    }

    #[inline(never)]
    fn at(mut entry: Reader) -> Option<Common> {
        let length = entry.u32()? as usize;
        let mut body = entry.split(length)?;
        let _identifier = body.u32()?;
        let version = body.u8()?;
        let mut letters = body;
        while body.u8()? != 0 {}
        let code_unit = body.uleb()?;
        let data_unit = body.sleb()?;
        let _return_register = if version == 1 { usize::from(body.u8()?) } else { body.uleb()? };
        let mut common = Common {
            code_unit,
            data_unit,
            pointers: 0,
            has_augmentation: false,
            is_signal_frame: false,
            instructions: body,
        };
        loop {
            match letters.u8()? {
                0 => break,
                b'z' => {
                    let length = body.uleb()?;
                    common.instructions = body;
                    common.instructions.split(length)?;
                    common.has_augmentation = true;
                }
                b'R' => common.pointers = body.u8()?,
                b'P' => {
                    let encoding = body.u8()? & 0x7f;
                    body.pointer(encoding, 0)?;
                }
                b'L' => drop(body.u8()?),
                b'S' => common.is_signal_frame = true,
                // Signed return addresses, memory tags.
                b'B' | b'G' => {}
                _ => return None,
            }
        }
        if !common.has_augmentation {
            common.instructions = body;
        }
        Some(common)
    }
}

const REMEMBERED: usize = 4;

/// The state of running instructions.
struct Run {
    row: Row,
    /// The row after the common instructions.
    first: Row,
    remembered: [Option<Row>; REMEMBERED],
    remembered_count: usize,
    /// The code address from which the row holds.
    location: usize,
    /// The address in question.
    address: usize,
}

impl Run {
    /// Runs instructions up to the address (DWARF 5, section 6.4.2).
    fn instructions(&mut self, common: &Common, mut code: Reader) -> Option<()> {
        while !code.is_at_end() {
            let byte = code.u8()?;
            let operand = usize::from(byte & 0x3f);
            match byte >> 6 {
                1 => self.advance(operand, common),
                2 => {
                    let offset = common.offset(code.uleb()?.cast_signed());
                    self.row.set(operand, Rule::SavedAt(offset));
                }
                3 => self.restore(operand),
                _ => self.instruction(byte, common, &mut code)?,
            }
            if self.location > self.address {
                return Some(());
            }
        }
        Some(())
    }

    /// Advances the location by units of code.
    fn advance(&mut self, units: usize, common: &Common) {
        self.location = self.location.wrapping_add(units.wrapping_mul(common.code_unit));
    }

    #[inline(never)]
    fn restore(&mut self, register: usize) {
        let rule = self.first.rules.get(register).copied().unwrap_or(Rule::Same);
        self.row.set(register, rule);
    }

    fn instruction(&mut self, byte: u8, common: &Common, code: &mut Reader) -> Option<()> {
        match byte {
            0x00 => return Some(()),
            0x01 => self.location = code.pointer(common.pointers, 0)?,
            0x02 => self.advance(usize::from(code.u8()?), common),
            0x03 => self.advance(usize::from(code.u16()?), common),
            0x04 => self.advance(code.u32()? as usize, common),
            _ => return self.rule(byte, common, code),
        }
        Some(())
    }

    /// Runs an instruction that changes the row.
    fn rule(&mut self, byte: u8, common: &Common, code: &mut Reader) -> Option<()> {
        let row = &mut self.row;
        match byte {
            0x05 => {
                let register = code.uleb()?;
                row.set(register, Rule::SavedAt(common.offset(code.uleb()?.cast_signed())));
            }
            0x06 => {
                let register = code.uleb()?;
                self.restore(register);
            }
            0x07 => row.set(code.uleb()?, Rule::Undefined),
            0x08 => row.set(code.uleb()?, Rule::Same),
            0x09 => row.set(code.uleb()?, Rule::Register(code.uleb()?)),
            0x0a => {
                *self.remembered.get_mut(self.remembered_count)? = Some(*row);
                self.remembered_count += 1;
            }
            0x0b => {
                self.remembered_count = self.remembered_count.checked_sub(1)?;
                *row = self.remembered[self.remembered_count]?;
            }
            0x0c => row.base = Base::Register(code.uleb()?, code.uleb()?.cast_signed()),
            0x0d => row.base = Base::Register(code.uleb()?, row.base.offset()?),
            0x0e => row.base = Base::Register(row.base.register()?, code.uleb()?.cast_signed()),
            0x0f => row.base = Base::Expression(block(code)?),
            0x10 => row.set(code.uleb()?, Rule::SavedAtExpression(block(code)?)),
            0x11 => {
                let register = code.uleb()?;
                row.set(register, Rule::SavedAt(common.offset(code.sleb()?)));
            }
            0x12 => row.base = Base::Register(code.uleb()?, common.offset(code.sleb()?)),
            0x13 => {
                row.base = Base::Register(row.base.register()?, common.offset(code.sleb()?));
            }
            0x14 => {
                let register = code.uleb()?;
                row.set(register, Rule::Is(common.offset(code.uleb()?.cast_signed())));
            }
            0x15 => {
                let register = code.uleb()?;
                row.set(register, Rule::Is(common.offset(code.sleb()?)));
            }
            0x16 => row.set(code.uleb()?, Rule::IsExpression(block(code)?)),
            // The instruction says whether the return address is signed: the signature is cut off in any case.
            0x2d => {}
            0x2e => drop(code.uleb()?),
            0x2f => {
                let register = code.uleb()?;
                let units = code.uleb()?.cast_signed().wrapping_neg();
                row.set(register, Rule::SavedAt(common.offset(units)));
            }
            _ => return None,
        }
        Some(())
    }
}

impl Base {
    fn register(self) -> Option<usize> {
        if let Base::Register(register, _) = self { Some(register) } else { None }
    }

    fn offset(self) -> Option<isize> {
        if let Base::Register(_, offset) = self { Some(offset) } else { None }
    }
}

/// The place of an expression, which is skipped: its length, then its bytes.
#[inline(never)]
fn block(code: &mut Reader) -> Option<usize> {
    let place = code.place();
    let length = code.uleb()?;
    code.split(length)?;
    Some(place)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// Runs instructions with these units.
    fn run(code: &[u8], code_unit: usize, data_unit: isize) -> Option<Row> {
        let start = code.as_ptr().expose_provenance();
        // SAFETY: The bytes outlive the reader.
        let instructions = unsafe { Reader::new(start, start + code.len()) };
        let common = Common {
            code_unit,
            data_unit,
            pointers: 0,
            has_augmentation: false,
            is_signal_frame: false,
            instructions,
        };
        let mut run = Run {
            row: Row { base: Base::Register(7, 8), ..Row::empty(false) },
            first: Row::empty(false),
            remembered: [None; REMEMBERED],
            remembered_count: 0,
            location: usize::MAX - 1,
            address: usize::MAX,
        };
        run.instructions(&common, instructions)?;
        Some(run.row)
    }

    /// The largest and the smallest number in seven bits a byte.
    const MOST: [u8; 10] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    const LEAST: [u8; 10] = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f];

    #[test]
    fn a_wrong_table_gives_some_row_or_none() {
        for instruction in 0..=u8::MAX {
            for number in [MOST, LEAST] {
                let registers: [&[u8]; 2] = [&[], &[3]];
                for register in registers {
                    let code: Vec<u8> =
                        [&[instruction][..], register, &number[..], &number[..]].concat();
                    for data_unit in [isize::MIN, -1, isize::MAX] {
                        let _ = run(&code, usize::MAX, data_unit);
                    }
                }
            }
        }
    }

    #[test]
    fn offsets_are_units_of_the_table_s() {
        // `offset(register 6, 2)` in its short form, in its extended signed form, then the base.
        let row = run(&[0x86, 2, 0x11, 3, 0x7f, 0x12, 7, 0x7e], 1, -8).expect("right");
        assert!(matches!(row.rules[6], Rule::SavedAt(-16)));
        assert!(matches!(row.rules[3], Rule::SavedAt(8)));
        assert!(matches!(row.base, Base::Register(7, 16)));
    }
}
