//! Options: the settings that a program or its user may change.
//!
//! [`ALL`] lists them. The `const` functions of [`Masu`](crate::Masu) set them (`Masu::new().retain(0)`). Environment
//! variables (`MASU_RETAIN=0`) override those, and [`set`] overrides both.

use crate::memory::ranges::stripes;
#[cfg(debug_assertions)]
use crate::platform::kernel;
use crate::settings;
use crate::threads::thread;
pub use settings::{ALL, Description, Refusal, TEXTS, Text, Unit, c_name};

/// The value of the option `name`, such as `retain`: as [`set`] last set it, else from its variable, else as the program
/// was built, else the default; `None` where the default follows the program.
///
/// ```
/// assert!(masu::options::get("retain").is_ok());
/// assert!(masu::options::get("no such option").is_err());
/// ```
///
/// # Errors
///
/// If there is no such option.
pub fn get(name: impl AsRef<[u8]>) -> Result<Option<usize>, Refusal> {
    thread::read_options_once();
    settings::get(name.as_ref())
}

/// Sets the option `name` to `value`, or to its default with `None`. [`Description::holds`] says when that takes effect.
///
/// ```
/// masu::options::set("retain", Some(64 << 20))?;
/// assert_eq!(masu::options::get("retain")?, Some(64 << 20));
/// # Ok::<(), masu::options::Refusal>(())
/// ```
///
/// # Errors
///
/// If there is no such option, or it does not accept the value.
pub fn set(name: impl AsRef<[u8]>, value: Option<usize>) -> Result<(), Refusal> {
    settings::set(name.as_ref(), value)?;
    thread::apply_guard_rate();
    Ok(())
}

/// As [`set`], with the value in the form of its variable: `64M`.
///
/// ```
/// masu::options::parse("retain", "64M")?;
/// assert_eq!(masu::options::get("retain")?, Some(64 << 20));
/// # Ok::<(), masu::options::Refusal>(())
/// ```
///
/// # Errors
///
/// As [`set`].
pub fn parse(name: impl AsRef<[u8]>, text: impl AsRef<[u8]>) -> Result<(), Refusal> {
    let value = settings::parse(name.as_ref(), text.as_ref())?;
    set(name, Some(value))
}

/// For masu's own tests: adds stripes of free runs, as threads that wait for each other do. Returns the number of
/// stripes; the hardened build has one.
#[doc(hidden)]
#[must_use]
pub fn widen_stripes() -> usize {
    stripes::widen_now()
}

/// For masu's own tests: refuses one call for memory in `rate` from now on, as if the kernel had none; 0 ends it.
#[doc(hidden)]
#[cfg(debug_assertions)]
pub fn refuse_calls(rate: usize) {
    kernel::refuse_calls(rate);
}
