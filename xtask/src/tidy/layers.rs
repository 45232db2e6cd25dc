//! The order of modules inside a crate: the layers that its `lib.rs` or `main.rs` lists are true.
//!
//! A layer is a run of `mod` lines without a blank line or a comment between them; layers stand bottom up. A
//! module imports from its own layer and from those above it in the list, and no modules import each
//! other in a circle, be it through others. A crate with one layer has the second rule alone. Tests may import what they
//! like. Only paths that begin with `crate::` are looked at: they are how modules of one crate name each other here. A name that
//! the crate's root hands on (`pub use kernel::Page;`) counts as its module's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Finding;
use super::source::{Line, Source};
use super::tree::Tree;

const RULE: &str = "layers";

/// Imports that climb, and circles.
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

/// Where one module imports another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    path: PathBuf,
    index: usize,
}

/// Each module with the modules that it imports and the first place where it does.
type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Place>>;

fn check_crate(tree: &Tree, root: &Source) -> Vec<Finding> {
    let layers = layers(root);
    let Some(src) = root.path.parent() else { return Vec::new() };
    let imports = imports(tree, src, &layers, &handed_on(root));
    let circle = circle(&imports);
    let mut findings = Vec::new();
    for (from, targets) in &imports {
        for (to, place) in targets {
            if layers[*to] > layers[*from] {
                let remedy = format!(
                    "`{from}` imports `{to}`, which is of a layer above: turn the need around, or mend the list in {}",
                    root.path.display()
                );
                findings.push(Finding::at(&place.path, place.index, RULE, remedy));
            } else if circle.contains(from) && circle.contains(to) {
                let others: Vec<&str> = circle.iter().copied().collect();
                let remedy = format!(
                    "`{from}` imports `{to}` in a circle of {}: move what both need into a module below",
                    others.join(", ")
                );
                findings.push(Finding::at(&place.path, place.index, RULE, remedy));
            }
        }
    }
    findings
}

/// Each module that a crate's root lists, with the number of its layer from the bottom.
fn layers(root: &Source) -> BTreeMap<String, usize> {
    let mut layers = BTreeMap::new();
    let (mut layer, mut ended) = (0, false);
    for line in &root.lines {
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

/// Names that the crate's root takes from its modules, each with its module.
fn handed_on(root: &Source) -> BTreeMap<String, String> {
    let code: Vec<&str> = root.lines.iter().map(|line| line.code.as_str()).collect();
    let code = code.join(" ");
    let mut handed_on = BTreeMap::new();
    for statement in code.split("use ").skip(1) {
        let path = statement.split(';').next().unwrap_or_default();
        let Some((module, names)) = path.split_once("::") else { continue };
        for name in names.trim_start_matches('{').trim_end_matches('}').split(',') {
            // Behind `as` stands what it is called from then on.
            let name = name.rsplit_once(" as ").map_or(name, |(_, name)| name).trim();
            handed_on.insert(name.to_owned(), module.trim().to_owned());
        }
    }
    handed_on
}

/// What modules of the crate at `src` import of each other.
fn imports<'a>(
    tree: &'a Tree,
    src: &Path,
    layers: &'a BTreeMap<String, usize>,
    handed_on: &BTreeMap<String, String>,
) -> Imports<'a> {
    let mut imports: Imports = BTreeMap::new();
    for source in tree.sources.iter().filter(|source| source.path.starts_with(src)) {
        let Some((from, _)) = source
            .path
            .strip_prefix(src)
            .ok()
            .and_then(|path| path.iter().next()?.to_str())
            .and_then(|first| layers.get_key_value(first.trim_end_matches(".rs")))
        else {
            continue;
        };
        for (index, name) in named(source) {
            let module =
                handed_on.get(&name).filter(|_| !layers.contains_key(&name)).unwrap_or(&name);
            let Some((to, _)) = layers.get_key_value(module.as_str()) else { continue };
            if to != from {
                let place = Place { path: source.path.clone(), index };
                imports.entry(from).or_default().entry(to).or_insert(place);
            }
        }
    }
    imports
}

/// The modules named by paths such as `crate::name` and `crate::{name, other::Thing}`, each with its line's index.
fn named(source: &Source) -> Vec<(usize, String)> {
    const BEGIN: &str = "crate::";
    let mut named = Vec::new();
    // How deep the braces of an open list are; of a list only what stands at depth 1 are names of modules.
    let mut depth = 0_usize;
    for (index, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
        let mut rest = line.code.as_str();
        loop {
            if depth == 0 {
                let Some(at) = rest.find(BEGIN) else { break };
                let before = rest[..at].chars().next_back();
                let is_whole = !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$');
                rest = &rest[at + BEGIN.len()..];
                if let Some(list) = rest.strip_prefix('{') {
                    (depth, rest) = (1, list);
                } else if is_whole {
                    named.push((index, word(rest).to_owned()));
                }
                continue;
            }
            let Some(first) = rest.chars().next() else { break };
            let name = word(rest);
            match first {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ if depth == 1 && !name.is_empty() => named.push((index, name.to_owned())),
                _ => {}
            }
            // What follows a name up to the comma is inside that module.
            let path = if name.is_empty() {
                first.len_utf8()
            } else {
                rest.find([',', '{', '}']).unwrap_or(rest.len())
            };
            rest = &rest[path..];
        }
    }
    named
}

/// The identifier at the front; empty where there is none.
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

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "// Below.\nmod kernel;\nmod memory;\n\n// Above.\npub mod arena;\n#[cfg(test)]\nmod fixtures;\n\npub use arena::{Arena,\n    Error as Wrong};\npub use memory::Page;\n";

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::planted(&[("crates/a/src/lib.rs", ROOT), (path, text)])).len()
    }

    #[test]
    fn an_import_that_climbs_is_found() {
        assert_eq!(found("crates/a/src/kernel.rs", "use crate::arena::Arena;"), 1);
        assert_eq!(
            found(
                "crates/a/src/kernel/file.rs",
                "use crate::{\n    memory::{A, B},\n    arena::C,\n};"
            ),
            1
        );
        assert_eq!(found("crates/a/src/kernel.rs", "fn f() { crate::arena::f() }"), 1);
        assert_eq!(found("crates/a/src/kernel.rs", "use crate::{Page, Wrong};"), 1);
    }

    #[test]
    fn an_import_from_below_and_what_tests_import_is_not() {
        assert_eq!(found("crates/a/src/arena.rs", "use crate::{kernel, memory::{kernel, A}};"), 0);
        assert_eq!(found("crates/a/src/kernel.rs", "use crate::memory;"), 0);
        assert_eq!(found("crates/a/src/kernel.rs", "use crate::memory::{arena, b};"), 0);
        assert_eq!(
            found("crates/a/src/kernel.rs", "#[cfg(test)]\nmod tests {\n    use crate::arena;\n}"),
            0
        );
        assert_eq!(found("crates/a/src/kernel.rs", "// crate::arena is above"), 0);
    }

    #[test]
    fn a_circle_within_a_layer_is_found_at_each_import() {
        let files = [
            ("crates/a/src/lib.rs", ROOT),
            ("crates/a/src/kernel.rs", "use crate::memory;"),
            ("crates/a/src/memory.rs", "use crate::kernel;"),
        ];
        assert_eq!(check(&Tree::planted(&files)).len(), 2);
    }

    #[test]
    fn layers_are_runs_of_lines() {
        let layers = layers(&Source::new(Path::new("crates/a/src/lib.rs"), ROOT));
        let layers: Vec<_> = layers.iter().map(|(name, layer)| (name.as_str(), *layer)).collect();
        assert_eq!(layers, [("arena", 1), ("kernel", 0), ("memory", 0)]);
    }
}
