//! Unwind tables: whether an object's `.eh_frame` can be trusted to the unwinder.
//!
//! [`frames`] registers the tables. Unwinders trust a table's end and its frames' addresses, so both are checked
//! first, after relocation.

mod frames;

use std::ops::Range as Bytes;

pub(crate) use frames::{Frame, Frames, Table};

/// The encoding of a piece that a table leaves out.
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

    /// Steps over a pointer; returns its bytes as a number, without the base that it is relative to.
    fn pointer(&mut self, encoding: u8) -> Option<usize> {
        if encoding == OMITTED {
            return Some(0);
        }
        let (size, signed) = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => (8, false),
            0x02 => (2, false),
            0x0a => (2, true),
            0x03 => (4, false),
            0x0b => (4, true),
            0x01 | 0x09 => return self.leb().map(|value| value as usize),
            _ => return None,
        };
        let bytes = self.take(size)?;
        let filling = if signed && bytes[size - 1] >= 0x80 { 0xff } else { 0 };
        let mut word = [filling; 8];
        word[..size].copy_from_slice(bytes);
        Some(usize::from_le_bytes(word))
    }
}

/// A common information entry: its beginning, and the encoding of addresses in its frames.
struct Common {
    at: usize,
    encoding: u8,
    has_length: bool,
}

/// Whether a table that will be at `start`, relocated, can be trusted to an unwinder: every length inside it, zeros at
/// its end, every frame with a common entry before it, every augmentation known, every frame of code that is in one
/// of `texts`, which are in order, and no code with two frames. Returns the frames of code that is not empty. The error says
/// where the fault is.
pub(crate) fn check(
    table: &[u8],
    start: usize,
    texts: &[Bytes<usize>],
) -> Result<Vec<Frame>, String> {
    let mut commons: Vec<Common> = Vec::new();
    let (mut at, mut frames) = (0, Vec::new());
    loop {
        let wrong = || format!("the unwind table is broken at offset {at:#x}");
        let mut reader = Reader { bytes: table, at };
        let length = reader.word().ok_or_else(wrong)? as usize;
        if length == 0 {
            // The end, which no entry reaches over; compilers put nothing behind it.
            let is_end = table[at..].iter().all(|&byte| byte == 0);
            if is_end && is_twice(&frames) {
                return Err("the unwind table has two frames of the same code".to_owned());
            }
            return if is_end { Ok(frames) } else { Err(wrong()) };
        }
        let (body, end) = (at + 4, at.saturating_add(4).saturating_add(length));
        let bytes = table.get(..end).ok_or_else(wrong)?;
        let mut reader = Reader { bytes, at: body };
        let identity = reader.word().ok_or_else(wrong)? as usize;
        if identity == 0 {
            commons.push(common(at, &mut reader).ok_or_else(wrong)?);
        } else {
            let parent = body.checked_sub(identity);
            let parent = parent.and_then(|at| commons.binary_search_by_key(&at, |it| it.at).ok());
            let parent = &commons[parent.ok_or_else(wrong)?];
            let code = frame(parent, &mut reader, start).ok_or_else(wrong)?;
            let before = texts.partition_point(|text| text.start <= code.start);
            let text = before.checked_sub(1).and_then(|last| texts.get(last));
            if code.start != 0 && text.is_none_or(|text| code.end > text.end) {
                let why = "the unwind table is about code that is not the object's own, at offset";
                return Err(format!("{why} {at:#x}"));
            }
            if code.start != 0 && !code.is_empty() {
                frames.push(Frame { code, at: start + at });
            }
        }
        at = end;
    }
}

/// Whether some code has two frames. Compilers write none, and many long ones would be registered at each place of it.
fn is_twice(frames: &[Frame]) -> bool {
    let mut codes: Vec<(usize, usize)> =
        frames.iter().map(|frame| (frame.code.start, frame.code.end)).collect();
    codes.sort_unstable();
    codes.windows(2).any(|pair| pair[1].0 < pair[0].1)
}

/// Whether the code of some frames, from the first to the last, overlaps that of others.
pub(crate) fn overlap(some: &[Frame], others: &[Frame]) -> bool {
    let span = |frames: &[Frame]| {
        let start = frames.iter().map(|frame| frame.code.start).min()?;
        Some(start..frames.iter().map(|frame| frame.code.end).max()?)
    };
    let spans = span(some).zip(span(others));
    spans.is_some_and(|(one, other)| one.start < other.end && other.start < one.end)
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
    let mut encoding = None;
    for &letter in &letters[1..] {
        match letter {
            b'R' if encoding.is_none() => encoding = Some(reader.byte()?),
            b'L' => drop(reader.byte()?),
            b'P' => {
                let kind = reader.byte()?;
                // libgcc aborts at the first of these, and steps over the second in a way of its own.
                if kind == OMITTED || kind & 0x70 == 0x50 {
                    return None;
                }
                reader.pointer(kind)?;
            }
            // libgcc looks for the encoding up to the first of these.
            b'S' | b'B' | b'G' if encoding.is_some() => {}
            _ => return None,
        }
    }
    let encoding = encoding.unwrap_or(0);
    // Absolute or relative to the place, by a number or an address, and nothing else.
    let known = matches!(encoding & 0x70, 0x00 | 0x10) && encoding & 0x80 == 0;
    let sized = matches!(encoding & 0x0f, 0x00 | 0x03 | 0x04 | 0x0b | 0x0c);
    (reader.at <= end && known && sized).then_some(Common { at, encoding, has_length: true })
}

/// The code addresses of a frame: they begin at 0 where unwinders skip the frame.
fn frame(parent: &Common, reader: &mut Reader<'_>, start: usize) -> Option<Bytes<usize>> {
    let place = start.wrapping_add(reader.at);
    let value = reader.pointer(parent.encoding)?;
    let first = match (value, parent.encoding & 0x70) {
        (0, _) => 0,
        (value, 0x10) => place.wrapping_add(value),
        (value, _) => value,
    };
    // A length is a number without a sign, for every kind of address.
    let length = reader.pointer(parent.encoding & 0x07)?;
    if parent.has_length {
        let length = usize::try_from(reader.leb()?).ok()?;
        reader.take(length)?;
    }
    Some(first..first.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table's address, and the code that the table describes.
    const START: usize = 0x1000;
    const CODE: Bytes<usize> = 0x103c..0x1041;

    /// Checks a table at [`START`]; returns the number of its frames.
    fn check_there(table: &[u8]) -> Result<usize, String> {
        let frames = check(table, START, &[CODE])?;
        assert!(frames.iter().all(|frame| *frame == Frame { code: CODE, at: START + 20 }));
        Ok(frames.len())
    }

    /// A common entry `zR` with addresses relative to the place, a frame of it, and the end.
    fn table() -> Vec<u8> {
        let mut table =
            vec![16, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0, 0, 0];
        table.extend([16, 0, 0, 0, 24, 0, 0, 0, 0x20, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        table.extend([0; 4]);
        table
    }

    #[test]
    fn a_table_as_compilers_write_it_is_fine() {
        for (table, frames) in [(&table()[..], 1), (&[0; 4], 0), (&[0; 8], 0)] {
            assert_eq!(check_there(table), Ok(frames));
        }
    }

    #[test]
    fn broken_tables_are_refused() {
        // Lengths, the parent, the version, letters, encodings, and a frame that reaches over the end.
        for (at, value) in [
            (0, 200),
            (4, 9),
            (8, 7),
            (10, b'Q'),
            (15, 9),
            (16, 0x2b),
            (20, 255),
            (24, 8),
            (20, 20),
        ] {
            let mut broken = table();
            broken[at] = value;
            assert!(check_there(&broken).is_err(), "{at}");
        }
        // A personality that is left out, at which libgcc aborts, and letters in an order that it reads otherwise.
        for letters in
            [&[b'z', b'P', b'R', 0, 1, 0x78, 16, 2, 0xff, 0x1b], b"zSR\0\x01\x78\x10\x01\x1b\0"]
        {
            let mut broken = table();
            broken.splice(9..19, letters.iter().copied());
            assert!(check_there(&broken).is_err(), "{letters:?}");
        }
        for length in 0..table().len() {
            assert!(check_there(&table()[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn two_frames_of_the_same_code_are_refused() {
        let mut twice = table();
        // The same frame, 20 bytes behind.
        twice.splice(40..40, [16, 0, 0, 0, 44, 0, 0, 0, 0x0c, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        let why = check(&twice, START, &[CODE]).expect_err("they overlap");
        assert!(why.contains("the same code"), "{why}");
        // One byte each, side by side.
        (twice[32], twice[52]) = (1, 1);
        twice[48] += 1;
        assert_eq!(check(&twice, START, &[CODE]).map(|frames| frames.len()), Ok(2));
    }

    #[test]
    fn a_frame_of_foreign_code_is_refused() {
        // Before the code, behind it, longer than it, and a number that is before the table.
        for (at, value) in [(28, 0x1f), (28, 0x21), (32, 6), (31, 0x80)] {
            let mut foreign = table();
            foreign[at] = value;
            let why = check_there(&foreign).expect_err("it is foreign");
            assert!(why.contains("not the object's own"), "{at}: {why}");
        }
        // The frame of a function that was dropped.
        let mut dropped = table();
        dropped[28] = 0;
        assert_eq!(check_there(&dropped), Ok(0));
    }
}
