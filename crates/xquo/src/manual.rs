//! The manual page and the completions, from the same definition as the help.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::arguments::Arguments;
use crate::exit::Ending;

const DESCRIPTION: &[&str] = &[
    "Each record becomes one line in single quotes, in which bash finds nothing to do; read by bash, it is exactly the \
     bytes of the record again. The quote itself, and unless -n is given line feed, carriage return and backspace, are \
     escaped. All other bytes pass as they are, whatever the encoding.",
    "Records may be of any length: memory does not depend on it. What has been read is quoted and written at once when \
     nothing more waits.",
];

const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "All is done, or whoever reads the output has seen enough."),
    ("1", "The input could not be read or the output not be written; one line says why."),
    ("2", "The arguments are wrong, or the input is a terminal and -t was not given."),
];

const EXAMPLES: &[&str] = &[
    "find . -type f -print0 | xquo",
    "find . -print0 | xquo | sed 's/^/rm /' > review-me.sh",
    "xquo -i lf < names.txt",
];

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
    let mut roff = Roff::new();
    roff.control("SH", ["DESCRIPTION"]);
    for text in DESCRIPTION {
        roff.control("PP", []);
        roff.text([roman(*text)]);
    }
    roff.to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in EXIT_STATUS {
        roff.control("TP", []);
        roff.text([bold(*code)]);
        roff.text([roman(*meaning)]);
    }
    roff.control("SH", ["EXAMPLES"]);
    roff.control("nf", []);
    for example in EXAMPLES {
        roff.text([roman(*example)]);
    }
    roff.control("fi", []);
    roff.control("SH", ["SEE ALSO"]);
    roff.text([
        bold("bash"),
        roman("(1), "),
        bold("find"),
        roman("(1), "),
        bold("xargs"),
        roman("(1)"),
    ]);
    roff.to_writer(&mut page)?;
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
