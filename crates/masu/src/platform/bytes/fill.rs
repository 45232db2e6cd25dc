//! `memset`.
//!
//! Relies on its parent for the name and for the lengths at which the method changes.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};

use super::STRING_FROM;

/// `memset`: fills `length` bytes with the lowest 8 bits of `byte` and returns `to`.
///
/// # Safety
///
/// - `to` is writable for `length` bytes.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn fill(to: *mut c_void, byte: c_int, length: usize) -> *mut c_void {
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
        // More than 128: the first 16 bytes unaligned, then by 16 aligned, the last 64 unaligned.
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
