//! A program with a method JIT in miniature: how long it takes to answer requests while its methods are being compiled, by
//! where their code is put.
//!
//! `jit WAY METHODS CALLS REQUESTS FILE` answers requests one after another, each of which calls methods in an order that
//! looks drawn, some far more often than others. A method begins interpreted. Beside the requests, a thread of its own takes
//! the method that was called most often, has gcc compile it and puts the code in place, so that the next call runs it. The
//! times of all requests count, those that met a swap among them. It prints a checksum, the same for every way, and appends
//! its figures to FILE as a line of JSON. The ways:
//!
//! - `interpreter`: no JIT;
//! - `own`: a library each;
//! - `single`: a library each, and now and then one library, linked from all objects so far, for all of them;
//! - `arena`: objects, loaded into a code arena.
//!
//! Relies on gcc in the path and on a folder of temporary files, which is gone at the end. The hard idea is that nothing
//! waits: the thread of the requests reads where a method's code is in one atomic load, and finds the old or the new.

#[path = "../shared/library.rs"]
mod library;
mod method;
mod place;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use library::{Outcome, status};
use method::{Code, Method};
use place::{ArenaPlace, Compiler, Libraries, Nowhere, Place};

/// Calls after which a method is worth compiling.
const OFTEN: u32 = 5;

/// How long the compiling thread waits where no method is called often enough.
const PAUSE: Duration = Duration::from_millis(1);

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, methods, calls, requests, figures] = &arguments[..] else {
        return Err("jit WAY METHODS CALLS REQUESTS FILE".into());
    };
    let asked = Asked {
        way,
        methods: methods.parse()?,
        calls: calls.parse()?,
        requests: requests.parse()?,
        figures: Path::new(figures),
    };
    if asked.methods == 0 || asked.requests == 0 {
        return Err("there must be a method to call and a request to answer".into());
    }
    let folder = Folder::make()?;
    match way.as_str() {
        "interpreter" => run(&asked, &Nowhere),
        "own" => run(&asked, &Libraries::open(asked.methods, &folder.0, false)),
        "single" => run(&asked, &Libraries::open(asked.methods, &folder.0, true)),
        "arena" => run(&asked, &ArenaPlace::open(asked.methods, &folder.0)?),
        other => Err(format!("there is no way `{other}`: interpreter, own, single, arena").into()),
    }
}

/// What a run is asked for.
struct Asked<'a> {
    way: &'a str,
    methods: usize,
    /// Calls of a request.
    calls: usize,
    requests: usize,
    figures: &'a Path,
}

/// A folder for the compiler's files, which goes with the run.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Outcome<Folder> {
        let folder = std::env::temp_dir().join(format!("masu-jit-{}", std::process::id()));
        fs::create_dir(&folder)?;
        Ok(Folder(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nobody can be told of what stays behind any more.
        let _ = fs::remove_dir_all(&self.0);
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

/// What the compiling thread did.
#[derive(Default)]
struct Compiled {
    methods: usize,
    /// What putting the code of each in place took.
    swaps: Vec<Duration>,
}

/// Compiles methods until `over`.
fn compile(methods: &Methods, mut compiler: impl Compiler, over: &AtomicBool) -> Outcome<Compiled> {
    let mut compiled = Compiled::default();
    let mut done = vec![false; methods.all.len()];
    // ORDERING: Relaxed, because nothing is read that was written before it.
    while !over.load(Ordering::Relaxed) {
        match methods.most_called(&done) {
            Some(method) => {
                compiled.swaps.push(compiler.add(&methods.all[method])?);
                compiled.methods += 1;
                done[method] = true;
            }
            None => {
                compiler.rest()?;
                thread::sleep(PAUSE);
            }
        }
    }
    Ok(compiled)
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

fn run(asked: &Asked<'_>, place: &impl Place) -> Outcome<()> {
    let methods = Methods::new(asked.methods);
    let (over, resident) = (AtomicBool::new(false), status("VmRSS:")?);
    let (times, sum, compiled) = thread::scope(|scope| {
        let compiler = place.compiler().map(|compiler| {
            let (methods, over) = (&methods, &over);
            scope.spawn(move || compile(methods, compiler, over).map_err(|error| error.to_string()))
        });
        let (times, sum) = requests(asked, &methods, place);
        // ORDERING: Relaxed, as in `compile`.
        over.store(true, Ordering::Relaxed);
        let compiled = match compiler {
            Some(thread) => thread.join().map_err(|_| "the compiling thread panicked")??,
            None => Compiled::default(),
        };
        Ok::<_, Box<dyn std::error::Error>>((times, sum, compiled))
    })?;
    let memory = status("VmRSS:")?.saturating_sub(resident);
    note(asked, times, &compiled, memory)?;
    println!("{sum}");
    Ok(())
}

/// Answers all requests; how long each took, and a checksum.
fn requests(asked: &Asked<'_>, methods: &Methods, place: &impl Place) -> (Vec<Duration>, u64) {
    let reader = place.reader();
    let mut times = Vec::with_capacity(asked.requests);
    let mut sum = 0_u64;
    for request in 0..asked.requests {
        let start = Instant::now();
        let answered = answer(request, asked.calls, methods, |method| place.code(method));
        times.push(start.elapsed());
        sum = sum.wrapping_mul(31).wrapping_add(answered);
        if let Some(reader) = &reader {
            reader.quiescent();
        }
    }
    (times, sum)
}

/// Appends the figures of a run.
fn note(
    asked: &Asked<'_>,
    mut times: Vec<Duration>,
    compiled: &Compiled,
    rss_kb: u64,
) -> Outcome<()> {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1].as_secs_f64() * 1e3;
    let percentiles = [50, 66, 75, 80, 90, 95, 98, 100]
        .map(|percent| format!(",\"p{percent}\":{:.4}", at(percent)))
        .concat();
    let mut swaps = compiled.swaps.clone();
    swaps.sort_unstable();
    let swap = swaps.get(swaps.len() / 2).copied();
    let swap =
        swap.map_or(String::new(), |swap| format!(",\"swap_ms\":{:.4}", swap.as_secs_f64() * 1e3));
    let Asked { way, methods, calls, requests, figures } = asked;
    let line = format!(
        "{{\"way\":\"{way}\",\"methods\":{methods},\"calls\":{calls},\"requests\":{requests},\"compiled\":{},\
         \"rss_kb\":{rss_kb}{swap}{percentiles}}}\n",
        compiled.methods
    );
    let mut file = fs::File::options().append(true).create(true).open(figures)?;
    std::io::Write::write_all(&mut file, line.as_bytes())?;
    Ok(())
}
