//! Notices beside the result, on standard error.
//!
//! Failures to write are passed over, so that a reader that is gone does not end a comparison.

use std::fmt::Display;
use std::io::Write;

/// Writes a line to standard error, with colors where it shows them.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(anstream::stderr(), "{line}");
}
