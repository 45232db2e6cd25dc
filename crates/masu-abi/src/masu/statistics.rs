//! Statistics for C: `masu_statistics…`.
//!
//! It relies on `masu::statistics` for the numbers and for the two forms of text. The hard idea: a
//! program and its library may be of different versions, so the caller passes the length of its
//! structures; new numbers come at the end, and an older library leaves zeros there.

use core::ffi::{c_char, c_int};
use core::ptr::{self, NonNull};

use alloc_core::statistics;

use crate::libc;

/// Writes up to `size` bytes of the numbers to `*result`, zeros behind them; returns the length of all numbers in
/// bytes.
///
/// # Safety
///
/// - `size` bytes may be written to `result`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_statistics(result: *mut u8, size: usize) -> usize {
    // SAFETY: The caller's condition; a structure of plain numbers is bytes.
    unsafe { copy(&statistics::now(), result, size) }
}

/// Writes a row for each of the first `count` size classes, each up to `row_size` bytes long; returns the number of
/// classes.
///
/// # Safety
///
/// - `count` × `row_size` bytes may be written to `rows`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_statistics_classes(
    rows: *mut u8,
    row_size: usize,
    count: usize,
) -> usize {
    // SAFETY: The caller's condition.
    unsafe { copy_rows(statistics::classes(), rows, row_size, count) }
}

/// Writes a row for each of the first `count` thread caches, the youngest first, each up to `row_size` bytes long;
/// returns the number of caches.
///
/// # Safety
///
/// - `count` × `row_size` bytes may be written to `rows`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_statistics_threads(
    rows: *mut u8,
    row_size: usize,
    count: usize,
) -> usize {
    // SAFETY: The caller's condition.
    unsafe { copy_rows(statistics::threads(), rows, row_size, count) }
}

/// Writes all statistics as text for people and a zero byte, at most `size` bytes; returns the length
/// of the whole text.
///
/// # Safety
///
/// - `size` bytes may be written to `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_statistics_text(buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: The caller's condition.
    unsafe { into_buffer(statistics::text, buffer.cast(), size) }
}

/// [`masu_statistics_text`] as one JSON object on a line.
///
/// # Safety
///
/// - As [`masu_statistics_text`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_statistics_json(buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: The caller's condition.
    unsafe { into_buffer(statistics::json, buffer.cast(), size) }
}

/// Writes all statistics as text for people to a file; 0 or an error number.
#[unsafe(no_mangle)]
pub extern "C" fn masu_statistics_text_to(descriptor: c_int) -> c_int {
    into_file(statistics::text, descriptor)
}

/// Writes all statistics as one JSON object on a line to a file; 0 or an error number.
#[unsafe(no_mangle)]
pub extern "C" fn masu_statistics_json_to(descriptor: c_int) -> c_int {
    into_file(statistics::json, descriptor)
}

type Form = fn(&mut dyn FnMut(&[u8]));

/// Copies a structure as far as it fits, and zeros the rest; returns its length.
///
/// # Safety
///
/// - `T` has no padding.
/// - `size` bytes may be written to `result`.
pub(super) unsafe fn copy<T>(value: &T, result: *mut u8, size: usize) -> usize {
    let length = size.min(size_of::<T>());
    // SAFETY: Both are at least that long and do not overlap.
    unsafe { ptr::copy_nonoverlapping(ptr::from_ref(value).cast(), result, length) };
    // SAFETY: The caller's second condition.
    unsafe { result.wrapping_add(length).write_bytes(0, size - length) };
    size_of::<T>()
}

/// # Safety
///
/// - As [`copy`], for `count` rows of `row_size` bytes.
unsafe fn copy_rows<T>(
    values: impl Iterator<Item = T>,
    rows: *mut u8,
    row_size: usize,
    count: usize,
) -> usize {
    let mut total = 0;
    for value in values {
        if total < count {
            let row = rows.wrapping_add(total * row_size);
            // SAFETY: The caller's condition.
            unsafe { copy(&value, row, row_size) };
        }
        total += 1;
    }
    total
}

/// # Safety
///
/// - `size` bytes may be written to `buffer`.
#[inline(never)]
unsafe fn into_buffer(form: Form, buffer: *mut u8, size: usize) -> usize {
    let room = size.saturating_sub(1);
    let mut length = 0_usize;
    form(&mut |piece| {
        let fits = room.saturating_sub(length).min(piece.len());
        let place = buffer.wrapping_add(length.min(room));
        // SAFETY: At least `fits` bytes are left.
        unsafe { ptr::copy_nonoverlapping(piece.as_ptr(), place, fits) };
        length += piece.len();
    });
    if let Some(end) = NonNull::new(buffer.wrapping_add(length.min(room))).filter(|_| size > 0) {
        // SAFETY: The last byte was kept for this.
        unsafe { end.write(0) };
    }
    length
}

/// Writes text in pieces of up to 1 KiB, because each is a system call; 0 or the first error number.
#[inline(never)]
fn into_file(form: Form, descriptor: c_int) -> c_int {
    let mut pending = [0; 1024];
    let mut count = 0;
    let mut failed = 0;
    form(&mut |piece| {
        if count + piece.len() > pending.len() {
            failed =
                if failed == 0 { libc::write_all(descriptor, &pending[..count]) } else { failed };
            count = 0;
        }
        // Pieces are names and numbers, far shorter than this.
        if let Some(room) = pending.get_mut(count..count + piece.len()) {
            room.copy_from_slice(piece);
            count += piece.len();
        }
    });
    if failed == 0 { libc::write_all(descriptor, &pending[..count]) } else { failed }
}

/// Registers the statistics to be written to standard error at the program's end, if requested.
pub(crate) fn announce() {
    extern "C" fn at_exit(_: *mut core::ffi::c_void) {
        let _ = masu_statistics_text_to(2);
    }
    if statistics::is_wanted_at_exit() && !libc::at_exit(at_exit) {
        libc::warn(c"masu: MASU_STATISTICS_AT_EXIT has no effect in a static program\n");
    }
}
