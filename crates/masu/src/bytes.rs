//! `memcpy`, `memmove`, `memset`, `memcmp` and `bcmp` with vectors of 16 bytes, for programs on x86-64 musl: feature `musl-memcpy`.
//!
//! Relies on nothing but SSE2, which every x86-64 has. musl's own copy with string instructions
//! whatever the length, and compare byte by byte; programs of many strings take half as long again
//! there as on glibc. The linker takes the functions of this crate before it
//! looks into the C library, so all code of a static program has them, C and the standard library included.
//!
//! Three functions, all in assembly, lest the compiler make calls of `memcpy` out of a body of `memcpy`. The hard idea is
//! that lengths have steps: one of up to 128 bytes is copied or filled without a loop, from both ends with the
//! same width, and the two may overlap. Within a step all is read before any is written, and the loops
//! run in the direction that asks for no more, so the one function is `memcpy` and `memmove`.
//!
//! The names are weak: of two versions of this crate in one program either's will do.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};

/// From so many bytes on, string instructions copy and fill: what the CPU does with them then is as wide as it can.
const STRING_FROM: usize = 2048;

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

/// What nobody may leave out: nothing of this crate calls these, and the linker has yet to hear who does.
#[used]
static COPY: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void = copy;
#[used]
static FILL: unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void = fill;
#[used]
static COMPARE: unsafe extern "C" fn(*const c_void, *const c_void, usize) -> c_int = compare;

/// `memcpy` and `memmove`: copies `length` bytes as if through a place in between, returns `to`.
///
/// # Safety
///
/// - `from` may be read and `to` written for `length` bytes.
#[unsafe(naked)]
unsafe extern "C" fn copy(to: *mut c_void, from: *const c_void, length: usize) -> *mut c_void {
    naked_asm!(
        ".cfi_startproc",
        known_as!("memcpy" "memmove"),
        "mov rax, rdi",
        "cmp rdx, 16",
        "jb 20f",
        "cmp rdx, 32",
        "ja 30f",
        // 16 to 32.
        "movups xmm0, [rsi]",
        "movups xmm1, [rsi + rdx - 16]",
        "movups [rdi], xmm0",
        "movups [rdi + rdx - 16], xmm1",
        "ret",
        // Below 16.
        "20:",
        "cmp edx, 8",
        "jb 21f",
        "mov rcx, [rsi]",
        "mov r8, [rsi + rdx - 8]",
        "mov [rdi], rcx",
        "mov [rdi + rdx - 8], r8",
        "ret",
        "21:",
        "cmp edx, 4",
        "jb 22f",
        "mov ecx, [rsi]",
        "mov r8d, [rsi + rdx - 4]",
        "mov [rdi], ecx",
        "mov [rdi + rdx - 4], r8d",
        "ret",
        "22:",
        "test edx, edx",
        "je 24f",
        "movzx ecx, byte ptr [rsi]",
        "cmp edx, 1",
        "je 23f",
        "movzx r8d, word ptr [rsi + rdx - 2]",
        "mov [rdi + rdx - 2], r8w",
        "23:",
        "mov [rdi], cl",
        "24:",
        "ret",
        // 33 to 64.
        "30:",
        "cmp rdx, 64",
        "ja 31f",
        "movups xmm0, [rsi]",
        "movups xmm1, [rsi + 16]",
        "movups xmm2, [rsi + rdx - 32]",
        "movups xmm3, [rsi + rdx - 16]",
        "movups [rdi], xmm0",
        "movups [rdi + 16], xmm1",
        "movups [rdi + rdx - 32], xmm2",
        "movups [rdi + rdx - 16], xmm3",
        "ret",
        // 65 to 128.
        "31:",
        "movups xmm4, [rsi + rdx - 64]",
        "movups xmm5, [rsi + rdx - 48]",
        "movups xmm6, [rsi + rdx - 32]",
        "movups xmm7, [rsi + rdx - 16]",
        "cmp rdx, 128",
        "ja 40f",
        "movups xmm0, [rsi]",
        "movups xmm1, [rsi + 16]",
        "movups xmm2, [rsi + 32]",
        "movups xmm3, [rsi + 48]",
        "movups [rdi], xmm0",
        "movups [rdi + 16], xmm1",
        "movups [rdi + 32], xmm2",
        "movups [rdi + 48], xmm3",
        "movups [rdi + rdx - 64], xmm4",
        "movups [rdi + rdx - 48], xmm5",
        "movups [rdi + rdx - 32], xmm6",
        "movups [rdi + rdx - 16], xmm7",
        "ret",
        // More: the last 64 bytes are in xmm4 to xmm7, and are written last, whatever went before.
        "40:",
        "lea r8, [rdi + rdx - 64]",
        "movups xmm8, [rsi]",
        "mov rcx, rdi",
        "sub rcx, rsi",
        "cmp rcx, rdx",
        // `to` lies within what is read: from the end.
        "jb 50f",
        // From the start: the first 16 bytes unaligned, then whole lines of 16 where they are written.
        "mov r9, rdi",
        "and r9, -16",
        "add r9, 16",
        "sub r9, rdi",
        "add rsi, r9",
        "cmp rdx, {string_from}",
        "jae 60f",
        "41:",
        "add r9, rdi",
        ".p2align 4",
        "42:",
        "movups xmm0, [rsi]",
        "movups xmm1, [rsi + 16]",
        "movups xmm2, [rsi + 32]",
        "movups xmm3, [rsi + 48]",
        "movaps [r9], xmm0",
        "movaps [r9 + 16], xmm1",
        "movaps [r9 + 32], xmm2",
        "movaps [r9 + 48], xmm3",
        "add rsi, 64",
        "add r9, 64",
        "cmp r9, r8",
        "jb 42b",
        "43:",
        "movups [r8], xmm4",
        "movups [r8 + 16], xmm5",
        "movups [r8 + 32], xmm6",
        "movups [r8 + 48], xmm7",
        "movups [rax], xmm8",
        "ret",
        // From the end: the first 64 bytes, for they may be written over before their turn comes; whole lines of 16
        // where they are written, of which `r9` is the end and `rsi` that of what they are read from.
        "50:",
        "movups xmm9, [rsi + 16]",
        "movups xmm10, [rsi + 32]",
        "movups xmm11, [rsi + 48]",
        "lea r9, [rdi + rdx]",
        "mov r10, r9",
        "and r9, -16",
        "sub r10, r9",
        "add rsi, rdx",
        "sub rsi, r10",
        "lea r11, [rdi + 64]",
        ".p2align 4",
        "51:",
        "movups xmm0, [rsi - 16]",
        "movups xmm1, [rsi - 32]",
        "movups xmm2, [rsi - 48]",
        "movups xmm3, [rsi - 64]",
        "movaps [r9 - 16], xmm0",
        "movaps [r9 - 32], xmm1",
        "movaps [r9 - 48], xmm2",
        "movaps [r9 - 64], xmm3",
        "sub rsi, 64",
        "sub r9, 64",
        "cmp r9, r11",
        "ja 51b",
        "movups [rax], xmm8",
        "movups [rax + 16], xmm9",
        "movups [rax + 32], xmm10",
        "movups [rax + 48], xmm11",
        "movups [rax + rdx - 16], xmm7",
        "ret",
        // Long, from the start: a string instruction, unless both overlap, where it is slow. Nor where
        // `to` lies a little behind `from` in its page: AMD's CPUs then take twice as long as for the loop.
        "60:",
        "lea r10d, [rcx - 1]",
        "and r10d, 0xfff",
        "cmp r10d, 63",
        "jb 41b",
        "neg rcx",
        "cmp rcx, rdx",
        "jb 41b",
        "add rdi, r9",
        "lea rcx, [r8 + 64]",
        "sub rcx, rdi",
        "shr rcx, 3",
        "rep movsq",
        "jmp 43b",
        ".cfi_endproc",
        string_from = const STRING_FROM,
    )
}

/// `memset`: `length` bytes of value `byte`, of which the lowest 8 bits count; returns `to`.
///
/// # Safety
///
/// - `to` may be written for `length` bytes.
#[unsafe(naked)]
unsafe extern "C" fn fill(to: *mut c_void, byte: c_int, length: usize) -> *mut c_void {
    naked_asm!(
        ".cfi_startproc",
        known_as!("memset"),
        "mov rax, rdi",
        "movzx ecx, sil",
        "mov r8, 0x0101010101010101",
        "imul rcx, r8",
        "cmp rdx, 16",
        "jb 20f",
        "movq xmm0, rcx",
        "punpcklqdq xmm0, xmm0",
        "cmp rdx, 128",
        "ja 40f",
        "movups [rdi], xmm0",
        "movups [rdi + rdx - 16], xmm0",
        "cmp rdx, 32",
        "jbe 24f",
        "movups [rdi + 16], xmm0",
        "movups [rdi + rdx - 32], xmm0",
        "cmp rdx, 64",
        "jbe 24f",
        "movups [rdi + 32], xmm0",
        "movups [rdi + 48], xmm0",
        "movups [rdi + rdx - 64], xmm0",
        "movups [rdi + rdx - 48], xmm0",
        "ret",
        // Below 16.
        "20:",
        "cmp edx, 8",
        "jb 21f",
        "mov [rdi], rcx",
        "mov [rdi + rdx - 8], rcx",
        "ret",
        "21:",
        "cmp edx, 4",
        "jb 22f",
        "mov [rdi], ecx",
        "mov [rdi + rdx - 4], ecx",
        "ret",
        "22:",
        "test edx, edx",
        "je 24f",
        "mov [rdi], cl",
        "cmp edx, 1",
        "je 24f",
        "mov [rdi + rdx - 2], cx",
        "24:",
        "ret",
        // More than 128: the first 16 bytes unaligned, whole lines of 16, the last 64 unaligned.
        "40:",
        "movups [rdi], xmm0",
        "lea r8, [rdi + rdx - 64]",
        "and rdi, -16",
        "add rdi, 16",
        "cmp rdx, {string_from}",
        "jae 60f",
        ".p2align 4",
        "42:",
        "movaps [rdi], xmm0",
        "movaps [rdi + 16], xmm0",
        "movaps [rdi + 32], xmm0",
        "movaps [rdi + 48], xmm0",
        "add rdi, 64",
        "cmp rdi, r8",
        "jb 42b",
        "43:",
        "movups [r8], xmm0",
        "movups [r8 + 16], xmm0",
        "movups [r8 + 32], xmm0",
        "movups [r8 + 48], xmm0",
        "ret",
        "60:",
        "mov r9, rax",
        "mov rax, rcx",
        "lea rcx, [r8 + 64]",
        "sub rcx, rdi",
        "shr rcx, 3",
        "rep stosq",
        "mov rax, r9",
        "jmp 43b",
        ".cfi_endproc",
        string_from = const STRING_FROM,
    )
}

/// `memcmp` and `bcmp`: how the first bytes that differ compare, as unsigned numbers; 0 where none does.
///
/// # Safety
///
/// - Both may be read for `length` bytes.
#[unsafe(naked)]
unsafe extern "C" fn compare(one: *const c_void, other: *const c_void, length: usize) -> c_int {
    naked_asm!(
        ".cfi_startproc",
        known_as!("memcmp" "bcmp"),
        "cmp rdx, 16",
        "jb 20f",
        "xor ecx, ecx",
        "cmp rdx, 64",
        "jae 40f",
        // By 16 bytes from offset `rcx` on, the last 16 wherever they begin, at `r8`.
        "30:",
        "lea r8, [rdx - 16]",
        "cmp rcx, r8",
        "jae 32f",
        ".p2align 4",
        "31:",
        "movdqu xmm0, [rdi + rcx]",
        "movdqu xmm1, [rsi + rcx]",
        "pcmpeqb xmm0, xmm1",
        "pmovmskb eax, xmm0",
        "sub eax, 0xffff",
        "jne 33f",
        "add rcx, 16",
        "cmp rcx, r8",
        "jb 31b",
        "32:",
        "mov rcx, r8",
        "movdqu xmm0, [rdi + rcx]",
        "movdqu xmm1, [rsi + rcx]",
        "pcmpeqb xmm0, xmm1",
        "pmovmskb eax, xmm0",
        "sub eax, 0xffff",
        "jne 33f",
        "ret",
        // The lowest bit that is set in `eax` is that of the first byte that differs.
        "33:",
        "bsf eax, eax",
        "add rcx, rax",
        "movzx eax, byte ptr [rdi + rcx]",
        "movzx edx, byte ptr [rsi + rcx]",
        "sub eax, edx",
        "ret",
        // By 64 bytes, until some differ or fewer are left.
        "40:",
        "lea r8, [rdx - 64]",
        ".p2align 4",
        "41:",
        "movdqu xmm0, [rdi + rcx]",
        "movdqu xmm1, [rdi + rcx + 16]",
        "movdqu xmm2, [rdi + rcx + 32]",
        "movdqu xmm3, [rdi + rcx + 48]",
        "movdqu xmm4, [rsi + rcx]",
        "movdqu xmm5, [rsi + rcx + 16]",
        "movdqu xmm6, [rsi + rcx + 32]",
        "movdqu xmm7, [rsi + rcx + 48]",
        "pcmpeqb xmm0, xmm4",
        "pcmpeqb xmm1, xmm5",
        "pcmpeqb xmm2, xmm6",
        "pcmpeqb xmm3, xmm7",
        "pand xmm0, xmm1",
        "pand xmm2, xmm3",
        "pand xmm0, xmm2",
        "pmovmskb eax, xmm0",
        "cmp eax, 0xffff",
        "jne 30b",
        "add rcx, 64",
        "cmp rcx, r8",
        "jbe 41b",
        "jmp 30b",
        // 8 to 15: numbers of 8 bytes, the first byte the highest.
        "20:",
        "cmp edx, 8",
        "jb 21f",
        "mov rax, [rdi]",
        "mov rcx, [rsi]",
        "cmp rax, rcx",
        "jne 28f",
        "mov rax, [rdi + rdx - 8]",
        "mov rcx, [rsi + rdx - 8]",
        "cmp rax, rcx",
        "jne 28f",
        "xor eax, eax",
        "ret",
        "28:",
        "bswap rax",
        "bswap rcx",
        "cmp rax, rcx",
        "sbb eax, eax",
        "or eax, 1",
        "ret",
        // 4 to 7: both ends in one number.
        "21:",
        "cmp edx, 4",
        "jb 22f",
        "mov eax, [rdi]",
        "mov ecx, [rsi]",
        "mov r8d, [rdi + rdx - 4]",
        "mov r9d, [rsi + rdx - 4]",
        "shl r8, 32",
        "shl r9, 32",
        "or rax, r8",
        "or rcx, r9",
        "cmp rax, rcx",
        "jne 28b",
        "xor eax, eax",
        "ret",
        // 0 to 3.
        "22:",
        "test edx, edx",
        "je 24f",
        "movzx eax, byte ptr [rdi]",
        "movzx ecx, byte ptr [rsi]",
        "sub eax, ecx",
        "jne 25f",
        "cmp edx, 1",
        "je 25f",
        "movzx eax, byte ptr [rdi + 1]",
        "movzx ecx, byte ptr [rsi + 1]",
        "sub eax, ecx",
        "jne 25f",
        "movzx eax, byte ptr [rdi + rdx - 1]",
        "movzx ecx, byte ptr [rsi + rdx - 1]",
        "sub eax, ecx",
        "25:",
        "ret",
        "24:",
        "xor eax, eax",
        "ret",
        ".cfi_endproc",
    )
}

#[cfg(test)]
mod tests;
