//! System calls of the models: the real calls, except that threads and the words they sleep on are loom's, and that an
//! execution's memory is unmapped at its end.

extern crate std;

#[cfg_attr(target_arch = "aarch64", path = "../../src/platform/kernel/aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "../../src/platform/kernel/x86_64.rs")]
mod real;

use std::cell::{Cell, RefCell};
use std::string::String;
use std::vec::Vec;

use loom::thread::{self, Thread};

pub(in crate::platform::kernel) use real::number;

use crate::platform::atomics::{AtomicU32, Ordering};

/// The models do not use the real function.
const _: fn() -> usize = real::thread_pointer;

const FUTEX_WAIT_PRIVATE: usize = 128;
const CPUS: u64 = 0b11;

#[derive(Default)]
struct Known {
    /// The mapped ranges: starts and ends.
    mapped: Vec<(usize, usize)>,
    /// The words on which threads sleep, with the threads.
    sleepers: Vec<(usize, Thread)>,
    /// The text that was written to standard error.
    message: String,
}

std::thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
    static THREADS: Cell<usize> = const { Cell::new(0) };
}

loom::thread_local! {
    static NUMBER: usize = THREADS.replace(THREADS.get() + 1);
}

/// Begins an execution: nothing is mapped, and no thread sleeps.
pub(crate) fn begin() {
    THREADS.set(0);
    let known = KNOWN.take();
    for (start, end) in known.mapped {
        // SAFETY: The last execution mapped the range, and nothing of that execution is left.
        let result = unsafe { real::call6(number::MUNMAP, start, end - start, 0, 0, 0, 0) };
        assert_eq!(result, 0);
    }
    // Threads of the last execution are indices into that execution.
    std::mem::forget(known.sleepers);
}

/// Whether this execution mapped the memory at `address`: else the memory is a static.
pub(crate) fn is_mapped(address: usize) -> bool {
    let holds = |(start, end): &(usize, usize)| (*start..*end).contains(&address);
    KNOWN.with_borrow(|known| known.mapped.iter().any(holds))
}

/// The text that was written to standard error in this execution.
pub(crate) fn message() -> String {
    KNOWN.with_borrow(|known| known.message.clone())
}

/// An address for each thread, an OS page apart.
pub(crate) fn thread_pointer() -> usize {
    (1 << 30) + (NUMBER.with(|number| *number) << 12)
}

pub(super) unsafe fn call6(
    number: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    match number {
        number::FUTEX if b == FUTEX_WAIT_PRIVATE => wait(a, c as u32),
        number::FUTEX => wake(a),
        number::SCHED_GETAFFINITY => {
            // SAFETY: The caller has room for many more CPUs.
            unsafe { std::ptr::with_exposed_provenance_mut::<u64>(c).write(CPUS) };
            size_of::<u64>() as isize
        }
        number::WRITE => {
            // SAFETY: The caller passes a message of that length.
            let message =
                unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(b), c) };
            KNOWN.with_borrow_mut(|known| known.message += &String::from_utf8_lossy(message));
            c as isize
        }
        _ => {
            if number == number::MUNMAP {
                // No thread may touch unmapped memory any more.
                crate::platform::atomics::writes_all(a..a + b);
            }
            // SAFETY: The caller's condition.
            let result = unsafe { real::call6(number, a, b, c, d, e, f) };
            match number {
                number::MMAP if result > 0 => note(result as usize, b),
                number::MUNMAP if result == 0 => forget(a, a + b),
                _ => {}
            }
            result
        }
    }
}

fn note(start: usize, length: usize) {
    let end = start + length.next_multiple_of(4096);
    // A mapping may replace another one.
    forget(start, end);
    KNOWN.with_borrow_mut(|known| known.mapped.push((start, end)));
}

fn forget(from: usize, to: usize) {
    KNOWN.with_borrow_mut(|known| {
        for (start, end) in std::mem::take(&mut known.mapped) {
            let left = [(start, end.min(from)), (start.max(to), end)];
            known.mapped.extend(left.iter().filter(|(start, end)| start < end));
        }
    });
}

fn wait(address: usize, expected: u32) -> isize {
    let place = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: The kernel door has the word.
    let word: &AtomicU32 = unsafe { AtomicU32::from_ptr(place) };
    // ORDERING: Relaxed, the weakest that a kernel could use; an exchange of nothing reads the newest value, as a
    // read under the kernel's lock does.
    if word.fetch_or(0, Ordering::Relaxed) == expected {
        KNOWN.with_borrow_mut(|known| known.sleepers.push((address, thread::current())));
        thread::park();
    }
    0
}

fn wake(address: usize) -> isize {
    let sleeper = KNOWN.with_borrow_mut(|known| {
        let place = known.sleepers.iter().position(|(on, _)| *on == address)?;
        Some(known.sleepers.remove(place).1)
    });
    sleeper.iter().for_each(Thread::unpark);
    0
}
