//! Builds one peer: runs its steps in a folder of its own and puts the library where the lab finds it.
//!
//! It relies on the table for every command. What the commands say goes into a file; only the end of it is
//! shown, and only when one of them fails.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::sources;
use super::stamp::Built;
use super::table::{CMAKE_OF_LISTING, Peer};

const SHOWN_LINES: usize = 12;

pub(super) fn build(peer: &Peer, source: &Path, folder: &Path, jobs: usize) -> Result<Built> {
    let start = Instant::now();
    let place = folder.join("build").join(&peer.name);
    // What another version left there would be taken for up to date.
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| format!("removing {}", place.display()))?;
    }
    fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
    if let Some(listing) = &peer.listing {
        let script = fs::read_to_string(source.join(listing))
            .with_context(|| format!("reading {listing} of {}", peer.package))?;
        fs::write(place.join("CMakeLists.txt"), cmake_file(&script, source)?)?;
    }
    let log = place.join("log");
    for step in &peer.steps {
        take(step, source, &place, &log, jobs)?;
    }
    let product = place.join(&peer.product);
    let library = folder.join(&peer.file);
    if let Some(parent) = library.parent() {
        fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
    }
    let bytes = fs::copy(&product, &library)
        .with_context(|| format!("the build of {} left no {}", peer.name, peer.product))?;
    Ok(Built { bytes, seconds: start.elapsed().as_secs_f64() })
}

/// The words of `step`, its places filled in.
pub(super) fn words(step: &str, source: &Path, jobs: usize) -> Vec<String> {
    let (source, jobs) = (source.to_string_lossy(), jobs.to_string());
    // Split first: a path may hold spaces.
    step.split_whitespace()
        .map(|word| word.replace("{source}", &source).replace("{jobs}", &jobs))
        .collect()
}

fn take(step: &str, source: &Path, place: &Path, log: &Path, jobs: usize) -> Result<()> {
    let words = words(step, source, jobs);
    let (program, arguments) = words.split_first().context("a step of the table is empty")?;
    let output = File::options().create(true).append(true).open(log)?;
    let status = Command::new(program)
        .args(arguments)
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        // A user who sets these for other builds would make other peers than the table says.
        .env_remove("CFLAGS")
        .env_remove("CXXFLAGS")
        .env_remove("CPPFLAGS")
        .env_remove("LDFLAGS")
        .status()
        .with_context(|| format!("cannot start `{program}`"))?;
    if !status.success() {
        let said = fs::read(log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().collect();
        let end = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
        bail!(
            "`{program}` failed ({status}); all it said is in {}; its end:\n{end}",
            log.display()
        );
    }
    Ok(())
}

/// CMake's file for the sources that `script` lists: the malloc itself, and the library it uses as an archive,
/// of which the linker takes what is needed.
pub(super) fn cmake_file(script: &str, source: &Path) -> Result<String> {
    let source = source.to_string_lossy();
    let files = sources::listed(script);
    let lines = |is_abseil: bool| {
        let of_it = files.iter().filter(|file| file.contains("/abseil-cpp/") == is_abseil);
        of_it.map(|file| format!("  {source}/{file}\n")).collect::<String>()
    };
    // The package compiles this file through a bridge that leaves the names of C's functions out.
    let entry = format!("  {source}/c_src/tcmalloc/tcmalloc/tcmalloc.cc\n");
    let (abseil, malloc) = (lines(true), entry + &lines(false));
    if abseil.is_empty() || !malloc.contains("cpu_cache.cc") {
        bail!(
            "the package lists no sources where they are expected; correct xtask/measure/src/peers/listing.cmake"
        );
    }
    Ok(CMAKE_OF_LISTING
        .replace("{source}", &source)
        .replace("{abseil}", &abseil)
        .replace("{malloc}", &malloc))
}
