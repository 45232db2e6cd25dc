//! Samples of threads' positions, by the kernel's CPU clock: an event for each thread and CPU, a ring of samples for
//! each CPU.
//!
//! Relies on perf events, which a sandbox or `perf_event_paranoid` may forbid (perf_event_open(2)); hardware counters
//! are not needed. Only a program's own code is sampled. The kernel writes a ring while it is read, and a record may
//! lie across its end.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::memory::Mapping;
use super::{checked, os_page_bytes};

/// Samples a second of CPU time, of each thread: a prime number, so that nothing runs in step with it.
const RATE: u64 = 1_999;

/// The number of return addresses of a sample that are kept.
const DEPTH: u16 = 24;

/// The most events that are opened: as many threads as fit, times CPUs.
const EVENTS_MAX: usize = 768;

/// The position of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    pub process: libc::pid_t,
    /// Addresses of code, the innermost first; behind the first one, callers as frame pointers tell them.
    pub stack: &'a [u64],
}

/// Threads that are sampled, with all threads that they start.
#[derive(Debug)]
pub struct Sampler {
    rings: Vec<Ring>,
    /// Kept open, because an event ends with its descriptor.
    events: Vec<OwnedFd>,
    /// Threads that were to be sampled and are, and those for which there was no room.
    pub(crate) threads: usize,
    pub left_out: usize,
    pub lost: u64,
    record: Vec<u8>,
    switch: Switch,
}

impl Sampler {
    /// Begins to sample `threads`, and the threads that they start from now on, on all CPUs; none where all have ended.
    /// `switch` turns the sampler off and on. An error where perf events are not permitted or there are none.
    pub fn start(threads: &[libc::pid_t], switch: &Switch) -> io::Result<Option<Sampler>> {
        let cpus = configured_cpus();
        let fitting = (EVENTS_MAX / cpus).max(1);
        let mut sampler = Sampler {
            rings: Vec::new(),
            events: Vec::new(),
            threads: 0,
            left_out: threads.len().saturating_sub(fitting),
            lost: 0,
            record: Vec::new(),
            switch: switch.clone(),
        };
        let mut ring_of = vec![None; cpus];
        for &thread in threads.iter().take(fitting) {
            match sampler.add(thread, &mut ring_of) {
                Ok(()) => sampler.threads += 1,
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) if sampler.threads == 0 => return Err(error),
                // There is most likely no room for more descriptors.
                Err(_) => sampler.left_out += 1,
            }
        }
        let rings = sampler.rings.iter().map(|ring| &ring.event);
        switch.takes(rings.chain(&sampler.events).map(AsRawFd::as_raw_fd).collect());
        Ok((sampler.threads > 0).then_some(sampler))
    }

    fn add(&mut self, thread: libc::pid_t, ring_of: &mut [Option<usize>]) -> io::Result<()> {
        for (cpu, ring) in ring_of.iter_mut().enumerate() {
            let number = libc::c_int::try_from(cpu).map_err(io::Error::other)?;
            let event = match open(&Attributes::sampling(), thread, number) {
                Ok(event) => event,
                // The CPU is off.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                Err(error) => return Err(error),
            };
            match *ring {
                None => {
                    *ring = Some(self.rings.len());
                    self.rings.push(Ring::of(event)?);
                }
                Some(index) => {
                    self.rings[index].takes(&event)?;
                    self.events.push(event);
                }
            }
        }
        Ok(())
    }

    /// Passes on every sample that has come since the last call.
    pub fn read(&mut self, take: &mut dyn FnMut(Sample<'_>)) {
        let Sampler { rings, record, lost, .. } = self;
        let mut stack = Vec::new();
        for ring in rings {
            while ring.next(record) {
                match Record::of(record, &mut stack) {
                    Record::Sample(process) => take(Sample { process, stack: &stack }),
                    Record::Lost(samples) => *lost += samples,
                    Record::Other => {}
                }
            }
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.switch.takes(Vec::new());
    }
}

/// Turns a sampler off and on from another thread. Each time that a sampled thread is stopped or goes on, the kernel
/// sets its timer again, which takes several times as long as the stop.
#[derive(Debug, Clone, Default)]
pub struct Switch(Arc<Mutex<Switched>>);

#[derive(Debug, Default)]
struct Switched {
    is_off: bool,
    /// Events of the sampler, which are open for as long as they stand here.
    events: Vec<RawFd>,
}

impl Switch {
    pub(crate) fn turn(&self, is_on: bool) {
        let mut switched = self.lock();
        if switched.is_off == is_on {
            switched.turn(is_on);
        }
    }

    fn takes(&self, events: Vec<RawFd>) {
        let mut switched = self.lock();
        switched.events = events;
        if switched.is_off {
            switched.turn(false);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Switched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Switched {
    fn turn(&mut self, is_on: bool) {
        /// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
        const ENABLE: u32 = 0x2400;
        const DISABLE: u32 = 0x2401;
        self.is_off = !is_on;
        for event in &self.events {
            // SAFETY: The descriptor is open, see `events`; the requests take a number.
            unsafe { libc::ioctl(*event, if is_on { ENABLE } else { DISABLE } as _, 0) };
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Record {
    /// A sample of this process; its stack is kept apart.
    Sample(libc::pid_t),
    /// This many samples found no room.
    Lost(u64),
    Other,
}

const HEAD: usize = 8;

impl Record {
    /// Reads a record whole, head included.
    fn of(record: &[u8], stack: &mut Vec<u64>) -> Record {
        const LOST: u32 = 2;
        const SAMPLE: u32 = 9;
        /// From this value on, numbers are no addresses, but say whose the next addresses are (`PERF_CONTEXT_MAX`).
        const CONTEXT: u64 = -4095_i64 as u64;
        let (words, _) = record[HEAD..].as_chunks::<8>();
        let word = |place: usize| words.get(place).map(|bytes| u64::from_ne_bytes(*bytes));
        let kind = record.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        match (kind, word(0), word(1), word(2)) {
            // The address, the process with its thread, the length of the stack, the stack.
            (SAMPLE, Some(address), Some(whose), Some(length)) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let callers = words.iter().skip(3).take(length).map(|it| u64::from_ne_bytes(*it));
                let callers = callers.filter(|caller| *caller < CONTEXT);
                stack.clear();
                stack.push(address);
                // The first of the stack is the address itself.
                stack.extend(callers.skip(1));
                let [a, b, c, d, ..] = whose.to_ne_bytes();
                Record::Sample(libc::pid_t::from_ne_bytes([a, b, c, d]))
            }
            (LOST, _, Some(samples), _) => Record::Lost(samples),
            _ => Record::Other,
        }
    }
}

/// The attributes of an event, as its fifth version has them (`PERF_ATTR_SIZE_VER5`, Linux 4.1 and newer).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attributes {
    kind: u32,
    bytes: u32,
    config: u64,
    rate: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config_1: u64,
    config_2: u64,
    branches: u64,
    registers: u64,
    stack_bytes: u32,
    clock: i32,
    registers_at_interrupt: u64,
    watermark: u32,
    depth: u16,
    reserved: u16,
}

impl Attributes {
    const DISABLED: u64 = 1;
    const INHERIT: u64 = 1 << 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    const BY_RATE: u64 = 1 << 10;
    const EXCLUDE_CALLERS_IN_KERNEL: u64 = 1 << 21;

    /// Counts events of a kind (`PERF_TYPE_…`), the first one of it, in a program's own code; the event does not start
    /// by itself.
    pub(super) fn counting(kind: u32) -> Attributes {
        Attributes {
            kind,
            bytes: size_of::<Attributes>() as u32,
            flags: Attributes::DISABLED
                | Attributes::EXCLUDE_KERNEL
                | Attributes::EXCLUDE_HYPERVISOR,
            ..Attributes::default()
        }
    }

    /// Counts the times that a tracepoint is met, the kernel's own code included; starts at once.
    pub(super) fn tracing(tracepoint: u64) -> Attributes {
        const TRACEPOINT: u32 = 2;
        Attributes { config: tracepoint, flags: 0, ..Attributes::counting(TRACEPOINT) }
    }

    /// Samples addresses and callers by the CPU clock, also of the threads that a thread starts; starts at once.
    fn sampling() -> Attributes {
        const SOFTWARE: u32 = 1;
        const ADDRESS: u64 = 1;
        const WHOSE: u64 = 1 << 1;
        const CALLERS: u64 = 1 << 5;
        Attributes {
            rate: RATE,
            sample: ADDRESS | WHOSE | CALLERS,
            flags: Attributes::INHERIT
                | Attributes::EXCLUDE_KERNEL
                | Attributes::EXCLUDE_HYPERVISOR
                | Attributes::BY_RATE
                | Attributes::EXCLUDE_CALLERS_IN_KERNEL,
            depth: DEPTH,
            ..Attributes::counting(SOFTWARE)
        }
    }
}

/// Opens an event of `thread` (zero: the calling one) on `cpu` (−1: on any).
pub(super) fn open(
    attributes: &Attributes,
    thread: libc::pid_t,
    cpu: libc::c_int,
) -> io::Result<OwnedFd> {
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let of_no_group = -1;
    // SAFETY: The attributes are as long as they say and live through the call; all else are numbers.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            thread,
            cpu,
            of_no_group,
            CLOSE_ON_EXEC,
        )
    };
    let descriptor = checked(libc::c_int::try_from(descriptor).unwrap_or(-1))?;
    // SAFETY: The kernel just made this descriptor for us and no one else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// CPUs that the machine may have, those that are off included.
pub(super) fn configured_cpus() -> usize {
    // SAFETY: The call takes a number and returns one.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(cpus).unwrap_or(1).max(1)
}

#[derive(Debug)]
struct Ring {
    memory: Mapping,
    /// Bytes of the page in front.
    front: usize,
    /// Bytes of records, a power of two.
    bytes: usize,
    event: OwnedFd,
}

impl Ring {
    /// The places in `perf_event_mmap_page` of the kernel's write position and of the read position.
    const HEAD_AT: usize = 1024;
    const TAIL_AT: usize = 1032;

    /// Less than half of the bytes that a user may have for this on each CPU (`perf_event_mlock_kb`, 516 KiB).
    const BYTES: usize = 128 << 10;

    fn of(event: OwnedFd) -> io::Result<Ring> {
        let front = usize::try_from(os_page_bytes()).map_err(io::Error::other)?;
        let bytes = Ring::BYTES.max(front);
        let memory = Mapping::with(front + bytes, libc::MAP_SHARED, event.as_raw_fd())?;
        Ok(Ring { memory, front, bytes, event })
    }

    /// Sends the samples of another event of the same CPU to this ring.
    fn takes(&self, other: &OwnedFd) -> io::Result<()> {
        /// `PERF_EVENT_IOC_SET_OUTPUT`.
        const SET_OUTPUT: u32 = 0x2405;
        // SAFETY: The request takes a descriptor, a number.
        let result =
            unsafe { libc::ioctl(other.as_raw_fd(), SET_OUTPUT as _, self.event.as_raw_fd()) };
        checked(result).map(drop)
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: Both counters lie in the first page, aligned, for as long as the ring is mapped; the kernel
        // writes to one of them at any time, so it is read as an atomic.
        unsafe { AtomicU64::from_ptr(self.memory.start().as_ptr().add(at).cast()) }
    }

    fn next(&mut self, record: &mut Vec<u8>) -> bool {
        // ORDERING: Acquire pairs with the kernel's barrier between writing records and saying so.
        let head = self.counter(Ring::HEAD_AT).load(Ordering::Acquire);
        // ORDERING: Relaxed: only this process writes it.
        let tail = self.counter(Ring::TAIL_AT).load(Ordering::Relaxed);
        if head.wrapping_sub(tail) < HEAD as u64 {
            return false;
        }
        record.clear();
        self.copy(tail, HEAD, record);
        let length = usize::from(u16::from_ne_bytes([record[6], record[7]])).max(HEAD);
        self.copy(tail + HEAD as u64, length - HEAD, record);
        // ORDERING: Release: the bytes are read before the kernel hears that it may write there again.
        self.counter(Ring::TAIL_AT).store(tail + length as u64, Ordering::Release);
        true
    }

    /// Appends `length` bytes from position `from`, perhaps across the ring's end.
    fn copy(&self, from: u64, length: usize, to: &mut Vec<u8>) {
        let mask = self.bytes - 1;
        for offset in 0..length {
            let place = from.wrapping_add(offset as u64) as usize & mask;
            // SAFETY: The place lies within the records, which are mapped; the kernel does not write there before
            // it learns that this was read.
            to.push(unsafe { self.memory.start().add(self.front + place).read() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let length = u16::try_from(HEAD + 8 * words.len()).unwrap();
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(length.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    #[test]
    fn a_sample_has_its_process_and_its_callers_without_marks_between_them() {
        let whose = u64::from_ne_bytes([7, 0, 0, 0, 8, 0, 0, 0]);
        let user = -512_i64 as u64;
        let sample = record(9, &[0x1000, whose, 4, user, 0x1000, 0x2000, 0x3000]);
        let mut stack = Vec::new();
        assert_eq!(Record::of(&sample, &mut stack), Record::Sample(7));
        assert_eq!(stack, [0x1000, 0x2000, 0x3000]);
        // A false length leads no farther than the record.
        let sample = record(9, &[0x1000, whose, u64::MAX, user]);
        assert_eq!(Record::of(&sample, &mut stack), Record::Sample(7));
        assert_eq!(stack, [0x1000]);
    }

    #[test]
    fn records_of_other_kinds_and_short_ones_are_no_samples() {
        let mut stack = Vec::new();
        assert_eq!(Record::of(&record(2, &[1, 12]), &mut stack), Record::Lost(12));
        assert_eq!(Record::of(&record(3, &[1, 2, 3]), &mut stack), Record::Other);
        assert_eq!(Record::of(&record(9, &[0x1000]), &mut stack), Record::Other);
        assert_eq!(Record::of(&record(9, &[]), &mut stack), Record::Other);
    }

    #[test]
    fn attributes_are_as_long_as_the_kernels() {
        assert_eq!(size_of::<Attributes>(), 112);
    }

    #[test]
    fn this_thread_is_sampled_while_it_works() {
        let mut sampler = match Sampler::start(&[0], &Switch::default()) {
            Ok(sampler) => sampler.expect("this thread has not ended"),
            Err(error) => return eprintln!("skipped: no perf events here: {error}"),
        };
        let own = libc::pid_t::try_from(std::process::id()).unwrap();
        let (mut samples, mut number) = (0, 1_u64);
        while samples < 10 {
            for _ in 0..1_000_000 {
                number = std::hint::black_box(number.wrapping_mul(31));
            }
            sampler.read(&mut |sample| {
                assert!(sample.process == own && sample.stack[0] != 0, "{sample:?}");
                samples += 1;
            });
        }
        assert_eq!((sampler.threads, sampler.left_out), (1, 0));
    }
}
