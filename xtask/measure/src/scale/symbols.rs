//! Names for addresses of a run: code by function and line, data by symbol or by its kind of memory.
//!
//! It relies on the lab for the names in files, and on the mappings that the plugin wrote down. A library's zeroed data is
//! mapped without its file: an address belongs to the library that begins nearest below it, if its symbols reach that far.

use std::collections::HashMap;

use masu_lab::heap::Frame;
use masu_lab::heap::names::File;
use masu_lab::mapping::Mapping;

use super::report::Report;

/// Bytes of a thread's control block and the data behind it, above the end of the thread's local storage.
const ABOVE_LOCAL: u64 = 4096;
const LINE: u64 = 64;
/// The stacks of the program's threads.
const STACK: u64 = 256 << 10;

/// The symbols read from the files so far.
#[derive(Default)]
pub(super) struct Symbols {
    files: HashMap<String, File>,
}

/// A file in memory, and where in it an address is.
struct Image<'a> {
    path: &'a str,
    address: u64,
    is_mapped: bool,
}

impl Symbols {
    /// A name for the memory at the address.
    pub(super) fn place(&mut self, report: &Report, address: u64) -> String {
        if let Some((_, name)) = report.names.iter().find(|(range, _)| range.contains(&address)) {
            return name.clone();
        }
        let is_of = |&&(stack, local): &&(u64, u64)| {
            (stack.saturating_sub(STACK)..local.saturating_add(ABOVE_LOCAL)).contains(&address)
        };
        if let Some((stack, _)) = report.threads.iter().find(is_of) {
            let what = if address < *stack { "stack" } else { "local storage" };
            return format!("a thread's {what}");
        }
        if let Some(name) = self.in_a_file(report, address) {
            return name;
        }
        match Mapping::all(&report.maps).find(|one| (one.start..one.end).contains(&address)) {
            Some(mapping) if mapping.path.starts_with('[') => {
                mapping.path.trim_matches(['[', ']']).to_owned()
            }
            Some(mapping) => {
                let kb = (address - mapping.start) >> 10;
                format!("mapped memory, {kb} KiB into {} KiB", (mapping.end - mapping.start) >> 10)
            }
            None => "memory that was given back".to_owned(),
        }
    }

    /// The innermost function and the line of an instruction.
    pub(super) fn code(&mut self, report: &Report, instruction: u64) -> String {
        let Some(image) = image(report, instruction) else { return "code in memory".to_owned() };
        let of = file_name(image.path);
        match self.file(image.path).frames_at(image.address).first() {
            Some(Frame { function, file: Some(file), line }) => {
                format!("{} ({}:{line}) of {of}", short(function), file_name(file))
            }
            Some(frame) => format!("{} of {of}", short(&frame.function)),
            None => format!("{of}+{:#x}", image.address),
        }
    }

    /// The function of an instruction, without its line, by which moves are added up.
    pub(super) fn function(&mut self, report: &Report, instruction: u64) -> String {
        let Some(image) = image(report, instruction) else { return "code in memory".to_owned() };
        let name = self.file(image.path).symbol(image.address);
        let name = name.as_deref().map_or("a function without a name", short);
        format!("{name} of {}", file_name(image.path))
    }

    fn in_a_file(&mut self, report: &Report, address: u64) -> Option<String> {
        let image = image(report, address)?;
        let (file, line) = (self.file(image.path), image.address / LINE * LINE);
        let mut names: Vec<String> = (line..line + LINE)
            .filter_map(|at| Some(short(&file.symbol(at)?).to_owned()))
            .collect();
        names.dedup();
        let of = file_name(image.path);
        if names.is_empty() {
            return image.is_mapped.then(|| format!("{of}+{:#x}", image.address));
        }
        Some(format!("`{}` of {of}", names.join("`, `")))
    }

    fn file(&mut self, path: &str) -> &File {
        self.files.entry(path.to_owned()).or_insert_with(|| File::open(path, &mut Vec::new()))
    }
}

/// The file that the address is in, or that ends nearest below it.
fn image(report: &Report, address: u64) -> Option<Image<'_>> {
    let is_file = |path: &str| path.starts_with('/');
    let maps = || Mapping::all(&report.maps);
    let below = maps().filter(|one| one.start <= address && is_file(one.path));
    let nearest = below.max_by_key(|one| one.start)?;
    let same = maps().filter(|one| one.path == nearest.path && one.offset == 0);
    let base = same.map(|one| one.start).filter(|start| *start <= address).max()?;
    let is_mapped = address < nearest.end;
    Some(Image { path: nearest.path, address: address - base, is_mapped })
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A name without a list of parameters.
fn short(name: &str) -> &str {
    name.split('(').next().filter(|name| !name.is_empty()).unwrap_or(name).trim()
}
