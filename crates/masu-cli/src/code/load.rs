//! `masu code load`: objects loaded into a code arena of this process, and a function of theirs called.
//!
//! The user's code runs here with all that a program may do.

use std::ffi::{CStr, CString, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use masu_code::{Archive, Arena, Handle, Options, Place, Report, Source};

use crate::arguments::CodeLoad;
use crate::exit::unless_left;

pub(crate) fn perform(arguments: &CodeLoad) -> Result<()> {
    let (sources, archives) = read(&arguments.paths)?;
    // The command has nothing that loaded code must be near; the C library has `stderr`.
    let place = if arguments.low { Place::Low } else { Place::NearLibraries };
    let arena = Arena::open(Options { place, ..Options::default() })?;
    let empty = arena.report();
    let start = Instant::now();
    #[expect(unsafe_code, reason = "naming an object has its initializers run")]
    // SAFETY: The user answers for the soundness of the objects, as for a program that is started.
    let objects = unsafe { arena.load_with(sources, &archives)? };
    let page = page(&empty, &arena.report(), start.elapsed());
    unless_left(write!(anstream::stdout(), "{page}").context("printing the page"))?;
    let Some(name) = &arguments.call else { return Ok(()) };
    let returned = call(&arena, &objects, name, &arguments.words)?;
    writeln!(anstream::stdout(), "{name} returned {returned}").context("printing the result")
}

/// The objects in files and folders, and the static libraries from which these objects take the members that they need.
/// If only libraries are given, all their objects.
fn read(paths: &[PathBuf]) -> Result<(Vec<Source>, Vec<Archive>)> {
    let (mut sources, mut archives) = (Vec::new(), Vec::new());
    for path in paths {
        let files = if path.is_dir() { objects_in(path)? } else { vec![path.clone()] };
        if files.is_empty() {
            bail!("{}: no file in this folder ends in .o or .a", path.display());
        }
        for file in files {
            let name = file.display().to_string();
            let bytes = fs::read(&file).with_context(|| format!("reading {name}"))?;
            if bytes.starts_with(b"!<arch>\n") {
                // Read once, because it may be a pipe.
                archives.push(Archive::new(name, &bytes)?);
            } else if bytes.starts_with(b"!<thin>\n") {
                archives.push(Archive::file(&file)?);
            } else {
                sources.push(Source::new(name, bytes));
            }
        }
    }
    if sources.is_empty() {
        for archive in archives.drain(..) {
            sources.extend(archive.members()?);
        }
    }
    if sources.is_empty() {
        bail!("{}: this static library holds no object", paths[0].display());
    }
    Ok((sources, archives))
}

/// The objects and static libraries in a folder, in the order of their names.
fn objects_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let reading = || format!("reading {}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        if path.extension().is_some_and(|end| end == "o" || end == "a") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn call(arena: &Arena, objects: &[Handle], name: &str, words: &[OsString]) -> Result<i32> {
    let argument = |word: &[u8]| CString::new(word).context("an argument with a zero byte in it");
    let words = std::iter::once(name.as_bytes()).chain(words.iter().map(|word| word.as_bytes()));
    let words = words.map(argument).collect::<Result<Vec<CString>>>()?;
    let words: Vec<&CStr> = words.iter().map(CString::as_c_str).collect();
    for &object in objects {
        #[expect(unsafe_code, reason = "naming a function has it called")]
        // SAFETY: The user answers for the function's type; the help says so.
        let returned = unsafe { arena.call_main(object, name, &words) };
        if !matches!(returned, Err(masu_code::Error::NoSymbol { .. })) {
            return Ok(returned?);
        }
    }
    bail!("no object defines a function `{name}`; `nm` lists what they define")
}

/// The page about the loaded objects: their cost beyond that of an empty arena.
fn page(empty: &Report, full: &Report, time: Duration) -> String {
    let count = full.objects;
    let objects = if count == 1 { "object" } else { "objects" };
    let mut page = format!("{count} {objects} loaded in {:.2} ms\n", time.as_secs_f64() * 1000.0);
    let mut line = |name: &str, value: String| page.push_str(&format!("  {name:<24}{value}\n"));
    line("text", format!("{} bytes at {:#x}", full.text.used - empty.text.used, full.base));
    line("read-only data", format!("{} bytes", full.sealed.used - empty.sealed.used));
    line("writable data", format!("{} bytes", full.data.used - empty.data.used));
    line("GOT entries, stubs", format!("{}, {}", full.got, full.stubs));
    let way = if full.dual { "through a second mapping" } else { "before it was made executable" };
    line("text was written", way.to_owned());
    page
}
