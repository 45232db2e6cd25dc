//! `masu completions`: what a shell's Tab key needs to know, from the same definition as the help.
//!
//! Relies on clap_complete for each shell's language.

use std::io::{self, Write};

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::arguments::{self, Arguments};
use crate::exit::Ending;

/// Writes the shell's script to standard output.
pub(crate) fn perform(arguments: &arguments::Completions) -> Result<Ending> {
    // Made whole first: clap_complete takes a failure to write for a bug, and panics.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "masu", &mut script);
    io::stdout().write_all(&script).context("printing the completions")?;
    Ok(Ending::Done)
}
