//! Unwinding: the callers of a function, up to the first function of the thread.
//!
//! Relies on the unwind tables (`.eh_frame`) that compilers write for C, C++ and Rust, and on the C library's list of loaded
//! objects. Frame pointers are not needed: distributions build without them. The C compiler's unwinder would have to be
//! loaded, which allocates, and static programs lack it. So the tables are read here, without masu allocating. The hard idea
//! is that tables are programs: to find where a function saved its caller's registers, its program is run up to the address
//! in question (`diagnostics/unwind/rules.rs`). A frame may lead into a library that another thread unloads, although none of
//! this thread's functions is left in it: below the call of `exit`, or where hand-written assembly is described wrongly. So
//! tables are read only under the dynamic linker's lock.
//!
//! References: DWARF 5, section 6.4; Linux Standard Base 5.0, section 10.6; System V ABIs for x86-64
//! and aarch64.

mod expression;
mod memory;
mod objects;
mod reader;
#[cfg_attr(target_arch = "aarch64", path = "unwind/registers/aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "unwind/registers/x86_64.rs")]
mod registers;
mod rule_cache;
mod rules;

use core::ffi::c_void;

use crate::platform::libc;
use memory::Memory;
use objects::Tables;
use registers::Registers;
use rule_cache::SimpleRow;
pub(crate) use rule_cache::each_lock;
use rules::{Base, Row, Rule};

/// Fills `frames` with the addresses of calls, innermost first, starting with the caller of this function; returns how many.
/// Each is the address of the call instruction's last byte.
#[inline(never)]
pub(crate) fn capture(frames: &mut [usize]) -> usize {
    walk(Registers::here(), frames)
}

/// The same for code that a signal interrupted: first the interrupted instruction, then its callers.
///
/// # Safety
///
/// - `context` is the third argument of a signal handler.
#[inline(never)]
pub(crate) unsafe fn capture_interrupted(context: *const c_void, frames: &mut [usize]) -> usize {
    // SAFETY: The caller's condition.
    let registers = unsafe { Registers::interrupted(context) };
    let Some((first, callers)) = frames.split_first_mut() else { return 0 };
    *first = registers.program_counter();
    1 + walk(registers, callers)
}

/// Fills `frames` with the callers of the function that has these registers.
#[inline(never)]
fn walk(mut registers: Registers, frames: &mut [usize]) -> usize {
    let changes = libc::object_changes();
    let mut cache = changes.and_then(rule_cache::valid_at);
    let mut memory = Memory::new();
    let mut count = 0;
    // A return address is behind its call; an interrupted instruction is at its own address.
    let mut is_behind_call = false;
    while count < frames.len() {
        let at = registers.program_counter().wrapping_sub(usize::from(is_behind_call));
        if is_behind_call {
            frames[count] = at;
            count += 1;
        }
        let below = registers.stack_pointer();
        if let Some(simple) = cache.as_ref().and_then(|cache| cache.find(at)) {
            if simple.step(&mut registers, &mut memory).is_none()
                || registers.stack_pointer() <= below
            {
                break;
            }
            is_behind_call = true;
        } else {
            drop(cache);
            let found = objects::with_tables(at, |tables| {
                let row = rules::find(tables, at)?;
                let caller = step(&registers, tables, &row, &mut memory);
                Some((SimpleRow::of(at, &row), caller, row.is_signal_frame))
            });
            let Some((simple, caller, is_signal_frame)) = found else { break };
            cache = changes.and_then(rule_cache::valid_at);
            if let (Some(cache), Some(simple)) = (cache.as_mut(), simple) {
                cache.insert(simple);
            }
            let Some(caller) = caller else { break };
            registers = caller;
            if registers.stack_pointer() <= below && !is_signal_frame {
                break;
            }
            if is_signal_frame && count < frames.len() {
                // The interrupted instruction.
                frames[count] = registers.program_counter();
                count += 1;
            }
            is_behind_call = !is_signal_frame;
        }
        // The thread's first function has no caller.
        if registers.program_counter() == 0 {
            break;
        }
    }
    count
}

/// The caller's registers.
fn step(
    registers: &Registers,
    tables: &Tables,
    row: &Row,
    memory: &mut Memory,
) -> Option<Registers> {
    let evaluate = |place, first, memory: &mut Memory| {
        expression::evaluate(tables.expression(place)?, registers, first, memory)
    };
    let base = match row.base {
        Base::Register(register, offset) => registers.get(register)?.wrapping_add_signed(offset),
        Base::Expression(place) => evaluate(place, None, memory)?,
        Base::Unknown => return None,
    };
    let mut caller = registers.clone();
    for (register, rule) in row.rules.iter().enumerate() {
        let value = match *rule {
            Rule::Same => continue,
            Rule::Undefined => 0,
            Rule::SavedAt(offset) => memory.word_at(base.wrapping_add_signed(offset))?,
            Rule::Is(offset) => base.wrapping_add_signed(offset),
            Rule::Register(other) => registers.get(other)?,
            Rule::SavedAtExpression(place) => {
                let address = evaluate(place, Some(base), memory)?;
                memory.word_at(address)?
            }
            Rule::IsExpression(place) => evaluate(place, Some(base), memory)?,
        };
        caller.set(register, value);
    }
    caller.enter_caller(base, row);
    Some(caller)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::ffi::{CStr, c_char, c_int};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[inline(never)]
    fn innermost(depth: usize, frames: &mut [usize]) -> usize {
        let count = if depth == 0 { capture(frames) } else { innermost(depth - 1, frames) };
        // Prevents a tail call.
        core::hint::black_box(count)
    }

    #[test]
    fn every_call_is_found_up_to_the_thread_s_start() {
        let deep = |depth| {
            let mut frames = [0; 200];
            let count = innermost(depth, &mut frames);
            (count, frames)
        };
        let ((shallow, _), (deeper, frames)) = (deep(0), deep(100));
        assert_eq!(deeper, shallow + 100);
        assert!(shallow > 4, "{shallow} frames from a test's start");
        let recursive = &frames[2..100];
        assert!(recursive.iter().all(|frame| *frame == recursive[0]), "{frames:?}");
        let function = innermost as *const () as usize;
        assert!((function..function + 1_000).contains(&recursive[0]));
    }

    #[test]
    fn no_more_frames_than_fit() {
        let mut frames = [0; 3];
        assert_eq!(innermost(50, &mut frames), 3);
        assert_eq!(capture(&mut []), 0);
    }

    #[test]
    fn cached_rules_give_the_same_frames() {
        const DEPTH: usize = 40;
        let walks = [(); 3].map(|()| {
            let mut frames = [0; 200];
            let count = innermost(DEPTH, &mut frames);
            // The caller of this closure differs each time if the loop was unrolled.
            (count, <[usize; DEPTH]>::try_from(&frames[..DEPTH]).expect("so many"))
        });
        assert!(walks[0].0 > DEPTH);
        assert_eq!(walks[0], walks[1]);
        assert_eq!(walks[1], walks[2]);
        // Two frames of one walk may share a place in the cache, depending on where the program was loaded; the later one
        // stays. Other tests may replace it, or load a library in between.
        let is_known = || {
            let mut frames = [0; 200];
            let count = innermost(DEPTH, &mut frames);
            let cache = libc::object_changes().and_then(rule_cache::valid_at);
            cache.is_some_and(|cache| frames[..count].iter().any(|at| cache.find(*at).is_some()))
        };
        assert!((0..1000).any(|_| is_known()));
    }

    #[cfg(all(target_env = "gnu", not(target_feature = "crt-static")))]
    #[test]
    fn a_library_that_a_frame_leads_to_may_be_unloaded() {
        unsafe extern "C" {
            fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
            fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
            fn dlclose(library: *mut c_void) -> c_int;
        }
        /// A library of glibc's that no program is linked with, and a function of it.
        const LIBRARY: &CStr = c"libthread_db.so.1";
        const FUNCTION: &CStr = c"td_init";
        const LAZY: c_int = 1;
        const ENDED: usize = 1;
        static FUNCTION_AT: AtomicUsize = AtomicUsize::new(0);
        let walkers = [(); 3].map(|()| {
            std::thread::spawn(|| {
                loop {
                    let place = FUNCTION_AT.load(Ordering::Relaxed);
                    if place == ENDED {
                        return;
                    }
                    let mut registers = Registers::here();
                    registers.set(registers::RETURN, place);
                    registers.enter_caller_simple(registers.stack_pointer());
                    walk(registers, &mut [0; 4]);
                }
            })
        });
        for _ in 0..10_000 {
            // SAFETY: The library's constructors do nothing that matters here.
            let library = unsafe { dlopen(LIBRARY.as_ptr(), LAZY) };
            if library.is_null() {
                std::eprintln!("not tested: there is no {LIBRARY:?}");
                break;
            }
            // SAFETY: The library was opened.
            let function = unsafe { dlsym(library, FUNCTION.as_ptr()) };
            FUNCTION_AT.store(function.addr(), Ordering::Relaxed);
            // SAFETY: The library was opened, and no thread runs in it.
            unsafe { dlclose(library) };
        }
        FUNCTION_AT.store(ENDED, Ordering::Relaxed);
        for walker in walkers {
            walker.join().expect("no walker panics");
        }
    }
}
