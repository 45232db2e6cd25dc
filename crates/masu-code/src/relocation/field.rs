//! Fields that take a value: whole bytes, or bits of an instruction, and their limits.
//!
//! Some fields of aarch64 take bits from the middle of the value, so the limit covers the bits below them
//! too.

/// The values that a field can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fits {
    Signed,
    Unsigned,
    /// Signed or unsigned: the bits are the same.
    Either,
    /// Any value, cut off.
    Any,
}

impl Fits {
    /// Whether `value` fits into `bits` bits.
    pub(crate) fn holds(self, value: i128, bits: u32) -> bool {
        let (half, whole) = (1_i128 << (bits - 1), 1_i128 << bits);
        match self {
            Fits::Signed => (-half..half).contains(&value),
            Fits::Unsigned => (0..whole).contains(&value),
            Fits::Either => (-half..whole).contains(&value),
            Fits::Any => true,
        }
    }
}

/// The place of a value among the bytes at a relocation's offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Nothing,
    /// A little-endian number of this many bytes.
    Bytes(u32, Fits),
    /// `bits` bits of the value from bit `from` on, at bit `at` of an instruction; the bits below `from` must be zero
    /// where `exact`.
    Bits {
        from: u32,
        bits: u32,
        at: u32,
        fits: Fits,
        exact: bool,
    },
    /// The 21 bits of ADR and ADRP, in two pieces, from bit `from` of the value on.
    Adr {
        from: u32,
        fits: Fits,
    },
    /// 16 bits of MOVZ or MOVN from bit `from` of the value on; the sign chooses the instruction.
    MoveSigned {
        from: u32,
    },
}

/// The reason why a value was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The value does not fit the field.
    Range,
    /// The bytes are not all in the section.
    Outside,
}

/// Four bytes of the section as an instruction.
fn instruction(bytes: &mut [u8], offset: usize) -> Result<&mut [u8; 4], Wrong> {
    let end = offset.checked_add(4).ok_or(Wrong::Outside)?;
    bytes.get_mut(offset..end).and_then(|bytes| bytes.try_into().ok()).ok_or(Wrong::Outside)
}

fn insert(bytes: &mut [u8; 4], mask: u32, bits: u32) {
    let old = u32::from_le_bytes(*bytes);
    *bytes = (old & !mask | bits & mask).to_le_bytes();
}

fn low(bits: u32) -> u32 {
    u32::try_from((1_u64 << bits) - 1).unwrap_or(u32::MAX)
}

impl Field {
    /// Stores `value` at `offset` of a section's bytes.
    pub(crate) fn store(self, bytes: &mut [u8], offset: usize, value: i128) -> Result<(), Wrong> {
        let all = value.cast_unsigned() as u64;
        match self {
            Field::Nothing => {}
            Field::Bytes(width, fits) => {
                let end = offset.checked_add(width as usize).ok_or(Wrong::Outside)?;
                let to = bytes.get_mut(offset..end).ok_or(Wrong::Outside)?;
                if !fits.holds(value, width * 8) {
                    return Err(Wrong::Range);
                }
                to.copy_from_slice(&all.to_le_bytes()[..width as usize]);
            }
            Field::Bits { from, bits, at, fits, exact } => {
                let to = instruction(bytes, offset)?;
                if !fits.holds(value, from + bits) || exact && all & u64::from(low(from)) != 0 {
                    return Err(Wrong::Range);
                }
                let mask = low(bits);
                insert(to, mask << at, ((all >> from) as u32 & mask) << at);
            }
            Field::Adr { from, fits } => {
                let to = instruction(bytes, offset)?;
                if !fits.holds(value, from + 21) {
                    return Err(Wrong::Range);
                }
                let value = (all >> from) as u32;
                let pieces = (value & 3) << 29 | (value >> 2 & low(19)) << 5;
                insert(to, 3 << 29 | low(19) << 5, pieces);
            }
            Field::MoveSigned { from } => {
                let to = instruction(bytes, offset)?;
                if from < 48 && !Fits::Signed.holds(value, from + 17) {
                    return Err(Wrong::Range);
                }
                let (bits, positive) = if value < 0 { (!all, 0) } else { (all, 1) };
                let field = (bits >> from) as u32 & 0xffff;
                insert(to, 0xffff << 5 | 1 << 30, field << 5 | positive << 30);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_stores_nothing() {
        let mut bytes = [0; 8];
        for (fits, good, bad) in [
            (Fits::Signed, [-0x8000_0000, 0x7fff_ffff], [-0x8000_0001, 0x8000_0000]),
            (Fits::Unsigned, [0, 0xffff_ffff], [-1, 0x1_0000_0000]),
            (Fits::Either, [-0x8000_0000, 0xffff_ffff], [-0x8000_0001, 0x1_0000_0000]),
        ] {
            let field = Field::Bytes(4, fits);
            assert!(good.iter().all(|&value| field.store(&mut bytes, 2, value).is_ok()));
            bytes = [0; 8];
            assert!(
                bad.iter().all(|&value| field.store(&mut bytes, 2, value) == Err(Wrong::Range))
            );
            assert_eq!(bytes, [0; 8]);
        }
    }

    #[test]
    fn offsets_outside_the_section_are_refused() {
        let mut bytes = [0; 8];
        let field = Field::Bytes(4, Fits::Any);
        for offset in [5, 8, usize::MAX - 1, usize::MAX] {
            assert_eq!(field.store(&mut bytes, offset, 0), Err(Wrong::Outside));
            let adr = Field::Adr { from: 0, fits: Fits::Signed };
            assert_eq!(adr.store(&mut bytes, offset, 0), Err(Wrong::Outside));
        }
    }

    #[test]
    fn instructions_keep_their_other_bits() {
        // `bl .` becomes `bl .+8`; `adrp x3, .` becomes `adrp x3, .+0x5000`.
        let call = Field::Bits { from: 2, bits: 26, at: 0, fits: Fits::Signed, exact: true };
        let mut bytes = 0x9400_0000_u32.to_le_bytes();
        call.store(&mut bytes, 0, 8).unwrap();
        assert_eq!(u32::from_le_bytes(bytes), 0x9400_0002);
        assert_eq!(call.store(&mut bytes, 0, 6), Err(Wrong::Range));
        assert_eq!(call.store(&mut bytes, 0, 1 << 27), Err(Wrong::Range));
        let mut bytes = 0x9000_0003_u32.to_le_bytes();
        Field::Adr { from: 12, fits: Fits::Signed }.store(&mut bytes, 0, 0x5000).unwrap();
        assert_eq!(u32::from_le_bytes(bytes), 0xb000_0023);
        let mut bytes = 0xd280_0001_u32.to_le_bytes();
        Field::MoveSigned { from: 0 }.store(&mut bytes, 0, -2).unwrap();
        assert_eq!(u32::from_le_bytes(bytes), 0x9280_0021, "movn x1, #1");
    }
}
