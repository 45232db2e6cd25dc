//! Every feature switched on, off and on again while others are in use, all drawn at random from one seed.
//!
//! It relies on the oracle of live intervals beside it. What a feature breaks it breaks by its *history*, so each
//! seed has a process of its own: its first request is the first of that process, a crash ends nothing
//! else, and what hangs is ended and named. One walker repeats exactly; several as far as what each draws.
//!
//! `MASU_SEED=N` runs that seed alone, `MASU_SEEDS=N` so many, `MASU_OPERATIONS=N` gives each so many operations;
//! `MASU_SOAK=1` is 1,050 seeds of a million operations. `RUSTFLAGS='--cfg masu_plant="samples_as_first"'` (or `"lanes_once"`)
//! plants a fault that was mended once; the search then has to find it.

mod deeds;
mod draw;
mod features;
mod forked;
mod heaps;
mod resize;
mod walker;

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::checked::Checked;
use crate::finding::Finding;
use crate::malloc::Masu;
use crate::random::Random;
use crate::sizes::Sizes;
use draw::Draw;
use heaps::AnyHeap;
use walker::{Ground, Tally, Walker, join};

/// Operations of a seed.
const OPERATIONS: usize = if cfg!(debug_assertions) { 8_000 } else { 400_000 };
/// With `MASU_SOAK`.
const OPERATIONS_SOAK: usize = 1_000_000;
/// Seeds with `MASU_SOAK`.
const SEEDS_SOAK: usize = 1_050;
/// Seeds otherwise, the same in every run: what fails on one machine fails on the next.
const SEEDS: usize = 16;
/// How long a planted fault is looked for: it takes less than a minute on a machine that is not busy.
const SEARCH_PLANTED: Duration = Duration::from_secs(240);
/// What a seed may take until it is said to hang.
const LIMIT: Duration = Duration::from_secs(if IS_PLANTED { 20 } else { 300 });
/// With `MASU_SOAK`: where many blocks are guarded, an operation costs a hundred times the usual one.
const LIMIT_SOAK: Duration = Duration::from_secs(1_800);

/// The number that a variable holds.
fn number(variable: &str) -> Option<usize> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}

/// Whether the long runs are wanted.
fn is_soak() -> bool {
    env::var_os("MASU_SOAK").is_some_and(|value| value == "1")
}

/// Walks as `seed` says, in this process, which must not have used masu before; what was done.
///
/// What walkers share is leaked rather than kept on the stack of this thread: in a process that one of them forks,
/// glibc gives the stacks of threads that are no more to new ones.
fn walk(seed: u64, operations: usize) -> Result<(Tally, u64), Finding> {
    let mut random = Random::new(seed);
    let draw: &Draw = Box::leak(Box::new(Draw::new(&mut random, operations)));
    println!("{draw:?}");
    masu::options::set("shards", draw.shards).expect("a count of shards");
    let shared: Vec<AnyHeap> =
        (0..draw.shared_heaps).filter_map(|_| AnyHeap::draw(&mut random)).collect();
    let shared = Box::into_raw(shared.into_boxed_slice());
    let ground: &Ground<'_> = Box::leak(Box::new(Ground {
        draw,
        checked: Checked::new(&Masu),
        sizes: Box::leak(Box::new(Sizes::of(&Masu)?)),
        // SAFETY: Leaked just now, and not taken back while the ground is used.
        heaps: unsafe { &*shared },
        live_bytes: AtomicUsize::new(0),
        limit: Box::leak(Box::default()),
        stop: AtomicBool::new(false),
        is_forked: false,
    }));
    let mut walkers = Walker::crew(draw.walkers, &mut random);
    let turns = (draw.operations / (draw.walkers * draw.rounds)).max(1);
    for _ in 0..draw.rounds {
        everyone(&mut walkers, |walker| walker.walk(ground, turns))?;
        // Nobody else is here: every block can be looked at, and the books be held against them.
        walkers.iter_mut().for_each(Walker::empty_inbox);
        walkers.iter().try_for_each(|walker| walker.inspect_all(ground))?;
        features::check_books(walkers.iter().map(Walker::bytes_by_masu).sum())?;
    }
    ground.limit.end();
    // Shared heaps end with blocks in them, every other time.
    if random.below(2) == 0 {
        for walker in &mut walkers {
            walker.abandon_shared(ground)?;
        }
    }
    everyone(&mut walkers, |walker| walker.close(ground))?;
    assert!(ground.checked.nothing_is_live(), "the oracle lost a block");
    // SAFETY: They were leaked above, and nobody uses them any more.
    drop(unsafe { Box::from_raw(shared) });
    features::check_books(0)?;
    let now = masu::c::statistics();
    for (what, counted) in [("large blocks", now.large_blocks), ("heaps", now.heaps)] {
        if counted != 0 {
            return Err(Finding::Books { what, counted, expected: 0 });
        }
    }
    let digest =
        walkers.iter_mut().fold(0, |sum: u64, walker| sum.rotate_left(9) ^ walker.digest());
    Ok((walkers.iter().map(|walker| walker.tally).fold(Tally::default(), Tally::plus), digest))
}

/// Runs `work` for all walkers at once, one alone in this thread; the first finding.
fn everyone(
    walkers: &mut [Walker],
    work: impl Fn(&mut Walker) -> Result<(), Finding> + Sync,
) -> Result<(), Finding> {
    if let [alone] = walkers {
        return work(alone);
    }
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> =
            walkers.iter_mut().map(|walker| scope.spawn(move || work(walker))).collect();
        threads.into_iter().map(join).fold(Ok(()), Result::and)
    })
}

/// What the child prints behind its tally.
const DONE: &str = "the seed is done: operations=";

#[test]
#[ignore = "run by the others, in a process of its own"]
fn one_seed() {
    forked::end_with_parent();
    let (seed, operations) = (number("MASU_SEED"), number("MASU_OPERATIONS"));
    let (seed, operations) = (seed.expect("a seed"), operations.expect("operations"));
    match walk(seed as u64, operations) {
        Ok((tally, digest)) => {
            println!("{tally:?}\ndigest={digest:x}\n{DONE}{}", tally.operations);
        }
        Err(finding) => panic!("{finding:x?}"),
    }
}

/// What became of a seed.
struct Outcome {
    seed: u64,
    operations: usize,
    /// What the child printed.
    printed: String,
    /// What is wrong, where something is.
    fault: Option<String>,
}

/// Runs a seed in a process of its own.
fn run_seed(seed: u64, operations: usize, limit: Duration) -> Outcome {
    let mut command = Command::new(env::current_exe().expect("this program has a file"));
    command.args(["--exact", "combinations::one_seed", "--ignored", "--nocapture"]);
    command.env("MASU_SEED", seed.to_string()).env("MASU_OPERATIONS", operations.to_string());
    // A group of its own, so that what it forked can be ended with it.
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().expect("this program starts");
    let ended = AtomicBool::new(false);
    let id = child.id().cast_signed();
    let (printed, status) = thread::scope(|scope| {
        let watch = scope.spawn(|| watch(id, limit, &ended));
        let printed = read_all(&mut child);
        let status = child.wait().expect("it was started");
        // ORDERING: Relaxed: the flag stands for itself.
        ended.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        (printed, (status, join(watch)))
    });
    let fault = match status {
        (_, true) => Some(format!("it hangs: not done after {} s", limit.as_secs())),
        (status, _) if status.signal().is_some() => Some(format!("it crashes: {status}")),
        (status, _) if !status.success() => Some(String::from("a promise is broken")),
        _ if !printed.contains(DONE) => Some(String::from("it ends without a word")),
        _ => None,
    };
    let done = printed.split_once(DONE).and_then(|(_, after)| after.split_whitespace().next());
    let operations = done.and_then(|digits| digits.parse().ok()).unwrap_or(0);
    Outcome { seed, operations, printed, fault }
}

/// All that a child prints.
fn read_all(child: &mut Child) -> String {
    let mut errors = child.stderr.take().expect("it is piped");
    let mut output = child.stdout.take().expect("it is piped");
    let (mut printed, mut after) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| errors.read_to_end(&mut after));
        output.read_to_end(&mut printed).expect("a pipe");
    });
    printed.append(&mut after);
    String::from_utf8_lossy(&printed).into_owned()
}

/// Ends the group of processes when the limit is over; whether it did.
fn watch(group: i32, limit: Duration, ended: &AtomicBool) -> bool {
    let start = Instant::now();
    // ORDERING: Relaxed, as where it is set.
    while !ended.load(Ordering::Relaxed) {
        let Some(left) = limit.checked_sub(start.elapsed()) else {
            // SAFETY: It has no condition; the group is that of a child which was not yet waited for.
            unsafe { libc::kill(-group, libc::SIGKILL) };
            return true;
        };
        thread::park_timeout(left);
    }
    false
}

/// Runs seeds, on every CPU one, until enough were run or one finds something; the outcomes.
fn search(first: u64, operations: usize, enough: impl Fn(usize) -> bool + Sync) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    let limit = if is_soak() { LIMIT_SOAK } else { LIMIT };
    let work = || {
        // ORDERING: Relaxed: the flag stands for itself.
        while !is_over.load(Ordering::Relaxed) {
            // ORDERING: Relaxed: each number is taken once.
            let place = next.fetch_add(1, Ordering::Relaxed);
            if enough(place) {
                break;
            }
            let outcome = run_seed(first.wrapping_add(place as u64), operations, limit);
            println!("seed {}: {} operations", outcome.seed, outcome.operations);
            // ORDERING: As above.
            is_over.fetch_or(outcome.fault.is_some(), Ordering::Relaxed);
            outcomes.lock().expect("no thread panicked").push(outcome);
        }
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..cpus).for_each(|_| drop(scope.spawn(work))));
    outcomes.into_inner().expect("no thread panicked")
}

/// Says what was found, and how to see it again; `None` where nothing was.
fn report(outcomes: &[Outcome], operations: usize) -> Option<String> {
    let outcome = outcomes.iter().find(|outcome| outcome.fault.is_some())?;
    let fault = outcome.fault.as_deref().unwrap_or_default();
    let Outcome { seed, printed, .. } = outcome;
    Some(format!(
        "seed {seed}: {fault}. To see it again: MASU_SEED={seed} MASU_OPERATIONS={operations} cargo test \
         -p masu --features profile,guards --test oracle combinations\n{printed}"
    ))
}

/// Runs the seeds that this run of the tests is to run.
fn search_as_asked() -> (Vec<Outcome>, usize) {
    let usual = if is_soak() { OPERATIONS_SOAK } else { OPERATIONS };
    let operations = number("MASU_OPERATIONS").unwrap_or(usual);
    let start = Instant::now();
    let outcomes = match (number("MASU_SEED"), number("MASU_SEEDS")) {
        (Some(seed), None) => search(seed as u64, operations, |place| place >= 1),
        (first, Some(count)) => {
            search(first.map_or_else(crate::seed, |first| first as u64), operations, |place| {
                place >= count
            })
        }
        (None, None) if is_soak() => search(crate::seed(), operations, |place| place >= SEEDS_SOAK),
        (None, None) => search(1, operations, |place| place >= SEEDS),
    };
    let sum: usize = outcomes.iter().map(|outcome| outcome.operations).sum();
    let seeds = outcomes.len();
    println!("{seeds} seeds, {sum} operations in {:.1} s", start.elapsed().as_secs_f64());
    (outcomes, operations)
}

/// Whether a fault is planted in this build, for the test below to find.
const IS_PLANTED: bool = cfg!(any(masu_plant = "samples_as_first", masu_plant = "lanes_once"));

#[test]
fn random_combinations_of_all_features_find_every_promise_kept() {
    if IS_PLANTED {
        return find_what_is_planted();
    }
    let (outcomes, operations) = search_as_asked();
    if let Some(report) = report(&outcomes, operations) {
        panic!("{report}");
    }
    assert!(outcomes.iter().any(|outcome| outcome.operations > 0), "nothing was done");
}

/// As the test above, in a build with a fault that was mended once: it must be found.
fn find_what_is_planted() {
    let start = Instant::now();
    let outcomes = search(1, OPERATIONS, |_| start.elapsed() >= SEARCH_PLANTED);
    let (seconds, report) = (start.elapsed().as_secs_f64(), report(&outcomes, OPERATIONS));
    let report = report.unwrap_or_else(|| panic!("nothing was found in {seconds:.1} s"));
    println!("found in {seconds:.1} s and {} seeds: {report}", outcomes.len());
}

#[test]
fn a_walker_alone_does_the_same_in_every_run_of_a_seed() {
    let alone =
        (1..).find(|seed| Draw::new(&mut Random::new(*seed), 1).walkers == 1).expect("some");
    let digest = |outcome: Outcome| {
        assert_eq!(outcome.fault, None, "{}", outcome.printed);
        let line = outcome.printed.lines().find(|line| line.starts_with("digest="));
        String::from(line.expect("it is printed"))
    };
    let [first, again] = [(); 2].map(|()| digest(run_seed(alone, 20_000, LIMIT)));
    assert_eq!(first, again);
}
