//! The command line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Parser, ValueEnum};
use clap_complete::Shell;

const EXAMPLES: &str = "\
Each record becomes one line in single quotes, in which bash finds nothing to do:
what a line cannot hold is escaped, the quote itself as '\"'\"'.

Examples:
  find . -type f -print0 | xquo
  find . -print0 | xquo | sed 's/^/rm /' > review-me.sh
  xquo -i lf < names.txt
  xquo --completions bash > /etc/bash_completion.d/xquo

Exit: 0 done, also when the reader of the output has seen enough; 1 input or output failed; 2 usage";

/// Quote NUL-separated records for bash, one line each
#[derive(Debug, Parser)]
#[command(name = "xquo", version, after_help = EXAMPLES, override_usage = "xquo [OPTIONS] < FILE")]
pub(crate) struct Arguments {
    /// Leave line feeds, carriage returns and backspaces as they are
    #[arg(short, long)]
    pub(crate) no_escape: bool,

    /// The end of each line of the output
    #[arg(short, long, value_enum, default_value_t = OutDelimiter::Lf, value_name = "DELIMITER")]
    pub(crate) out_delimiter: OutDelimiter,

    /// The end of each record of the input: null, lf, tab, or any one byte
    #[arg(short, long, default_value = "null", value_name = "DELIMITER",
        value_parser = OsStringValueParser::new().try_map(in_delimiter))]
    pub(crate) in_delimiter: u8,

    /// The number of pieces to quote at once; more than there are cores are not used, 0 means 1
    #[arg(short, long, default_value_t = 1, value_name = "N")]
    pub(crate) workers: u8,

    /// Accepted and without effect: the work is cut by bytes, not by records
    #[arg(short, long, default_value_t = 100, value_name = "N")]
    pub(crate) bulk_lines: u64,

    /// Read also from a terminal
    #[arg(short = 't', long)]
    pub(crate) input_from_tty: bool,

    /// Print the manual page: xquo --man | man -l -
    #[arg(long, exclusive = true)]
    man: bool,

    /// Print what a shell needs to complete xquo's arguments
    #[arg(long, exclusive = true, value_name = "SHELL")]
    completions: Option<Shell>,
}

/// A text printed instead of quoting.
pub(crate) enum Printed {
    Manual,
    Completions(Shell),
}

impl Arguments {
    /// The text to print instead of quoting, if any.
    pub(crate) fn printed(&self) -> Option<Printed> {
        let completions = self.completions.map(Printed::Completions);
        if self.man { Some(Printed::Manual) } else { completions }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutDelimiter {
    Null,
    Lf,
}

impl OutDelimiter {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Lf => b'\n',
        }
    }
}

fn in_delimiter(text: OsString) -> Result<u8, &'static str> {
    match text.as_bytes() {
        b"null" => Ok(0),
        b"lf" => Ok(b'\n'),
        b"tab" => Ok(b'\t'),
        &[byte] => Ok(byte),
        _ => Err("it is null, lf, tab, or one byte such as `,`"),
    }
}
