//! A relocatable object, read without trusting it: sections to load, symbols, COMDAT groups.
//!
//! Relies on the `object` crate for the bounds of tables and on nothing of the arena. A fault in an object
//! is found here or when a relocation is applied, as an error with its place; no later code indexes with an unchecked
//! number from the file.

use object::elf;
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{LittleEndian, SectionIndex};

use crate::error::Error;
use crate::memory::{PART, Region};

type Header = elf::FileHeader64<LittleEndian>;
/// A relocation as the file has it.
pub(crate) type Rela = elf::Rela64<LittleEndian>;

const LITTLE: LittleEndian = LittleEndian;

/// Functions to be called when an object is loaded or unloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// `.init_array`, by priority.
    Init(u32),
    /// `.fini_array`, by priority.
    Fini(u32),
}

#[derive(Debug, Default)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a [u8],
    /// The region that the section is loaded into; `None` if the section is not loaded.
    pub(crate) region: Option<Region>,
    /// The section's contents; empty where they are all zeros.
    pub(crate) bytes: &'a [u8],
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) relocations: &'a [Rela],
    pub(crate) calls: Option<Calls>,
    /// `.eh_frame`.
    pub(crate) is_frames: bool,
    /// Whether the section is the initial image of thread-local variables.
    pub(crate) is_thread: bool,
}

/// The place of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    Undefined,
    Absolute,
    Common,
    Section(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) home: Home,
    /// The place in the section; for a common symbol, its alignment.
    pub(crate) value: u64,
    pub(crate) size: u64,
    pub(crate) is_local: bool,
    pub(crate) is_weak: bool,
    /// Hidden or internal: not seen by other objects.
    pub(crate) is_hidden: bool,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Function,
    Section,
    ThreadLocal,
    Indirect,
    Other,
}

/// Sections that are kept or dropped together, once for all objects.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) signature: &'a [u8],
    pub(crate) members: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct Object<'a> {
    pub(crate) machine: u16,
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) symbols: Vec<Symbol<'a>>,
    pub(crate) groups: Vec<Group<'a>>,
}

/// The most sections or symbols an object may have: far more than compilers write.
const MOST: usize = 1 << 22;

/// The most bytes of a section or a common symbol: no arena has more.
const LARGEST: usize = 1 << 30;

/// The most bytes of names for each byte of the file. Names may share their ends in the string table, so that those of a
/// small file could take all memory when they are copied.
pub(crate) const NAMES: usize = 16;

impl<'a> Object<'a> {
    /// Reads `data`, at any address.
    pub(crate) fn read(name: &str, data: &'a [u8]) -> Result<Object<'a>, Error> {
        let wrong = |what: &'static str| {
            move |error: object::read::Error| Error::malformed(name, format!("{what}: {error}"))
        };
        let header = Header::parse(data).map_err(wrong("its ELF header"))?;
        if !header.is_little_endian() || header.e_type(LITTLE) != elf::ET_REL {
            return Err(Error::malformed(
                name,
                "an ELF file, and not a little-endian relocatable object (`cc -c` makes them)",
            ));
        }
        let table = header.sections(LITTLE, data).map_err(wrong("its section headers"))?;
        if table.len() > MOST {
            return Err(Error::malformed(name, "more than four million sections"));
        }
        let symbols =
            table.symbols(LITTLE, data, elf::SHT_SYMTAB).map_err(wrong("its symbol table"))?;
        let mut sections = Vec::with_capacity(table.len());
        let mut is_for_lto = false;
        // The data read from a file, and so the memory and the time for it, are in proportion to the file's length.
        let (mut contents, mut names) = (data.len() as u64, data.len().saturating_mul(NAMES));
        let mut name_of = |of: &'a [u8]| {
            let left = names.checked_sub(of.len());
            names = left.ok_or_else(|| Error::malformed(name, "its names overlap too often"))?;
            Ok(of)
        };
        for header in table.iter() {
            let section_name = name_of(table.section_name(LITTLE, header).unwrap_or(b""))?;
            if !matches!(header.sh_type(LITTLE), elf::SHT_NULL | elf::SHT_NOBITS) {
                let left = contents.checked_sub(header.sh_size(LITTLE));
                let overlap = || Error::malformed(name, "sections lie over each other");
                contents = left.ok_or_else(overlap)?;
            }
            if section_name.starts_with(b".gnu.lto_") {
                is_for_lto = true;
            }
            sections.push(read_section(name, section_name, header, data)?);
        }
        // Fat objects (`-ffat-lto-objects`) have machine code too.
        let is_code = |section: &Section<'_>| section.region.is_some() && section.size > 0;
        if is_for_lto && !sections.iter().any(is_code) {
            let what = "it holds no machine code but what gcc's link-time optimization works on: \
                        compile it with -fno-lto or -ffat-lto-objects";
            return Err(Error::Unsupported { object: name.to_owned(), what: what.to_owned() });
        }
        let mut groups = Vec::new();
        for header in table.iter() {
            match header.sh_type(LITTLE) {
                elf::SHT_RELA => attach(name, &mut sections, header, data)?,
                elf::SHT_REL | elf::SHT_CREL if header.info_link(LITTLE) != SectionIndex(0) => {
                    let target = sections.get(header.info_link(LITTLE).0);
                    if target.is_some_and(|section| section.region.is_some()) {
                        return Err(Error::malformed(
                            name,
                            "relocations in another form than SHT_RELA",
                        ));
                    }
                }
                elf::SHT_GROUP => {
                    let group = header.group(LITTLE, data).map_err(wrong("a section group"))?;
                    let Some((flags, members)) = group else { continue };
                    if flags.0 & elf::GRP_COMDAT.0 == 0 {
                        continue;
                    }
                    let index = header.sh_info(LITTLE) as usize;
                    let symbol = symbols.symbols().get(index);
                    let symbol = symbol
                        .ok_or_else(|| Error::malformed(name, "a group without signature"))?;
                    let mut signature =
                        symbols.symbol_name(LITTLE, symbol).map_err(wrong("a signature"))?;
                    if signature.is_empty() {
                        // A section symbol stands for its section's name.
                        let home = symbol.st_shndx(LITTLE).0 as usize;
                        signature = sections.get(home).map_or(b"".as_slice(), |home| home.name);
                    }
                    let members = members.iter().map(|member| member.get(LITTLE) as usize);
                    groups
                        .push(Group { signature: name_of(signature)?, members: members.collect() });
                }
                _ => {}
            }
        }
        let mut all = Vec::with_capacity(symbols.len());
        for (index, symbol) in symbols.enumerate() {
            let symbol_name =
                symbols.symbol_name(LITTLE, symbol).map_err(wrong("a symbol's name"))?;
            let home = symbols
                .symbol_section(LITTLE, symbol, index)
                .map_err(wrong("a symbol's section"))?;
            all.push(read_symbol(name, name_of(symbol_name)?, symbol, home, &sections)?);
        }
        let machine = header.e_machine(LITTLE).0;
        Ok(Object { machine, sections, symbols: all, groups })
    }
}

fn show(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn too_large(object: &str, kind: &str, name: &[u8]) -> Error {
    let what =
        format!("{kind} {}: it has more than 1 GiB, which no arena has room for", show(name));
    Error::Unsupported { object: object.to_owned(), what }
}

fn read_section<'a>(
    object: &str,
    name: &'a [u8],
    header: &elf::SectionHeader64<LittleEndian>,
    data: &'a [u8],
) -> Result<Section<'a>, Error> {
    let wrong = |why: &str| Error::malformed(object, format!("section {}: {why}", show(name)));
    let flags = header.sh_flags(LITTLE).0;
    let has = |flag: elf::SectionFlags| flags & flag.0 != 0;
    let kind = header.sh_type(LITTLE);
    let calls = calls(kind, name);
    let is_frames = name == b".eh_frame";
    let loads = has(elf::SHF_ALLOC)
        && !has(elf::SHF_EXCLUDE)
        && (matches!(kind, elf::SHT_PROGBITS | elf::SHT_NOBITS | elf::SHT_X86_64_UNWIND)
            || calls.is_some());
    let mut section = Section {
        name,
        align: 1,
        calls,
        is_frames,
        is_thread: has(elf::SHF_TLS),
        ..Section::default()
    };
    if !loads {
        return Ok(section);
    }
    if has(elf::SHF_COMPRESSED) {
        return Err(wrong("it is compressed and to be loaded"));
    }
    section.size = header.sh_size(LITTLE) as usize;
    if section.size > LARGEST {
        return Err(too_large(object, "section", name));
    }
    let align = header.sh_addralign(LITTLE).max(1);
    if !align.is_power_of_two() || align > PART as u64 {
        return Err(wrong(&format!("its alignment {align} is no power of two up to 256 KiB")));
    }
    section.align = align as usize;
    if kind != elf::SHT_NOBITS {
        section.bytes =
            header.data(LITTLE, data).map_err(|_| wrong("it ends beyond the end of the file"))?;
    }
    section.region = Some(match (has(elf::SHF_EXECINSTR), has(elf::SHF_WRITE)) {
        (true, true) => return Err(wrong("it is writable and executable")),
        (is_code, _) if section.is_thread => {
            if is_code || calls.is_some() || is_frames {
                return Err(wrong("it is thread-local and something else"));
            }
            Region::Sealed
        }
        (true, false) => Region::Text,
        // A section that is written only during relocation is read-only afterwards.
        (false, true) if !name.starts_with(b".data.rel.ro") && calls.is_none() => Region::Data,
        (false, _) => Region::Sealed,
    });
    Ok(section)
}

/// The kind and priority of an array of functions: `.init_array.00100` comes before `.init_array`.
fn calls(kind: elf::SectionType, name: &[u8]) -> Option<Calls> {
    let priority = |prefix: &[u8]| {
        let digits = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(b"."));
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        number.unwrap_or(65_536)
    };
    match kind {
        elf::SHT_INIT_ARRAY => Some(Calls::Init(priority(b".init_array"))),
        elf::SHT_FINI_ARRAY => Some(Calls::Fini(priority(b".fini_array"))),
        _ => None,
    }
}

fn attach<'a>(
    object: &str,
    sections: &mut [Section<'a>],
    header: &elf::SectionHeader64<LittleEndian>,
    data: &'a [u8],
) -> Result<(), Error> {
    let Some(section) = sections.get_mut(header.info_link(LITTLE).0) else {
        return Err(Error::malformed(object, "relocations of a section that is not there"));
    };
    if section.region.is_none() {
        return Ok(());
    }
    let relocations = header.rela(LITTLE, data);
    let relocations = relocations.ok().flatten().map(|(relocations, _)| relocations);
    let name = show(section.name);
    if !section.relocations.is_empty() {
        let why = format!("section {name} has two tables of relocations");
        return Err(Error::malformed(object, why));
    }
    section.relocations = relocations.ok_or_else(|| {
        Error::malformed(object, format!("the relocations of section {name} are cut off"))
    })?;
    if section.bytes.is_empty() && !section.relocations.is_empty() {
        return Err(Error::malformed(
            object,
            format!("section {name} is empty and has relocations"),
        ));
    }
    Ok(())
}

fn read_symbol<'a>(
    object: &str,
    name: &'a [u8],
    symbol: &elf::Sym64<LittleEndian>,
    home: Option<SectionIndex>,
    sections: &[Section<'_>],
) -> Result<Symbol<'a>, Error> {
    let wrong = |why: &str| Error::malformed(object, format!("symbol {}: {why}", show(name)));
    let (value, size) = (symbol.st_value(LITTLE), symbol.st_size(LITTLE));
    let home = match home {
        Some(index) if index.0 < sections.len() => Home::Section(index.0),
        Some(_) => return Err(wrong("its section is not there")),
        None if symbol.is_common(LITTLE) => Home::Common,
        None if symbol.is_absolute(LITTLE) => Home::Absolute,
        None => Home::Undefined,
    };
    let kind = match symbol.st_type() {
        elf::STT_FUNC => Kind::Function,
        elf::STT_SECTION => Kind::Section,
        elf::STT_TLS => Kind::ThreadLocal,
        elf::STT_GNU_IFUNC => Kind::Indirect,
        _ => Kind::Other,
    };
    if let Home::Section(index) = home {
        let section = &sections[index];
        // A symbol may be just past its section's end.
        if section.region.is_some() && value > section.size as u64 {
            return Err(wrong("it lies beyond its section's end"));
        }
    }
    if home == Home::Common && (!value.max(1).is_power_of_two() || value > PART as u64) {
        return Err(wrong("its alignment is no power of two up to 256 KiB"));
    }
    if home == Home::Common && size > LARGEST as u64 {
        return Err(too_large(object, "symbol", name));
    }
    let bind = symbol.st_bind();
    let is_hidden = matches!(symbol.st_visibility(), elf::STV_HIDDEN | elf::STV_INTERNAL);
    Ok(Symbol {
        name,
        home,
        value,
        size,
        is_local: bind == elf::STB_LOCAL,
        is_weak: bind == elf::STB_WEAK,
        is_hidden,
        kind,
    })
}
