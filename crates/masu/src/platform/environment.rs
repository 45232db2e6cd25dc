//! The environment: variables that the program was started with, read without the C library's `getenv`.
//!
//! Relies on the C library's door for the list's address. The hard idea is *when* the list exists: `libmasu.so` gets
//! its first request, and its constructor runs, before glibc has set `environ` (musl sets it first of all). glibc
//! passes the list to every constructor, so [`Environment::at`] takes it from there. A program that masu is linked into
//! allocates first in its own code or its runtime's, when `environ` is set. `/proc/self/environ` would serve all of
//! them, at three system calls for each program start, and not without `/proc`.
//!
//! The list is never kept for later: the program may change it.

use core::ffi::{CStr, c_char};
use core::ptr::NonNull;

use crate::platform::libc;

/// The list of variables, valid while the program does not change it: read it at once and drop it.
#[derive(Debug)]
pub struct Environment {
    first: NonNull<*const c_char>,
}

impl Environment {
    /// The list that a constructor was passed; `None` where there is none, and where the program has more rights than
    /// the user who set the variables (set-user-ID and the like, `AT_SECURE`).
    ///
    /// # Safety
    ///
    /// - `list` is null, or an array of strings that ends with null, and nothing changes it while this value lives.
    #[must_use]
    pub unsafe fn at(list: *const *const c_char) -> Option<Environment> {
        let first = NonNull::new(list.cast_mut())?;
        (!libc::is_secure()).then_some(Environment { first })
    }

    /// The C library's list; `None` also while the C library does not have it yet.
    ///
    /// A thread that changes the environment at the same time disturbs this, as it does `getenv`.
    #[must_use]
    pub fn current() -> Option<Environment> {
        // SAFETY: The C library keeps the list in this form; see above for changes.
        unsafe { Environment::at(libc::environment()) }
    }

    /// The value of the variable `name`, if it is set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&CStr> {
        self.beginning_with(name.as_bytes()).find_map(|rest| match rest.to_bytes() {
            // SAFETY: There is an equals sign before the rest of the string.
            [b'=', ..] => Some(unsafe { CStr::from_ptr(rest.as_ptr().add(1)) }),
            _ => None,
        })
    }

    /// The rest of each entry that begins with `prefix`, which contains no zero: the rest of the name, an equals sign,
    /// the value.
    pub fn beginning_with(&self, prefix: &[u8]) -> impl Iterator<Item = &CStr> {
        let mut next = self.first;
        core::iter::from_fn(move || {
            loop {
                // SAFETY: The list goes on up to a null, at which the iteration stops for good: `next` stays there.
                let variable = NonNull::new(unsafe { next.read() }.cast_mut())?;
                // SAFETY: The entry was not the null at the end.
                next = unsafe { next.add(1) };
                // SAFETY: The entry is a string that stays while this value lives.
                if let Some(rest) = unsafe { behind(variable, prefix) } {
                    return Some(rest);
                }
            }
        })
    }
}

/// The rest of `variable` behind `prefix`, if it begins with it. Reads no further than the first byte that differs:
/// programs have dozens of long variables.
///
/// # Safety
///
/// - `variable` is a string that nothing changes during `'a`.
unsafe fn behind<'a>(variable: NonNull<c_char>, prefix: &[u8]) -> Option<&'a CStr> {
    let mut place = variable.cast::<u8>();
    for byte in prefix {
        // SAFETY: No byte so far was zero, because `prefix` has none, so the string goes on.
        if unsafe { place.read() } != *byte {
            return None;
        }
        // SAFETY: As above: this byte was not zero either.
        place = unsafe { place.add(1) };
    }
    // SAFETY: The rest of a string is one.
    Some(unsafe { CStr::from_ptr(place.cast().as_ptr()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let list = [c"MASU_X1=no", c"MASU_X=", c"MASU_X=second", c"Y=a=b"].map(CStr::as_ptr);
        let list = [list[0], list[1], list[2], list[3], ptr::null()];
        // SAFETY: The list ends in null and outlives the value.
        let environment = unsafe { Environment::at(list.as_ptr()) }.expect("tests are not secure");
        assert_eq!(environment.get("MASU_X"), Some(c""));
        assert_eq!(environment.get("Y"), Some(c"a=b"));
        assert_eq!(environment.get("MASU_"), None);
        assert_eq!(environment.get("MASU_X=second"), None);
    }

    #[test]
    fn variables_with_a_prefix_are_found_in_order() {
        let list =
            [c"MASU_A=1", c"MASU=2", c"MASU_", c"OTHER=MASU_", c"MASU_A=3"].map(CStr::as_ptr);
        let list = [list[0], list[1], list[2], list[3], list[4], ptr::null()];
        // SAFETY: The list ends in null and outlives the value.
        let environment = unsafe { Environment::at(list.as_ptr()) }.expect("tests are not secure");
        assert!(environment.beginning_with(b"MASU_").eq([c"A=1", c"", c"A=3"]));
        assert_eq!(environment.beginning_with(b"").count(), 5);
    }

    #[test]
    fn the_current_environment_is_the_program_s_and_an_absent_list_is_none() {
        // SAFETY: Null is allowed.
        assert!(unsafe { Environment::at(ptr::null()) }.is_none());
        let environment = Environment::current().expect("tests are not secure");
        assert!(environment.get("PATH").is_some_and(|value| !value.is_empty()));
    }
}
