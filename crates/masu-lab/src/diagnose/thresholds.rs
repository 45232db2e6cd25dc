//! From where on something is a cause: every number that the judgement rests on, each with its reason.
//!
//! Shares are of the run's own time, without what counting added; see [`Clock`](super::facts::Clock).

/// A cause explains at least this share: what gains less is not why a program is slow.
pub(super) const CAUSE_SHARE: f64 = 0.05;

/// From this share on a cause that was counted is certain, and below it only likely: prices vary by half.
pub(super) const CERTAIN_SHARE: f64 = 0.1;

/// Below this share of all costs of memory together, memory is not the problem.
pub(super) const MEMORY_IS_FINE_SHARE: f64 = 0.05;

/// First touches of memory are a cause from this share on: half of it is what huge pages or a buffer that is used
/// again may save.
pub(super) const FIRST_TOUCH_SHARE: f64 = 0.1;

/// A setting of the malloc is a remedy only where the malloc asked for this share of the memory that was touched.
pub(super) const REACHED_SHARE: f64 = 0.5;

/// Below this share of the memory that was touched, it is the program's own: none of six real programs like this whose
/// samples hardly met the malloc gained 2 % or more by another one.
pub(super) const OWN_REACH: f64 = 0.25;

/// What a program and its libraries take before it does anything: with less, the share says nothing.
pub(super) const OWN_BYTES: u64 = 8 << 20;

/// Bytes of a huge page: a heap that is smaller has none.
pub(super) const HUGE_PAGE: u64 = 2 << 20;

/// A gain below this is not worth a change.
pub(super) const LITTLE_SHARE: f64 = 0.03;

/// Memory is not the problem, for certain, where runs beside other mallocs would have shown a gain of this share.
pub(super) const GAIN_DENIED: f64 = 0.08;

/// A run with less CPU time than this, in seconds, is over before anything can be a cause in it.
pub(super) const CPU_MIN_S: f64 = 0.02;

/// Fewer looks than this (at least 10 ms apart) say nothing about phases and waits.
pub(super) const LOOKS_MIN: u64 = 10;

/// From so many looks on, the share of them that met only stopped threads tells what stops took, to a few per cent.
pub(super) const LOOKS_MIN_FOR_STOPS: u64 = 50;

/// Where stops, at the price they have on this machine, are this share of the time in the kernel, what is left
/// of that time begins to be doubted: it may be what they took longer than their price.
pub(super) const STOPS_SHARE: f64 = 0.1;

/// From this share on it is mostly that.
pub(super) const STOPS_SHARE_MUCH: f64 = 0.4;

/// A machine of which others, or the hypervisor, take this share of the CPUs is busy.
pub(super) const BUSY_SHARE: f64 = 0.25;

/// A program that waits for a CPU for this share of the time it wants one, while others have them, says little of itself.
pub(super) const STARVED_SHARE: f64 = 0.5;

/// A storm gives memory back and asks for it again at least so often: a program that starts, grows and ends
/// does so a few dozen times.
pub(super) const STORM_PAIRS: u64 = 500;

/// A storm of calls returns less than this at a time, on average. Who returns more pays for the pages and
/// hardly for the calls, and is a fault storm.
pub(super) const STORM_BYTES_A_RETURN: u64 = 4 << 20;

/// Fewer page faults of memory that had been there before are the noise of counting first touches.
pub(super) const REFAULTS: u64 = 5_000;

/// Fewer waits for locks than this are the start and the end of threads.
pub(super) const LOCK_WAITS: u64 = 500;

/// Waits for a lock that cost less than [`CAUSE_SHARE`] are a cause where this much of the time that threads worked
/// or waited was waiting: what is held for long costs more than its price.
pub(super) const LOCK_WAITED_SHARE: f64 = 0.1;

/// Waits for a lock, at the price of going to sleep and being woken, must cost at least this share too: a
/// lock that is held for long and waited for seldom is no matter of locks.
pub(super) const LOCK_COST_SHARE: f64 = 0.02;

/// One lock has at least this share of the waits that are not the malloc's.
pub(super) const ONE_LOCK_SHARE: f64 = 0.5;

/// Threads beyond the most that lived at once: a pool starts none, or few in its place.
pub(super) const CHURNED_THREADS: u64 = 200;

/// Pages that a thread touches again of the stack and the arena of one that has ended: two or three, and some more
/// where it does something. They are part of what starting it costs.
pub(super) const PAGES_A_THREAD: u64 = 8;

/// Small writes that a buffer would have saved; fewer take less than a few hundredths of a second anywhere.
pub(super) const SMALL_WRITES: u64 = 10_000;

/// One thread worked alone for this share of the run, while it had others and a CPU was free.
pub(super) const SERIAL_SHARE: f64 = 0.25;

/// Several threads worked at once for this share of the run at least: else it is a program of one thread.
pub(super) const PARALLEL_SHARE: f64 = 0.03;

/// Beside a serial phase, the shares of waits for a lock are held against the CPU time of the parallel part. Less of
/// it than this, in seconds, is met by too few looks to be judged by itself.
pub(super) const PARALLEL_CPU_MIN_S: f64 = 0.1;

/// A thread that did this share of what all but the busiest did is one of the workers.
pub(super) const WORKER_SHARE: f64 = 0.05;

/// Workers did this share of all that was done at least: else they help one thread, as a collector's do.
pub(super) const WORKERS_SHARE: f64 = 0.05;

/// A thread that ran for this share of the time in which several did was one of them all along.
pub(super) const TOOK_PART_SHARE: f64 = 0.5;

/// The busiest worker did so many times the mean of its kind.
pub(super) const UNEVEN_RATIO: f64 = 1.5;

/// Resident memory in huge pages must be this much before its waste matters.
pub(super) const HUGE_BYTES: u64 = 64 << 20;

/// Of memory in huge pages this share was never written to.
pub(super) const HUGE_UNUSED_SHARE: f64 = 0.5;

/// Memory that a malloc keeps must be this much before it matters.
pub(super) const RETAINED_BYTES: u64 = 32 << 20;

/// Of the heap this share is free, and stays resident.
pub(super) const RETAINED_SHARE: f64 = 0.5;

/// Of resident memory so much is swapped out: less may be what nobody needs.
pub(super) const SWAPPED_SHARE: f64 = 0.05;

/// Page faults that read from disk, a second: from here on a disk's worth of time goes into them.
pub(super) const MAJOR_FAULTS_A_SECOND: f64 = 100.0;

/// Requests for memory a second of CPU time: from here on a pair of malloc and free at 20 ns takes a tenth.
pub(super) const REQUESTS_A_SECOND: f64 = 5e6;

/// Of the run, the malloc takes this share by samples: from here on one that takes half as long saves more than
/// [`CAUSE_SHARE`].
pub(super) const MALLOC_SHARE: f64 = 0.15;

/// Of the blocks that threads fetched, this share was freed by other threads.
pub(super) const REMOTE_SHARE: f64 = 0.25;

/// Small mappings of code: from here on calls between them miss the instruction TLB of common CPUs, and no
/// usual program has as many libraries.
pub(super) const SCATTERED_MAPPINGS: usize = 400;

/// A program that is measured through another does less than this share of the work itself.
pub(super) const WRAPPER_OWN_SHARE: f64 = 0.2;

/// CPU time over wall-clock time: from here on a program computes.
pub(super) const COMPUTES: f64 = 0.8;

/// CPU time over wall-clock time: up to here a program mostly waits.
pub(super) const WAITS: f64 = 0.3;

/// Of the time that was looked at, a program that waits has nothing to do for this share at least.
pub(super) const IDLE_SHARE: f64 = 0.5;

/// User time over all CPU time from which on computing is the program's own.
pub(super) const USER_SHARE: f64 = 0.8;

/// Processes that a program starts: fewer are its start and its end.
pub(super) const STARTED_PROCESSES: u64 = 200;

/// Times that threads gave up their turn: fewer are what locks do before they sleep.
pub(super) const YIELDS: u64 = 50_000;

/// The same where nearly all calls are of that kind, of which only samples were counted.
pub(super) const YIELDS_SAMPLED: u64 = 5_000;

/// Of a program's own code, waiting in OpenMP's library is a cause from this share on.
pub(super) const SPINNING_SHARE: f64 = 0.1;

/// System calls that nothing else explains are a cause from this share on.
pub(super) const SYSTEM_SHARE: f64 = 0.4;

/// Memory that grew by less than this is no leak that anybody would notice.
pub(super) const GROWN_BYTES: u64 = 16 << 20;

/// On a busy machine it is this share of that at least.
pub(super) const GROWN_LEAST: f64 = 0.25;

/// Of what is resident, so much came while it was looked at.
pub(super) const GROWN_SHARE: f64 = 0.1;
