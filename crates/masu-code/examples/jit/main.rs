//! A small program with a method JIT: the time of its requests, by where the code of the methods is.
//!
//! `jit prepare DIR METHODS` compiles METHODS methods with gcc into DIR, except those that are there. `jit run DIR REGIME
//! WAY METHODS CALLS REQUESTS FILE` answers requests in turn. Each request calls methods in a fixed pseudorandom order,
//! some far more often than others. It prints a checksum, the same for every way and regime, and appends its figures to
//! FILE as a line of JSON. The regimes:
//!
//! - `cold`: methods start interpreted. Another thread takes the method that was called most often, compiles it with gcc
//!   and swaps it in, so that the next call runs it. All requests count, including those during a swap. The contents of
//!   DIR are not used.
//! - `warm`: all methods are compiled and in place before the first request. A few requests are not counted, so that the
//!   rest find every page in memory.
//!
//! The ways:
//!
//! - `interpreter`: no JIT;
//! - `own`: a library for each method;
//! - `single`: one library, linked from all objects; in `cold`, first a library for each method, and from time to time
//!   one of all methods so far;
//! - `arena`: objects, loaded into a code arena.
//!
//! Relies on gcc in the path and on a folder of temporary files, removed at the end. No thread waits: the request thread
//! gets a method's address by one atomic load, the old or the new.

#[path = "../shared/library.rs"]
mod library;
mod method;
mod objects;
mod place;
#[cfg(test)]
mod tests;

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use library::{Outcome, status};
use method::{Code, Method};
use objects::Kept;
use place::{ArenaPlace, Compiler, Libraries, Nowhere, Place};

/// Calls after which a method is worth compiling.
const OFTEN: u32 = 5;

/// How long the compiling thread waits where no method is called often enough.
const PAUSE: Duration = Duration::from_millis(1);

/// Requests that are answered before those that count, where all code is in place.
const BEFORE: usize = 10;

const USAGE: &str =
    "jit prepare DIR METHODS | jit run DIR cold|warm WAY METHODS CALLS REQUESTS FILE";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["prepare", folder, methods] => {
            Kept::at(Path::new(folder))?.make(&Methods::new(methods.parse()?).all)
        }
        ["run", folder, regime, way, methods, calls, requests, figures] => {
            let asked = Asked {
                folder: Path::new(folder),
                regime: Regime::of(regime)?,
                way,
                methods: methods.parse()?,
                calls: calls.parse()?,
                requests: requests.parse()?,
            };
            let answered = asked.run()?;
            let mut file = fs::File::options().append(true).create(true).open(figures)?;
            std::io::Write::write_all(&mut file, answered.line(&asked).as_bytes())?;
            println!("{}", answered.sum);
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

/// When methods are compiled.
#[derive(Clone, Copy)]
enum Regime {
    /// While requests are answered.
    Cold,
    /// Before the first one.
    Warm,
}

impl Regime {
    fn of(word: &str) -> Outcome<Regime> {
        match word {
            "cold" => Ok(Regime::Cold),
            "warm" => Ok(Regime::Warm),
            other => Err(format!("there is no regime `{other}`: cold, warm").into()),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Regime::Cold => "cold",
            Regime::Warm => "warm",
        }
    }
}

struct Asked<'a> {
    /// Where methods are kept that were compiled before.
    folder: &'a Path,
    regime: Regime,
    way: &'a str,
    methods: usize,
    /// Calls of a request.
    calls: usize,
    requests: usize,
}

impl Asked<'_> {
    fn run(&self) -> Outcome<Answered> {
        if self.methods == 0 || self.requests == 0 {
            return Err("there must be a method to call and a request to answer".into());
        }
        let temporary = tempfile::tempdir()?;
        let folder = temporary.path();
        match self.way {
            "interpreter" => self.with(&Nowhere),
            "own" => self.with(&Libraries::open(self.methods, folder, false)),
            "single" => self.with(&Libraries::open(self.methods, folder, true)),
            "arena" => self.with(&ArenaPlace::open(self.methods, folder)?),
            other => {
                Err(format!("there is no way `{other}`: interpreter, own, single, arena").into())
            }
        }
    }

    fn with(&self, place: &impl Place) -> Outcome<Answered> {
        let methods = Methods::new(self.methods);
        match self.regime {
            Regime::Cold => self.cold(&methods, place),
            Regime::Warm => self.warm(&methods, place),
        }
    }

    /// Compiles while it answers.
    fn cold(&self, methods: &Methods, place: &impl Place) -> Outcome<Answered> {
        let (over, resident) = (AtomicBool::new(false), status("VmRSS:")?);
        let (times, sum, mut swaps) = thread::scope(|scope| {
            let compiler = place.compiler().map(|compiler| {
                let compiled =
                    || compile(methods, compiler, &over).map_err(|error| error.to_string());
                scope.spawn(compiled)
            });
            let (times, sum) = self.requests(0..self.requests, methods, place);
            // ORDERING: Relaxed, as in `compile`.
            over.store(true, Ordering::Relaxed);
            let swaps = match compiler {
                Some(thread) => thread.join().map_err(|_| "the compiling thread panicked")??,
                None => Vec::new(),
            };
            Ok::<_, Box<dyn std::error::Error>>((times, sum, swaps))
        })?;
        swaps.sort_unstable();
        let put = swaps.get(swaps.len() / 2).map(|swap| ("swap_ms", *swap));
        let rss_kb = status("VmRSS:")?.saturating_sub(resident);
        Ok(Answered { times, sum, compiled: compiled(methods, place), put, rss_kb })
    }

    /// Answers with all code in place.
    fn warm(&self, methods: &Methods, place: &impl Place) -> Outcome<Answered> {
        let made = Kept::at(self.folder)?.find(&methods.all)?;
        let (resident, start) = (status("VmRSS:")?, Instant::now());
        place.load(&made)?;
        let load = start.elapsed();
        self.requests(0..BEFORE, methods, place);
        let (times, sum) = self.requests(0..self.requests, methods, place);
        let compiled = compiled(methods, place);
        let put = (compiled > 0).then_some(("load_ms", load));
        let rss_kb = status("VmRSS:")?.saturating_sub(resident);
        Ok(Answered { times, sum, compiled, put, rss_kb })
    }

    /// Answers these requests; how long each took, and a checksum.
    fn requests(
        &self,
        which: Range<usize>,
        methods: &Methods,
        place: &impl Place,
    ) -> (Vec<Duration>, u64) {
        let mut times = Vec::with_capacity(which.len());
        let mut sum = 0_u64;
        for request in which {
            let start = Instant::now();
            let answered = answer(request, self.calls, methods, |method| place.code(method));
            times.push(start.elapsed());
            sum = sum.wrapping_mul(31).wrapping_add(answered);
        }
        (times, sum)
    }
}

/// The methods, and how often each was interpreted.
struct Methods {
    all: Vec<Method>,
    calls: Vec<AtomicU32>,
}

impl Methods {
    fn new(count: usize) -> Methods {
        let all = (0..count).map(Method::new).collect();
        Methods { all, calls: (0..count).map(|_| AtomicU32::new(0)).collect() }
    }

    fn interpret(&self, method: usize, value: u64) -> u64 {
        let calls = &self.calls[method];
        // ORDERING: Relaxed, and no read-modify-write: one thread counts, and the other only looks how many there were.
        calls.store(calls.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        self.all[method].interpret(value)
    }

    /// The method that was interpreted most often of those not in `done`; none where no one was often enough.
    fn most_called(&self, done: &[bool]) -> Option<usize> {
        let open = self.calls.iter().enumerate().filter(|(method, _)| !done[*method]);
        // ORDERING: Relaxed, as above.
        let counted = open.map(|(method, calls)| (calls.load(Ordering::Relaxed), method));
        counted.filter(|(calls, _)| *calls >= OFTEN).max().map(|(_, method)| method)
    }
}

/// Compiles methods until `over`; what putting the code of each in place took.
fn compile(
    methods: &Methods,
    mut compiler: impl Compiler,
    over: &AtomicBool,
) -> Outcome<Vec<Duration>> {
    let mut swaps = Vec::new();
    let mut done = vec![false; methods.all.len()];
    // ORDERING: Relaxed, because nothing is read that was written before it.
    while !over.load(Ordering::Relaxed) {
        match methods.most_called(&done) {
            Some(method) => {
                swaps.push(compiler.add(&methods.all[method])?);
                done[method] = true;
            }
            None => {
                compiler.rest()?;
                thread::sleep(PAUSE);
            }
        }
    }
    Ok(swaps)
}

/// How many methods have code.
fn compiled(methods: &Methods, place: &impl Place) -> usize {
    (0..methods.all.len()).filter(|method| place.code(*method).is_some()).count()
}

/// Answers a request: calls methods, each with what the one before gave. The cube of an even draw makes the first tenth of
/// the methods nearly half of the calls.
#[inline(always)]
fn answer(
    request: usize,
    calls: usize,
    methods: &Methods,
    code: impl Fn(usize) -> Option<Code>,
) -> u64 {
    let count = methods.all.len() as u64;
    let mut value = request as u64;
    let mut next = request as u64 * 7919;
    for _ in 0..calls {
        next = next.wrapping_mul(1_103_515_245).wrapping_add(12_345) & 0x7fff_ffff;
        let drawn = next >> 16;
        let method = ((drawn * drawn * drawn * count) >> 45) as usize;
        value = match code(method) {
            Some(code) => code(value),
            None => methods.interpret(method, value),
        };
    }
    value
}

struct Answered {
    times: Vec<Duration>,
    sum: u64,
    /// Methods that have code at the end.
    compiled: usize,
    /// What putting code in place took, by the name that the figure has: of one method, in the middle, or of all.
    put: Option<(&'static str, Duration)>,
    /// Memory that it added, in KiB.
    rss_kb: u64,
}

impl Answered {
    /// The figures as a line of JSON.
    fn line(&self, asked: &Asked<'_>) -> String {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = |percent: usize| ms(times[(times.len() * percent).div_ceil(100) - 1]);
        let percentiles = [50, 66, 75, 80, 90, 95, 98, 100]
            .map(|percent| format!(",\"p{percent}\":{:.4}", at(percent)))
            .concat();
        let put = self.put.map(|(name, time)| format!(",\"{name}\":{:.4}", ms(time)));
        let put = put.unwrap_or_default();
        let (Asked { way, methods, calls, requests, .. }, regime) = (asked, asked.regime.word());
        let Answered { compiled, rss_kb, .. } = self;
        format!(
            "{{\"regime\":\"{regime}\",\"way\":\"{way}\",\"methods\":{methods},\"calls\":{calls},\
             \"requests\":{requests},\"compiled\":{compiled},\"rss_kb\":{rss_kb}{put}{percentiles}}}\n"
        )
    }
}
