//! `memcpy`, `memmove`, `memset`, `memcmp` and `bcmp` with vectors, for programs on x86-64 musl: feature `musl-memcpy`.
//!
//! Relies on SSE2, which every x86-64 CPU has, and uses AVX2 where there is one. musl copies with string instructions
//! whatever the length and compares byte by byte; programs with many strings take half as long again as on glibc. The
//! linker takes this crate's functions before it searches the C library, so all code of a static program uses them.
//!
//! Three functions in assembly, because the compiler turns the body of `memcpy` into a call of `memcpy`. The hard idea:
//! lengths up to 128 bytes are copied without a loop, in steps, from both ends with vectors of one width that may
//! overlap. Within a step all is read before any is written, and loops run in the direction that an overlap needs, so
//! one function is both `memcpy` and `memmove`. Long copies and fills use vectors of 32 bytes where the CPU has AVX2.
//! The first long copy or fill finds the width (`platform/bytes/width.rs`), so no constructor must have run before. A
//! move upwards onto itself always runs from the end with vectors of 16.
//!
//! The names are weak: where a program has two versions of this crate, either version will do.

/// From this length on, vectors of 32 bytes copy and fill where the CPU has them.
const WIDE_FROM: usize = 256;
/// From this length on, string instructions copy and fill: the CPU makes them as wide as it can.
const STRING_FROM: usize = 2048;
/// The same on CPUs with vectors of 32 bytes.
const STRING_FROM_WIDE: usize = 4096;

/// Labels the code that follows with these names, on musl.
macro_rules! known_as {
    ($($name:literal)*) => {
        if_musl!(concat!(
            $(".weak ", $name, "\n.hidden ", $name, "\n.type ", $name, ", @function\n", $name, ":\n"),*
        ))
    };
}
#[cfg(target_env = "musl")]
macro_rules! if_musl {
    ($text:expr) => {
        $text
    };
}
/// The C library's functions are as good on other targets, where only tests call these.
#[cfg(not(target_env = "musl"))]
macro_rules! if_musl {
    ($text:expr) => {
        ""
    };
}

/// Calls `find`, keeping the function's arguments; three pushes align the stack.
macro_rules! find_width {
    () => {
        "push rdi
        push rsi
        push rdx
        .cfi_adjust_cfa_offset 24
        call {find}
        pop rdx
        pop rsi
        pop rdi
        .cfi_adjust_cfa_offset -24"
    };
}

mod compare;
mod copy;
mod fill;
mod width;

use core::ffi::{c_int, c_void};

use compare::compare;
use copy::copy;
use fill::fill;

/// `used`, because nothing in this crate calls these and the linker does not know the callers yet.
#[used]
static COPY: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void = copy;
#[used]
static FILL: unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void = fill;
#[used]
static COMPARE: unsafe extern "C" fn(*const c_void, *const c_void, usize) -> c_int = compare;

#[cfg(test)]
mod tests;
