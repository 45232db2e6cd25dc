//! The allocators: the feature of `workloads/rust` for each, and the needs of its build.
//!
//! The workload's manifest has exact versions, so that a record made today and one made next year compare the same
//! code.

use crate::bench::figures::OURS;

/// The allocator that every ratio is taken to.
pub(super) const REFERENCE: &str = "mimalloc";

#[derive(Debug, Clone, Copy)]
pub(super) struct Allocator {
    pub(super) name: &'static str,
    /// The crate, as the lock file has it; none for the C library's own malloc.
    pub(super) package: Option<&'static str>,
    pub(super) is_foreign: bool,
    /// Tunables of glibc that the allocator needs to run as its authors mean it to.
    pub(super) tunables: &'static [(&'static str, &'static str)],
}

impl Allocator {
    /// Whether the tables say nothing without it.
    pub(super) fn is_needed(&self) -> bool {
        [OURS, REFERENCE].contains(&self.name)
    }
}

const PLAIN: Allocator = Allocator { name: "", package: None, is_foreign: false, tunables: &[] };

pub(super) const ALLOCATORS: [Allocator; 10] = [
    Allocator { name: REFERENCE, package: Some("mimalloc"), is_foreign: true, ..PLAIN },
    Allocator { name: OURS, package: Some("masu"), ..PLAIN },
    Allocator { name: "system", is_foreign: true, ..PLAIN },
    Allocator { name: "jemalloc", package: Some("tikv-jemallocator"), is_foreign: true, ..PLAIN },
    Allocator { name: "snmalloc", package: Some("snmalloc-rs"), is_foreign: true, ..PLAIN },
    Allocator {
        name: "tcmalloc",
        package: Some("tcmalloc-better"),
        is_foreign: true,
        // Without this glibc takes the thread's restartable sequence, and its caches are off.
        tunables: &[("glibc.pthread.rseq", "0")],
    },
    Allocator { name: "talc", package: Some("talc"), ..PLAIN },
    Allocator { name: "dlmalloc", package: Some("dlmalloc"), ..PLAIN },
    Allocator { name: "rlsf", package: Some("rlsf"), ..PLAIN },
    Allocator { name: "rusty_alloc", package: Some("rusty_alloc-api"), ..PLAIN },
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use xtask::registry::version;

    use super::*;

    fn read(name: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/rust");
        std::fs::read_to_string(folder.join(name)).unwrap()
    }

    #[test]
    fn every_allocator_is_a_feature_and_no_feature_is_missing() {
        let manifest = read("Cargo.toml");
        let (_, rest) = manifest.split_once("[features]\n").unwrap();
        let features = rest.lines().take_while(|line| !line.starts_with('['));
        let mut features: Vec<&str> =
            features.filter_map(|line| Some(line.split_once(" = ")?.0)).collect();
        let mut names = ALLOCATORS.map(|allocator| allocator.name);
        features.sort_unstable();
        names.sort_unstable();
        assert_eq!(features, names);
        let makefile = read("Makefile");
        let lists = ["cpp := ", "musl := "].map(|list| makefile.split_once(list).unwrap().1);
        let built = lists.map(|list| list.lines().next().unwrap_or_default()).join(" ");
        assert!(names.iter().all(|name| built.split(' ').any(|one| one == *name)), "{built}");
    }

    #[test]
    fn every_package_has_a_version_in_the_lock_file() {
        let lock = read("Cargo.lock");
        for package in ALLOCATORS.iter().filter_map(|allocator| allocator.package) {
            assert!(version(&lock, package).is_some(), "{package}");
        }
        assert_eq!(version(&lock, "no-such-package"), None);
    }
}
