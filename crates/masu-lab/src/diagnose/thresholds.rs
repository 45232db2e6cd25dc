//! The numbers that the judgement rests on, each with its reason: they say from where on something is a cause.
//!
//! Shares are of the run's own time, without the time that counting added; see [`Clock`](super::facts::Clock).

/// A cause explains at least this share: a smaller gain is not the reason why a program is slow.
pub(super) const CAUSE_SHARE: f64 = 0.05;

/// A counted cause is certain from this share on, and below it only likely: prices vary by half.
pub(super) const CERTAIN_SHARE: f64 = 0.1;

/// Below this share of all costs of memory together, memory is not the problem.
pub(super) const MEMORY_IS_FINE_SHARE: f64 = 0.05;

/// A finding says why something takes time, or gains, if it explains this share of it.
pub(super) const EXPLAINS: f64 = 0.5;

/// First touches of memory are a cause from this share on: huge pages or a buffer that is used again may save half of
/// it.
pub(super) const FIRST_TOUCH_SHARE: f64 = 0.1;

/// A setting of the malloc is a remedy only if the malloc requested this share of the touched memory.
pub(super) const REACHED_SHARE: f64 = 0.5;

/// If the malloc requested less than this share of the touched memory, the memory is the program's own: of six real
/// programs like this, whose samples hardly met the malloc, none gained 2 % or more with another one.
pub(super) const OWN_REACH: f64 = 0.25;

/// The memory of a program and its libraries before it does anything: if the peak is lower, the share says nothing.
pub(super) const OWN_BYTES: u64 = 8 << 20;

/// Bytes of a huge page: a smaller heap has none.
pub(super) const HUGE_PAGE: u64 = 2 << 20;

/// A program with a small heap has nothing to gain from another malloc if system calls take this share of its run.
pub(super) const KERNEL_SHARE: f64 = 0.5;

/// A gain below this is not worth a change.
pub(super) const LITTLE_SHARE: f64 = 0.03;

/// Memory is certainly not the problem if runs beside other mallocs would have shown a gain of this share.
pub(super) const GAIN_DENIED: f64 = 0.08;

/// A run with less CPU time than this, in seconds, is over before anything can be a cause in it.
pub(super) const CPU_MIN_S: f64 = 0.02;

/// A run that took this long, in seconds, was not over too soon, however little it did.
pub(super) const LONG_S: f64 = 1.0;

/// Fewer looks than this (at least 10 ms apart) say nothing about phases and waits.
pub(super) const LOOKS_MIN: u64 = 10;

/// From this many looks on, the share of looks that met only stopped threads shows the time of stops, to a few per
/// cent.
pub(super) const LOOKS_MIN_FOR_STOPS: u64 = 50;

/// If stops at their price on this machine are this share of the time in the kernel, the rest of that time becomes
/// doubtful: it may be time that stops took beyond their price.
pub(super) const STOPS_SHARE: f64 = 0.1;

/// From this share on, the rest is mostly time of stops.
pub(super) const STOPS_SHARE_MUCH: f64 = 0.4;

/// A machine is busy if others, or the hypervisor, take this share of the CPUs.
pub(super) const BUSY_SHARE: f64 = 0.25;

/// A program starves if it waits for a CPU, while others have them, for this share of the time it wants one. Its run
/// then says little about it.
pub(super) const STARVED_SHARE: f64 = 0.5;

/// A storm gives memory back and requests it again at least this often: a program that starts, grows and ends does so a
/// few dozen times.
pub(super) const STORM_PAIRS: u64 = 500;

/// A storm of calls returns less than this at a time, on average. A program that returns more pays for the pages and
/// hardly for the calls, and has a fault storm.
pub(super) const STORM_BYTES_A_RETURN: u64 = 4 << 20;

/// Fewer page faults of memory that had been there before are the noise of counting first touches.
pub(super) const REFAULTS: u64 = 5_000;

/// Fewer waits for locks than this are the start and the end of threads.
pub(super) const LOCK_WAITS: u64 = 500;

/// Waits for a lock that cost less than [`CAUSE_SHARE`] are a cause if they took this share of the time that threads
/// worked or waited: a lock that is held for long costs more than its price.
pub(super) const LOCK_WAITED_SHARE: f64 = 0.1;

/// Waits for a lock, at the price of going to sleep and being woken, must also cost at least this share: a lock that is
/// held for long and rarely waited for is no problem of locks.
pub(super) const LOCK_COST_SHARE: f64 = 0.02;

/// The least share of the waits, without the malloc's, that one lock has.
pub(super) const ONE_LOCK_SHARE: f64 = 0.5;

/// Started threads beyond the most that lived at once: a pool starts none, or few as replacements.
pub(super) const CHURNED_THREADS: u64 = 200;

/// Pages that a thread touches again in the stack and the arena of a thread that has ended: two or three, and more if
/// it works. They are part of the cost of starting it.
pub(super) const PAGES_A_THREAD: u64 = 8;

/// Small writes that a buffer would save; fewer take less than a few hundredths of a second on any machine.
pub(super) const SMALL_WRITES: u64 = 10_000;

/// One thread worked alone for this share of the run, while it had others and a CPU was free.
pub(super) const SERIAL_SHARE: f64 = 0.25;

/// Several threads worked at once for at least this share of the run; otherwise it is a program of one thread.
pub(super) const PARALLEL_SHARE: f64 = 0.03;

/// Beside a serial phase, waits for a lock are compared with the CPU time of the parallel part. If that part is shorter
/// than this, in seconds, too few looks meet it to judge it by itself.
pub(super) const PARALLEL_CPU_MIN_S: f64 = 0.1;

/// A worker is a thread that did this share of the work of all threads but the busiest.
pub(super) const WORKER_SHARE: f64 = 0.05;

/// Workers did at least this share of all work; otherwise they help one thread, as a collector's threads do.
pub(super) const WORKERS_SHARE: f64 = 0.05;

/// A thread took part in the parallel work if it ran for this share of the time in which several threads did.
pub(super) const TOOK_PART_SHARE: f64 = 0.5;

/// The work of an uneven worker, as a multiple of the mean of the others.
pub(super) const UNEVEN_RATIO: f64 = 1.5;

/// Memory in huge pages must be at least this much before its waste matters.
pub(super) const HUGE_BYTES: u64 = 64 << 20;

/// The share of memory in huge pages that was never written to.
pub(super) const HUGE_UNUSED_SHARE: f64 = 0.5;

/// Memory that a malloc keeps must be this much before it matters.
pub(super) const RETAINED_BYTES: u64 = 32 << 20;

/// The share of the heap that is free and stays resident.
pub(super) const RETAINED_SHARE: f64 = 0.5;

/// The share of resident memory that is swapped out; less may be memory that nobody needs.
pub(super) const SWAPPED_SHARE: f64 = 0.05;

/// Page faults a second that read from disk: from here on they take a large part of a disk's time.
pub(super) const MAJOR_FAULTS_A_SECOND: f64 = 100.0;

/// Requests for memory a second of CPU time: from here on, pairs of malloc and free at 20 ns take a tenth.
pub(super) const REQUESTS_A_SECOND: f64 = 5e6;

/// The malloc's share of the run, by samples: from here on, a malloc that takes half as long saves more than
/// [`CAUSE_SHARE`].
pub(super) const MALLOC_SHARE: f64 = 0.15;

/// The share of the blocks fetched by threads that other threads freed.
pub(super) const REMOTE_SHARE: f64 = 0.25;

/// Small mappings of code: from here on, calls between them miss the instruction TLB of common CPUs, and no usual
/// program has as many libraries.
pub(super) const SCATTERED_MAPPINGS: usize = 400;

/// A wrapper does less than this share of the work itself.
pub(super) const WRAPPER_OWN_SHARE: f64 = 0.2;

/// A wrapper only starts a program that takes this share of all CPU time; else it starts several.
pub(super) const WRAPPED_SHARE: f64 = 0.9;

/// CPU time over wall-clock time: from here on a program computes.
pub(super) const COMPUTES: f64 = 0.8;

/// CPU time over wall-clock time: up to here a program mostly waits.
pub(super) const WAITS: f64 = 0.3;

/// A waiting program has nothing to do for at least this share of the watched time.
pub(super) const IDLE_SHARE: f64 = 0.5;

/// User time over all CPU time: from here on, computing is the program's own.
pub(super) const USER_SHARE: f64 = 0.8;

/// Processes that a program starts; fewer belong to its start and its end.
pub(super) const STARTED_PROCESSES: u64 = 200;

/// Yields of threads; locks make fewer before they sleep.
pub(super) const YIELDS: u64 = 50_000;

/// The same if nearly all calls are yields and only samples of calls were counted.
pub(super) const YIELDS_SAMPLED: u64 = 5_000;

/// Waiting in OpenMP's library is a cause from this share of a program's own code on.
pub(super) const SPINNING_SHARE: f64 = 0.1;

/// System calls that nothing else explains are a cause from this share on.
pub(super) const SYSTEM_SHARE: f64 = 0.4;

/// Memory that grew by less than this is no leak that anybody would notice.
pub(super) const GROWN_BYTES: u64 = 16 << 20;

/// On a busy machine the limit is at least this share of it.
pub(super) const GROWN_LEAST: f64 = 0.25;

/// The least share of resident memory that came while the program was watched.
pub(super) const GROWN_SHARE: f64 = 0.1;
