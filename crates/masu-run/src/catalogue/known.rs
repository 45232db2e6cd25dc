//! Malloc libraries that are known by their file names, and the folders that hold them.

use std::fs;
use std::path::PathBuf;

use super::HARDENED;

#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    /// The start of the file's name, up to and including `.so` and its main version.
    files: &'static [&'static str],
    pub(super) packages: &'static [&'static str],
    note: Option<&'static str>,
    /// A tunable of the C library it needs.
    pub(super) tunable: Option<(&'static str, &'static str)>,
}

impl Known {
    /// The notes to read before the malloc's figures.
    pub(super) fn notes(&self) -> Vec<String> {
        self.note.map(str::to_owned).into_iter().collect()
    }
}

const fn plain(
    name: &'static str,
    files: &'static [&'static str],
    packages: &'static [&'static str],
) -> Known {
    Known { name, files, packages, note: None, tunable: None }
}

const fn noted(note: &'static str, known: Known) -> Known {
    Known { note: Some(note), ..known }
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}

const CHECKS: &str = "a hardened allocator: part of its time buys checks";

static KNOWN: [Known; 15] = [
    plain("masu", &["libmasu.so"], &[]),
    noted(CHECKS, plain(HARDENED, &["libmasu-secure.so"], &[])),
    plain("jemalloc", &["libjemalloc.so"], &["libjemalloc2"]),
    plain(
        "tcmalloc",
        &["libtcmalloc_minimal.so"],
        &["libtcmalloc-minimal4t64", "libtcmalloc-minimal4"],
    ),
    noted(
        "gperftools with its profilers; tcmalloc is the same without them",
        plain(
            "tcmalloc-full",
            &["libtcmalloc.so"],
            &["libgoogle-perftools4t64", "libgoogle-perftools4"],
        ),
    ),
    Known {
        name: "tcmalloc-google",
        files: &["libtcmalloc_google.so", "libtcmalloc-google.so", "libgoogle_tcmalloc.so"],
        packages: &[],
        note: Some("runs with glibc.pthread.rseq=0: its per-CPU caches need rseq for themselves"),
        tunable: Some(("glibc.pthread.rseq", "0")),
    },
    plain("mimalloc2", &["libmimalloc.so.2"], &["libmimalloc2.0"]),
    plain("mimalloc3", &["libmimalloc.so.3"], &["libmimalloc3"]),
    plain("mimalloc", &["libmimalloc.so"], &[]),
    plain("snmalloc", &["libsnmallocshim.so", "libsnmalloc.so"], &[]),
    plain("rpmalloc", &["librpmallocwrap.so", "librpmalloc.so"], &[]),
    plain("vespamalloc", &["libvespamalloc.so"], &[]),
    noted(CHECKS, plain("scudo", &["libscudo.so", "libclang_rt.scudo_standalone"], &[])),
    plain("hoard", &["libhoard.so"], &[]),
    plain("tbbmalloc", &["libtbbmalloc_proxy.so"], &["libtbbmalloc2"]),
];

pub(super) fn of_file(file: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| {
        known.files.iter().any(|start| {
            file.strip_prefix(start).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('.') || start.ends_with("standalone")
            })
        })
    })
}

/// The notes to read before the figures of the malloc called `name`.
pub(super) fn notes_of(name: &str) -> Vec<String> {
    KNOWN.iter().find(|known| known.name == name).map(Known::notes).unwrap_or_default()
}

/// True if the Debian package called `name` is an allocator or musl.
pub(super) fn is_package(name: &str) -> bool {
    name == "musl" || KNOWN.iter().any(|known| known.packages.contains(&name))
}

/// The folders the loader looks in, as Debian, Fedora and hand-made installations have them.
pub(super) fn folders() -> Vec<PathBuf> {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let mut folders: Vec<PathBuf> = [
        format!("/usr/local/lib/{triplet}"),
        "/usr/local/lib".to_owned(),
        "/usr/local/lib64".to_owned(),
        format!("/usr/lib/{triplet}"),
        format!("/lib/{triplet}"),
        "/usr/lib64".to_owned(),
        "/lib64".to_owned(),
        "/usr/lib".to_owned(),
        format!("/usr/lib/{triplet}/vespa/malloc"),
        "/opt/vespa/lib64/vespa/malloc".to_owned(),
    ]
    .map(PathBuf::from)
    .into();
    // Scudo comes with clang: /usr/lib/llvm-19/lib/clang/19/lib/linux.
    for llvm in entries("/usr/lib").filter(|path| path.to_string_lossy().contains("llvm-")) {
        for clang in entries(llvm.join("lib/clang")) {
            folders.push(clang.join("lib/linux"));
        }
    }
    folders
}

fn entries(folder: impl Into<PathBuf>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder.into()).into_iter().flatten().flatten().map(|entry| entry.path())
}
