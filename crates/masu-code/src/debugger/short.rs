//! A short object file for the debugger: the addresses of code and symbols, and the unwind tables.
//!
//! Relies on the ELF specification ("Object Files"). A debugger reads no more of an object without lines and types: it
//! reads code at the place where the code runs. The file of a small function is half as long as the compiler's.

use std::collections::BTreeMap;

use crate::memory::Region;
use crate::object::{Home, Kind, Object, Symbol};

/// The specification's numbers, by its names.
mod elf {
    pub(super) const ET_REL: u32 = 1;
    pub(super) const EV_CURRENT: u32 = 1;
    /// Class 64, little-endian, version 1.
    pub(super) const IDENTITY: [u8; 16] = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0";
    pub(super) const SHT_PROGBITS: u32 = 1;
    pub(super) const SHT_SYMTAB: u32 = 2;
    pub(super) const SHT_STRTAB: u32 = 3;
    pub(super) const SHT_NOBITS: u32 = 8;
    pub(super) const SHF_WRITE: u32 = 1;
    pub(super) const SHF_ALLOC: u32 = 2;
    pub(super) const SHF_EXECINSTR: u32 = 4;
    pub(super) const STB_LOCAL: u32 = 0;
    pub(super) const STB_GLOBAL: u32 = 1;
    pub(super) const STT_OBJECT: u32 = 1;
    pub(super) const STT_FUNC: u32 = 2;
}

/// Bytes of the file's header and of a section's.
const HEADER: u16 = 64;
/// Bytes of a symbol.
const SYMBOL: u64 = 24;

/// Sections that only the whole object has.
fn is_for_debuggers(name: &[u8]) -> bool {
    [&b".debug"[..], b".zdebug", b".stab", b".gdb"].iter().any(|start| name.starts_with(start))
}

/// A file that grows.
struct File(Vec<u8>);

impl File {
    fn word(&mut self, word: u64) {
        self.0.extend(word.to_le_bytes());
    }

    fn halves(&mut self, first: u32, second: u32) {
        self.word(u64::from(first) | u64::from(second) << 32);
    }

    fn end(&self) -> u64 {
        self.0.len() as u64
    }
}

/// One header of the section table.
#[derive(Default)]
struct Section {
    name: u32,
    kind: u32,
    flags: u32,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    entry: u64,
}

impl Section {
    fn write(&self, to: &mut File) {
        to.halves(self.name, self.kind);
        to.word(u64::from(self.flags));
        for word in [self.address, self.offset, self.size] {
            to.word(word);
        }
        to.halves(self.link, self.info);
        to.word(1);
        to.word(self.entry);
    }
}

/// Names, each once.
#[derive(Default)]
struct Names<'a> {
    bytes: Vec<u8>,
    places: BTreeMap<&'a [u8], u32>,
}

impl<'a> Names<'a> {
    fn put(&mut self, name: &'a [u8]) -> Option<u32> {
        if name.is_empty() {
            return Some(0);
        }
        if let Some(&place) = self.places.get(name) {
            return Some(place);
        }
        let place = u32::try_from(self.bytes.len()).ok()?;
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        self.places.insert(name, place);
        Some(place)
    }
}

/// The short file of an object whose sections were loaded at these addresses; `None` where the object has lines and
/// types, which only the whole file holds.
///
/// # Safety
///
/// - The sections are at their addresses, and nothing writes their unwind tables.
pub(crate) unsafe fn file(object: &Object<'_>, addresses: &[usize]) -> Option<Vec<u8>> {
    if object.sections.iter().any(|section| is_for_debuggers(section.name)) {
        return None;
    }
    let home = |symbol: &Symbol<'_>| match symbol.home {
        Home::Section(home) if addresses[home] != 0 && !object.sections[home].is_thread => {
            Some(home)
        }
        _ => None,
    };
    let is_shown = |symbol: &&Symbol<'_>| {
        !symbol.name.is_empty() && symbol.kind != Kind::Section && home(symbol).is_some()
    };
    let symbols = || object.symbols.iter().filter(is_shown);
    let mut is_kept = vec![false; object.sections.len()];
    symbols().filter_map(home).for_each(|home| is_kept[home] = true);
    let mut names = Names { bytes: vec![0], places: BTreeMap::new() };
    let mut file = File(vec![0; usize::from(HEADER)]);
    let mut sections = vec![Section::default()];
    let mut numbers = vec![0_u16; object.sections.len()];
    for (number, section) in object.sections.iter().enumerate() {
        let (address, size) = (addresses[number], section.size);
        let Some(region) = section.region.filter(|_| address != 0 && size > 0) else { continue };
        if !is_kept[number] && !section.is_frames && region != Region::Text {
            continue;
        }
        let (kind, offset) =
            (if section.is_frames { elf::SHT_PROGBITS } else { elf::SHT_NOBITS }, file.end());
        if section.is_frames {
            // SAFETY: The caller's condition.
            file.0.extend_from_slice(unsafe {
                std::slice::from_raw_parts(address as *const u8, size)
            });
            file.0.resize(file.0.len().next_multiple_of(8), 0);
        }
        let flags = elf::SHF_ALLOC
            | match region {
                Region::Text => elf::SHF_EXECINSTR,
                Region::Sealed => 0,
                Region::Data => elf::SHF_WRITE,
            };
        numbers[number] = u16::try_from(sections.len()).ok()?;
        let (name, address, size) = (names.put(section.name)?, address as u64, size as u64);
        sections.push(Section { name, kind, flags, address, offset, size, ..Section::default() });
    }
    // Local symbols come first, after an empty symbol.
    let (table, mut locals) = (file.end(), 1_u32);
    file.0.resize(file.0.len() + SYMBOL as usize, 0);
    for is_local in [true, false] {
        for symbol in symbols().filter(|symbol| symbol.is_local == is_local) {
            let kind = match symbol.kind {
                Kind::Function | Kind::Indirect => elf::STT_FUNC,
                _ => elf::STT_OBJECT,
            };
            let binding = if is_local { elf::STB_LOCAL } else { elf::STB_GLOBAL };
            let number = home(symbol).map_or(0, |home| numbers[home]);
            if number == 0 {
                continue;
            }
            locals += u32::from(is_local);
            file.halves(names.put(symbol.name)?, binding << 4 | kind | u32::from(number) << 16);
            file.word(symbol.value);
            file.word(symbol.size);
        }
    }
    let names_at = u32::try_from(sections.len() + 1).ok()?;
    let size = file.end() - table;
    let (kind, link, info, entry) = (elf::SHT_SYMTAB, names_at, locals, SYMBOL);
    sections.push(Section { kind, offset: table, size, link, info, entry, ..Section::default() });
    let (kind, offset, size) = (elf::SHT_STRTAB, file.end(), names.bytes.len() as u64);
    sections.push(Section { kind, offset, size, ..Section::default() });
    file.0.append(&mut names.bytes);
    file.0.resize(file.0.len().next_multiple_of(8), 0);
    let headers = file.end();
    sections.iter().for_each(|section| section.write(&mut file));
    let count = u16::try_from(sections.len()).ok()?;
    let mut head = File(Vec::with_capacity(usize::from(HEADER)));
    head.0.extend(elf::IDENTITY);
    head.halves(elf::ET_REL | u32::from(object.machine) << 16, elf::EV_CURRENT);
    head.word(0);
    head.word(0);
    head.word(headers);
    head.halves(0, u32::from(HEADER));
    head.halves(u32::from(HEADER) << 16, u32::from(count) | u32::from(count - 1) << 16);
    file.0[..usize::from(HEADER)].copy_from_slice(&head.0);
    Some(file.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_file_has_the_code_the_symbols_and_the_frames() {
        let whole = include_bytes!("../../tests/corpus/gcc-tiny.o");
        let object = Object::read("tiny.o", whole).expect("a compiler wrote it");
        // Addresses of readable bytes stand for those of loaded sections.
        let addresses: Vec<usize> = object
            .sections
            .iter()
            .map(
                |section| {
                    if section.region.is_some() { section.bytes.as_ptr() as usize } else { 0 }
                },
            )
            .collect();
        // SAFETY: The addresses lead to the object's own contents.
        let short = unsafe { file(&object, &addresses) }.expect("it has no lines");
        assert!(short.len() < whole.len() * 6 / 10, "{} of {}", short.len(), whole.len());
        let read = Object::read("short.o", &short).expect("it is an object");
        let names: Vec<_> = read.sections.iter().map(|section| section.name).collect();
        assert_eq!(names, [&b""[..], b".text", b".eh_frame", b"", b""]);
        let shown = |object: &Object<'_>| -> Vec<(Vec<u8>, u64, u64)> {
            let named = object.symbols.iter().filter(|symbol| symbol.kind == Kind::Function);
            named.map(|symbol| (symbol.name.to_vec(), symbol.value, symbol.size)).collect()
        };
        assert_eq!(shown(&read), shown(&object));
        let frames = |object: &Object<'_>| -> Vec<u8> {
            let frames = object.sections.iter().find(|section| section.is_frames);
            frames.expect("it has a table").bytes.to_vec()
        };
        assert_eq!(frames(&read), frames(&object));
        let address = u64::from_le_bytes(
            short[short.len() - 4 * 64 + 16..][..8].try_into().expect("eight bytes"),
        );
        assert_eq!(address as usize, addresses[1]);
    }
}
