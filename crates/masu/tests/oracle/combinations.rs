//! Random combinations of features, switched on, off and on again while others are in use.
//!
//! It relies on the oracle of live intervals. A feature breaks by its *history*, so each seed has a process of its own:
//! its first request is the first of that process, a crash ends nothing else, and a hang is ended and reported. One
//! walker repeats exactly; several walkers repeat only the numbers that each draws.
//!
//! A debug build of masu checks all of its counts and lists against its memory while no walker runs, and has the kernel
//! refuse calls for memory now and then.
//!
//! Build it with `--features profile,guards`; without them these two features are never on.
//!
//! `MASU_SEED=N` runs the seed N alone, `MASU_SEEDS=N` runs N seeds, `MASU_OPERATIONS=N` gives each seed N operations;
//! `MASU_SOAK=1` runs 1,050 seeds of a million operations and lists all that fail. `RUSTFLAGS='--cfg
//! masu_plant="samples_as_first"'` (or `"lanes_once"`, both former faults, or `"runs_to_first"`) plants a fault, which
//! the search must find, from the seed `MASU_SEED` on.

mod actions;
pub(crate) mod draw;
pub(crate) mod features;
mod forked;
mod heaps;
mod resize;
pub(crate) mod walker;

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::alone;
use crate::checked::Checked;
use crate::finding::Finding;
use crate::live::{Budget, join};
use crate::malloc::Masu;
use crate::random::Random;
use crate::sizes::Sizes;
use draw::Draw;
use heaps::AnyHeap;
use walker::{Context, Owner, Tally, Walker};

/// Operations of a seed.
const OPERATIONS: usize = if cfg!(debug_assertions) { 8_000 } else { 400_000 };
/// Operations of a seed with `MASU_SOAK`.
const OPERATIONS_SOAK: usize = 1_000_000;
/// Seeds with `MASU_SOAK`.
const SEEDS_SOAK: usize = 1_050;
/// Seeds otherwise, the same in every run, so that a failure repeats elsewhere.
const SEEDS: usize = 16;
/// The time to search for a planted fault, which takes less than a minute on an idle machine.
const SEARCH_PLANTED: Duration = Duration::from_secs(240);
/// The time after which a seed is taken to hang.
const LIMIT: Duration = Duration::from_secs(if IS_PLANTED { 20 } else { 300 });
/// The limit with `MASU_SOAK`; with many guarded blocks an operation costs a hundred times as much.
const LIMIT_SOAK: Duration = Duration::from_secs(1_800);

/// The number in a variable.
pub(crate) fn number(variable: &str) -> Option<usize> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}

/// Whether this is a long run.
pub(crate) fn is_soak() -> bool {
    env::var_os("MASU_SOAK").is_some_and(|value| value == "1")
}

/// Runs `seed` in this process, which must not have used masu before; returns the counts and a digest.
///
/// The shared state is leaked, not kept on this thread's stack: in a process that a walker forks, glibc reuses the
/// stacks of missing threads.
fn walk(seed: u64, operations: usize) -> Result<(Tally, u64), Finding> {
    let mut random = Random::new(seed);
    let draw: &Draw = Box::leak(Box::new(Draw::new(&mut random, operations)));
    println!("{draw:?}");
    masu::options::set("shards", draw.shards).expect("a count of shards");
    masu::options::set("shuffle", draw.shuffle).expect("a seed");
    if draw.begins_refused {
        features::refuse_calls(1);
        // SAFETY: The block is live, and has no other user.
        unsafe { masu::c::free(masu::c::malloc(1)) };
        features::refuse_calls(0);
    }
    if draw.widened > 0 {
        // The option takes effect in a thread that uses masu.
        // SAFETY: The block is live, and has no other user.
        unsafe { masu::c::free(masu::c::malloc(1)) };
        features::widen(draw.widened);
    }
    let shared: Vec<AnyHeap> =
        (0..draw.shared_heaps).filter_map(|_| AnyHeap::draw(&mut random)).collect();
    let shared = Box::into_raw(shared.into_boxed_slice());
    let context: &Context<'_> = Box::leak(Box::new(Context {
        draw,
        checked: Checked::new(&Masu),
        sizes: Box::leak(Box::new(Sizes::of(&Masu)?)),
        // SAFETY: The heaps were leaked just now, and are freed after its last use.
        heaps: unsafe { &*shared },
        budget: Budget::new(0, draw.live_bytes),
        limit: Box::leak(Box::default()),
        stop: AtomicBool::new(false),
        is_forked: false,
    }));
    let mut walkers = Walker::crew(draw.walkers, &mut random);
    let turns = (draw.operations / (draw.walkers * draw.rounds)).max(1);
    for _ in 0..draw.rounds {
        run_all(&mut walkers, |walker| walker.walk(context, turns))?;
        // No walker runs, so every block can be checked and the statistics compared.
        walkers.iter_mut().for_each(Walker::empty_inbox);
        walkers.iter().try_for_each(|walker| walker.inspect_all(context))?;
        features::check_statistics(walkers.iter().map(Walker::bytes_by_masu).sum())?;
        features::check_classes(walkers.iter().flat_map(Walker::usable_sizes))?;
        context.checked.audit()?;
    }
    context.limit.end();
    // Half the time, shared heaps end with live blocks.
    if random.below(2) == 0 {
        for walker in &mut walkers {
            walker.abandon(context, |of| matches!(of, Owner::Shared(_)))?;
        }
    }
    run_all(&mut walkers, |walker| walker.close(context))?;
    assert!(context.checked.is_empty(), "the oracle lost a block");
    // SAFETY: The heaps were leaked above, and are not used any more.
    drop(unsafe { Box::from_raw(shared) });
    features::check_statistics(0)?;
    let now = masu::c::statistics();
    for (what, counted) in [("large blocks", now.large_blocks), ("heaps", now.heaps)] {
        if counted != 0 {
            return Err(Finding::Statistics { what, counted, expected: 0 });
        }
    }
    context.checked.audit()?;
    features::check_returned()?;
    let digest =
        walkers.iter_mut().fold(0, |sum: u64, walker| sum.rotate_left(9) ^ walker.random.bits());
    Ok((Tally::of(&walkers), digest))
}

/// Runs `work` for all walkers at once, a single walker in this thread; returns the first finding.
pub(crate) fn run_all(
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

/// Printed by the child after its counts.
const DONE: &str = "the seed is done: operations=";

#[test]
#[ignore = "run by the other tests, in a process of its own"]
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

/// The result of a seed.
struct Outcome {
    seed: u64,
    operations: usize,
    /// The output of the child.
    printed: String,
    /// The failure, if any.
    fault: Option<String>,
}

/// Runs a seed in a process of its own.
fn run_seed(seed: u64, operations: usize, limit: Duration) -> Outcome {
    let mut command = alone::again("combinations::one_seed");
    command.env("MASU_SEED", seed.to_string()).env("MASU_OPERATIONS", operations.to_string());
    // A group of its own, so that its children can be killed with it.
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().expect("this program starts");
    let ended = AtomicBool::new(false);
    let id = child.id().cast_signed();
    let (printed, status) = thread::scope(|scope| {
        let watch = scope.spawn(|| watch(id, limit, &ended));
        let printed = read_all(&mut child);
        let status = child.wait().expect("it was started");
        // ORDERING: Relaxed: the flag publishes nothing.
        ended.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        (printed, (status, join(watch)))
    });
    let fault = match status {
        (_, true) => Some(format!("it hangs: not done after {} s", limit.as_secs())),
        (status, _) if status.signal().is_some() => Some(format!("it crashes: {status}")),
        (status, _) if !status.success() => Some(String::from("it fails")),
        _ if !printed.contains(DONE) => Some(String::from("it ends early")),
        _ => None,
    };
    let done = printed.split_once(DONE).and_then(|(_, after)| after.split_whitespace().next());
    let operations = done.and_then(|digits| digits.parse().ok()).unwrap_or(0);
    Outcome { seed, operations, printed, fault }
}

/// The whole output of a child.
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

/// Kills the process group after the time limit; returns whether it did.
fn watch(group: i32, limit: Duration, ended: &AtomicBool) -> bool {
    let start = Instant::now();
    // ORDERING: Relaxed, as at the store.
    while !ended.load(Ordering::Relaxed) {
        let Some(left) = limit.checked_sub(start.elapsed()) else {
            // SAFETY: The call has no condition; the child of this group was not waited for.
            unsafe { libc::kill(-group, libc::SIGKILL) };
            return true;
        };
        thread::park_timeout(left);
    }
    false
}

/// Runs seeds, one on each CPU, until `enough` or a failure; a soak continues after a failure.
fn search(first: u64, operations: usize, enough: impl Fn(usize) -> bool + Sync) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    let limit = if is_soak() { LIMIT_SOAK } else { LIMIT };
    let work = || {
        // ORDERING: Relaxed: the flag publishes nothing.
        while !is_over.load(Ordering::Relaxed) {
            // ORDERING: Relaxed: each number is taken once.
            let place = next.fetch_add(1, Ordering::Relaxed);
            if enough(place) {
                break;
            }
            let outcome = run_seed(first.wrapping_add(place as u64), operations, limit);
            println!("seed {}: {} operations", outcome.seed, outcome.operations);
            if let Some(repeat) = outcome.repeat(operations) {
                println!("{repeat}");
                // ORDERING: As above.
                is_over.fetch_or(!is_soak(), Ordering::Relaxed);
            }
            outcomes.lock().expect("no thread panicked").push(outcome);
        }
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..cpus).for_each(|_| drop(scope.spawn(work))));
    outcomes.into_inner().expect("no thread panicked")
}

impl Outcome {
    /// The failure and how to repeat it, if any.
    fn repeat(&self, operations: usize) -> Option<String> {
        let Outcome { seed, printed, .. } = self;
        let fault = self.fault.as_deref()?;
        Some(format!(
            "seed {seed}: {fault}. To repeat it: MASU_SEED={seed} MASU_OPERATIONS={operations} cargo test \
             -p masu --features profile,guards --test oracle combinations\n{printed}"
        ))
    }
}

/// All failures and how to repeat them, if any.
fn report(outcomes: &[Outcome], operations: usize) -> Option<String> {
    let all: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.repeat(operations)).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// Runs the seeds that the variables select.
fn search_requested() -> (Vec<Outcome>, usize) {
    let usual = if is_soak() { OPERATIONS_SOAK } else { OPERATIONS };
    let operations = number("MASU_OPERATIONS").unwrap_or(usual);
    let start = Instant::now();
    let outcomes = match (number("MASU_SEED"), number("MASU_SEEDS")) {
        (Some(seed), None) => search(seed as u64, operations, |place| place >= 1),
        (_, Some(count)) => search(crate::seed(), operations, |place| place >= count),
        (None, None) if is_soak() => search(crate::seed(), operations, |place| place >= SEEDS_SOAK),
        (None, None) => search(1, operations, |place| place >= SEEDS),
    };
    let sum: usize = outcomes.iter().map(|outcome| outcome.operations).sum();
    let seeds = outcomes.len();
    println!("{seeds} seeds, {sum} operations in {:.1} s", start.elapsed().as_secs_f64());
    (outcomes, operations)
}

/// Whether this build has a planted fault.
const IS_PLANTED: bool = cfg!(any(
    masu_plant = "samples_as_first",
    masu_plant = "lanes_once",
    masu_plant = "runs_to_first"
));

#[test]
fn random_combinations_of_all_features_are_sound() {
    if IS_PLANTED {
        return find_planted();
    }
    let (outcomes, operations) = search_requested();
    if let Some(report) = report(&outcomes, operations) {
        panic!("{report}");
    }
    assert!(outcomes.iter().any(|outcome| outcome.operations > 0), "nothing was done");
}

/// Finds the planted fault.
fn find_planted() {
    let start = Instant::now();
    let first = number("MASU_SEED").unwrap_or(1) as u64;
    let outcomes = search(first, OPERATIONS, |_| start.elapsed() >= SEARCH_PLANTED);
    let (seconds, report) = (start.elapsed().as_secs_f64(), report(&outcomes, OPERATIONS));
    let report = report.unwrap_or_else(|| panic!("nothing was found in {seconds:.1} s"));
    println!("found in {seconds:.1} s and {} seeds: {report}", outcomes.len());
}

#[test]
fn a_seed_repeats_the_run_of_one_walker() {
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
