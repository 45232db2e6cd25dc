//! The operators `new` and `delete` of C++, for 64-bit: plain, array, sized, aligned, nothrow.
//!
//! It relies on the Itanium C++ ABI for the names and on the C++ runtime of the program, found
//! weakly, for the installed handler and for throwing. libstdc++ has these operators too, but they
//! reach `malloc` only through two jumps of the dynamic linker's tables.
//!
//! The hard idea is the case of no memory. C++ demands that the handler installed with `std::set_new_handler` is called
//! until there is memory, and that `std::bad_alloc` is thrown where no handler is installed. The handler may throw as
//! well, and no exception may pass a Rust frame. So:
//!
//! - The operators below are a test and a tail call; their frame is gone when the slow part runs.
//! - The slow part (`new/x86_64.rs`, `new/aarch64.rs`) is assembly with its own unwind tables. It
//!   calls the handler, and leaves by a jump to `std::__throw_bad_alloc`, which sees the caller of
//!   `new` as its caller.
//! - Nothrow `new` returns null when the handler throws. Its landing pad, written by hand too, catches
//!   everything, as libstdc++'s does. Without a handler nothing is thrown.

use alloc_core::c;

use crate::libc::{self, weak};
use crate::malloc::{C_ALIGN, aligned};
use crate::{count, sized};

/// The exception table of nothrow `new` (an LSDA), whose call of the handler is from label 4 to 5 of a function that begins
/// at 2, with the landing pad at 7.
macro_rules! exception_table {
    () => {
        concat!(
            ".pushsection .gcc_except_table, \"a\", %progbits\n",
            ".p2align 2\n",
            ".Lmasu_lsda:\n",
            ".byte 0xff\n",         // landing pads count from the function's start
            ".byte 0x03\n",         // types are 4 bytes
            ".uleb128 25f - 22f\n", // from here to the end of the types
            "22:\n",
            ".byte 0x01\n",         // call sites are uleb128
            ".uleb128 24f - 23f\n", // their length
            "23:\n",
            ".uleb128 4b - 2b\n", // the call of the handler: start, length, landing pad, action
            ".uleb128 5b - 4b\n",
            ".uleb128 7b - 2b\n",
            ".uleb128 1\n",
            "24:\n",
            ".byte 1\n", // action 1: the first type, and no further action
            ".byte 0\n",
            ".p2align 2\n",
            ".long 0\n", // the first type: none, which is `catch (...)`
            "25:\n",
            ".popsection\n",
        )
    };
}

#[cfg(target_arch = "aarch64")]
#[path = "new/aarch64.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "new/x86_64.rs"]
mod arch;

/// A handler that `std::set_new_handler` installs.
type Handler = unsafe extern "C" fn();
/// `std::get_new_handler`.
type GetHandler = unsafe extern "C" fn() -> Option<Handler>;

/// The slow part of the throwing operators without an alignment.
#[inline(never)]
extern "C" fn plain_slow(size: usize) -> *mut u8 {
    arch::new_slow(size, C_ALIGN)
}

/// The slow part of the nothrow operators.
#[inline(never)]
extern "C" fn plain_nothrow_slow(size: usize) -> *mut u8 {
    arch::new_nothrow_slow(size, C_ALIGN)
}

/// The throwing operators: a block or an exception, never null.
macro_rules! throwing_new {
    ($($plain:ident, $aligned:ident;)*) => {$(
        /// `operator new(size)`, or `new[]`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $plain(size: usize) -> *mut u8 {
            count::request(size);
            let block = c::cached(size);
            if block.is_null() { plain_slow(size) } else { block }
        }

        /// `operator new(size, std::align_val_t)`, or `new[]`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $aligned(size: usize, align: usize) -> *mut u8 {
            count::request(size);
            if align.is_power_of_two() {
                arch::new_slow(size, align)
            } else {
                arch::throw_bad_alloc()
            }
        }
    )*};
}

/// The nothrow operators: a block or null, never an exception.
macro_rules! nothrow_new {
    ($($plain:ident, $aligned:ident;)*) => {$(
        /// `operator new(size, std::nothrow)`, or `new[]`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $plain(size: usize, _nothrow: *const u8) -> *mut u8 {
            count::request(size);
            let block = c::cached(size);
            if block.is_null() { plain_nothrow_slow(size) } else { block }
        }

        /// `operator new(size, std::align_val_t, std::nothrow)`, or `new[]`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $aligned(size: usize, align: usize, _nothrow: *const u8) -> *mut u8 {
            count::request(size);
            if align.is_power_of_two() {
                arch::new_nothrow_slow(size, align)
            } else {
                core::ptr::null_mut()
            }
        }
    )*};
}

/// The operators `delete`: all of them free. Only the hardened build checks size and alignment
/// (`sized.rs`).
macro_rules! delete {
    ($($name:ident($($argument:ident: $kind:ty),*) of $size:expr, $align:expr;)*) => {$(
        /// One of the forms of `operator delete`, or `delete[]`.
        ///
        /// # Safety
        ///
        /// - `block` is null or a block of this library, and is not used afterwards.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(block: *mut u8 $(, $argument: $kind)*) {
            // SAFETY: The caller's condition is the same.
            unsafe { sized::free(block, $size, $align) }
        }
    )*};
}

// The names end in the parameters' types: `m` is `size_t`, `St11align_val_t` is `std::align_val_t`,
// `RKSt9nothrow_t` is `const std::nothrow_t &`. `nw` and `na` are `new` and `new[]`, `dl` and `da`
// are `delete` and `delete[]`.
throwing_new! {
    _Znwm, _ZnwmSt11align_val_t;
    _Znam, _ZnamSt11align_val_t;
}
nothrow_new! {
    _ZnwmRKSt9nothrow_t, _ZnwmSt11align_val_tRKSt9nothrow_t;
    _ZnamRKSt9nothrow_t, _ZnamSt11align_val_tRKSt9nothrow_t;
}
delete! {
    _ZdlPv() of None, 1;
    _ZdaPv() of None, 1;
    _ZdlPvm(size: usize) of Some(size), 1;
    _ZdaPvm(size: usize) of Some(size), 1;
    _ZdlPvSt11align_val_t(align: usize) of None, align;
    _ZdaPvSt11align_val_t(align: usize) of None, align;
    _ZdlPvmSt11align_val_t(size: usize, align: usize) of Some(size), align;
    _ZdaPvmSt11align_val_t(size: usize, align: usize) of Some(size), align;
    _ZdlPvRKSt9nothrow_t(_nothrow: *const u8) of None, 1;
    _ZdaPvRKSt9nothrow_t(_nothrow: *const u8) of None, 1;
    _ZdlPvSt11align_val_tRKSt9nothrow_t(align: usize, _nothrow: *const u8) of None, align;
    _ZdaPvSt11align_val_tRKSt9nothrow_t(align: usize, _nothrow: *const u8) of None, align;
}

/// The handler that the program installed; `None` where there is none or no C++ at all.
#[cold]
extern "C" fn installed_handler() -> Option<Handler> {
    let get = runtime_function(weak!("_ZSt15get_new_handlerv"), c"_ZSt15get_new_handlerv");
    // SAFETY: The address is 0 or the address of `std::get_new_handler`, of this signature.
    let get: Option<GetHandler> = unsafe { core::mem::transmute(get) };
    // SAFETY: The function only reads the handler; it never throws.
    get.and_then(|get| unsafe { get() })
}

/// Allocates, for the slow part.
extern "C" fn attempt(size: usize, align: usize) -> *mut u8 {
    aligned(align, size)
}

/// The end of a throwing operator: `std::__throw_bad_alloc`, or a last message.
#[cold]
extern "C" fn throw_target() -> usize {
    match runtime_function(weak!("_ZSt17__throw_bad_allocv"), c"_ZSt17__throw_bad_allocv") {
        0 => no_runtime as extern "C" fn() -> ! as usize,
        throw => throw,
    }
}

extern "C" fn no_runtime() -> ! {
    libc::die(c"masu: out of memory in operator new, and no C++ runtime to throw bad_alloc\n")
}

/// The address of a function of the C++ runtime, 0 where there is none.
///
/// The program's search order leaves out the runtime of a plug-in (an interpreter's C++ module), so that runtime is
/// searched by library name.
fn runtime_function(in_search_order: usize, name: &core::ffi::CStr) -> usize {
    if in_search_order != 0 {
        return in_search_order;
    }
    [c"libstdc++.so.6", c"libc++.so.1"]
        .into_iter()
        .map(|library| libc::symbol_of(library, name).addr())
        .find(|address| *address != 0)
        .unwrap_or(0)
}
