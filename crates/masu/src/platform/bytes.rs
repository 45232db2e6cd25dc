//! `memcpy`, `memmove`, `memset`, `memcmp` and `bcmp` with vectors, for programs on x86-64 musl: feature `musl-memcpy`.
//!
//! Relies on SSE2, which every x86-64 has, and asks for AVX2. musl's own copy with string instructions
//! whatever the length, and compare byte by byte; programs of many strings take half as long again
//! there as on glibc. The linker takes the functions of this crate before it
//! looks into the C library, so all code of a static program has them, C and the standard library included.
//!
//! Three functions, all in assembly, lest the compiler make calls of `memcpy` out of a body of `memcpy`. The hard idea is
//! that lengths have steps: one of up to 128 bytes is copied or filled without a loop, from both ends with the
//! same width, and the two may overlap. Within a step all is read before any is written, and the loops
//! run in the direction that asks for no more, so the one function is `memcpy` and `memmove`. Long ones go by vectors of
//! 32 bytes where the CPU has AVX2, of which the first long one finds out (`platform/bytes/width.rs`): that is no earlier than
//! it is needed, and needs nobody to have started before. A move upwards onto itself goes from its end by 16, whatever its length.
//!
//! The names are weak: of two versions of this crate in one program either's will do.

/// From so many bytes on, vectors of 32 bytes copy and fill where there are any.
const WIDE_FROM: usize = 256;
/// From so many bytes on, string instructions copy and fill: what the CPU does with them then is as wide as it can.
const STRING_FROM: usize = 2048;
/// The same where there are vectors of 32 bytes.
const STRING_FROM_WIDE: usize = 4096;

/// Puts names before what comes, on musl.
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
/// Elsewhere the C library's are as good, and only the tests call these.
#[cfg(not(target_env = "musl"))]
macro_rules! if_musl {
    ($text:expr) => {
        ""
    };
}

/// Has `find` called and keeps what a function was given, which aligns the stack.
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

/// What nobody may leave out: nothing of this crate calls these, and the linker has yet to hear who does.
#[used]
static COPY: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void = copy;
#[used]
static FILL: unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void = fill;
#[used]
static COMPARE: unsafe extern "C" fn(*const c_void, *const c_void, usize) -> c_int = compare;

#[cfg(test)]
mod tests;
