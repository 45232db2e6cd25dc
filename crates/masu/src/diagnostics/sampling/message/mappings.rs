//! The files that are mapped, and their addresses. They turn an address in a profile into an address in a program or
//! library.
//!
//! Relies on `/proc/self/maps`; without it a profile has addresses only. Only mappings of code with a name are kept.

use core::ptr::NonNull;

use super::metadata;
use crate::platform::kernel::file::File;

/// A mapping of code.
pub(super) struct Mapping<'a> {
    /// Counted from 1.
    pub(super) number: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The offset of its start in the file, in bytes.
    pub(super) offset: usize,
    pub(super) name: &'a [u8],
}

/// The most mappings kept, two words each.
const MAPPINGS_MAX: usize = metadata::WORDS_MAX / 4;
/// Room for the longest line: numbers, and a path of the kernel's greatest length. Not on the stack, which may be a thread's
/// smallest.
const LINE_WORDS: usize = 1024;

/// The bounds of each mapping.
pub(crate) struct Mappings {
    /// Start and end of each.
    bounds: Option<&'static mut [usize]>,
    count: usize,
}

impl Mappings {
    /// Reads the present mappings; calls `visit` with each.
    pub(super) fn now(mut visit: impl FnMut(&Mapping<'_>)) -> Mappings {
        let mut mappings = Mappings { bounds: metadata::words(2 * MAPPINGS_MAX), count: 0 };
        let Ok(file) = File::open_to_read(c"/proc/self/maps") else { return mappings };
        let Some(line) = metadata::words(LINE_WORDS) else { return mappings };
        // SAFETY: Any bytes are words, and the reverse.
        mappings.read(&file, unsafe { line.align_to_mut() }.1, &mut visit);
        // SAFETY: The array came from `metadata::words` with this length, and is not used any more.
        unsafe { metadata::give_back(NonNull::from(line).cast(), LINE_WORDS) };
        mappings
    }

    fn read(&mut self, file: &File, bytes: &mut [u8], visit: &mut impl FnMut(&Mapping<'_>)) {
        let mut length = 0;
        loop {
            let read = file.read(&mut bytes[length..]).unwrap_or(0);
            length += read;
            while let Some(end) = bytes[..length].iter().position(|byte| *byte == b'\n') {
                self.take(&bytes[..end], visit);
                bytes.copy_within(end + 1..length, 0);
                length -= end + 1;
            }
            if read == 0 {
                return;
            }
        }
    }

    fn take(&mut self, line: &[u8], visit: &mut impl FnMut(&Mapping<'_>)) {
        let Some(bounds) = &mut self.bounds else { return };
        let Some(mapping) = parse(line, self.count + 1) else { return };
        if self.count < MAPPINGS_MAX {
            bounds[2 * self.count] = mapping.start;
            bounds[2 * self.count + 1] = mapping.end;
            self.count += 1;
            visit(&mapping);
        }
    }

    /// The number of the mapping that holds `address`, or 0.
    pub(super) fn holding(&self, address: usize) -> usize {
        let Some(bounds) = &self.bounds else { return 0 };
        let holds = |bounds: &[usize]| (bounds[0]..bounds[1]).contains(&address);
        let found = bounds[..2 * self.count].chunks_exact(2).position(holds);
        found.map_or(0, |index| index + 1)
    }
}

impl Drop for Mappings {
    fn drop(&mut self) {
        if let Some(bounds) = self.bounds.take() {
            let count = bounds.len();
            // SAFETY: The array came from `metadata::words` with this length.
            unsafe { metadata::give_back(NonNull::from(bounds).cast(), count) };
        }
    }
}

/// Parses a line such as `7f5e6c028000-7f5e6c17d000 r-xp 00028000 fe:00 1234    /usr/lib/libc.so.6`
/// (`proc_pid_maps(5)`); `None` unless it is code of a file.
fn parse(line: &[u8], number: usize) -> Option<Mapping<'_>> {
    let mut rest = line;
    let mut field = |separator: u8| -> Option<&[u8]> {
        let end = rest.iter().position(|byte| *byte == separator)?;
        let (field, behind) = rest.split_at(end);
        rest = &behind[1..];
        Some(field)
    };
    let (start, end) = (hexadecimal(field(b'-')?)?, hexadecimal(field(b' ')?)?);
    let rights = field(b' ')?;
    let offset = hexadecimal(field(b' ')?)?;
    let (_device, _inode) = (field(b' ')?, field(b' ')?);
    let name = rest.trim_ascii_start();
    let is_code = rights.get(2) == Some(&b'x');
    (is_code && !name.is_empty()).then_some(Mapping { number, start, end, offset, name })
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0_usize, |value, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        value.checked_mul(16)?.checked_add(usize::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_executable_memory_is_parsed_and_others_are_not() {
        let line = b"7f5e6c028000-7f5e6c17d000 r-xp 00028000 fe:00 1234         /usr/lib/a b.so";
        let mapping = parse(line, 3).expect("code");
        assert_eq!((mapping.start, mapping.end), (0x7f5e_6c02_8000, 0x7f5e_6c17_d000));
        assert_eq!((mapping.number, mapping.offset), (3, 0x28000));
        assert_eq!(mapping.name, b"/usr/lib/a b.so");
        for other in [
            &b"7f5e6c028000-7f5e6c17d000 rw-p 00028000 fe:00 1234         /usr/lib/a.so"[..],
            b"7f5e6c028000-7f5e6c17d000 r-xp 00000000 00:00 0 ",
            b"x-y r-xp 0 0 0 a",
            b"",
        ] {
            assert!(parse(other, 1).is_none());
        }
    }

    #[test]
    fn this_program_s_code_is_in_one_of_its_mappings() {
        let mut found = 0;
        let here = this_program_s_code_is_in_one_of_its_mappings as *const () as usize;
        let mappings = Mappings::now(|mapping| {
            if (mapping.start..mapping.end).contains(&here) {
                found = mapping.number;
            }
        });
        assert!(found > 0);
        assert_eq!(mappings.holding(here), found);
        assert_eq!(mappings.holding(1), 0);
    }
}
