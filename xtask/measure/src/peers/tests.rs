//! What can be held about the peers without building any.

use clap::Parser;
use std::fs;
use std::path::{Path, PathBuf};

use masu_lab::{Input, Workload};

use super::stamp::{self, Built};
use super::*;

/// A folder of this test's own, empty at first, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("masu-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_version_is_exact_and_no_name_stands_twice() {
    for peer in PEERS.iter() {
        let numbers: Vec<_> = peer.package_version.split('.').collect();
        let are_numbers = numbers.iter().all(|number| number.parse::<u32>().is_ok());
        assert!(numbers.len() == 3 && are_numbers, "{}: {}", peer.name, peer.package_version);
        assert!(peer.file.ends_with(&peer.version), "{}: {}", peer.file, peer.version);
        let line = format!("{} = \"={}\"\n", peer.package, peer.package_version);
        assert_eq!(sources::manifest(&PEERS).matches(&line).count(), 1, "{line}");
    }
    for of in [|peer: &Peer| peer.name.clone(), |peer: &Peer| peer.file.clone()] {
        let mut all: Vec<String> = PEERS.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), PEERS.len());
    }
}

/// The C library stands in for the peers: the lab knows them by their names and looks for a `malloc` in them.
#[test]
fn the_lab_knows_each_peer_by_its_file_beside_debians() {
    let system = Catalogue::find(&Places::default());
    let library = &system.get("system", Libc::Glibc).expect("a machine with glibc").path;
    let folder = Folder::new("peers-names");
    for peer in PEERS.iter() {
        fs::create_dir_all(folder.0.join(HARDENED)).unwrap();
        fs::copy(library, folder.0.join(&peer.file)).unwrap();
    }
    let folders = vec![folder.0.clone(), folder.0.join(HARDENED)];
    let places = Places { folders, ..Places::default() };
    let catalogue = Catalogue::find(&places);
    for peer in PEERS.iter() {
        recognised(&catalogue, peer, &folder.0).unwrap();
    }
    let shell = Workload::new(["sh"], Input::Empty).unwrap().program;
    let google = catalogue.resolve(&"tcmalloc-google".parse().unwrap(), &shell).unwrap();
    assert_eq!(google.tunables, [("glibc.pthread.rseq".to_owned(), "0".to_owned())]);
    for other in system.allocators.iter().filter(|one| one.preloaded) {
        assert!(catalogue.allocators.iter().any(|one| one.path == other.path), "{other:?}");
    }
}

#[test]
fn a_stamp_notices_whatever_changed() {
    let folder = Folder::new("peers-stamps");
    let peer = PEERS[0].clone();
    let said = stamp::describe(&peer, "cc 1\n");
    let built = Built { bytes: 4, seconds: 1.5 };
    assert_eq!(stamp::standing(&folder.0, &peer, &said), None, "nothing was built");
    fs::write(folder.0.join(&peer.file), "1234").unwrap();
    assert_eq!(stamp::standing(&folder.0, &peer, &said), None, "not by us");
    stamp::put(&folder.0, &peer, &said, built).unwrap();
    assert_eq!(stamp::standing(&folder.0, &peer, &said), Some(built));

    let flag = Peer { steps: vec!["cmake -DANOTHER=FLAG".to_owned()], ..peer.clone() };
    let package = Peer { package_version: "0.1.64".to_owned(), ..peer.clone() };
    let newer = "cc 2\n";
    for (changed, compilers) in [(flag, "cc 1\n"), (package, "cc 1\n"), (peer.clone(), newer)] {
        let said = stamp::describe(&changed, compilers);
        assert_eq!(stamp::standing(&folder.0, &changed, &said), None, "{changed:?} {compilers}");
    }
    fs::write(folder.0.join(&peer.file), "123").unwrap();
    assert_eq!(stamp::standing(&folder.0, &peer, &said), None, "cut short");
}

#[test]
fn the_description_holds_every_step_and_the_cmake_file_of_a_listing() {
    for peer in PEERS.iter() {
        let said = stamp::describe(peer, "");
        assert!(peer.steps.iter().all(|step| said.contains(step)), "{}", peer.name);
        assert_eq!(said.contains("add_library"), peer.listing.is_some());
    }
}

#[test]
fn sources_of_another_version_are_refused() {
    let vendor = Folder::new("peers-sources");
    let peer =
        Peer { witness: ("include/a.h".to_owned(), "VERSION 2".to_owned()), ..PEERS[0].clone() };
    assert!(sources::of(&peer, &vendor.0).is_err(), "nothing is there");
    let package = format!("{}-{}+upstream", peer.package, peer.package_version);
    let other = format!("{}-{}1", peer.package, peer.package_version);
    for folder in [&package, &other] {
        fs::create_dir_all(vendor.0.join(folder).join("include")).unwrap();
    }
    fs::write(vendor.0.join(&other).join("include/a.h"), "VERSION 2").unwrap();
    fs::write(vendor.0.join(&package).join("include/a.h"), "VERSION 1").unwrap();
    let error = sources::of(&peer, &vendor.0).unwrap_err().to_string();
    assert!(error.contains("VERSION 2") && error.contains("include/a.h"), "{error}");
    fs::write(vendor.0.join(&package).join("include/a.h"), "VERSION 2").unwrap();
    assert_eq!(sources::of(&peer, &vendor.0).unwrap(), vendor.0.join(package));
}

#[test]
fn a_failed_step_is_told_with_what_it_said() {
    let folder = Folder::new("peers-failed");
    let says = Peer { steps: vec!["ls /no/such/file".to_owned()], ..PEERS[0].clone() };
    let error = build::build(&says, Path::new("/"), &folder.0, 1).unwrap_err().to_string();
    assert!(error.contains("`ls` failed") && error.contains("/no/such/file"), "{error}");
    let makes_nothing = Peer { steps: vec!["true".to_owned()], ..PEERS[0].clone() };
    let error = build::build(&makes_nothing, Path::new("/"), &folder.0, 1).unwrap_err();
    assert!(format!("{error:#}").contains(&PEERS[0].product), "{error:#}");
}

#[test]
fn places_in_a_step_are_filled_in_even_by_paths_with_spaces() {
    let words = build::words("cc {source}/a.c  -j{jobs}", Path::new("/a b"), 3);
    assert_eq!(words, ["cc", "/a b/a.c", "-j3"]);
}

#[test]
fn what_a_package_compiles_is_read_from_its_build_script() {
    let script = r#"files(["c_src/abseil-cpp/b.cc", "c_src/tcmalloc/tcmalloc/cpu_cache.cc",
        "c_src/tcmalloc/asm.S", "c_src/malloc_bridge.cc", "c_src/tcmalloc", "c_src/abseil-cpp/b.cc"])"#;
    let text = build::cmake_file(script, Path::new("/s")).unwrap();
    assert_eq!(text.matches("/s/c_src/abseil-cpp/b.cc\n").count(), 1);
    let malloc = text.split("tcmalloc_google SHARED").nth(1).unwrap();
    for file in ["tcmalloc/cpu_cache.cc", "asm.S", "tcmalloc/tcmalloc.cc"] {
        assert!(malloc.contains(file), "{file}: {text}");
    }
    assert!(!text.contains("bridge") && !malloc.contains("abseil-cpp/b.cc"), "{text}");
    assert!(build::cmake_file("nothing", Path::new("/s")).is_err());
}

#[test]
fn a_peer_that_is_named_is_wanted_alone() {
    let request = Request::try_parse_from(["peers", "--jobs", "2", "snmalloc"]).unwrap();
    assert!(request.wants(&PEERS[3]) && !request.wants(&PEERS[0]) && request.jobs() == 2);
}
