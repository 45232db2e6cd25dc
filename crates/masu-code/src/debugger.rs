//! The JIT interface of gdb and lldb: a list of objects in memory.
//!
//! Relies on the interface in gdb's manual ("JIT Compilation Interface"). A debugger finds it by two symbols of the
//! process, which every JIT defines. They must be exported from a shared library, so they cannot be weak. A program
//! that links another JIT turns the feature `jit-symbols` off, and both share one list.

mod short;

use std::sync::Arc;

pub(crate) use short::file as short_file;

use crate::sync;
use crate::sync::{Mutex, MutexGuard};

#[repr(C)]
struct CodeEntry {
    next: *mut CodeEntry,
    previous: *mut CodeEntry,
    symfile: *const u8,
    size: u64,
}

#[repr(C)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant: *mut CodeEntry,
    first: *mut CodeEntry,
}

const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

/// The two symbols, where no other JIT of the program brings them.
#[cfg(feature = "jit-symbols")]
mod symbols {
    use super::Descriptor;

    /// Debuggers stop here, and then read the descriptor.
    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn __jit_debug_register_code() {
        // SAFETY: No instruction; it keeps the function from being taken for another empty one.
        unsafe { std::arch::asm!("/* a debugger stops here */") };
    }

    #[unsafe(no_mangle)]
    static mut __jit_debug_descriptor: Descriptor = Descriptor {
        version: 1,
        action: 0,
        relevant: std::ptr::null_mut(),
        first: std::ptr::null_mut(),
    };
}

unsafe extern "C" {
    fn __jit_debug_register_code();
    static mut __jit_debug_descriptor: Descriptor;
}

/// The list belongs to the process, not to an arena.
static LIST: Mutex<()> = Mutex::new(());

/// The list's lock, if no thread has it.
pub(crate) fn try_hold() -> Option<MutexGuard<'static, ()>> {
    sync::try_hold(&LIST)
}

/// An object file that the debugger reads.
pub(crate) enum Symfile {
    /// The object, which the arena may keep as well.
    Whole(Arc<Vec<u8>>),
    Short(Box<[u8]>),
}

/// An entry of the list, and the data that it points to.
struct Shown {
    entry: CodeEntry,
    _symfile: Symfile,
}

/// An object that the debugger knows.
pub(crate) struct Known(*mut Shown);

// SAFETY: The entry is touched under the list's lock only.
unsafe impl Send for Known {}

/// Puts the sections' addresses into an object's headers, where a debugger looks for them.
pub(crate) fn locate(bytes: &mut [u8], sections: &[usize]) {
    let Some(table) = bytes.get(40..48).and_then(|field| field.try_into().ok()) else { return };
    let table = usize::try_from(u64::from_le_bytes(table)).unwrap_or(usize::MAX);
    for (index, address) in sections.iter().enumerate().filter(|(_, address)| **address != 0) {
        let at = table.saturating_add(index * 64).saturating_add(16);
        if let Some(field) = bytes.get_mut(at..at.saturating_add(8)) {
            field.copy_from_slice(&(*address as u64).to_le_bytes());
        }
    }
}

/// Tells the debugger of an object whose headers have the sections' addresses.
pub(crate) fn register(symfile: Symfile) -> Known {
    let bytes = match &symfile {
        Symfile::Whole(bytes) => bytes.as_slice(),
        Symfile::Short(bytes) => bytes,
    };
    let (start, size) = (bytes.as_ptr(), bytes.len() as u64);
    let null = std::ptr::null_mut;
    let entry = CodeEntry { next: null(), previous: null(), symfile: start, size };
    let shown = Box::into_raw(Box::new(Shown { entry, _symfile: symfile }));
    let _list = sync::hold(&LIST);
    let descriptor = &raw mut __jit_debug_descriptor;
    // SAFETY: All code of this library that changes the list holds its lock; another JIT that shares the two symbols
    // must have its own way to keep out of ours.
    unsafe {
        let entry = &raw mut (*shown).entry;
        let first = (*descriptor).first;
        (*entry).next = first;
        if !first.is_null() {
            (*first).previous = entry;
        }
        (*descriptor).first = entry;
        (*descriptor).relevant = entry;
        (*descriptor).action = REGISTER;
        __jit_debug_register_code();
    }
    Known(shown)
}

impl Drop for Known {
    fn drop(&mut self) {
        let _list = sync::hold(&LIST);
        let descriptor = &raw mut __jit_debug_descriptor;
        // SAFETY: As in `register`; the entry is in the list until here.
        unsafe {
            let entry = &raw mut (*self.0).entry;
            let (next, previous) = ((*entry).next, (*entry).previous);
            if previous.is_null() {
                (*descriptor).first = next;
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
            (*descriptor).relevant = entry;
            (*descriptor).action = UNREGISTER;
            __jit_debug_register_code();
        }
        // SAFETY: The entry came from a box, and no reference to it is left.
        drop(unsafe { Box::from_raw(self.0) });
    }
}
