//! Calls a loaded function as a program's `main`.
//!
//! Relies on [`super::Function`], which keeps the object during the call. C's streams are flushed after the call, so that
//! the caller's own output comes after.

use std::ffi::{CStr, c_char, c_int};

use super::{Arena, Handle};
use crate::error::Error;
use crate::process;

type Main = unsafe extern "C" fn(c_int, *const *const c_char) -> c_int;

impl Arena {
    /// Calls `int NAME(int argc, char **argv)` and returns its result; the C library's streams are flushed afterwards.
    ///
    /// `arguments` are all of `argv`: the first is the program's name. A function without arguments may be called this
    /// way, too.
    ///
    /// # Safety
    ///
    /// - The symbol is a function of that type, or takes nothing and returns an `int`.
    /// - Running it now is sound.
    ///
    /// # Errors
    ///
    /// [`Error::NoObject`], [`Error::NoSymbol`].
    pub unsafe fn call_main(
        &self,
        object: Handle,
        name: &str,
        arguments: &[&CStr],
    ) -> Result<i32, Error> {
        // SAFETY: By the caller's condition the symbol is a function of this type.
        let function = unsafe { self.function::<Main>(object, name)? };
        let mut words: Vec<*const c_char> = arguments.iter().map(|word| word.as_ptr()).collect();
        let count = c_int::try_from(words.len()).unwrap_or(c_int::MAX);
        words.push(std::ptr::null());
        // SAFETY: The caller's conditions; the words outlive the call.
        let returned = unsafe { function(count, words.as_ptr()) };
        process::flush_streams();
        Ok(returned)
    }
}
