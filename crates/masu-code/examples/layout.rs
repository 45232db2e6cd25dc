//! What a call costs by where code lies: many small functions, loaded in one of several layouts and
//! called in turn.
//!
//! `layout prepare DIR COUNT` makes the objects and libraries; `layout run DIR KIND BODY COUNT FILE`
//! loads them, calls them, prints a checksum (the same for every layout) and appends its figures to
//! FILE as a line of JSON. `cargo xtask layout` has the lab run them in turns.
//!
//! All functions are one, compiled by gcc, whose constant and name are changed in the bytes of its
//! object or library: so thousands of libraries are made in a second, and each is what the compiler
//! and linker make.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use masu_code::{Arena, Options, Source, Tools};

type Outcome<T> = Result<T, Box<dyn Error>>;
type Function = extern "C" fn(u32) -> u32;

/// The constant and the name that are changed.
const MARK: u32 = 0x1357_9bdf;
const NAME: &str = "f00000";

/// Names of the bodies: about 8 bytes, and about 200.
const BODIES: [&str; 2] = ["8", "200"];

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["prepare", folder, count] => prepare(Path::new(folder), count.parse()?),
        ["run", folder, kind, body, count, figures] => {
            run(Path::new(folder), kind, body, count.parse()?, Path::new(figures))
        }
        _ => Err("layout prepare DIR COUNT | layout run DIR KIND BODY COUNT FILE".into()),
    }
}

/// C of a function; the long one is arithmetic that no compiler shortens.
fn text(body: &str) -> String {
    let mut text = format!("unsigned {NAME}(unsigned x) {{ ");
    if body == "200" {
        for step in 0..24 {
            let _ = write!(text, "x = (x ^ x >> {}) * {}u; ", 1 + step % 13, 2 * step + 3);
        }
    }
    text.push_str(&format!("return x + {MARK}u; }}"));
    text
}

fn compile(folder: &Path, arguments: &[&str]) -> Outcome<()> {
    let output = Command::new("gcc").args(arguments).current_dir(folder).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default();
    Err(format!("gcc {arguments:?}: {first}").into())
}

/// A copy of an object or library with another constant and another name.
fn vary(bytes: &[u8], number: u32, renames: bool) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    let mark = MARK.to_le_bytes();
    let at = bytes.windows(4).position(|window| window == mark).unwrap_or(0);
    copy[at..at + 4].copy_from_slice(&number.to_le_bytes());
    if renames {
        let name = name(number);
        let places: Vec<usize> = bytes
            .windows(NAME.len())
            .enumerate()
            .filter(|(_, window)| *window == NAME.as_bytes())
            .map(|(at, _)| at)
            .collect();
        for at in places {
            copy[at..at + name.len()].copy_from_slice(name.as_bytes());
        }
    }
    copy
}

fn name(number: u32) -> String {
    format!("f{number:05}")
}

fn file(folder: &Path, kind: &str, body: &str, number: u32, end: &str) -> PathBuf {
    folder.join(format!("{kind}-{body}")).join(format!("{}.{end}", name(number)))
}

fn prepare(folder: &Path, count: u32) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    for body in BODIES {
        let (source, object) = (format!("body{body}.c"), format!("body{body}.o"));
        fs::write(folder.join(&source), text(body))?;
        let flags = ["-O2", "-fPIC", "-fno-asynchronous-unwind-tables", "-fcf-protection=none"];
        compile(folder, &[&flags[..], &["-c", &source, "-o", &object]].concat())?;
        // One place of the name: the hash of another name would be another one.
        let page = "-Wl,-z,max-page-size=0x200000";
        compile(folder, &["-shared", "-nostdlib", &object, "-o", "own.so"])?;
        compile(folder, &["-shared", "-nostdlib", page, &object, "-o", "own2m.so"])?;
        for (kind, made, end) in
            [("object", object.as_str(), "o"), ("own", "own.so", "so"), ("own2m", "own2m.so", "so")]
        {
            fs::create_dir_all(folder.join(format!("{kind}-{body}")))?;
            let bytes = fs::read(folder.join(made))?;
            for number in 0..count {
                let copy = vary(&bytes, number, kind == "object");
                write_sparse(&file(folder, kind, body, number, end), &copy)?;
            }
        }
    }
    Ok(())
}

/// Writes a file with holes where there are only zeros: libraries aligned to 2 MiB are mostly that.
fn write_sparse(path: &Path, bytes: &[u8]) -> Outcome<()> {
    let file = fs::File::create(path)?;
    file.set_len(bytes.len() as u64)?;
    for (index, page) in bytes.chunks(4096).enumerate() {
        if page.iter().any(|&byte| byte != 0) {
            file.write_all_at(page, index as u64 * 4096)?;
        }
    }
    Ok(())
}

/// Functions that were loaded, and how long it took.
struct Loaded {
    functions: Vec<Function>,
    load: Duration,
    /// Of `load`, what the linker took.
    link: Duration,
    _arena: Option<Arena>,
}

fn load(folder: &Path, kind: &str, body: &str, count: u32) -> Outcome<Loaded> {
    let objects: Vec<PathBuf> =
        (0..count).map(|number| file(folder, "object", body, number, "o")).collect();
    match kind {
        "own" | "own2m" => {
            let files: Vec<PathBuf> =
                (0..count).map(|number| file(folder, kind, body, number, "so")).collect();
            let start = Instant::now();
            let open = |path: &PathBuf| symbol(open(path)?, NAME);
            let functions = files.iter().map(open).collect::<Outcome<Vec<Function>>>()?;
            Ok(Loaded { functions, load: start.elapsed(), link: Duration::ZERO, _arena: None })
        }
        "one" => {
            let library = folder.join(format!("one-{body}-{count}-{}.so", std::process::id()));
            let list = library.with_extension("list");
            let names = objects.iter().map(|path| format!("{}\n", path.display()));
            let start = Instant::now();
            fs::write(&list, names.collect::<String>())?;
            let list_argument = format!("@{}", list.display());
            let made = library.display().to_string();
            compile(folder, &["-shared", "-nostdlib", &list_argument, "-o", &made])?;
            let link = start.elapsed();
            let handle = open(&library)?;
            let functions = (0..count).map(|number| symbol(handle, &name(number)));
            let functions = functions.collect::<Outcome<Vec<Function>>>()?;
            let load = start.elapsed();
            fs::remove_file(&library)?;
            fs::remove_file(&list)?;
            Ok(Loaded { functions, load, link, _arena: None })
        }
        "arena" | "arena-untold" | "arena-memory" | "arena-memory-untold" | "arena-each" => {
            let tools = if kind.ends_with("untold") { Tools::none() } else { Tools::default() };
            let from_memory = kind.starts_with("arena-memory");
            let bytes: Vec<Vec<u8>> = if from_memory {
                objects.iter().map(fs::read).collect::<Result<_, _>>()?
            } else {
                Vec::new()
            };
            let start = Instant::now();
            let arena = Arena::open(Options { tools, ..Options::default() })?;
            let sources = if from_memory {
                let source =
                    |(number, bytes): (usize, &Vec<u8>)| Source::new(name(number as u32), bytes);
                bytes.iter().enumerate().map(source).collect()
            } else {
                objects.iter().map(Source::file).collect::<Result<Vec<_>, _>>()?
            };
            // SAFETY: The objects have no initialisers.
            let each = |one| unsafe { arena.load(one) };
            let handles = if kind == "arena-each" {
                sources.iter().map(each).collect::<Result<Vec<_>, _>>()?
            } else {
                // SAFETY: As above.
                unsafe { arena.load_all(&sources)? }
            };
            let mut functions = Vec::with_capacity(handles.len());
            for (number, handle) in handles.into_iter().enumerate() {
                let address = arena.symbol(handle, &name(number as u32))?;
                // SAFETY: The objects define functions of this type.
                functions.push(unsafe { std::mem::transmute::<*const _, Function>(address) });
            }
            let load = start.elapsed();
            Ok(Loaded { functions, load, link: Duration::ZERO, _arena: Some(arena) })
        }
        _ => Err(format!(
            "{kind}: own, own2m, one, arena, arena-untold, arena-memory, \
                          arena-memory-untold or arena-each"
        )
        .into()),
    }
}

fn open(path: &Path) -> Outcome<*mut libc::c_void> {
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: The libraries are this program's own and have no initialisers.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() { Err(format!("dlopen {}", path.display()).into()) } else { Ok(handle) }
}

fn symbol(library: *mut libc::c_void, name: &str) -> Outcome<Function> {
    let c = std::ffi::CString::new(name)?;
    // SAFETY: The handle is of a loaded library, the name a C string.
    let address = unsafe { libc::dlsym(library, c.as_ptr()) };
    if address.is_null() {
        return Err(format!("no symbol {name}").into());
    }
    // SAFETY: The libraries define functions of this type.
    Ok(unsafe { std::mem::transmute::<*mut libc::c_void, Function>(address) })
}

/// Calls all in turn until this many calls are made; returns a checksum.
fn call(functions: &[Function], calls: usize) -> u32 {
    let mut sum = 0_u32;
    for round in 0..calls.div_ceil(functions.len()) {
        for function in functions {
            sum = sum.wrapping_add(function(round as u32));
        }
    }
    sum
}

/// Samples of a run; the quickest counts, because whatever else runs only adds.
const SAMPLES: usize = 15;

/// Calls of a sample.
const CALLS: usize = 400_000;

fn run(folder: &Path, kind: &str, body: &str, count: u32, figures: &Path) -> Outcome<()> {
    let before = status("VmRSS:")?;
    let loaded = load(folder, kind, body, count)?;
    let memory = status("VmRSS:")?.saturating_sub(before);
    let functions = loaded.functions.as_slice();
    let calls = CALLS.div_ceil(functions.len()) * functions.len();
    let mut best = f64::INFINITY;
    let mut sum = call(functions, calls);
    for _ in 0..SAMPLES {
        let start = Instant::now();
        sum = sum.wrapping_mul(31).wrapping_add(call(functions, calls));
        best = best.min(start.elapsed().as_nanos() as f64 / calls as f64);
    }
    let maps = fs::read_to_string("/proc/self/maps")?;
    let executable = maps.lines().filter(|line| line.contains("r-xp") || line.contains("r-xs"));
    let line = format!(
        "{{\"kind\":\"{kind}\",\"body\":{body},\"count\":{count},\"ns\":{best:.3},\"load_us\":{},\
         \"link_us\":{},\"rss_kb\":{memory},\"page_tables_kb\":{},\"mappings\":{},\"executable\":{}}}\n",
        loaded.load.as_micros(),
        loaded.link.as_micros(),
        status("VmPTE:")?,
        maps.lines().count(),
        executable.count(),
    );
    let mut file = fs::File::options().append(true).create(true).open(figures)?;
    std::io::Write::write_all(&mut file, line.as_bytes())?;
    println!("{sum}");
    Ok(())
}

/// A figure of `/proc/self/status`, in KiB.
fn status(name: &str) -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such figure")?;
    Ok(line.split_whitespace().next().ok_or("no figure")?.parse()?)
}
