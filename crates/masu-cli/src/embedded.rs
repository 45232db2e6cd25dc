//! The `libmasu.so` that travels inside `masu`, for glibc and for musl: plain, counting and hardened.
//!
//! The build script leaves the files in `OUT_DIR`; an empty file could not be built, and the reason is kept to be
//! shown. The dynamic linker only loads from files, so the bytes are laid into a folder first ([`extract`]).

mod extract;
mod place;

use std::path::PathBuf;

use anyhow::{Result, bail};
use masu_lab::{Catalogue, Libc, Places, Program, Spec};

use self::place::Surroundings;

/// One library, and the reason if it was not built.
struct Library {
    /// The library's bytes; empty if it was not built.
    bytes: &'static [u8],
    /// The reason why it was not built; empty if it was built.
    absence: &'static str,
    /// The C library it is for.
    libc: &'static str,
    /// Its file's name up to the C library's.
    name: &'static str,
}

/// The libraries, as the build script names their files and the reasons of their absence.
macro_rules! libraries {
    ($($name:literal $libc:literal $absence:literal,)*) => {
        [$(Library {
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, "-", $libc, ".so")),
            absence: env!($absence),
            libc: $libc,
            name: $name,
        }),*]
    };
}

static CARRIED: [Library; 6] = libraries![
    "libmasu" "glibc" "LIBMASU_GLIBC_ABSENT",
    "libmasu" "musl" "LIBMASU_MUSL_ABSENT",
    "libmasu-count" "glibc" "LIBMASU_COUNT_GLIBC_ABSENT",
    "libmasu-count" "musl" "LIBMASU_COUNT_MUSL_ABSENT",
    "libmasu-secure" "glibc" "LIBMASU_SECURE_GLIBC_ABSENT",
    "libmasu-secure" "musl" "LIBMASU_SECURE_MUSL_ABSENT",
];

/// The allocators of this machine for running `program` as `specs` ask. A missing allocator of masu's own is an error
/// only when `specs` ask for it.
pub(crate) fn catalogue_for(specs: &[Spec], program: &Program) -> Result<Catalogue> {
    let is_meant = specs.iter().any(|spec| ["masu", "masu-secure"].contains(&&*spec.allocator));
    if is_meant {
        // This error comes first, before a file is laid out for nothing.
        program.preloadable()?;
    }
    match catalogue(program.libc) {
        Err(_) if !is_meant => Ok(find(&Places::default())),
        outcome => outcome,
    }
}

/// The allocators of this machine, with the carried one that suits programs on `libc`: none for static ones.
pub(crate) fn catalogue(libc: Libc) -> Result<Catalogue> {
    let mut places = Places::default();
    if libc != Libc::Static {
        let (plain, secure) = (get("libmasu", libc)?, get("libmasu-secure", libc)?);
        match libc {
            Libc::Musl => (places.masu_musl, places.secure_musl) = (Some(plain), Some(secure)),
            _ => (places.masu_glibc, places.secure_glibc) = (Some(plain), Some(secure)),
        }
    }
    Ok(find(&places))
}

/// The library that counts the requests of programs on `libc`.
pub(crate) fn counting(libc: Libc) -> Result<PathBuf> {
    get("libmasu-count", libc)
}

fn get(name: &str, libc: Libc) -> Result<PathBuf> {
    let libc = match libc {
        Libc::Glibc => "glibc",
        Libc::Musl => "musl",
        Libc::Static => bail!("nothing can be preloaded into a static program"),
    };
    let of = |library: &&Library| library.name == name && library.libc == libc;
    lay_out(CARRIED.iter().find(of).expect("each is carried for both C libraries"))
}

/// The allocators of this machine, with the carried one for every C library; and the reasons why some are missing.
pub(crate) fn whole_catalogue() -> (Catalogue, Vec<String>) {
    let mut absences = Vec::new();
    let mut get = |name, libc| get(name, libc).map_err(|why| absences.push(why.to_string())).ok();
    let places = Places {
        masu_glibc: get("libmasu", Libc::Glibc),
        masu_musl: get("libmasu", Libc::Musl),
        secure_glibc: get("libmasu-secure", Libc::Glibc),
        secure_musl: get("libmasu-secure", Libc::Musl),
        ..Places::default()
    };
    (find(&places), absences)
}

/// The lab's catalogue; masu itself knows the version of the carried libraries.
fn find(places: &Places) -> Catalogue {
    let mut catalogue = Catalogue::find(places);
    for allocator in &mut catalogue.allocators {
        let carried =
            [&places.masu_glibc, &places.masu_musl, &places.secure_glibc, &places.secure_musl];
        if carried.into_iter().flatten().any(|place| *place == allocator.path) {
            allocator.version = Some(env!("CARGO_PKG_VERSION").to_owned());
        }
    }
    catalogue
}

/// masu's folder in the user's cache, which may not exist yet; none when the place of the cache is unknown.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    place::cache(&Surroundings::of_this_process())
}

/// Lays `library` into a private folder and returns its path, fit for `LD_PRELOAD`.
fn lay_out(library: &Library) -> Result<PathBuf> {
    let Library { bytes, absence, libc, name } = library;
    if bytes.is_empty() {
        bail!("this masu carries no {name}.so for {libc} programs: {absence}");
    }
    let name = format!("{name}-{libc}-{:08x}.so", fingerprint(bytes));
    extract::extract(bytes, &name, &place::candidates(&Surroundings::of_this_process()))
}

/// The 32-bit FNV-1a of `bytes`: names the content so that two versions of masu keep two files.
/// The hash proves nothing; extraction compares the bytes themselves.
fn fingerprint(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::{env, fs};

    use super::*;

    #[test]
    fn the_library_is_built_from_nothing_but_masu() {
        // An offline installation of masu could not download any other package.
        let lock = include_str!(concat!(env!("OUT_DIR"), "/libmasu.lock"));
        let names = lock.lines().filter_map(|line| line.strip_prefix("name = "));
        assert!(names.clone().count() > 1);
        assert!(names.clone().all(|name| name.starts_with("\"masu")), "{lock}");
    }

    #[test]
    fn a_library_is_carried_or_its_absence_explained() {
        for Library { bytes, absence, libc, name } in &CARRIED {
            assert_eq!(bytes.is_empty(), !absence.is_empty(), "{name} {libc}: {absence}");
            assert!(bytes.is_empty() || bytes.starts_with(b"\x7fELF"), "{name} {libc}");
        }
    }

    #[test]
    fn the_libraries_for_musl_ask_nothing_of_glibc() {
        for text in [&b"GLIBC_"[..], b"libc.so.6", b"__register_atfork"] {
            for library in CARRIED.iter().filter(|it| it.libc == "musl") {
                assert!(!has(library, text), "{}", String::from_utf8_lossy(text));
            }
        }
    }

    #[test]
    fn only_the_counting_libraries_count_and_only_the_hardened_ones_have_canaries() {
        for library in &CARRIED {
            for (name, text) in [
                ("libmasu-count", &b"MASU_COUNT_FILE"[..]),
                ("libmasu-secure", b"written beyond its end"),
            ] {
                let expected = library.name == name && !library.bytes.is_empty();
                assert_eq!(has(library, text), expected, "{} {}", library.name, library.libc);
            }
        }
    }

    #[test]
    fn what_the_counting_library_writes_is_what_the_lab_reads() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libmasu-count.so");
        let own = if cfg!(target_env = "musl") { Libc::Musl } else { Libc::Glibc };
        fs::copy(counting(own).unwrap(), &library).unwrap();
        let page = masu_lab::CountPage::create(&folder.path().join("page")).unwrap();
        // This test program surely runs on the same C library; it is asked to print its tests.
        let mut command = Command::new(env::current_exe().unwrap());
        command.arg("--list").env("LD_PRELOAD", &library);
        command.envs(page.variant(&library).variables);
        assert!(command.output().unwrap().status.success());
        let totals = page.totals().unwrap();
        if cfg!(target_feature = "crt-static") {
            assert_eq!(totals, masu_lab::Totals::default(), "nothing can be preloaded");
            return;
        }
        assert_eq!(totals.programs, 1);
        assert!(totals.requests > 100 && totals.requested_bytes > totals.requests, "{totals:?}");
    }

    fn has(library: &Library, text: &[u8]) -> bool {
        library.bytes.windows(text.len()).any(|window| window == text)
    }

    #[test]
    fn what_is_not_carried_is_reported_with_its_reason() {
        let absent =
            Library { bytes: &[], absence: "no such target", libc: "musl", name: "libmasu" };
        let message = lay_out(&absent).unwrap_err().to_string();
        assert!(message.contains("musl") && message.contains("no such target"), "{message}");
    }

    #[test]
    fn different_bytes_have_different_names() {
        assert_ne!(fingerprint(b"one"), fingerprint(b"two"));
        // FNV-1a of the empty text and of "a", from its specification.
        assert_eq!(fingerprint(b""), 0x811c_9dc5);
        assert_eq!(fingerprint(b"a"), 0xe40c_292c);
    }
}
