//! `dlopen` without `RTLD_DEEPBIND`.
//!
//! A library opened with this flag finds the C library's `free` before masu's, and gives it blocks of masu's. PHP opens
//! all its modules this way, so it ends at its start under any preloaded malloc. So the flag is removed, unless the
//! option `deepbind` keeps it. It relies on the C library's `dlopen` for the rest. The hard idea: that function takes
//! its return address as the library that asks, and follows that library's search path. So this function jumps to the C
//! library's function and never calls it. musl ignores the flag, so this is not built there.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use alloc_core::options;

use crate::libc;

const RTLD_DEEPBIND: c_int = 8;

/// The function to jump to, null for none, and its flags.
#[repr(C)]
struct Plan {
    next: *mut c_void,
    flags: usize,
}

extern "C" fn plan(flags: c_int) -> Plan {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    // ORDERING: Relaxed: the address publishes nothing; its code was mapped before the program ran.
    let mut next = NEXT.load(Ordering::Relaxed);
    if next.is_null() {
        next = libc::next_dlopen();
        // ORDERING: Relaxed, as above.
        NEXT.store(next, Ordering::Relaxed);
    }
    let is_kept = flags & RTLD_DEEPBIND == 0 || options::get("deepbind") == Ok(Some(1));
    let flags = if is_kept { flags } else { flags & !RTLD_DEEPBIND };
    Plan { next, flags: flags.cast_unsigned() as usize }
}

/// `dlopen(3)`; null where the program has no dynamic linker.
///
/// # Safety
///
/// - The caller keeps the contract of the C library's `dlopen`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "push rdi",
        "sub rsp, 16",
        "mov edi, esi",
        "call {plan}",
        "add rsp, 16",
        "pop rdi",
        "mov esi, edx",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "ret",
        plan = sym plan,
    )
}

/// `dlopen(3)`; null where the program has no dynamic linker.
///
/// # Safety
///
/// - The caller keeps the contract of the C library's `dlopen`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "str x0, [sp, #16]",
        "mov w0, w1",
        "bl {plan}",
        "mov x16, x0",
        "ldr x0, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbz x16, 2f",
        "br x16",
        "2:",
        "mov x0, xzr",
        "ret",
        plan = sym plan,
    )
}
