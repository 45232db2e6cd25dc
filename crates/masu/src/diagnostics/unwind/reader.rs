//! Reads the numbers of unwind tables in place.
//!
//! Relies on tables being mapped while their object is loaded. A reader never goes beyond its end, so a wrong table can only
//! end the walk.

/// A place in a table, and the table's bounds.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    place: usize,
    start: usize,
    end: usize,
}

/// Encodings of a pointer (Linux Standard Base 5.0, section 10.5.1).
mod encoding {
    pub(super) const OMITTED: u8 = 0xff;
    pub(super) const FORMAT: u8 = 0x0f;
    pub(super) const RELATIVE: u8 = 0x70;
    pub(super) const TO_PLACE: u8 = 0x10;
    pub(super) const TO_DATA: u8 = 0x30;
    pub(super) const INDIRECT: u8 = 0x80;
}

impl Reader {
    /// Reads from `place` up to `end`.
    ///
    /// # Safety
    ///
    /// - These addresses are mapped, readable and do not change while the reader is used.
    pub(super) unsafe fn new(place: usize, end: usize) -> Reader {
        Reader { place, start: place, end }
    }

    pub(super) fn place(&self) -> usize {
        self.place
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.place >= self.end
    }

    /// A reader of the same table at another place; `None` where that is not in it.
    pub(super) fn at(&self, place: usize) -> Option<Reader> {
        (self.start..=self.end).contains(&place).then_some(Reader { place, ..*self })
    }

    /// A reader of the next `length` bytes, which this one skips.
    #[inline(never)]
    pub(super) fn split(&mut self, length: usize) -> Option<Reader> {
        let end = self.place.checked_add(length).filter(|end| *end <= self.end)?;
        let part = Reader { place: self.place, start: self.place, end };
        self.place = end;
        Some(part)
    }

    #[inline(never)]
    pub(super) fn bytes<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let part = self.split(COUNT)?;
        let bytes: *const [u8; COUNT] = core::ptr::with_exposed_provenance(part.place);
        // SAFETY: The bytes lie between the place and the end passed to `new`.
        Some(unsafe { bytes.read() })
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Option<u8> {
        if self.place >= self.end {
            return None;
        }
        let byte: *const u8 = core::ptr::with_exposed_provenance(self.place);
        self.place += 1;
        // SAFETY: The byte lies before the end passed to `new`.
        Some(unsafe { byte.read() })
    }

    /// Counts the rows whose first number is at most `most`, among `count` rows of `width` 4-byte numbers that are
    /// sorted by their first number. `None` where the rows go beyond the end.
    pub(super) fn sorted_up_to(&self, count: usize, width: usize, most: isize) -> Option<usize> {
        let bytes = count.checked_mul(width)?.checked_mul(size_of::<i32>())?;
        if self.end - self.place < bytes {
            return None;
        }
        let rows: *const i32 = core::ptr::with_exposed_provenance(self.place);
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            // SAFETY: The row lies before the end passed to `new`.
            let first = unsafe { rows.add(middle * width).read_unaligned() };
            if first as isize <= most { low = middle + 1 } else { high = middle }
        }
        Some(low)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_ne_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_ne_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_ne_bytes)
    }

    /// An unsigned number of seven bits a byte (ULEB128).
    #[inline(never)]
    pub(super) fn uleb(&mut self) -> Option<usize> {
        let (mut value, mut shift) = (0_usize, 0);
        loop {
            let byte = self.u8()?;
            value |= usize::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    /// A signed number of seven bits a byte (SLEB128).
    #[inline(never)]
    pub(super) fn sleb(&mut self) -> Option<isize> {
        let (mut value, mut shift) = (0_isize, 0);
        loop {
            let byte = self.u8()?;
            value |= isize::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                let is_negative = byte & 0x40 != 0 && shift < isize::BITS;
                return Some(if is_negative { value | -1 << shift } else { value });
            }
        }
    }

    /// A pointer with this encoding, which may be relative to `data`.
    #[inline(never)]
    pub(super) fn pointer(&mut self, encoding: u8, data: usize) -> Option<usize> {
        if encoding == encoding::OMITTED {
            return None;
        }
        let place = self.place;
        let value = match encoding & encoding::FORMAT {
            0x0 | 0x4 | 0xc => self.u64()? as usize,
            0x1 => self.uleb()?,
            0x2 => usize::from(self.u16()?),
            0x3 => self.u32()? as usize,
            0x9 => self.sleb()?.cast_unsigned(),
            0xa => isize::from(self.u16()?.cast_signed()).cast_unsigned(),
            0xb => (self.u32()?.cast_signed() as isize).cast_unsigned(),
            _ => return None,
        };
        let base = match encoding & encoding::RELATIVE {
            0 => 0,
            encoding::TO_PLACE => place,
            encoding::TO_DATA => data,
            _ => return None,
        };
        // An indirect pointer would be read from memory that the dynamic linker writes; functions have none.
        (encoding & encoding::INDIRECT == 0).then(|| base.wrapping_add(value))
    }
}
