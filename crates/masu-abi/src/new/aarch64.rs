//! The part of `operator new` that exceptions pass, on aarch64.
//!
//! It relies on the functions of `new.rs` that never unwind. The hard idea is the same as in the x86-64 file beside it,
//! in the same order and with the same exception table: `.cfi` lines tell the unwinder how to leave each frame, and the
//! table makes nothrow `new` catch what a handler throws.

use core::arch::naked_asm;

use super::{attempt, installed_handler, throw_target};

/// Allocates; calls the installed handler until there is memory; throws `std::bad_alloc` without a handler.
#[unsafe(naked)]
pub(super) extern "C" fn new_slow(size: usize, align: usize) -> *mut u8 {
    naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset x29, -32",
        ".cfi_offset x30, -24",
        "stp x19, x20, [sp, #16]",
        ".cfi_offset x19, -16",
        ".cfi_offset x20, -8",
        "mov x29, sp",
        "mov x19, x0",
        "mov x20, x1",
        "2:",
        "mov x0, x19",
        "mov x1, x20",
        "bl {attempt}",
        "cbnz x0, 3f",
        "bl {installed_handler}",
        "cbz x0, 3f",
        "blr x0",
        "b 2b",
        "3:",
        "ldp x19, x20, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore x19",
        ".cfi_restore x20",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "cbnz x0, 4f",
        "b {throw_bad_alloc}",
        "4:",
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
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset x29, -16",
        ".cfi_offset x30, -8",
        "bl {throw_target}",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "br x0",
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
        ".pushsection .data.rel.ro, \"aw\", %progbits",
        ".p2align 3",
        ".Lmasu_personality:",
        ".xword __gxx_personality_v0",
        ".popsection",
        ".cfi_startproc",
        ".cfi_personality 0x9b, .Lmasu_personality",
        ".cfi_lsda 0x1b, .Lmasu_lsda",
        "2:",
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset x29, -32",
        ".cfi_offset x30, -24",
        "stp x19, x20, [sp, #16]",
        ".cfi_offset x19, -16",
        ".cfi_offset x20, -8",
        "mov x29, sp",
        "mov x19, x0",
        "mov x20, x1",
        "3:",
        "mov x0, x19",
        "mov x1, x20",
        "bl {attempt}",
        "cbnz x0, 6f",
        "bl {installed_handler}",
        "cbz x0, 6f",
        "4:",
        "blr x0",
        "5:",
        "b 3b",
        "6:",
        ".cfi_remember_state",
        "ldp x19, x20, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore x19",
        ".cfi_restore x20",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "ret",
        ".cfi_restore_state",
        // The landing pad: the exception is in x0; it is caught, destroyed, and null returned.
        "7:",
        "adrp x8, :got:__cxa_begin_catch",
        "ldr x8, [x8, :got_lo12:__cxa_begin_catch]",
        "blr x8",
        "adrp x8, :got:__cxa_end_catch",
        "ldr x8, [x8, :got_lo12:__cxa_end_catch]",
        "blr x8",
        "mov x0, xzr",
        "b 6b",
        ".cfi_endproc",
        exception_table!(),
        installed_handler = sym installed_handler,
        attempt = sym attempt,
    )
}
