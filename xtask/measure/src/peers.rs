//! `cargo xtask peers`: every malloc that masu is compared with, as a shared library in `target/peers`, built
//! from sources as its authors advise, and each seen to serve real programs.
//!
//! It relies on cargo for the sources (`sources.rs`), on a table for versions and commands (`table.rs`) and on the lab
//! for the proof (`proof.rs`). One peer that fails must not cost the others: it is named with its reason, and
//! everything else stands.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use masu_lab::{Allocator, Catalogue, Libc, Places};

use xtask::{commands, machine, options};

mod build;
mod proof;
mod sources;
mod stamp;
mod table;

use stamp::Built;
use table::{HARDENED, PEERS, Peer};

/// The folder with the peers' libraries, for [`Places::folders`]; none while none was built.
pub(crate) fn folder() -> Option<PathBuf> {
    place().ok().filter(|folder| folder.is_dir())
}

/// The folder with the hardened ones among them, likewise.
pub(crate) fn hardened() -> Option<PathBuf> {
    place().ok().map(|folder| folder.join(HARDENED)).filter(|folder| folder.is_dir())
}

fn place() -> Result<PathBuf> {
    Ok(commands::target_folder()?.join("peers"))
}

/// Build every malloc to compare with into target/peers, and prove each (about 5 minutes, once)
#[derive(Debug, PartialEq, Eq, clap::Parser)]
pub(crate) struct Request {
    /// Compilers at once; as many as there are CPUs if not said
    #[arg(long, value_name = "N", value_parser = options::times)]
    jobs: Option<usize>,
    /// Only these peers
    #[arg(value_parser = PossibleValuesParser::new(PEERS.iter().map(|peer| peer.name.as_str())))]
    names: Vec<String>,
}

impl Request {
    fn jobs(&self) -> usize {
        self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn wants(&self, peer: &Peer) -> bool {
        self.names.is_empty() || self.names.contains(&peer.name)
    }
}

/// A peer, built or not.
struct Progress<'a> {
    peer: &'a Peer,
    /// The library and whether it stood before, or why there is none.
    built: Result<(Built, bool)>,
}

/// Builds what does not stand yet, proves every peer and prints a table of them.
pub(crate) fn run(request: &Request) -> Result<()> {
    machine::provide_all(&[machine::PEER_BUILDS])?;
    machine::provide_what_there_is(&[machine::PEERS]);
    machine::provide_what_there_is(&[machine::HARDENED_PEERS]);
    let folder = place()?;
    let wanted: Vec<&Peer> = PEERS.iter().filter(|peer| request.wants(peer)).collect();
    let made = make(&wanted, &folder, request.jobs())?;
    let rows = commands::step("prove", || Ok(prove(&made, &folder)))?;
    println!("\n{}", page(&rows));
    println!("libraries: {}", folder.display());
    let failed: Vec<&str> =
        rows.iter().filter(|row| row.proof.is_err()).map(|row| row.name.as_str()).collect();
    if !failed.is_empty() {
        bail!("not usable: {}; the reasons are above, the others stand", failed.join(", "));
    }
    Ok(())
}

/// Builds those of `peers` that do not stand in `folder` as described.
fn make<'a>(peers: &[&'a Peer], folder: &Path, jobs: usize) -> Result<Vec<Progress<'a>>> {
    let compilers = stamp::compilers();
    let standing = |peer: &Peer| {
        stamp::standing(folder, peer, &stamp::describe(peer, &compilers)).map(|built| (built, true))
    };
    let vendor = if peers.iter().all(|peer| standing(peer).is_some()) {
        PathBuf::new()
    } else {
        // All packages, not only those wanted: what is asked for later is then there, network or not.
        commands::step("get the sources", || sources::fetch(&folder.join("sources"), &PEERS))?
    };
    let made = peers.iter().map(|&peer| {
        let built = standing(peer).map_or_else(
            || {
                let name = format!("build {} {}", peer.name, peer.version);
                commands::step(&name, || {
                    let built = build::build(peer, &sources::of(peer, &vendor)?, folder, jobs)?;
                    stamp::put(folder, peer, &stamp::describe(peer, &compilers), built)?;
                    Ok((built, false))
                })
            },
            Ok,
        );
        Progress { peer, built }
    });
    Ok(made.collect())
}

struct Row {
    name: String,
    version: String,
    file: String,
    bytes: Option<u64>,
    /// Which programs it served, or why not.
    proof: Result<String>,
    /// What its build took, now or when it was built.
    built: Option<(f64, bool)>,
}

/// Proves the built peers, and Debian's mallocs beside them.
fn prove(made: &[Progress<'_>], folder: &Path) -> Vec<Row> {
    // As a measurement with the peers finds them.
    let folders = self::folder().into_iter().chain(hardened()).collect();
    let places = Places { folders, ..Places::default() };
    let catalogue = Catalogue::find(&places);
    let mut rows: Vec<Row> = made.iter().map(|one| prove_made(one, folder, &catalogue)).collect();
    for allocator in catalogue.allocators.iter().filter(|one| {
        let is_ours = folder.canonicalize().is_ok_and(|folder| one.path.starts_with(folder));
        one.preloaded && one.libc == Libc::Glibc && !is_ours
    }) {
        rows.push(Row {
            name: allocator.name.clone(),
            version: allocator.version.clone().unwrap_or_default(),
            file: file_name(&allocator.path),
            bytes: std::fs::metadata(&allocator.path).ok().map(|file| file.len()),
            proof: show(&allocator.name, proof::prove(&catalogue, allocator)),
            built: None,
        });
    }
    rows
}

fn prove_made(one: &Progress<'_>, folder: &Path, catalogue: &Catalogue) -> Row {
    let Progress { peer, built } = one;
    let proof = match built {
        Err(error) => Err(anyhow::anyhow!("{error:#}")),
        Ok(_) => recognised(catalogue, peer, folder)
            .and_then(|allocator| proof::prove(catalogue, allocator)),
    };
    let built = built.as_ref().ok();
    Row {
        name: peer.name.clone(),
        version: peer.version.clone(),
        file: peer.file.clone(),
        bytes: built.map(|(built, _)| built.bytes),
        proof: show(&peer.name, proof),
        built: built.map(|(built, stood)| (built.seconds, *stood)),
    }
}

/// Prints the whole reason of a failure: it may be too long for a table.
fn show(name: &str, proof: Result<String>) -> Result<String> {
    if let Err(error) = &proof {
        println!("{name}: {error:#}");
    }
    proof
}

/// The lab's entry for the library of `peer`, under its name and version.
fn recognised<'a>(catalogue: &'a Catalogue, peer: &Peer, folder: &Path) -> Result<&'a Allocator> {
    let path = folder.join(&peer.file).canonicalize()?;
    let found = catalogue.allocators.iter().find(|one| one.path == path);
    let found = found.with_context(|| format!("{} defines no malloc", path.display()))?;
    if found.name != peer.name || found.version.as_deref() != Some(&*peer.version) {
        bail!("the lab takes it for {} {:?}", found.name, found.version);
    }
    Ok(found)
}

fn page(rows: &[Row]) -> String {
    let mut lines = vec![["name", "version", "file", "KB", "built in", "proof"].map(str::to_owned)];
    for row in rows {
        let proof = match &row.proof {
            Ok(served) => format!("served {served}"),
            Err(_) => "NO: see above".to_owned(),
        };
        let built = match row.built {
            Some((seconds, true)) => format!("({seconds:.0} s)"),
            Some((seconds, false)) => format!("{seconds:.0} s"),
            None => "-".to_owned(),
        };
        let size = row.bytes.map_or("-".to_owned(), |bytes| (bytes / 1000).to_string());
        lines.push([row.name.clone(), row.version.clone(), row.file.clone(), size, built, proof]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let text: Vec<String> = lines
        .iter()
        .map(|[name, version, file, size, built, proof]| {
            format!(
                "{name:<0$}  {version:<1$}  {file:<2$}  {size:>3$}  {built:>4$}  {proof}",
                widths[0], widths[1], widths[2], widths[3], widths[4]
            )
        })
        .collect();
    text.join("\n") + "\n(seconds in brackets: built earlier; `-`: Debian's package)"
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
