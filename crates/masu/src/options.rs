//! Options: what a program, or its user, may set about the allocator.
//!
//! [`ALL`] lists them. They are set by the functions of [`Masu`](crate::Masu) that build one (`Masu::new().retain(0)`), by
//! variables (`MASU_RETAIN=0`), which count more, and by [`set`] while the program runs, which counts most.

use crate::settings;
use crate::threads::thread;
pub use settings::{ALL, Description, Refusal, TEXTS, Text, Unit, c_name};

/// The value that holds for the option `name` (such as `retain`): what [`set`] said, else its
/// variable, else what the program was built with, else its default; `None` where the default follows
/// the program.
///
/// # Errors
///
/// If there is no such option.
pub fn get(name: impl AsRef<[u8]>) -> Result<Option<usize>, Refusal> {
    thread::settle();
    settings::get(name.as_ref())
}

/// Has `value` hold for the option `name` from now on, whatever was set before; its default with
/// `None`. [`Description::holds`] says when that is seen.
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
    thread::follow_guards();
    Ok(())
}

/// As [`set`], with a value as the variable has it: `64M`.
///
/// # Errors
///
/// As [`set`].
pub fn parse(name: impl AsRef<[u8]>, text: impl AsRef<[u8]>) -> Result<(), Refusal> {
    let value = settings::parse(name.as_ref(), text.as_ref())?;
    set(name, Some(value))
}
