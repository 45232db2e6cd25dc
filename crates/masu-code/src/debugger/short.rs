//! A short object file for the debugger: the addresses of code and symbols, and the unwind tables.
//!
//! Relies on the ELF specification ("Object Files"). A debugger reads no more of an object without lines and types: it
//! reads code at the place where the code runs. The file of a small function is half as long as the compiler's.

use std::collections::BTreeMap;

use object::elf::{self, FileHeader64, SectionFlags, SectionHeader64, Sym64, SymbolSection};
use object::pod::bytes_of;
use object::{LittleEndian, U16, U32, U64};

use crate::memory::Region;
use crate::object::{Home, Kind, Object, Symbol};

const LITTLE: LittleEndian = LittleEndian;

/// Sections that only the whole object has.
fn is_for_debuggers(name: &[u8]) -> bool {
    [&b".debug"[..], b".zdebug", b".stab", b".gdb"].iter().any(|start| name.starts_with(start))
}

/// Bytes of the file's header and of a section's.
const HEADER: usize = 64;
/// Bytes of a symbol.
const SYMBOL: usize = 24;

/// Fills a file up to the next multiple of eight bytes.
fn align(file: &mut Vec<u8>) {
    file.resize(file.len().next_multiple_of(8), 0);
}

/// A header of the section table: a section of this kind, of `size` bytes at `offset`.
fn section(kind: elf::SectionType, offset: usize, size: usize) -> SectionHeader64<LittleEndian> {
    SectionHeader64 {
        sh_name: U32::new(LITTLE, 0),
        sh_type: U32::new(LITTLE, kind),
        sh_flags: U64::new(LITTLE, SectionFlags(0)),
        sh_addr: U64::new(LITTLE, 0),
        sh_offset: U64::new(LITTLE, offset as u64),
        sh_size: U64::new(LITTLE, size as u64),
        sh_link: U32::new(LITTLE, 0),
        sh_info: U32::new(LITTLE, 0),
        sh_addralign: U64::new(LITTLE, 1),
        sh_entsize: U64::new(LITTLE, 0),
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
    let mut file = vec![0; HEADER];
    let mut sections = vec![section(elf::SHT_NULL, 0, 0)];
    let mut numbers = vec![0_u16; object.sections.len()];
    for (number, from) in object.sections.iter().enumerate() {
        let (address, size) = (addresses[number], from.size);
        let Some(region) = from.region.filter(|_| address != 0 && size > 0) else { continue };
        if !is_kept[number] && !from.is_frames && region != Region::Text {
            continue;
        }
        let kind = if from.is_frames { elf::SHT_PROGBITS } else { elf::SHT_NOBITS };
        let mut header = section(kind, file.len(), size);
        if from.is_frames {
            // SAFETY: The caller's condition.
            file.extend_from_slice(unsafe {
                std::slice::from_raw_parts(address as *const u8, size)
            });
            align(&mut file);
        }
        let flags = match region {
            Region::Text => elf::SHF_ALLOC | elf::SHF_EXECINSTR,
            Region::Sealed => elf::SHF_ALLOC,
            Region::Data => elf::SHF_ALLOC | elf::SHF_WRITE,
        };
        numbers[number] = u16::try_from(sections.len()).ok()?;
        header.sh_name = U32::new(LITTLE, names.put(from.name)?);
        header.sh_flags = U64::new(LITTLE, flags);
        header.sh_addr = U64::new(LITTLE, address as u64);
        sections.push(header);
    }
    // Local symbols come first, after an empty symbol.
    let (table, mut locals) = (file.len(), 1_u32);
    file.resize(file.len() + SYMBOL, 0);
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
            file.extend_from_slice(bytes_of(&Sym64 {
                st_name: U32::new(LITTLE, names.put(symbol.name)?),
                st_info: binding | kind,
                st_other: elf::SymbolOther(0),
                st_shndx: U16::new(LITTLE, SymbolSection(number)),
                st_value: U64::new(LITTLE, symbol.value),
                st_size: U64::new(LITTLE, symbol.size),
            }));
        }
    }
    let mut header = section(elf::SHT_SYMTAB, table, file.len() - table);
    header.sh_link = U32::new(LITTLE, u32::try_from(sections.len() + 1).ok()?);
    header.sh_info = U32::new(LITTLE, locals);
    header.sh_entsize = U64::new(LITTLE, SYMBOL as u64);
    sections.push(header);
    sections.push(section(elf::SHT_STRTAB, file.len(), names.bytes.len()));
    file.append(&mut names.bytes);
    align(&mut file);
    let headers = file.len() as u64;
    sections.iter().for_each(|section| file.extend_from_slice(bytes_of(section)));
    // Larger numbers of sections have other meanings in the fields for them.
    let count = u16::try_from(sections.len()).ok().filter(|&count| count < elf::SHN_LORESERVE)?;
    let half = |number: usize| U16::new(LITTLE, number as u16);
    let header = FileHeader64 {
        e_ident: elf::Ident {
            magic: elf::ELFMAG,
            class: elf::ELFCLASS64,
            data: elf::ELFDATA2LSB,
            version: elf::EV_CURRENT,
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            padding: [0; 7],
        },
        e_type: U16::new(LITTLE, elf::ET_REL),
        e_machine: U16::new(LITTLE, elf::Machine(object.machine)),
        e_version: U32::new(LITTLE, u32::from(elf::EV_CURRENT.0)),
        e_entry: U64::new(LITTLE, 0),
        e_phoff: U64::new(LITTLE, 0),
        e_shoff: U64::new(LITTLE, headers),
        e_flags: U32::new(LITTLE, elf::FileFlags(0)),
        e_ehsize: half(HEADER),
        e_phentsize: half(0),
        e_phnum: half(0),
        e_shentsize: half(HEADER),
        e_shnum: U16::new(LITTLE, count),
        e_shstrndx: U16::new(LITTLE, SymbolSection(count - 1)),
    };
    file[..HEADER].copy_from_slice(bytes_of(&header));
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Section;

    #[test]
    fn as_many_sections_as_a_number_in_the_file_can_say() {
        let section = || Section { region: Some(Region::Text), size: 1, ..Section::default() };
        // The file has three sections more: an empty one, symbols, and their names.
        for (count, is_there) in [(0xff00 - 4, true), (0xff00 - 3, false)] {
            let sections: Vec<_> = std::iter::repeat_with(section).take(count).collect();
            let (symbols, groups, addresses) = (Vec::new(), Vec::new(), vec![1; count]);
            let object = Object { machine: 62, sections, symbols, groups };
            // SAFETY: There is no unwind table to be read.
            let file = unsafe { file(&object, &addresses) };
            assert_eq!(file.is_some(), is_there);
        }
    }

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
