//! The cost of a call by the place of code: many small functions, loaded in one of several layouts and called in turn.
//!
//! `layout prepare DIR COUNT` makes the objects and libraries; `layout run DIR KIND BODY COUNT FILE`
//! loads them, calls them, prints a checksum (the same for every layout) and appends its figures to
//! FILE as a line of JSON. `masu experiment code` runs the layouts in turns.
//!
//! All functions are copies of one function that gcc compiled, with the constant and the name changed in the bytes of
//! its object or library. So thousands of libraries take a second to make, and each is real output of the compiler and
//! linker. The long body is instructions without effect, so that fetching them is its only cost.

use std::error::Error;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use masu_code::{Arena, Options, Source, Tools, Writing};

type Outcome<T> = Result<T, Box<dyn Error>>;

type Function = extern "C" fn(u32) -> u32;

/// The constant and the name that are changed.
const MARK: u32 = 0x1357_9bdf;
const NAME: &str = "f00000";

/// Names of the bodies: about 8 bytes, and 204.
const BODIES: [&str; 2] = ["8", "204"];

/// The folder whose files are memory and nothing else.
const MEMORY: &str = "/dev/shm";

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

/// C of a function: an addition and a return, which take 7 bytes, and instructions that fill the body.
fn text(body: &str) -> String {
    let filling = if body == "204" { "__asm__ volatile(\".nops 197, 8\"); " } else { "" };
    format!("unsigned {NAME}(unsigned x) {{ {filling}return x + {MARK}u; }}")
}

/// The places where `what` stands in an object or library.
fn places(bytes: &[u8], what: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(what.len()).enumerate();
    windows.filter(|(_, window)| *window == what).map(|(at, _)| at).collect()
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
        let flags = ["-O2", "-fPIC", "-fcf-protection=none"];
        compile(folder, &[&flags[..], &["-c", &source, "-o", &object]].concat())?;
        let page = "-Wl,-z,max-page-size=0x200000";
        compile(folder, &["-shared", "-nostdlib", &object, "-o", "own.so"])?;
        compile(folder, &["-shared", "-nostdlib", page, &object, "-o", "own2m.so"])?;
        for (kind, made, end) in
            [("object", object.as_str(), "o"), ("own", "own.so", "so"), ("own2m", "own2m.so", "so")]
        {
            fs::create_dir_all(folder.join(format!("{kind}-{body}")))?;
            let mut bytes = fs::read(folder.join(made))?;
            let marks = places(&bytes, &MARK.to_le_bytes());
            // The symbols of a library are found by hashes of their names, which stay.
            let names = if kind == "object" { places(&bytes, NAME.as_bytes()) } else { Vec::new() };
            let filled = |(_, page): &(usize, &[u8])| page.iter().any(|&byte| byte != 0);
            let pages = bytes.chunks(PAGE).enumerate().filter(filled);
            let pages: Vec<usize> = pages.map(|(page, _)| page * PAGE).collect();
            for number in 0..count {
                for &at in &marks {
                    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
                }
                for &at in &names {
                    bytes[at..at + NAME.len()].copy_from_slice(name(number).as_bytes());
                }
                write_sparse(&file(folder, kind, body, number, end), &bytes, &pages)?;
            }
        }
    }
    Ok(())
}

/// Bytes that are written at once.
const PAGE: usize = 4096;

/// Writes a file with holes where there are only zeros: libraries aligned to 2 MiB are mostly zeros.
fn write_sparse(path: &Path, bytes: &[u8], pages: &[usize]) -> Outcome<()> {
    let file = fs::File::create(path)?;
    file.set_len(bytes.len() as u64)?;
    for &page in pages {
        file.write_all_at(&bytes[page..bytes.len().min(page + PAGE)], page as u64)?;
    }
    Ok(())
}

/// The loaded functions, and the time that loading took.
struct Loaded {
    functions: Vec<Function>,
    load: Duration,
    /// The linker's part of `load`.
    link: Duration,
    /// Resident memory before loading, in KiB.
    resident: u64,
    _arena: Option<Arena>,
}

fn load(folder: &Path, kind: &str, body: &str, count: u32) -> Outcome<Loaded> {
    let files = |kind: &str, end: &str| -> Vec<PathBuf> {
        (0..count).map(|number| file(folder, kind, body, number, end)).collect()
    };
    match kind {
        "own" | "own2m" => load_each(&files(kind, "so")),
        "one" => link(&files("object", "o"), folder),
        "one-memory" => {
            let memory = tempfile::tempdir_in(MEMORY)?;
            let copies: Vec<PathBuf> =
                (0..count).map(|number| memory.path().join(name(number))).collect();
            for (object, copy) in files("object", "o").iter().zip(&copies) {
                fs::copy(object, copy)?;
            }
            link(&copies, memory.path())
        }
        _ => load_into_arena(&files("object", "o"), Way::of(kind)?),
    }
}

fn load_each(files: &[PathBuf]) -> Outcome<Loaded> {
    let (resident, start) = (status("VmRSS:")?, Instant::now());
    let open = |path: &PathBuf| symbol(open(path)?, NAME);
    let functions = files.iter().map(open).collect::<Outcome<Vec<Function>>>()?;
    let (load, link) = (start.elapsed(), Duration::ZERO);
    Ok(Loaded { functions, load, link, resident, _arena: None })
}

fn link(objects: &[PathBuf], folder: &Path) -> Outcome<Loaded> {
    let library = folder.join(format!("one-{}.so", std::process::id()));
    let list = library.with_extension("list");
    // In quotes, as a folder's name may have a space.
    let names = objects.iter().map(|path| format!("{path:?}\n"));
    let (resident, start) = (status("VmRSS:")?, Instant::now());
    fs::write(&list, names.collect::<String>())?;
    let list_argument = format!("@{}", list.display());
    let made = library.display().to_string();
    compile(folder, &["-shared", "-nostdlib", &list_argument, "-o", &made])?;
    let link = start.elapsed();
    let handle = open(&library)?;
    let functions = (0..objects.len()).map(|number| symbol(handle, &name(number as u32)));
    let functions = functions.collect::<Outcome<Vec<Function>>>()?;
    let load = start.elapsed();
    fs::remove_file(&library)?;
    fs::remove_file(&list)?;
    Ok(Loaded { functions, load, link, resident, _arena: None })
}

/// The way in which the arena loads: its name begins with `arena`, and each of these is a word of it.
#[derive(Default)]
struct Way {
    /// The objects are in the program's memory already.
    memory: bool,
    /// Neither debugger nor unwinder learns of the code.
    untold: bool,
    /// Code is written before it is made executable, not through a second mapping.
    batches: bool,
    /// Object by object, not all at once.
    each: bool,
}

impl Way {
    fn of(kind: &str) -> Outcome<Way> {
        let wrong = || {
            format!(
                "{kind}: own, own2m, one, one-memory or arena, with any of -memory -untold -batches -each"
            )
        };
        let words = kind.strip_prefix("arena").ok_or_else(wrong)?;
        let mut way = Way::default();
        for word in words.split('-').skip(1) {
            match word {
                "memory" => way.memory = true,
                "untold" => way.untold = true,
                "batches" => way.batches = true,
                "each" => way.each = true,
                _ => return Err(wrong().into()),
            }
        }
        Ok(way)
    }
}

fn load_into_arena(objects: &[PathBuf], way: Way) -> Outcome<Loaded> {
    let tools = if way.untold { Tools::none() } else { Tools::default() };
    let writing = if way.batches { Writing::Batches } else { Writing::Dual };
    let bytes = objects.iter().filter(|_| way.memory).map(fs::read);
    let bytes = bytes.collect::<Result<Vec<Vec<u8>>, _>>()?;
    let (resident, start) = (status("VmRSS:")?, Instant::now());
    let arena = Arena::open(Options { tools, writing, ..Options::default() })?;
    let sources: Vec<Source> = if way.memory {
        let named = |(number, bytes): (usize, Vec<u8>)| Source::new(name(number as u32), bytes);
        bytes.into_iter().enumerate().map(named).collect()
    } else {
        objects.iter().map(Source::file).collect::<Result<Vec<_>, _>>()?
    };
    let handles = if way.each {
        // SAFETY: The objects have no initializers.
        let each = |one: Source| unsafe { arena.load(one) };
        sources.into_iter().map(each).collect::<Result<Vec<_>, _>>()?
    } else {
        // SAFETY: As above.
        unsafe { arena.load_all(sources)? }
    };
    let mut functions = Vec::with_capacity(handles.len());
    for (number, handle) in handles.into_iter().enumerate() {
        let address = arena.symbol(handle, &name(number as u32))?;
        // SAFETY: The objects define functions of this type.
        functions.push(unsafe { std::mem::transmute::<*const _, Function>(address) });
    }
    let (load, link) = (start.elapsed(), Duration::ZERO);
    Ok(Loaded { functions, load, link, resident, _arena: Some(arena) })
}

fn symbol(handle: *mut libc::c_void, name: &str) -> Outcome<Function> {
    let c = std::ffi::CString::new(name)?;
    // SAFETY: The handle is of a loaded library, the name a C string.
    let address = unsafe { libc::dlsym(handle, c.as_ptr()) };
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

/// Samples of a run; the quickest counts, because other work only adds time.
const SAMPLES: usize = 15;

const CALLS: usize = 400_000;

fn run(folder: &Path, kind: &str, body: &str, count: u32, figures: &Path) -> Outcome<()> {
    let loaded = load(folder, kind, body, count)?;
    let memory = status("VmRSS:")?.saturating_sub(loaded.resident);
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

fn compile(folder: &Path, arguments: &[&str]) -> Outcome<()> {
    let output = Command::new("gcc").args(arguments).current_dir(folder).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default();
    Err(format!("gcc {arguments:?}: {first}").into())
}

fn open(path: &Path) -> Outcome<*mut libc::c_void> {
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: The libraries are this program's own and have no initializers.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() { Err(format!("dlopen {}", path.display()).into()) } else { Ok(handle) }
}

/// A figure of `/proc/self/status`, in KiB.
fn status(name: &str) -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such figure")?;
    Ok(line.split_whitespace().next().ok_or("no figure")?.parse()?)
}
