//! Unwind tables: whether an object's `.eh_frame` can be trusted to the unwinder, and telling it.
//!
//! Relies on libgcc's `__register_frame`, found through the dynamic linker. The one hard idea:
//! unwinders walk these tables without asking whether they end, so their structure is checked
//! first. Each object is registered by itself, because newer unwinders keep one span of addresses
//! for each registration and spans must not overlap.

use std::sync::OnceLock;

use crate::process;

/// What the pieces of a table are coded in.
const OMITTED: u8 = 0xff;

/// Reads a table from its beginning.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn word(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn leb(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Steps over a pointer.
    fn pointer(&mut self, encoding: u8) -> Option<()> {
        if encoding == OMITTED {
            return Some(());
        }
        match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.take(8)?,
            0x02 | 0x0a => self.take(2)?,
            0x03 | 0x0b => self.take(4)?,
            0x01 | 0x09 => return self.leb().map(drop),
            _ => return None,
        };
        Some(())
    }
}

/// A common information entry: where it begins and how its users code addresses.
struct Common {
    at: usize,
    encoding: u8,
    has_length: bool,
}

/// Whether the table is one that an unwinder can walk: every length inside it, every frame with a
/// common entry before it, every augmentation known. An error says where it is not.
pub(crate) fn check(table: &[u8]) -> Result<(), String> {
    let mut commons: Vec<Common> = Vec::new();
    let mut at = 0;
    while at < table.len() {
        let wrong = || format!("the unwind table is broken at offset {at:#x}");
        let mut reader = Reader { bytes: table, at };
        let length = reader.word().ok_or_else(wrong)? as usize;
        if length == 0 {
            // The end; compilers put nothing behind it.
            return if table[at..].iter().all(|&byte| byte == 0) { Ok(()) } else { Err(wrong()) };
        }
        let (body, end) = (at + 4, at.saturating_add(4).saturating_add(length));
        let bytes = table.get(..end).ok_or_else(wrong)?;
        let mut reader = Reader { bytes, at: body };
        let identity = reader.word().ok_or_else(wrong)? as usize;
        if identity == 0 {
            commons.push(common(at, &mut reader).ok_or_else(wrong)?);
        } else {
            let parent = body.checked_sub(identity);
            let parent = commons.iter().rev().find(|common| Some(common.at) == parent);
            frame(parent.ok_or_else(wrong)?, &mut reader).ok_or_else(wrong)?;
        }
        at = end;
    }
    Ok(())
}

fn common<'a>(at: usize, reader: &mut Reader<'a>) -> Option<Common> {
    let version = reader.byte()?;
    let start = reader.at;
    let letters = reader.bytes.get(start..)?.iter().position(|&byte| byte == 0)?;
    reader.at += letters + 1;
    if !matches!(version, 1 | 3) {
        return None;
    }
    reader.leb()?;
    reader.leb()?;
    if version == 1 {
        reader.byte()?;
    } else {
        reader.leb()?;
    }
    let bytes = reader.bytes;
    let letters = &bytes[start..start + letters];
    let Some(b'z') = letters.first() else {
        // The oldest kind has no augmentation at all.
        return letters.is_empty().then_some(Common { at, encoding: 0, has_length: false });
    };
    let length = usize::try_from(reader.leb()?).ok()?;
    let end = reader.at.checked_add(length).filter(|&end| end <= reader.bytes.len())?;
    let mut encoding = 0;
    for &letter in &letters[1..] {
        match letter {
            b'R' => encoding = reader.byte()?,
            b'L' => drop(reader.byte()?),
            b'P' => {
                let kind = reader.byte()?;
                reader.pointer(kind)?;
            }
            b'S' | b'B' | b'G' => {}
            _ => return None,
        }
    }
    // Absolute or relative to the place, by a number or an address, and nothing else.
    let known = matches!(encoding & 0x70, 0x00 | 0x10) && encoding & 0x80 == 0;
    let sized = matches!(encoding & 0x0f, 0x00 | 0x03 | 0x04 | 0x0b | 0x0c);
    (reader.at <= end && known && sized).then_some(Common { at, encoding, has_length: true })
}

fn frame(parent: &Common, reader: &mut Reader<'_>) -> Option<()> {
    reader.pointer(parent.encoding)?;
    reader.pointer(parent.encoding & 0x0f)?;
    if parent.has_length {
        let length = usize::try_from(reader.leb()?).ok()?;
        reader.take(length)?;
    }
    Some(())
}

type Tell = unsafe extern "C" fn(*const u8);

fn functions() -> Option<(Tell, Tell)> {
    static FOUND: OnceLock<Option<(Tell, Tell)>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // LLVM's unwinder has functions of the same names that take something else.
        if process::symbol(b"__unw_add_dynamic_eh_frame_section").is_some() {
            return None;
        }
        let find = |name: &[u8]| {
            let address = process::symbol(name)?;
            // SAFETY: libgcc's functions have this type.
            Some(unsafe { std::mem::transmute::<usize, Tell>(address) })
        };
        Some((find(b"__register_frame")?, find(b"__deregister_frame")?))
    })
}

/// Tells the unwinder of a table; `false` where this process has none to tell.
///
/// # Safety
///
/// - The table passed [`check`] before it was relocated, ends with four zeros, and stays until
///   [`deregister`].
pub(crate) unsafe fn register(table: usize) -> bool {
    let Some((register, _)) = functions() else { return false };
    // SAFETY: The caller's conditions.
    unsafe { register(table as *const u8) };
    true
}

/// Takes a table back.
///
/// # Safety
///
/// - It was registered, once.
pub(crate) unsafe fn deregister(table: usize) {
    if let Some((_, deregister)) = functions() {
        // SAFETY: The caller's condition.
        unsafe { deregister(table as *const u8) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A common entry `zR` with addresses relative to the place, and a frame of it.
    fn table() -> Vec<u8> {
        let mut table =
            vec![16, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0, 0, 0];
        table.extend([16, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        table
    }

    #[test]
    fn a_table_as_compilers_write_it_is_fine() {
        assert_eq!(check(&table()), Ok(()));
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[0; 8]), Ok(()));
    }

    #[test]
    fn broken_tables_are_told() {
        // Lengths, the parent, the version, letters, encodings, and the end.
        for (at, value) in
            [(0, 200), (4, 9), (8, 7), (10, b'Q'), (15, 9), (16, 0x2b), (20, 255), (24, 8)]
        {
            let mut broken = table();
            broken[at] = value;
            assert!(check(&broken).is_err(), "{at}");
        }
        for length in 1..table().len() {
            assert!(length == 20 || check(&table()[..length]).is_err(), "{length}");
        }
    }
}
