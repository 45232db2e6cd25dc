//! `masu report`: saved results, read back and shown.
//!
//! Relies on the lab for reading and for every page. What is decided here is the form that the page
//! takes and where it goes.

use std::env;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use masu_lab::report::{Document, Format, render, set_width};
use ratatui::crossterm;

use crate::arguments;
use crate::aside;
use crate::exit::Ending;

/// Makes pages as wide as the terminal, or as `COLUMNS` says where there is none.
pub(crate) fn fit_terminal() {
    let of_terminal = || crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
    let said = || env::var("COLUMNS").ok()?.parse::<usize>().ok();
    let columns = if io::stdout().is_terminal() { of_terminal() } else { said() };
    if let Some(columns) = columns.filter(|columns| *columns > 0) {
        set_width(columns);
    }
}

/// A report ready to be made.
pub(crate) struct Request {
    document: Document,
    format: Format,
    output: Option<PathBuf>,
}

impl Request {
    /// Reads the results.
    pub(crate) fn prepare(arguments: arguments::Report) -> Result<Self> {
        let arguments::Report { files, format, output } = arguments;
        let format = match (format, &output) {
            (Some(format), _) => format,
            (None, None) => Format::Text,
            (None, Some(path)) => asked_for_by(path)?,
        };
        if let Some(output) = &output {
            refuse_to_replace(&files, output)?;
        }
        Ok(Self { document: Document::read(&files)?, format, output })
    }

    /// Writes the page.
    pub(crate) fn perform(self) -> Result<Ending> {
        let mut page = render(&self.document, self.format);
        match &self.output {
            Some(path) => {
                if self.format == Format::Text {
                    // Styles are for terminals; a file is read as it is.
                    page = anstream::adapter::strip_str(&page).to_string();
                }
                fs::write(path, page).with_context(|| format!("writing {}", path.display()))?;
                aside::say(format_args!("The report is in {}.", path.display()));
            }
            None if self.format == Format::Text => {
                write!(anstream::stdout(), "{page}").context("printing the report")?;
            }
            None => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(page.as_bytes()).context("printing the report")?;
            }
        }
        Ok(Ending::Done)
    }
}

fn asked_for_by(path: &Path) -> Result<Format> {
    let Some(format) = Format::of_file(path) else {
        let names: Vec<&str> = Format::ALL.iter().map(|(_, name)| *name).collect();
        bail!(
            "{}: the name says no format; end it in .txt, .md, .csv, .html or .json, or give --format ({})",
            path.display(),
            names.join(", ")
        );
    };
    Ok(format)
}

/// A report in place of the results it was made from would lose them.
fn refuse_to_replace(files: &[PathBuf], output: &Path) -> Result<()> {
    let Ok(output) = output.canonicalize() else { return Ok(()) };
    for file in files {
        if file.canonicalize().is_ok_and(|file| file == output) {
            bail!("{}: the report would replace the results it is made from", file.display());
        }
    }
    Ok(())
}
