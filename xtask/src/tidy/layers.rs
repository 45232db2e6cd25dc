//! The order of modules inside a crate: the layers that its `lib.rs` or `main.rs` lists are true, and so are those of each
//! folder, which the file beside the folder lists.
//!
//! A layer is a run of `mod` lines without a blank line or a comment between them; layers stand bottom up. A
//! module imports from its own layer and from those above it in the list, and no modules of a list import each
//! other in a circle, be it through others. A crate with one layer has the second rule alone; a folder with one layer
//! claims no order. Tests may import what they like. Only paths that begin with `crate::` or `super::` are looked at: they
//! are how modules of one crate name each other here. A name that the list's file hands on (`pub use kernel::Page;`) counts
//! as its module's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Finding;
use super::source::{Line, Source};
use super::tree::Tree;

const RULE: &str = "layers";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let roots = tree.sources.iter().filter(|source| is_root(&source.path));
    roots.flat_map(|root| check_crate(tree, root)).collect()
}

/// Whether this is the file that lists a crate's modules.
fn is_root(path: &Path) -> bool {
    let is_shipped = path.starts_with("crates") || path.starts_with("xtask");
    let in_src = path.parent().is_some_and(|folder| folder.ends_with("src"));
    is_shipped && in_src && (path.ends_with("lib.rs") || path.ends_with("main.rs"))
}

/// A file of a crate: its module's name from the crate's root, and the modules that it names, each with its line's index.
struct Module<'a> {
    source: &'a Source,
    name: Vec<String>,
    named: Vec<(usize, Vec<String>)>,
}

/// Each module with the modules that it imports, and the first file and line's index where it does.
type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, (&'a Path, usize)>>;

fn check_crate(tree: &Tree, root: &Source) -> Vec<Finding> {
    let Some(src) = root.path.parent() else { return Vec::new() };
    let modules: Vec<Module> =
        tree.sources.iter().filter_map(|source| Module::of(source, src)).collect();
    let folders = modules.iter().filter(|module| !module.name.is_empty());
    let lists = folders.map(|folder| (folder.source, &folder.name[..]));
    lists
        .chain([(root, &[][..])])
        .flat_map(|(list, name)| check_list(&modules, list, name))
        .collect()
}

/// Findings among the modules that `list` lists, the file of the module `folder`.
fn check_list(modules: &[Module], list: &Source, folder: &[String]) -> Vec<Finding> {
    let layers = layers(list);
    let is_one_layer = layers.values().all(|layer| *layer == 0);
    if is_one_layer && !folder.is_empty() {
        return Vec::new();
    }
    let imports = imports(modules, folder, &layers, &handed_on(list));
    let circle = circle(&imports);
    let mut findings = Vec::new();
    for (from, targets) in &imports {
        for (to, (path, index)) in targets {
            if layers[*to] > layers[*from] {
                let remedy = format!(
                    "`{from}` imports `{to}`, which is of a layer above: turn the need around, or mend the list in {}",
                    list.path.display()
                );
                findings.push(Finding::at(path, *index, RULE, remedy));
            } else if circle.contains(from) && circle.contains(to) {
                let others: Vec<&str> = circle.iter().copied().collect();
                let remedy = format!(
                    "`{from}` imports `{to}` in a circle of {}: move what both need into a module below",
                    others.join(", ")
                );
                findings.push(Finding::at(path, *index, RULE, remedy));
            }
        }
    }
    findings
}

/// Each module that a file lists, with the number of its layer from the bottom.
fn layers(list: &Source) -> BTreeMap<String, usize> {
    let mut layers = BTreeMap::new();
    let (mut layer, mut ended) = (0, false);
    for line in &list.lines {
        if let Some(name) = module(line) {
            layer += usize::from(ended && !layers.is_empty());
            ended = false;
            if !line.in_test {
                layers.insert(name.to_owned(), layer);
            }
        } else if !line.is_attribute() {
            ended = true;
        }
    }
    layers
}

/// The name in a line such as `pub mod name;`.
fn module(line: &Line) -> Option<&str> {
    let code = line.code.trim();
    let code = code.strip_prefix("pub(crate) ").or(code.strip_prefix("pub ")).unwrap_or(code);
    code.strip_prefix("mod ")?.strip_suffix(';')
}

/// Names that a file takes from the modules that it lists, each with its module.
fn handed_on(list: &Source) -> BTreeMap<String, String> {
    let code: Vec<&str> = list.lines.iter().map(|line| line.code.as_str()).collect();
    let code = code.join(" ");
    let mut handed_on = BTreeMap::new();
    for statement in code.split("use ").skip(1) {
        let path = statement.split(';').next().unwrap_or_default();
        let Some((module, names)) = path.split_once("::") else { continue };
        for name in names.trim_start_matches('{').trim_end_matches('}').split(',') {
            // The name that follows `as` is the module's name from then on.
            let name = name.rsplit_once(" as ").map_or(name, |(_, name)| name).trim();
            handed_on.insert(name.to_owned(), module.trim().to_owned());
        }
    }
    handed_on
}

/// The imports between the modules that the file of `folder` lists.
fn imports<'a>(
    modules: &'a [Module],
    folder: &[String],
    layers: &'a BTreeMap<String, usize>,
    handed_on: &BTreeMap<String, String>,
) -> Imports<'a> {
    let mut imports: Imports = BTreeMap::new();
    for module in modules {
        let Some((from, _)) =
            below(&module.name, folder).and_then(|name| layers.get_key_value(name))
        else {
            continue;
        };
        for (index, path) in &module.named {
            let Some(name) = below(path, folder) else { continue };
            let of = handed_on.get(name).filter(|_| !layers.contains_key(name));
            let Some((to, _)) = layers.get_key_value(of.map_or(name, String::as_str)) else {
                continue;
            };
            if to != from {
                let place = (module.source.path.as_path(), *index);
                imports.entry(from).or_default().entry(to).or_insert(place);
            }
        }
    }
    imports
}

/// The name in `path` inside `folder`; none if the path does not go through it.
fn below<'a>(path: &'a [String], folder: &[String]) -> Option<&'a str> {
    path.strip_prefix(folder)?.first().map(String::as_str)
}

impl Module<'_> {
    /// The module that `source` is of the crate at `src`, if it is.
    fn of<'a>(source: &'a Source, src: &Path) -> Option<Module<'a>> {
        let path = source.path.strip_prefix(src).ok()?.with_extension("");
        let mut name: Vec<String> =
            path.iter().map(|part| Some(part.to_str()?.to_owned())).collect::<Option<_>>()?;
        if matches!(name.last().map(String::as_str), Some("lib" | "main")) {
            name.pop();
        }
        let named = named(source, &name);
        Some(Module { source, name, named })
    }
}

/// The paths in `source`, the file of `module`, that begin with `crate::` or `super::`, from the crate's root; of
/// `crate::{name, other::Thing}` both.
fn named(source: &Source, module: &[String]) -> Vec<(usize, Vec<String>)> {
    let lines = source.lines.iter().map(|line| if line.in_test { "" } else { line.code.as_str() });
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut named = Vec::new();
    for begin in ["crate", "super"] {
        for (at, _) in code.match_indices(&format!("{begin}::")) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | ':')) {
                continue;
            }
            let mut paths = Vec::new();
            read_path(&code, at, &[], &mut paths);
            for (at, path) in paths {
                let ups = path.iter().take_while(|part| **part == "super").count();
                let Some(left) = module.len().checked_sub(ups) else { continue };
                let base = if begin == "crate" { &[] } else { &module[..left] };
                let names = path.iter().skip(ups.max(1)).map(|&part| part.to_owned());
                let index = code[..at].matches('\n').count();
                named.push((index, base.iter().cloned().chain(names).collect()));
            }
        }
    }
    named.sort();
    named
}

/// Reads the path at `at`, or the list of paths, each put behind `before` into `paths` with where it ends; returns where all end.
fn read_path<'a>(
    code: &'a str,
    at: usize,
    before: &[&'a str],
    paths: &mut Vec<(usize, Vec<&'a str>)>,
) -> usize {
    let mut at = code.len() - code[at..].trim_start().len();
    if code[at..].starts_with('{') {
        while !code[at..].starts_with('}') {
            at = read_path(code, at + 1, before, paths);
            // The text up to the comma is a name behind `as`, or a star.
            at += code[at..].find([',', '}']).unwrap_or(code.len() - at);
            if at == code.len() {
                return at;
            }
        }
        return at + 1;
    }
    let name = word(&code[at..]);
    let path = if name.is_empty() { before.to_vec() } else { [before, &[name]].concat() };
    let end = at + name.len();
    if !name.is_empty() && code[end..].starts_with("::") {
        return read_path(code, end + 2, &path, paths);
    }
    paths.push((end, path));
    end
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// The largest set of modules of which each leads to each other by imports; empty where there is no circle.
fn circle<'a>(imports: &Imports<'a>) -> BTreeSet<&'a str> {
    let reached = |from: &'a str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(module) = open.pop() {
            let next = imports.get(module).into_iter().flat_map(|targets| targets.keys());
            open.extend(next.copied().filter(|next| seen.insert(*next)));
        }
        seen
    };
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|module| (*module, reached(module))).collect();
    let circle_of = |module: &&'a str| -> BTreeSet<&'a str> {
        let back = |other: &&&str| reach.get(**other).is_some_and(|reach| reach.contains(module));
        reach[module].iter().filter(back).copied().collect()
    };
    imports.keys().map(circle_of).max_by_key(BTreeSet::len).unwrap_or_default()
}
