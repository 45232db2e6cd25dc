//! The manual page and the completions, from the same definition as the help.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::arguments::Arguments;
use crate::exit::Ending;

/// The text of the page without the options; the options replace the comment in the file.
const TEXT: &str = include_str!("manual.roff");

/// Writes the page's source to standard output.
pub(crate) fn print() -> Result<(), Ending> {
    page().and_then(|page| write(&page)).map_err(|error| Ending::of_output(&error))
}

fn page() -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(Arguments::command()).title("XQUO").manual("masu manual");
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    let (before, after) = TEXT.split_once(".\\\" options\n").unwrap_or(("", TEXT));
    page.extend(before.bytes());
    man.render_options_section(&mut page)?;
    page.extend(after.bytes());
    Ok(page)
}

/// Writes a shell's script to standard output.
pub(crate) fn print_completions(shell: Shell) -> Result<(), Ending> {
    // Into memory first, because clap_complete panics when a write fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "xquo", &mut script);
    write(&script).map_err(|error| Ending::of_output(&error))
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}
