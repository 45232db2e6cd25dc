//! Tests of the catalogue against this machine and against made-up entries.

use super::*;

fn program(libc: Libc, refusal: Option<&str>) -> Program {
    let refusal = refusal.map(str::to_owned);
    Program { path: "/bin/p".into(), libc, refusal, ..Program::default() }
}

fn allocator(name: &str, libc: Libc, preloaded: bool) -> Allocator {
    Allocator {
        name: name.to_owned(),
        path: format!("/lib/lib{name}.so").into(),
        preloaded,
        libc,
        ..Allocator::default()
    }
}

fn fixture() -> Catalogue {
    Catalogue {
        allocators: vec![
            allocator("glibc", Libc::Glibc, false),
            allocator("musl", Libc::Musl, false),
            allocator("masu", Libc::Glibc, true),
            allocator("masu", Libc::Musl, true),
            // The hardened build is never a default, as the expectations below say.
            allocator(HARDENED, Libc::Glibc, true),
            allocator("mimalloc2", Libc::Glibc, true),
            allocator("mimalloc3", Libc::Glibc, true),
        ],
    }
}

fn labels(variants: &[Variant]) -> Vec<&str> {
    variants.iter().map(|variant| variant.label.as_str()).collect()
}

#[test]
fn this_machines_c_library_is_found_with_its_version() {
    let catalogue = Catalogue::find(&Places::default());
    let system = catalogue.allocators.first().expect("every machine has a malloc");
    assert!(!system.preloaded);
    assert!(system.version.is_some(), "{system:?}");
}

#[test]
fn every_name_in_this_machines_catalogue_is_unique() {
    let catalogue = Catalogue::find(&Places::default());
    let mut names: Vec<_> =
        catalogue.allocators.iter().map(|one| (&one.name, format!("{:?}", one.libc))).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn the_system_is_named_after_the_programs_c_library() {
    let spec: Spec = "system".parse().unwrap();
    for (libc, name) in [(Libc::Glibc, "glibc"), (Libc::Musl, "musl")] {
        let variant = fixture().resolve(&spec, &program(libc, None)).unwrap();
        assert_eq!((variant.allocator.as_str(), variant.library), (name, None));
    }
}

#[test]
fn a_static_program_runs_as_it_is_where_there_is_no_c_library() {
    let none = Catalogue::default();
    let fixed = program(Libc::Static, Some("it is linked statically"));
    let variant = none.resolve(&"system".parse().unwrap(), &fixed).unwrap();
    assert_eq!((variant.label.as_str(), &variant.library), ("system", &None));
    assert!(variant.translation().is_empty());
    assert!(none.resolve(&"system:arenas=1".parse().unwrap(), &fixed).is_err());
    assert!(none.resolve(&"glibc".parse().unwrap(), &fixed).is_err());
}

#[test]
fn a_family_name_means_its_newest_member() {
    let variant =
        fixture().resolve(&"mimalloc".parse().unwrap(), &program(Libc::Glibc, None)).unwrap();
    assert_eq!(variant.allocator, "mimalloc3");
}

#[test]
fn defaults_are_what_the_program_can_run() {
    let catalogue = fixture();
    let names = |program| labels(&catalogue.variants_for(&program)).join(" ");
    assert_eq!(names(program(Libc::Glibc, None)), "glibc masu mimalloc2 mimalloc3");
    assert_eq!(names(program(Libc::Musl, None)), "musl masu");
    assert_eq!(names(program(Libc::Static, Some("it is static"))), "glibc");
}

#[test]
fn a_program_that_is_linked_with_a_malloc_runs_the_c_librarys_only_preloaded() {
    let catalogue = fixture();
    let linked_malloc = Some("libjemalloc.so.2".to_owned());
    let linked = Program { linked_malloc, ..program(Libc::Glibc, None) };
    let variants = catalogue.variants_for(&linked);
    assert_eq!(labels(&variants).join(" "), "system glibc masu mimalloc2 mimalloc3");
    assert_eq!(variants[0].library, None);
    assert_eq!(variants[1].library.as_deref(), Some(Path::new("/lib/libglibc.so")));
    let plain = catalogue.resolve(&"glibc".parse().unwrap(), &program(Libc::Glibc, None));
    assert_eq!(plain.unwrap().library, None);
}

#[test]
fn refusals_reach_the_one_who_asked_for_the_preload() {
    let catalogue = fixture();
    let refused = |name: &str, program: &Program| {
        catalogue.resolve(&name.parse().unwrap(), program).unwrap_err().to_string()
    };
    let fixed = program(Libc::Static, Some("it is linked statically"));
    assert!(refused("masu", &fixed).contains("statically"));
    let musl = program(Libc::Musl, None);
    assert!(refused("mimalloc2", &musl).contains("musl"));
    assert!(refused("nothing", &musl).contains("masu-secure, mimalloc2"));
    assert!(refused("glibc:top_pad=1", &musl).contains("glibc"));
    assert!(refused("/no/such.so", &musl).contains("/no/such.so"));
}

#[test]
fn what_is_no_library_is_refused_as_one() {
    let error = by_path(Path::new("/proc/self/maps")).unwrap_err().to_string();
    assert!(error.ends_with("no ELF file; name a malloc's .so file"), "{error}");
}

#[test]
fn a_library_without_malloc_is_refused() {
    let maths = known::folders()
        .into_iter()
        .map(|folder| folder.join("libm.so.6"))
        .find(|path| path.exists())
        .expect("this test reads the mathematics library of the GNU C library");
    let error = by_path(&maths).unwrap_err().to_string();
    assert!(error.contains("no `malloc`"), "{error}");
}

#[test]
fn names_of_files_are_understood() {
    let name = |file: &str| known::of_file(file).map(|known| known.name);
    assert_eq!(name("libjemalloc.so.2"), Some("jemalloc"));
    assert_eq!(name("libmimalloc.so.2.0"), Some("mimalloc2"));
    assert_eq!(name("libmimalloc.so.3"), Some("mimalloc3"));
    assert_eq!(name("libtcmalloc_minimal.so.4"), Some("tcmalloc"));
    assert_eq!(name("libtcmalloc_minimal_debug.so.4"), None);
    assert_eq!(name("libtcmalloc.so.4"), Some("tcmalloc-full"));
    assert_eq!(name("libclang_rt.scudo_standalone-x86_64.so"), Some("scudo"));
    assert_eq!(stem("libfoo-2.so.1"), "foo-2");
    // Debian 13 has other names for some packages.
    let packages = known::of_file("libtcmalloc_minimal.so.4").unwrap().packages;
    assert_eq!(packages, ["libtcmalloc-minimal4t64", "libtcmalloc-minimal4"]);
    assert!(packages.iter().all(|package| known::is_package(package)));
}

#[test]
fn a_second_release_of_a_malloc_is_distinguished_by_its_version() {
    let mut finder = Finder::default();
    let releases = [Some("5.3.1"), Some("5.3.0"), Some("5.3.1"), None];
    for (index, version) in releases.into_iter().enumerate() {
        finder.add(Allocator {
            version: version.map(str::to_owned),
            path: format!("/{index}.so").into(),
            ..allocator("jemalloc", Libc::Glibc, true)
        });
    }
    let names: Vec<&str> = finder.found.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["jemalloc", "jemalloc-5.3.0"]);
}

#[test]
fn libraries_in_a_given_folder_are_named_after_their_files() {
    let catalogue = Catalogue::find(&Places::default());
    let jemalloc = catalogue
        .get("jemalloc", Libc::Glibc)
        .expect("this test copies a malloc library: apt-get install libjemalloc2");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::copy(&jemalloc.path, folder.join("libpeer.so")).unwrap();
    fs::copy(&jemalloc.path, folder.join("libtcmalloc_google.so")).unwrap();
    fs::write(folder.join("libbroken.so"), "no library").unwrap();
    let places = Places {
        masu_glibc: Some(jemalloc.path.clone()),
        folders: vec![folder.to_owned()],
        ..Places::default()
    };
    let found = Catalogue::find(&places);
    let masu = found.get("masu", Libc::Glibc).unwrap();
    assert_eq!((masu.path.clone(), masu.preloaded), (jemalloc.path.clone(), true));
    assert!(found.get("peer", Libc::Glibc).is_some());
    assert!(found.get("broken", Libc::Glibc).is_none());
    let variant =
        found.resolve(&"tcmalloc-google".parse().unwrap(), &program(Libc::Glibc, None)).unwrap();
    assert_eq!(variant.tunables, [("glibc.pthread.rseq".to_owned(), "0".to_owned())]);
}
