//! The found mallocs, behind those that a suite names: each library once, and each under a name of its own.
//!
//! Relies on the catalogue for names and files. The hard idea: a library can be found twice, by a family's name
//! (`mimalloc` is the newest of `mimalloc2` and `mimalloc3`) or as a copy in another folder, and two rows of one
//! library would look like two mallocs. So rows are compared by the library they load, and have the catalogue's name of
//! that library.

use std::fs;
use std::path::Path;

use crate::suite::{Choice, Named};
use masu_run::{Catalogue, Program, Spec, Variant};

/// `named` and, behind them, every malloc of `catalogue` that can be preloaded into `program` and is not among them.
pub(super) fn behind(named: Choice, catalogue: &Catalogue, program: &Program) -> Choice {
    let named = match named {
        Choice::Named(named) => named,
        Choice::Found => Vec::new(),
    };
    let found = catalogue.variants_for(program).into_iter();
    let is_row = |variant: &Variant| variant.library.is_some();
    let found = found
        .filter(is_row)
        .map(|variant| Named { spec: Spec::bare(variant.allocator), optional: true });
    let mut kept: Vec<(Named, Option<Variant>)> = Vec::new();
    for one in named.into_iter().chain(found) {
        let resolved = catalogue.resolve(&one.spec, program).ok();
        let is_known = |other: &(Named, Option<Variant>)| match (&resolved, &other.1) {
            (Some(own), Some(other)) => is_same(own, other),
            _ => one.spec == other.0.spec,
        };
        if !kept.iter().any(is_known) {
            kept.push((Named { spec: own_name(one.spec, resolved.as_ref()), ..one }, resolved));
        }
    }
    Choice::Named(kept.into_iter().map(|(named, _)| named).collect())
}

/// `spec` with the name that its library has in the catalogue, if `spec` has its family's name.
fn own_name(spec: Spec, resolved: Option<&Variant>) -> Spec {
    match resolved {
        Some(variant) if variant.library.is_some() && !spec.allocator.contains('/') => {
            Spec { allocator: variant.allocator.clone(), ..spec }
        }
        _ => spec,
    }
}

/// Whether both variants run a program with the same library, or none, and the same settings.
fn is_same(one: &Variant, other: &Variant) -> bool {
    let library = match (&one.library, &other.library) {
        (Some(one), Some(other)) => is_same_file(one, other),
        (one, other) => one == other,
    };
    library && one.tunables == other.tunables && one.variables == other.variables
}

/// Whether two libraries hold the same bytes, by two paths or as a copy.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let resolved = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if resolved(one) == resolved(other) {
        return true;
    }
    let length = |path: &Path| fs::metadata(path).map(|metadata| metadata.len()).ok();
    // Libraries are read only where their lengths are equal.
    length(one).is_some()
        && length(one) == length(other)
        && matches!((fs::read(one), fs::read(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use masu_run::Libc;
    use masu_run::catalogue::Allocator;

    fn program() -> Program {
        Program { path: "/bin/p".into(), libc: Libc::Glibc, ..Program::default() }
    }

    fn allocator(name: &str, path: &Path, version: &str) -> Allocator {
        Allocator {
            name: name.to_owned(),
            path: path.to_owned(),
            preloaded: name != "glibc",
            libc: Libc::Glibc,
            version: Some(version.to_owned()),
            ..Allocator::default()
        }
    }

    /// The names that `behind` gives for `asked`, none for the found mallocs, with these libraries: name, file,
    /// version, contents.
    fn names(asked: &[&str], libraries: &[(&str, &str, &str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut allocators = vec![allocator("glibc", &folder.path().join("libc.so.6"), "2.41")];
        for (name, file, version, contents) in libraries {
            let path = folder.path().join(file);
            fs::write(&path, contents).unwrap();
            allocators.push(allocator(name, &path, version));
        }
        let one = |name: &&str| Named { spec: name.parse().unwrap(), optional: *name != "system" };
        let asked = match asked {
            [] => Choice::Found,
            names => Choice::Named(names.iter().map(one).collect()),
        };
        let choice = behind(asked, &Catalogue { allocators }, &program());
        let Choice::Named(named) = &choice else { panic!("{choice:?}") };
        named.iter().map(|one| one.spec.to_string()).collect()
    }

    #[test]
    fn a_library_that_a_family_s_name_means_is_there_once_and_by_its_own_name() {
        let two = ("mimalloc2", "libmimalloc.so.2.0", "2.0.9", "two");
        let three = ("mimalloc3", "libmimalloc.so.3.6", "3.6.0", "three");
        let asked = ["system", "mimalloc"];
        assert_eq!(names(&asked, &[two]), ["system", "mimalloc2"]);
        assert_eq!(names(&asked, &[two, three]), ["system", "mimalloc3", "mimalloc2"]);
    }

    #[test]
    fn a_copy_in_another_place_is_the_same_library() {
        let copies = [
            ("jemalloc", "libjemalloc.so.2", "5.3.0", "the same bytes"),
            ("jemalloc-5.3.0-1", "libjemalloc.so.2.copy", "5.3.0-1", "the same bytes"),
            ("jemalloc-5.3.1", "libjemalloc.so.2.new", "5.3.1", "other bytes..."),
        ];
        assert_eq!(names(&[], &copies), ["jemalloc", "jemalloc-5.3.1"]);
    }

    #[test]
    fn settings_make_another_row_and_what_is_not_here_stays_named() {
        let asked = ["system", "glibc:top_pad=1M", "tcmalloc", "jemalloc:narenas=1"];
        let found = names(&asked, &[("jemalloc", "libjemalloc.so.2", "5.3.0", "je")]);
        assert_eq!(found, [&asked[..], &["jemalloc"]].concat());
    }
}
