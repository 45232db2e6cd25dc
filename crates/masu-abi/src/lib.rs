//! `libmasu.so` and `libmasu.a`: the malloc ABI of C and the operators of C++ over `masu`.
#![no_std]

use alloc_core::c;

/// As C's `malloc`.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut u8 {
    c::malloc(size)
}
/// As C's `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut u8) {
    unsafe { c::free(block) }
}
/// As C's `calloc`.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut u8 {
    c::calloc(count, size)
}
/// As C's `realloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    unsafe { c::realloc(block, size) }
}
/// As C's `aligned_alloc`.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut u8 {
    c::aligned_alloc(align, size)
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// The unwinder's hook: nothing here unwinds.
#[unsafe(no_mangle)]
pub extern "C" fn rust_eh_personality() {}
