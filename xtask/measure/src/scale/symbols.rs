//! Names for addresses of a run: of code by function and line, of data by symbol, or by what lies there.
//!
//! It relies on `nm` and `addr2line`, and on the mappings that the plugin wrote down. A library's zeroed data is mapped
//! without its file: an address belongs to the library that begins nearest below it, if its symbols reach that far.

use std::collections::HashMap;
use std::process::Command;

use super::report::Report;

/// Bytes of a thread's control block and what follows it, above where the thread's local storage ends.
const ABOVE_LOCAL: u64 = 4096;
const LINE: u64 = 64;
/// The stacks of the program's threads.
const STACK: u64 = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) name: String,
}

/// What was read of the files so far.
#[derive(Default)]
pub(super) struct Symbols {
    of_file: HashMap<String, Vec<Symbol>>,
    lines: HashMap<(String, u64), Option<String>>,
}

/// A file in memory, and where in it an address is.
struct Image<'a> {
    path: &'a str,
    address: u64,
    is_mapped: bool,
}

impl Symbols {
    /// What lies in the line of the address.
    pub(super) fn place(&mut self, report: &Report, address: u64) -> String {
        if let Some(range) = report.names.iter().find(|r| (r.start..r.end).contains(&address)) {
            return range.name.clone();
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
        match report.maps.iter().find(|one| (one.start..one.end).contains(&address)) {
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

    /// The function and the line of an instruction.
    pub(super) fn code(&mut self, report: &Report, instruction: u64) -> String {
        let Some(image) = image(report, instruction) else { return "code in memory".to_owned() };
        let (path, address) = (image.path.to_owned(), image.address);
        let symbol = self.symbol(&path, address);
        let line = self.line(&path, address);
        match line.or(symbol) {
            Some(name) => format!("{name} of {}", file_name(&path)),
            None => format!("{}+{address:#x}", file_name(&path)),
        }
    }

    /// The function of an instruction, without its line: what moves are added up by.
    pub(super) fn function(&mut self, report: &Report, instruction: u64) -> String {
        let Some(image) = image(report, instruction) else { return "code in memory".to_owned() };
        let (path, address) = (image.path.to_owned(), image.address);
        let name =
            self.symbol(&path, address).unwrap_or_else(|| "a function without a name".into());
        format!("{name} of {}", file_name(&path))
    }

    fn in_a_file(&mut self, report: &Report, address: u64) -> Option<String> {
        let image = image(report, address)?;
        let (path, at, is_mapped) = (image.path.to_owned(), image.address, image.is_mapped);
        let file = file_name(&path).to_owned();
        let symbols = self.of_file.entry(path.clone()).or_insert_with(|| read(&path));
        let mut names: Vec<String> =
            within(symbols, at / LINE * LINE).map(|one| short(&one.name)).collect();
        names.dedup();
        if names.is_empty() {
            return is_mapped.then(|| format!("{file}+{at:#x}"));
        }
        Some(format!("`{}` of {file}", names.join("`, `")))
    }

    fn symbol(&mut self, path: &str, address: u64) -> Option<String> {
        let symbols = self.of_file.entry(path.to_owned()).or_insert_with(|| read(path));
        find(symbols, address).map(|symbol| short(&symbol.name))
    }

    /// The innermost function at the address, inlined ones too, and its line, as far as the file says.
    fn line(&mut self, path: &str, address: u64) -> Option<String> {
        let key = (path.to_owned(), address);
        self.lines.entry(key).or_insert_with(|| line_of(path, address)).clone()
    }
}

/// The file that the address is in, or that ends nearest below it.
fn image(report: &Report, address: u64) -> Option<Image<'_>> {
    let is_file = |path: &str| path.starts_with('/');
    let below = report.maps.iter().filter(|one| one.start <= address && is_file(&one.path));
    let nearest = below.max_by_key(|one| one.start)?;
    let same = report.maps.iter().filter(|one| one.path == nearest.path && one.offset == 0);
    let base = same.map(|one| one.start).filter(|start| *start <= address).max()?;
    let is_mapped = address < nearest.end;
    Some(Image { path: &nearest.path, address: address - base, is_mapped })
}

/// The symbol whose bytes the address is among.
pub(super) fn find(symbols: &[Symbol], address: u64) -> Option<&Symbol> {
    let after = symbols.partition_point(|symbol| symbol.address <= address);
    let holds = |symbol: &&Symbol| address < symbol.address + symbol.size;
    // Where one function has several names, C's is the shortest.
    let names = symbols[..after].iter().rev().take(8).filter(holds);
    names.max_by_key(|symbol| (symbol.address, std::cmp::Reverse(symbol.name.len())))
}

/// The symbols that have bytes in the line that begins at the address.
pub(super) fn within(symbols: &[Symbol], line: u64) -> impl Iterator<Item = &Symbol> {
    let end = symbols.partition_point(|symbol| symbol.address < line + LINE);
    // The last that begin before the line may reach into it.
    let begin = symbols.partition_point(|symbol| symbol.address < line).saturating_sub(4);
    symbols[begin..end].iter().filter(move |symbol| line < symbol.address + symbol.size)
}

fn read(path: &str) -> Vec<Symbol> {
    let of = |option: &[&str]| {
        let output = Command::new("nm").args(["-S", "-C", "--defined-only"]).args(option).output();
        output.map(|output| parse(&String::from_utf8_lossy(&output.stdout))).unwrap_or_default()
    };
    let mut symbols = of(&[path]);
    if symbols.is_empty() {
        symbols = of(&["-D", path]);
    }
    symbols.sort_by_key(|symbol| (symbol.address, symbol.size));
    symbols
}

/// What `nm -S` prints: `address size kind name`; what has no size is left out.
pub(super) fn parse(printed: &str) -> Vec<Symbol> {
    let symbol = |line: &str| {
        let mut words = line.splitn(4, ' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let size = u64::from_str_radix(words.next()?, 16).ok()?;
        let name = words.nth(1)?.to_owned();
        Some(Symbol { address, size, name })
    };
    printed.lines().filter_map(symbol).collect()
}

fn line_of(path: &str, address: u64) -> Option<String> {
    let mut command = Command::new("addr2line");
    command.args(["-f", "-i", "-C", "-e", path, &format!("{address:#x}")]);
    let output = command.output().ok()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = printed.lines();
    let (function, place) = (lines.next()?, lines.next()?);
    if function == "??" || place.starts_with("??") {
        return None;
    }
    Some(format!("{} ({})", short(function), file_name(place)))
}

fn file_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split(" (discriminator").next().unwrap_or(name)
}

/// A name without the hash that Rust appends and without a list of parameters.
fn short(name: &str) -> String {
    let name = name.split_once("::h").filter(|(_, hash)| hash.len() == 16).map_or(name, |(n, _)| n);
    let name = name.split('(').next().filter(|name| !name.is_empty()).unwrap_or(name);
    name.trim().to_owned()
}
