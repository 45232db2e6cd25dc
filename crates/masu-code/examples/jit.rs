//! A program with a method JIT in miniature: how long it takes to answer, by where the code of its methods lies.
//!
//! `jit prepare DIR COUNT` writes so many methods in C and has gcc make an object and a library of each. `jit run DIR WAY
//! COUNT REQUESTS FILE` loads them in one way, answers requests, each of which calls methods in an order that looks drawn,
//! prints a checksum (the same for every way) and appends its figures to FILE as a line of JSON. The ways:
//!
//! - `interpreter`: no JIT, each method is a list of operations;
//! - `own`: a library each;
//! - `single`: one library, linked from all objects;
//! - `arena`: the objects, loaded into a code arena.
//!
//! A method is two dozen operations on one number, so that its code is as long as that of a small method of a program.

#[path = "shared/library.rs"]
mod library;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use library::{Outcome, compile, open, status};
use masu_code::{Arena, Options, Source};

type Method = extern "C" fn(u64) -> u64;

/// Operations of a method.
const OPERATIONS: u64 = 24;

/// Methods that a request calls.
const CALLS: usize = 20_000;

/// Requests that are answered before those that count.
const WARM_UP: usize = 10;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["prepare", folder, count] => prepare(Path::new(folder), count.parse()?),
        ["run", folder, way, count, requests, figures] => {
            run(Path::new(folder), way, count.parse()?, requests.parse()?, Path::new(figures))
        }
        _ => Err("jit prepare DIR COUNT | jit run DIR WAY COUNT REQUESTS FILE".into()),
    }
}

/// An operation of a method.
#[derive(Clone, Copy)]
enum Operation {
    Multiply(u64),
    Fold(u32),
    Add(u64),
}

/// The operations of a method: drawn, and the same every time.
fn operations(number: u64) -> Vec<Operation> {
    let draw = |step: u64| {
        let mixed = (number * OPERATIONS + step + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
    };
    let operation = |step| match step % 3 {
        0 => Operation::Multiply(draw(step) | 1),
        1 => Operation::Fold(u32::try_from(draw(step) % 40).unwrap_or(0) + 5),
        _ => Operation::Add(draw(step)),
    };
    (0..OPERATIONS).map(operation).collect()
}

fn interpret(operations: &[Operation], mut value: u64) -> u64 {
    for operation in operations {
        value = match *operation {
            Operation::Multiply(factor) => value.wrapping_mul(factor),
            Operation::Fold(bits) => value ^ (value >> bits),
            Operation::Add(term) => value.wrapping_add(term),
        };
    }
    value
}

fn name(number: u64) -> String {
    format!("m{number:05}")
}

/// C of a method.
fn text(number: u64) -> String {
    let lines = operations(number).into_iter().map(|operation| match operation {
        Operation::Multiply(factor) => format!("  value *= {factor}UL;\n"),
        Operation::Fold(bits) => format!("  value ^= value >> {bits};\n"),
        Operation::Add(term) => format!("  value += {term}UL;\n"),
    });
    let body: String = lines.collect();
    format!("unsigned long {}(unsigned long value) {{\n{body}  return value;\n}}\n", name(number))
}

fn prepare(folder: &Path, count: u64) -> Outcome<()> {
    let finished = folder.join(format!("finished-{count}"));
    if finished.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let workers = thread::available_parallelism().map_or(1, usize::from) as u64;
    let share = |worker: u64| {
        let mut numbers = (worker..count).step_by(workers as usize);
        numbers.try_for_each(|number| make(folder, number).map_err(|error| error.to_string()))
    };
    let made: Vec<Result<(), String>> = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..workers).map(|worker| scope.spawn(move || share(worker))).collect();
        let ended = workers.into_iter().map(|worker| worker.join().expect("it does not panic"));
        ended.collect()
    });
    made.into_iter().collect::<Result<(), String>>()?;
    fs::write(finished, "")?;
    Ok(())
}

/// A method as C, as an object and as a library.
fn make(folder: &Path, number: u64) -> Outcome<()> {
    let [source, object, library] = ["c", "o", "so"].map(|end| format!("{}.{end}", name(number)));
    fs::write(folder.join(&source), text(number))?;
    compile(folder, &["-O1", "-fPIC", "-fcf-protection=none", "-c", &source, "-o", &object])?;
    compile(folder, &["-shared", "-nostdlib", &object, "-o", &library])
}

/// Methods that were loaded.
enum Loaded {
    Interpreted(Vec<Vec<Operation>>),
    Compiled(Vec<Method>, Option<Arena>),
}

fn load(folder: &Path, way: &str, count: u64) -> Outcome<Loaded> {
    let files = |end: &str| -> Vec<PathBuf> {
        (0..count).map(|number| folder.join(format!("{}.{end}", name(number)))).collect()
    };
    match way {
        "interpreter" => Ok(Loaded::Interpreted((0..count).map(operations).collect())),
        "own" => {
            let files = files("so");
            let methods = files.iter().zip(0..).map(|(path, number)| method(open(path)?, number));
            Ok(Loaded::Compiled(methods.collect::<Outcome<_>>()?, None))
        }
        "single" => {
            let all = folder.join(format!("all-{}.so", std::process::id()));
            let list = all.with_extension("list");
            let objects = files("o").into_iter().map(|path| format!("{}\n", path.display()));
            fs::write(&list, objects.collect::<String>())?;
            let from = format!("@{}", list.display());
            let made =
                compile(folder, &["-shared", "-nostdlib", &from, "-o", &all.display().to_string()]);
            fs::remove_file(&list)?;
            made?;
            let handle = open(&all);
            fs::remove_file(&all)?;
            let handle = handle?;
            let methods =
                (0..count).map(|number| method(handle, number)).collect::<Outcome<_>>()?;
            Ok(Loaded::Compiled(methods, None))
        }
        "arena" => {
            let arena = Arena::open(Options::default())?;
            let sources = files("o").iter().map(Source::file).collect::<Result<Vec<_>, _>>()?;
            // SAFETY: The objects have no initialisers.
            let handles = unsafe { arena.load_all(sources)? };
            let mut methods = Vec::new();
            for (handle, number) in handles.into_iter().zip(0..) {
                let address = arena.symbol(handle, &name(number))?;
                // SAFETY: The objects define functions of this type.
                methods.push(unsafe { std::mem::transmute::<*const _, Method>(address) });
            }
            Ok(Loaded::Compiled(methods, Some(arena)))
        }
        other => Err(format!("there is no way `{other}`: interpreter, own, single, arena").into()),
    }
}

fn method(library: *mut libc::c_void, number: u64) -> Outcome<Method> {
    let address = library::symbol(library, &name(number))?;
    // SAFETY: The libraries define functions of this type.
    Ok(unsafe { std::mem::transmute::<*mut libc::c_void, Method>(address) })
}

/// Answers a request: calls methods, each with what the one before gave.
#[inline(always)]
fn answer(request: usize, count: usize, call: impl Fn(usize, u64) -> u64) -> u64 {
    let mut value = request as u64;
    let mut next = request * 7919;
    for _ in 0..CALLS {
        next = next.wrapping_mul(1_103_515_245).wrapping_add(12_345) & 0x7fff_ffff;
        value = call((next >> 8) % count, value);
    }
    value
}

fn run(folder: &Path, way: &str, count: u64, requests: usize, figures: &Path) -> Outcome<()> {
    let (resident, start) = (status("VmRSS:")?, Instant::now());
    let loaded = load(folder, way, count)?;
    let load = start.elapsed();
    let memory = status("VmRSS:")?.saturating_sub(resident);
    let mut times = Vec::with_capacity(requests);
    let mut sum = 0_u64;
    for request in 0..WARM_UP + requests {
        let start = Instant::now();
        let answered = match &loaded {
            Loaded::Interpreted(methods) => {
                answer(request, methods.len(), |method, value| interpret(&methods[method], value))
            }
            Loaded::Compiled(methods, _arena) => {
                answer(request, methods.len(), |method, value| methods[method](value))
            }
        };
        if request >= WARM_UP {
            times.push(start.elapsed());
        }
        sum = sum.wrapping_mul(31).wrapping_add(answered);
    }
    times.sort_unstable();
    let at = |percent: usize| -> f64 {
        let index = (times.len() * percent).div_ceil(100).clamp(1, times.len());
        times.get(index - 1).copied().unwrap_or(Duration::ZERO).as_secs_f64() * 1e3
    };
    let percentiles = [50, 66, 75, 80, 90, 95, 98, 100]
        .map(|percent| format!("\"p{percent}\":{:.4}", at(percent)))
        .join(",");
    let line = format!(
        "{{\"way\":\"{way}\",\"methods\":{count},\"requests\":{requests},\"load_ms\":{:.3},\"rss_kb\":{memory},{percentiles}}}\n",
        load.as_secs_f64() * 1e3
    );
    let mut file = fs::File::options().append(true).create(true).open(figures)?;
    std::io::Write::write_all(&mut file, line.as_bytes())?;
    println!("{sum}");
    Ok(())
}
