//! The measurement of each price: the work of a batch, and the number of repetitions.
//!
//! It relies on the kernel door for the services and on [`sample`] for the number of batches. A batch takes between a
//! tenth of a millisecond and a few milliseconds: long against the clock, short against a time slice.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{BATCHES, Service, sample};
use crate::kernel;
use crate::kernel::memory::{Mapping, Pages};
use crate::kernel::prices::{self as door, Clock};
use crate::kernel::terminal::terminal;

const HUGE_PAGE: usize = 2 << 20;

/// The number of times that a batch has the service done, and the nanoseconds that each batch took.
pub(super) fn batches(service: Service) -> io::Result<(u32, Vec<f64>)> {
    let (batch, took) = match service {
        Service::SystemCall => (2_000, worked(2_000, system_call)?),
        Service::PageFault => (256, sample(|| Ok(faults_and_returns(256)?.0))?),
        Service::PageReturn => (256, sample(|| Ok(faults_and_returns(256)?.1))?),
        Service::HugePageFault => (4, sample(|| huge_faults(4))?),
        Service::BreakPair => (200, break_pairs(200)?),
        Service::MapPair => (200, worked(200, || Mapping::new(256 << 10).map(drop))?),
        Service::Thread => (10, repeated(10, start_and_join)?),
        Service::ContextSwitch => (400, sample(|| switches(400))?),
        Service::FutexWake => (50, sample(|| wakes(50))?),
        Service::SmallWrite => (1_000, small_writes(1_000, io::pipe()?, LINE.len())?),
        // A terminal shows the end of a line as two bytes.
        Service::TerminalWrite => (100, small_writes(100, terminal()?, LINE.len() + 1)?),
        Service::CountedCall => (400, counting_stops(400, Clock::Wall)?),
        Service::CountedCallCpu => (400, counting_stops(400, Clock::Cpu)?),
    };
    Ok((batch, took))
}

fn repeated(times: u32, mut service: impl FnMut() -> io::Result<()>) -> io::Result<Vec<f64>> {
    sample(|| {
        let began = Instant::now();
        for _ in 0..times {
            service()?;
        }
        Ok(nanoseconds(began.elapsed()))
    })
}

/// [`repeated`], for a service that never sleeps: by this thread's CPU time, so that other programs on the machine are
/// no part of its price.
fn worked(times: u32, mut service: impl FnMut() -> io::Result<()>) -> io::Result<Vec<f64>> {
    sample(|| {
        let began = Work::begin();
        for _ in 0..times {
            service()?;
        }
        Ok(began.nanoseconds())
    })
}

/// CPU time of this thread from some time on.
struct Work(u64);

impl Work {
    fn begin() -> Work {
        Work(door::thread_cpu_nanoseconds())
    }

    fn nanoseconds(&self) -> f64 {
        nanoseconds(Duration::from_nanos(door::thread_cpu_nanoseconds().saturating_sub(self.0)))
    }
}

fn system_call() -> io::Result<()> {
    door::system_call();
    Ok(())
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

/// Touches this many OS pages for the first time and gives them back; returns the nanoseconds of each.
fn faults_and_returns(count: usize) -> io::Result<(f64, f64)> {
    let page = usize::try_from(kernel::os_page_bytes()).map_err(io::Error::other)?;
    let memory = Mapping::new(count * page)?;
    // A kernel without huge pages refuses, and has small ones anyway.
    let _ = memory.ask_for(Pages::Small);
    let began = Work::begin();
    for index in 0..count {
        memory.touch(index * page);
    }
    let faults = began.nanoseconds();
    let began = Work::begin();
    drop(memory);
    Ok((faults, began.nanoseconds()))
}

const LINE: &[u8; 16] = b"xxxxxxxxxxxxxxx\n";

/// Writes a line this many times to one end of something that is emptied from the other end between batches, where a
/// line has `shown_bytes`; the writes of a batch must fit.
fn small_writes(
    count: u32,
    (mut shown, mut written): (impl Read, impl Write),
    shown_bytes: usize,
) -> io::Result<Vec<f64>> {
    let mut read = vec![0; shown_bytes * count as usize];
    sample(|| {
        let began = Instant::now();
        for _ in 0..count {
            written.write_all(LINE)?;
        }
        let took = nanoseconds(began.elapsed());
        shown.read_exact(&mut read)?;
        Ok(took)
    })
}

/// The extra time of a program that stops this often for a tracer, as when calls are counted.
fn counting_stops(count: u32, clock: Clock) -> io::Result<Vec<f64>> {
    let batches = u32::try_from(BATCHES + 1).map_err(io::Error::other)?;
    let took = door::counting_stops_in_child(batches, count, clock)?;
    // The calls, of which each has two stops, are some that the program would make anyway.
    let alone = repeated(count / 2, system_call)?;
    let alone = alone.iter().copied().fold(f64::INFINITY, f64::min);
    let more = |took: u64| (nanoseconds(Duration::from_nanos(took)) - alone).max(0.0);
    Ok(took.into_iter().skip(1).map(more).collect())
}

/// Touches this many huge pages for the first time, and checks whether they were huge: the second OS page of a huge
/// page costs no fault.
fn huge_faults(count: usize) -> io::Result<f64> {
    let page = usize::try_from(kernel::os_page_bytes()).map_err(io::Error::other)?;
    let memory = Mapping::new((count + 1) * HUGE_PAGE)?;
    memory.ask_for(Pages::Huge)?;
    let first = memory.aligned_offset(HUGE_PAGE);
    let began = Work::begin();
    for index in 0..count {
        memory.touch(first + index * HUGE_PAGE);
    }
    let took = began.nanoseconds();
    let before = door::faults_of_thread();
    for index in 0..count {
        memory.touch(first + index * HUGE_PAGE + page);
    }
    if door::faults_of_thread() > before {
        return Err(io::Error::other("the kernel gave small pages where huge ones were asked for"));
    }
    Ok(took)
}

fn break_pairs(pairs: u32) -> io::Result<Vec<f64>> {
    let batches = u32::try_from(BATCHES + 1).map_err(io::Error::other)?;
    let took = door::move_break_in_child(batches, pairs)?;
    // As in `sample`, the first does not count.
    Ok(took.into_iter().skip(1).map(|took| nanoseconds(Duration::from_nanos(took))).collect())
}

fn start_and_join() -> io::Result<()> {
    let thread = thread::Builder::new().spawn(|| ())?;
    thread.join().map_err(|_| io::Error::other("a thread that does nothing failed"))
}

/// The time that a thread sleeps if no thread wakes it: only if the other thread failed.
const LOST: Duration = Duration::from_millis(100);

/// Makes this many switches between two threads on one CPU: a word says whose turn it is, and each thread gives the
/// turn to the other and sleeps until it has the turn again.
fn switches(count: u32) -> io::Result<f64> {
    let cpu = door::current_cpu();
    let turn = AtomicU32::new(0);
    let play = |own: u32, turns: u32| -> io::Result<f64> {
        let pinned = door::stay_on(cpu);
        let mut began = Instant::now();
        for round in 0..turns {
            // ORDERING: Acquire and Release hand the turn over; nothing else is shared.
            while turn.load(Ordering::Acquire) != own {
                door::sleep_while(&turn, 1 - own, LOST);
            }
            // In the first round the other thread may still be starting.
            if round == 1 {
                began = Instant::now();
            }
            // ORDERING: Release, as above.
            turn.store(1 - own, Ordering::Release);
            door::wake_one(&turn);
        }
        pinned.map(|()| nanoseconds(began.elapsed()))
    };
    // The time runs from the second turn to the last, and there are two switches in each.
    let turns = count / 2 + 2;
    thread::scope(|scope| {
        let other = scope.spawn(|| play(1, turns));
        let first = scope.spawn(|| play(0, turns));
        let failed = |_| io::Error::other("a thread that hands over a turn failed");
        other.join().map_err(failed)??;
        first.join().map_err(failed)?
    })
}

/// The time inside this many wakes of a sleeping thread, on another CPU where there is one: a lock's holder and its
/// waiters run side by side, and a wake on the same CPU takes a fifth of the time. The time until the woken thread runs
/// is not included, unless the thread runs in the waker's place.
fn wakes(count: u32) -> io::Result<f64> {
    const ASLEEP: u32 = 0;
    const DONE: u32 = 1;
    let word = AtomicU32::new(ASLEEP);
    let cpu = door::current_cpu();
    let inside = thread::scope(|scope| {
        scope.spawn(|| {
            // If the thread may not stay there, it runs where the kernel puts it.
            let _ = door::stay_on(door::another_cpu(cpu).unwrap_or(cpu));
            // ORDERING: Relaxed: the word guards nothing.
            while word.load(Ordering::Relaxed) == ASLEEP {
                door::sleep_while(&word, ASLEEP, LOST);
            }
        });
        let waker = scope.spawn(|| {
            let _ = door::stay_on(cpu);
            let (mut woken, mut inside) = (0, Duration::ZERO);
            while woken < count {
                let began = Instant::now();
                if door::wake_one(&word) {
                    inside += began.elapsed();
                    woken += 1;
                } else {
                    // The other thread does not sleep yet, and may want this CPU for it.
                    thread::yield_now();
                }
            }
            // ORDERING: Relaxed, as above: the thread sees it when it is woken, or when it looks next.
            word.store(DONE, Ordering::Relaxed);
            door::wake_one(&word);
            inside
        });
        waker.join().map_err(|_| io::Error::other("a thread that wakes another failed"))
    })?;
    Ok(nanoseconds(inside))
}
