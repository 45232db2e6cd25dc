//! The part of `operator new` that exceptions pass, on x86-64.
//!
//! It relies on the functions of `new.rs` that never unwind. The hard idea: `.cfi` lines tell the
//! unwinder how to leave each frame, and one hand-written exception table (the LSDA of the Itanium
//! C++ ABI, section 7 of "Exception Handling Tables") makes nothrow `new` catch what a handler
//! throws.

use core::arch::naked_asm;

use super::{attempt, installed_handler, throw_target};

/// Allocates; calls the installed handler until there is memory; throws `std::bad_alloc` without a handler.
#[unsafe(naked)]
pub(super) extern "C" fn new_slow(size: usize, align: usize) -> *mut u8 {
    naked_asm!(
        ".cfi_startproc",
        "push rbx",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbx, -16",
        "push r14",
        ".cfi_def_cfa_offset 24",
        ".cfi_offset r14, -24",
        "sub rsp, 8",
        ".cfi_def_cfa_offset 32",
        "mov rbx, rdi",
        "mov r14, rsi",
        "2:",
        "mov rdi, rbx",
        "mov rsi, r14",
        "call {attempt}",
        "test rax, rax",
        "jnz 3f",
        "call {installed_handler}",
        "test rax, rax",
        "jz 3f",
        "call rax",
        "jmp 2b",
        "3:",
        "add rsp, 8",
        ".cfi_def_cfa_offset 24",
        "pop r14",
        ".cfi_def_cfa_offset 16",
        ".cfi_restore r14",
        "pop rbx",
        ".cfi_def_cfa_offset 8",
        ".cfi_restore rbx",
        "test rax, rax",
        "jz {throw_bad_alloc}",
        "ret",
        ".cfi_endproc",
        installed_handler = sym installed_handler,
        attempt = sym attempt,
        throw_bad_alloc = sym throw_bad_alloc,
    )
}

/// Throws `std::bad_alloc` in the name of the caller; never returns.
#[unsafe(naked)]
pub(super) extern "C" fn throw_bad_alloc() -> *mut u8 {
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_def_cfa_offset 16",
        "call {throw_target}",
        "add rsp, 8",
        ".cfi_def_cfa_offset 8",
        "jmp rax",
        ".cfi_endproc",
        throw_target = sym throw_target,
    )
}

/// Allocates; calls the installed handler until there is memory; null without a handler, or if the handler throws.
#[unsafe(naked)]
pub(super) extern "C" fn new_nothrow_slow(size: usize, align: usize) -> *mut u8 {
    naked_asm!(
        ".weak __gxx_personality_v0",
        ".weak __cxa_begin_catch",
        ".weak __cxa_end_catch",
        // The address of the function that reads the exception table; 0 in a program without C++, where nothing throws.
        ".pushsection .data.rel.ro, \"aw\", @progbits",
        ".p2align 3",
        ".Lmasu_personality:",
        ".quad __gxx_personality_v0",
        ".popsection",
        ".cfi_startproc",
        // Encodings: 0x9b is the address of the address, 0x1b the address, both relative.
        ".cfi_personality 0x9b, .Lmasu_personality",
        ".cfi_lsda 0x1b, .Lmasu_lsda",
        "2:",
        "push rbx",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbx, -16",
        "push r14",
        ".cfi_def_cfa_offset 24",
        ".cfi_offset r14, -24",
        "sub rsp, 8",
        ".cfi_def_cfa_offset 32",
        "mov rbx, rdi",
        "mov r14, rsi",
        "3:",
        "mov rdi, rbx",
        "mov rsi, r14",
        "call {attempt}",
        "test rax, rax",
        "jnz 6f",
        "call {installed_handler}",
        "test rax, rax",
        "jz 6f",
        "4:",
        "call rax",
        "5:",
        "jmp 3b",
        "6:",
        ".cfi_remember_state",
        "add rsp, 8",
        ".cfi_def_cfa_offset 24",
        "pop r14",
        ".cfi_def_cfa_offset 16",
        "pop rbx",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_restore_state",
        // The landing pad: the exception is in rax; it is caught, destroyed, and null returned.
        "7:",
        "mov rdi, rax",
        "call qword ptr [rip + __cxa_begin_catch@GOTPCREL]",
        "call qword ptr [rip + __cxa_end_catch@GOTPCREL]",
        "xor eax, eax",
        "jmp 6b",
        ".cfi_endproc",
        exception_table!(),
        installed_handler = sym installed_handler,
        attempt = sym attempt,
    )
}
