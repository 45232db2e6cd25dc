//! The facts in an ELF file about its malloc: its loader, its libraries, the symbols it brings along.
//!
//! Only headers and symbol tables are read. A stripped program does not show a malloc that is linked in, so the
//! warm-up run has the last word.

use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, Sym};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, elf};

use super::Libc;
use crate::kernel;

type Header = elf::FileHeader64<Endianness>;

/// The machine this lab was built for; nothing else can be preloaded from here.
#[cfg(target_arch = "x86_64")]
const MACHINE: elf::Machine = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const MACHINE: elf::Machine = elf::EM_AARCH64;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// The C library, known from the loader and the libraries it names.
    pub(crate) libc: Libc,
    /// The loader that the file names, if any; only then can libraries be preloaded into it.
    pub(crate) loader: Option<PathBuf>,
    pub(crate) needed: Vec<String>,
    /// Symbols that the file defines, those of [`TELLING`] only, with their addresses in the file's terms.
    pub(crate) defined: Vec<(String, u64)>,
    /// Symbols that the file imports, those of [`TELLING`] only.
    pub(crate) imported: Vec<String>,
    /// The lowest address of a loadable segment.
    pub(crate) lowest: u64,
    /// True if the program is written in Go alone, without a malloc.
    pub(crate) is_go: bool,
    /// True if it is linked with glibc, dynamically or not, by the note that glibc's start files have.
    pub(crate) has_glibc_note: bool,
}

/// Functions through which programs ask for memory, as the dynamic linker sees them.
pub(crate) const ENTRIES: [&str; 14] = [
    "malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign",
    "valloc", "pvalloc", "_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
];

/// Functions that only one allocator has, so a program that defines one brings it along.
const BUNDLED: [(&str, &str); 10] = [
    ("je_malloc", "jemalloc"),
    ("_rjem_malloc", "jemalloc"),
    ("mallctl", "jemalloc"),
    ("mi_malloc", "mimalloc"),
    ("tc_malloc", "tcmalloc"),
    ("MallocExtension_GetNumericProperty", "tcmalloc"),
    ("rpmalloc", "rpmalloc"),
    ("sn_malloc", "snmalloc"),
    ("sn_rust_alloc", "snmalloc"),
    ("scalable_malloc", "tbbmalloc"),
];

/// Functions that only jemalloc and masu have, and that programs call beside `malloc`.
const CALLS_OF_JEMALLOC: [&str; 3] = ["mallocx", "rallocx", "sdallocx"];

const MALLOC_LIBRARIES: [(&str, &str); 8] = [
    ("libjemalloc", "jemalloc"),
    ("libtcmalloc", "tcmalloc"),
    ("libmimalloc", "mimalloc"),
    ("libsnmalloc", "snmalloc"),
    ("librpmalloc", "rpmalloc"),
    ("libtbbmalloc_proxy", "tbbmalloc"),
    ("libhoard", "hoard"),
    ("libvespamalloc", "vespamalloc"),
];

/// Functions of sanitizer run times, whose malloc must not be replaced.
const SANITIZERS: [(&str, &str); 5] = [
    ("__asan_init", "AddressSanitizer"),
    ("__tsan_init", "ThreadSanitizer"),
    ("__msan_init", "MemorySanitizer"),
    ("__lsan_init", "LeakSanitizer"),
    ("__hwasan_init", "HWAddressSanitizer"),
];

const SANITIZER_LIBRARIES: [(&str, &str); 5] = [
    ("libasan", "AddressSanitizer"),
    ("libtsan", "ThreadSanitizer"),
    ("liblsan", "LeakSanitizer"),
    ("libhwasan", "HWAddressSanitizer"),
    ("libclang_rt.asan", "AddressSanitizer"),
];

/// The reason why nothing is preloaded, in a program that reads glibc's tunables all the same.
pub const STATIC_GLIBC: &str = "linked statically with glibc";

/// The fault of a program that is no ELF file, and was not found to be a script.
pub(crate) const NO_ELF: &str =
    "neither an ELF program nor a script with a `#!` line; name its interpreter before it";

fn is_telling(name: &str) -> bool {
    ENTRIES.contains(&name)
        || CALLS_OF_JEMALLOC.contains(&name)
        || BUNDLED.iter().chain(&SANITIZERS).any(|(symbol, _)| *symbol == name)
}

impl Image {
    /// Reads the ELF file at `path`; the error names the fault and a remedy.
    pub(crate) fn read(path: &Path) -> Result<Image, String> {
        // A pipe would wait for its writer.
        let opened = File::options().read(true).custom_flags(kernel::OPEN_AT_ONCE).open(path);
        let file = opened.map_err(|error| format!("cannot read it: {error}"))?;
        let cache = ReadCache::new(file);
        let kind = cache.read_bytes_at(0, 20).unwrap_or_default();
        if kind.len() < 20 || kind[..4] != elf::ELFMAG {
            return Err(NO_ELF.to_owned());
        }
        if elf::FileClass(kind[4]) != elf::ELFCLASS64 {
            return Err("a 32-bit file; this version measures 64-bit programs only".to_owned());
        }
        Image::parse(&cache)
    }

    fn parse<'data, R: ReadRef<'data>>(data: R) -> Result<Image, String> {
        let broken = |error: object::Error| format!("its ELF headers cannot be read: {error}");
        let header = Header::parse(data).map_err(broken)?;
        let endian = header.endian().map_err(broken)?;
        if header.e_machine(endian) != MACHINE {
            return Err(format!(
                "made for another architecture; this machine runs {}",
                std::env::consts::ARCH
            ));
        }
        let mut image = Image { lowest: u64::MAX, ..Image::default() };
        for segment in header.program_headers(endian, data).map_err(broken)? {
            if segment.p_type(endian) == elf::PT_LOAD {
                image.lowest = image.lowest.min(segment.p_vaddr(endian));
            }
            if let Some(loader) = segment.interpreter(endian, data).map_err(broken)? {
                image.loader = Some(PathBuf::from(OsStr::from_bytes(loader)));
                let is_musl = String::from_utf8_lossy(loader).contains("ld-musl");
                image.libc = if is_musl { Libc::Musl } else { Libc::Glibc };
            }
        }
        let sections = header.sections(endian, data).map_err(broken)?;
        // A program with parts in C has a malloc too, for those.
        image.is_go =
            image.loader.is_none() && sections.section_by_name(endian, b".go.buildinfo").is_some();
        // Free Pascal writes the same note, and uses no C library.
        let has = |name: &[u8]| sections.section_by_name(endian, name).is_some();
        image.has_glibc_note = has(b".note.ABI-tag") && !has(b".fpcdata");
        if let Some((entries, strings)) = sections.dynamic(endian, data).map_err(broken)? {
            let names = sections.strings(endian, data, strings).map_err(broken)?;
            let needed = entries
                .iter()
                .filter(|entry| entry.tag(endian) == elf::DT_NEEDED)
                .filter_map(|entry| names.get(u32::try_from(entry.val(endian)).ok()?).ok());
            image.needed = needed.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        }
        for section in sections.iter() {
            let kind = section.sh_type(endian);
            // Symbols that a library does not export do not matter, and their table may be very long.
            if kind == elf::SHT_DYNSYM || (kind == elf::SHT_SYMTAB && image.loader.is_some()) {
                let symbols: &[elf::Sym64<Endianness>] =
                    section.data_as_array(endian, data).map_err(broken)?;
                let strings = sections.section(section.link(endian)).map_err(broken)?;
                let strings = strings.data(endian, data).map_err(broken)?;
                image.take_symbols(endian, symbols, strings);
            }
        }
        if image.libc == Libc::Static && !image.needed.is_empty() {
            image.libc = library_libc(&image.needed);
        }
        Ok(image)
    }

    /// Takes the telling ones of `symbols`; large libraries have hundreds of thousands.
    fn take_symbols(
        &mut self,
        endian: Endianness,
        symbols: &[elf::Sym64<Endianness>],
        strings: &[u8],
    ) {
        for symbol in symbols {
            let name = strings.get(symbol.st_name(endian) as usize..).unwrap_or_default();
            let length = name.iter().position(|&byte| byte == 0);
            let Some(name) = length.and_then(|length| str::from_utf8(&name[..length]).ok()) else {
                continue;
            };
            if !is_telling(name) {
                continue;
            }
            if symbol.is_undefined(endian) {
                self.imported.push(name.to_owned());
            } else if !self.defines(name) {
                self.defined.push((name.to_owned(), symbol.st_value(endian)));
            }
        }
    }

    pub(crate) fn defines(&self, name: &str) -> bool {
        self.defined.iter().any(|(known, _)| known == name)
    }

    /// The malloc library it is linked with, which serves it unless another one is preloaded.
    pub(crate) fn linked_malloc(&self) -> Option<String> {
        self.linked(&MALLOC_LIBRARIES).map(|(_, library)| library.to_owned())
    }

    /// The function of jemalloc's own that it calls, of which the program has no other version.
    pub(crate) fn jemalloc_call(&self) -> Option<&'static str> {
        CALLS_OF_JEMALLOC.into_iter().find(|call| self.imported.iter().any(|name| name == call))
    }

    /// The first library it needs that begins like one of `known`, with that one's name.
    fn linked(&self, known: &[(&str, &'static str)]) -> Option<(&'static str, &str)> {
        self.needed.iter().find_map(|library| {
            let (_, name) = known.iter().find(|(prefix, _)| library.starts_with(prefix))?;
            Some((*name, library.as_str()))
        })
    }

    /// Checks that the loader exists; without it the kernel says that there is no such file.
    pub(crate) fn loader_here(&self) -> Result<(), String> {
        match &self.loader {
            Some(loader) if !loader.exists() => Err(format!(
                "its loader {} is not on this machine: it is made for another C library; install \
                 that, or build the program here",
                loader.display()
            )),
            _ => Ok(()),
        }
    }

    /// The reason why no malloc can be preloaded into this program, with a remedy; none if one can be.
    pub(crate) fn refusal(&self) -> Option<String> {
        if self.is_go {
            return Some(
                "it is written in Go, whose runtime manages its memory itself; its variables \
                 GOGC and GOMEMLIMIT are what there is to set"
                    .to_owned(),
            );
        }
        if self.loader.is_none() {
            let with = if self.has_glibc_note { STATIC_GLIBC } else { "linked statically" };
            return Some(format!(
                "it is {with}, so there is no loader to preload anything; link it dynamically, or build it with the \
                 allocator inside"
            ));
        }
        let knows =
            |symbol: &str| self.defines(symbol) || self.imported.iter().any(|name| name == symbol);
        let sanitizer = SANITIZERS
            .iter()
            .find(|(symbol, _)| knows(symbol))
            .map(|(_, name)| *name)
            .or_else(|| self.linked(&SANITIZER_LIBRARIES).map(|(name, _)| name));
        if let Some(sanitizer) = sanitizer {
            return Some(format!(
                "it is built with {sanitizer}, whose own malloc must stay; \
                 build it without -fsanitize"
            ));
        }
        if let Some((symbol, name)) = BUNDLED.iter().find(|(symbol, _)| self.defines(symbol)) {
            return Some(format!(
                "it brings {name} along (it defines `{symbol}`); build it without {name}"
            ));
        }
        if self.defines("malloc") {
            return Some(
                "it defines `malloc` itself, which goes before any preload; \
                 build it without its own malloc"
                    .to_owned(),
            );
        }
        None
    }
}

/// The functions that the ELF file at `path` exports, each with the addresses that the linker gave it; none where it
/// is no such file.
pub fn exported_functions(path: &Path) -> Option<Vec<(String, Range<u64>)>> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let data = &cache;
    let header = Header::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let table = sections.symbols(endian, data, elf::SHT_DYNSYM).ok()?;
    let functions = table
        .iter()
        .filter(|symbol| symbol.st_type() == elf::STT_FUNC && !symbol.is_undefined(endian));
    let named = functions.filter_map(|symbol| {
        let name = table.symbol_name(endian, symbol).ok()?;
        let start = symbol.st_value(endian);
        let range = start..start.saturating_add(symbol.st_size(endian));
        Some((String::from_utf8_lossy(name).into_owned(), range))
    });
    Some(named.collect())
}

/// The bytes of the section `name` of the ELF file at `path`, as far as `bytes_max` of them; none where there is no
/// such section, or its bytes are compressed.
pub fn section(path: &Path, name: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let data = &cache;
    let header = Header::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let (_, section) = sections.section_by_name(endian, name)?;
    if section.sh_flags(endian).0 & elf::SHF_COMPRESSED.0 != 0 {
        return None;
    }
    let (at, length) = (section.sh_offset(endian), section.sh_size(endian));
    data.read_bytes_at(at, length.min(bytes_max as u64)).ok().map(<[u8]>::to_vec)
}

/// The name of a malloc by the file of its library: `jemalloc` for `libjemalloc.so.2`.
#[must_use]
pub fn malloc_of(library: &str) -> String {
    library.trim_start_matches("lib").split(['.', '_']).next().unwrap_or_default().to_owned()
}

pub fn is_malloc_library(file: &str) -> bool {
    MALLOC_LIBRARIES.iter().any(|(prefix, _)| file.starts_with(prefix))
}

/// The C library a shared library is made for, known by the libraries it needs.
fn library_libc(needed: &[String]) -> Libc {
    let needs = |name: &str| needed.iter().any(|library| library.starts_with(name));
    if needs("libc.musl-") || needed.iter().any(|library| library == "libc.so") {
        Libc::Musl
    } else if needs("libc.so.") {
        Libc::Glibc
    } else {
        Libc::Static
    }
}
