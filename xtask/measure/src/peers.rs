//! `cargo xtask peers`: every malloc that masu is compared with, as a shared library in `target/peers`, built
//! from sources as its authors advise, and each seen to serve real programs.
//!
//! It relies on make and `workloads/peers/Makefile` for the builds and on the lab for the proof (`proof.rs`). One
//! peer that fails must not cost the others: it is named with its reason, and the others remain.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use masu_lab::{Allocator, Catalogue, Libc, Places};

use xtask::{commands, machine, options};

mod proof;

/// The folder with the peers' libraries, for [`Places::folders`]; none while none was built.
pub(crate) fn folder() -> Option<PathBuf> {
    place().ok().filter(|folder| folder.is_dir())
}

/// The folder with the hardened ones among them, likewise.
pub(crate) fn hardened() -> Option<PathBuf> {
    place().ok().map(|folder| folder.join("hardened")).filter(|folder| folder.is_dir())
}

fn place() -> Result<PathBuf> {
    Ok(commands::target_folder()?.join("peers"))
}

/// Build every malloc to compare with into target/peers, and prove each (about 5 minutes, once)
#[derive(Debug, PartialEq, Eq, clap::Parser)]
pub(crate) struct Request {
    /// Only these peers
    names: Vec<String>,
}

/// Builds the peers that are missing, proves every peer and prints a table of them.
pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    machine::provide_all(&[machine::PEER_BUILDS])?;
    machine::provide_what_there_is(&[machine::PEERS]);
    machine::provide_what_there_is(&[machine::HARDENED_PEERS]);
    let (folder, peers) = (place()?, peers(root)?);
    let peers = options::chosen(peers, &request.names, |(name, _)| name)?;
    let mut make = make(root);
    make.arg("-k").arg(format!("OUT={}", folder.display()));
    make.args(peers.iter().map(|(name, _)| name));
    // The reason of a failure is printed; a library that is not there has no proof.
    if let Err(error) = commands::step("build", || commands::run(&mut make)) {
        println!("{error:#}");
    }
    let rows = commands::step("prove", || Ok(prove(&peers, &folder)))?;
    println!("\n{:<16} {:>7}  proof", "name", "KB");
    for (name, library, proof) in &rows {
        let kb = std::fs::metadata(library).map_or(0, |file| file.len() / 1000);
        let proof = proof.as_ref().map_or_else(|error| format!("NO: {error:#}"), Clone::clone);
        println!("{name:<16} {kb:>7}  {proof}");
    }
    println!("libraries: {}", folder.display());
    let failed = rows.iter().filter(|(_, _, proof)| proof.is_err());
    let failed: Vec<&str> = failed.map(|(name, ..)| name.as_str()).collect();
    ensure!(failed.is_empty(), "not usable: {}; the others stand", failed.join(", "));
    Ok(())
}

fn make(root: &Path) -> Command {
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "-C"]).arg(root.join("workloads/peers"));
    make
}

/// The peers that can be built, each with its library's path below the folder.
fn peers(root: &Path) -> Result<Vec<(String, String)>> {
    let list = commands::output(make(root).arg("list"))?;
    let peer = |line: &str| {
        let (name, file) = line.split_once(' ')?;
        Some((name.to_owned(), file.to_owned()))
    };
    list.lines().map(peer).collect::<Option<_>>().context("`make list` has a line without a file")
}

/// The built peers, and Debian's mallocs beside them: names, libraries, and the programs that each served or the
/// reason why it did not.
fn prove(peers: &[(String, String)], folder: &Path) -> Vec<(String, PathBuf, Result<String>)> {
    // The same folders as in a measurement with the peers.
    let folders = self::folder().into_iter().chain(hardened()).collect();
    let catalogue = Catalogue::find(&Places { folders, ..Places::default() });
    let ours = peers.iter().map(|(name, file)| {
        let proof = recognized(&catalogue, name, &folder.join(file))
            .and_then(|allocator| proof::prove(&catalogue, allocator));
        (name.clone(), folder.join(file), proof)
    });
    let others = catalogue.allocators.iter().filter(|one| {
        let is_ours = folder.canonicalize().is_ok_and(|folder| one.path.starts_with(folder));
        one.preloaded && one.libc == Libc::Glibc && !is_ours
    });
    let others =
        others.map(|one| (one.name.clone(), one.path.clone(), proof::prove(&catalogue, one)));
    ours.chain(others).collect()
}

/// The lab's entry for the library, under its name and the version that its file's name ends with.
fn recognized<'a>(catalogue: &'a Catalogue, name: &str, library: &Path) -> Result<&'a Allocator> {
    let path = library.canonicalize().context("it was not built")?;
    let found = catalogue.allocators.iter().find(|one| one.path == path);
    let found = found.with_context(|| format!("{} defines no malloc", path.display()))?;
    let version = path.to_str().and_then(|path| Some(path.rsplit_once(".so.")?.1));
    if found.name != name || found.version.as_deref() != version {
        bail!("the lab takes it for {} {:?}", found.name, found.version);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use masu_lab::{Input, Workload};

    use super::*;

    /// The C library takes the place of the peers: the lab knows them by their names and looks for a `malloc` in
    /// them.
    #[test]
    fn the_lab_knows_each_peer_by_its_file_beside_debians() {
        let system = Catalogue::find(&Places::default());
        let library = &system.get("system", Libc::Glibc).expect("a machine with glibc").path;
        let folder = std::env::temp_dir().join(format!("masu-peers-{}", std::process::id()));
        let folders = vec![folder.clone(), folder.join("hardened")];
        fs::create_dir_all(&folders[1]).unwrap();
        let peers = peers(xtask::root().unwrap()).unwrap();
        for (_, file) in &peers {
            fs::copy(library, folder.join(file)).unwrap();
        }
        let catalogue = Catalogue::find(&Places { folders, ..Places::default() });
        for (name, file) in &peers {
            recognized(&catalogue, name, &folder.join(file)).unwrap();
        }
        fs::remove_dir_all(&folder).unwrap();
        assert!(peers.len() >= 8);
        let shell = Workload::new(["sh"], Input::Empty).unwrap().program;
        let google = catalogue.resolve(&"tcmalloc-google".parse().unwrap(), &shell).unwrap();
        assert_eq!(google.tunables, [("glibc.pthread.rseq".to_owned(), "0".to_owned())]);
        for other in system.allocators.iter().filter(|one| one.preloaded) {
            assert!(catalogue.allocators.iter().any(|one| one.path == other.path), "{other:?}");
        }
    }
}
