//! Names: which functions an address is in, by the file that was mapped there.
//!
//! Relies on addr2line for DWARF and symbol tables, with debug files beside them. A file may have been replaced since
//! the profile was written; a remark says so where that is visible. The hard idea is the way from an address to the
//! file's own address: mappings count in the file's bytes, symbols in the addresses that the linker chose, and segments
//! say how one becomes the other.

use std::collections::HashMap;
use std::path::Path;
use std::{fs, io};

use addr2line::Loader;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, elf};

use super::Frame;
use super::message::{Location, Mapping, Message};

/// A mapped file, ready for look-ups.
#[derive(Default)]
pub struct File {
    loader: Option<Loader>,
    /// Each segment's offset in the file, its length there, and its address.
    segments: Vec<(u64, u64, u64)>,
}

pub(super) struct Names<'a> {
    message: &'a Message,
    files: HashMap<&'a str, File>,
    known: HashMap<usize, Vec<Frame>>,
    remarks: Vec<String>,
}

impl<'a> Names<'a> {
    pub(super) fn new(message: &'a Message) -> Names<'a> {
        Names { message, files: HashMap::new(), known: HashMap::new(), remarks: Vec::new() }
    }

    /// The functions that a location is in, innermost first; at least one.
    pub(super) fn of(&mut self, location: usize) -> &[Frame] {
        if !self.known.contains_key(&location) {
            let frames = self.look_up(&self.message.locations[location]);
            self.known.insert(location, frames);
        }
        &self.known[&location]
    }

    pub(super) fn remarks(self) -> Vec<String> {
        self.remarks
    }

    fn look_up(&mut self, location: &Location) -> Vec<Frame> {
        if !location.frames.is_empty() {
            return location.frames.clone();
        }
        let Some(mapping) = location.mapping.map(|index| &self.message.mappings[index]) else {
            return vec![unnamed(&format!("{:#x}", location.address))];
        };
        let file = file_name(&mapping.file);
        if file.starts_with("libmasu") {
            return vec![unnamed("libmasu")];
        }
        let remarks = &mut self.remarks;
        let opened =
            self.files.entry(&mapping.file).or_insert_with(|| File::open(&mapping.file, remarks));
        let mut frames = opened.frames(mapping, location.address);
        if frames.is_empty() {
            frames.push(unnamed(&format!("[{file}]")));
        }
        if file.contains(".so") {
            for frame in frames.iter_mut().filter(|frame| frame.file.is_none()) {
                frame.file = Some(file.to_owned());
            }
        }
        frames
    }
}

fn unnamed(text: &str) -> Frame {
    Frame { function: text.to_owned(), file: None, line: 0 }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl File {
    /// Opens the file that a memory map names; a remark says why its names cannot be known.
    pub fn open(name: &str, remarks: &mut Vec<String>) -> File {
        // `[vdso]` and the like.
        if !name.starts_with('/') {
            return File::default();
        }
        let read = match name.ends_with(" (deleted)") {
            true => Err(io::Error::other("it was replaced or removed")),
            false => File::read(Path::new(name)),
        };
        read.unwrap_or_else(|error| {
            remarks.push(format!("no names of {name}: {error}"));
            File::default()
        })
    }

    fn read(path: &Path) -> io::Result<File> {
        // A device may be mapped as well, and have no end.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let bytes = ReadCache::new(fs::File::open(path)?);
        let segments = segments(&bytes).unwrap_or_default();
        Ok(File { loader: Loader::new(path).ok(), segments })
    }

    fn frames(&self, mapping: &Mapping, address: u64) -> Vec<Frame> {
        if !(mapping.start..mapping.end).contains(&address) {
            return Vec::new();
        }
        let in_file = (address - mapping.start).checked_add(mapping.offset);
        let linked = in_file.and_then(|in_file| self.linked(in_file));
        linked.map(|linked| self.frames_at(linked)).unwrap_or_default()
    }

    /// The functions that an address of the linker's is in, innermost first.
    pub fn frames_at(&self, linked: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        let found = self.loader.as_ref().and_then(|loader| loader.find_frames(linked).ok());
        if let Some(mut found) = found {
            while let Ok(Some(frame)) = found.next() {
                let Some(name) = frame.function.as_ref().and_then(|name| name.raw_name().ok())
                else {
                    continue;
                };
                let place = frame.location.as_ref();
                frames.push(Frame {
                    function: demangled(&name),
                    file: place.and_then(|place| place.file).map(str::to_owned),
                    line: place.and_then(|place| place.line).unwrap_or(0),
                });
            }
        }
        if frames.is_empty()
            && let Some(symbol) = self.symbol(linked)
        {
            frames.push(unnamed(&symbol));
        }
        frames
    }

    /// The linker's address of the byte at this offset in the file.
    pub(crate) fn linked(&self, in_file: u64) -> Option<u64> {
        let holds = |(start, length, _): &&(u64, u64, u64)| {
            (*start..start.saturating_add(*length)).contains(&in_file)
        };
        let (start, _, linked) = self.segments.iter().find(holds)?;
        Some((in_file - start).wrapping_add(*linked))
    }

    /// The function or the data at one of the linker's addresses; inlined functions are not distinguished.
    pub fn symbol(&self, linked: u64) -> Option<String> {
        self.loader.as_ref()?.find_symbol(linked).map(demangled)
    }
}

/// A name as its source has it. The return type of a C++ function is left out: names of template instances would
/// begin with it, and other names not.
fn demangled(name: &str) -> String {
    // A version behind a symbol's name comes from the dynamic linker.
    let name = name.split('@').next().unwrap_or(name);
    // Both decoders also take names without the prefix that a linker sees: `f`, a function of C, would be `float`.
    if !name.starts_with("_Z") && !name.starts_with("_R") {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let options = cpp_demangle::DemangleOptions::new().no_return_type();
    let symbol = cpp_demangle::Symbol::new(name).ok();
    let cpp = symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok());
    cpp.unwrap_or_else(|| name.to_owned())
}

fn segments<'a>(bytes: impl ReadRef<'a>) -> Option<Vec<(u64, u64, u64)>> {
    let file = ElfFile64::<Endianness, _>::parse(bytes).ok()?;
    let endian = file.endian();
    let loaded = file.elf_program_headers().iter().filter(|it| it.p_type(endian) == elf::PT_LOAD);
    let of = |it: &elf::ProgramHeader64<Endianness>| {
        (it.p_offset(endian), it.p_filesz(endian), it.p_vaddr(endian))
    };
    Some(loaded.map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_was_mapped_has_no_names_and_no_end() {
        let mut remarks = Vec::new();
        assert_eq!(File::open("/dev/zero", &mut remarks).symbol(0), None);
        assert_eq!(remarks, ["no names of /dev/zero: it is no file"]);
    }

    #[test]
    fn names_are_as_their_sources_have_them() {
        for (symbol, name) in [
            ("strdup@@GLIBC_2.2.5", "strdup"),
            ("_ZN4work5parse17h0123456789abcdefE", "work::parse"),
            ("_Z4readi", "read(int)"),
            ("_Z7collectIiESt6vectorIT_SaIS1_EEi", "collect<int>(int)"),
            ("_RNvC4work5parse", "work::parse"),
            ("f", "f"),
            ("St", "St"),
            ("ZN4work5parseE", "ZN4work5parseE"),
            ("_start", "_start"),
        ] {
            assert_eq!(demangled(symbol), name);
        }
    }
}
