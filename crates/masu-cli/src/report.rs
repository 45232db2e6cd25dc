//! `masu report`: saved results, read back and shown; the form that a page takes and where it goes.

use std::env;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use console::Term;
use masu_lab::page::{Form, Page, set_width};
use masu_lab::report::{Format, Saved, render};

use crate::arguments;
use crate::exit::Ending;
use crate::notices;

/// Makes pages as wide as the terminal, or as `COLUMNS` says where there is none.
pub(crate) fn fit_terminal() {
    let of_terminal = || Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    let said = || env::var("COLUMNS").ok()?.parse::<usize>().ok();
    let columns = if io::stdout().is_terminal() { of_terminal() } else { said() };
    if let Some(columns) = columns.filter(|columns| *columns > 0) {
        set_width(columns);
    }
}

pub(crate) struct Request {
    saved: Saved,
    format: Format,
    output: Option<PathBuf>,
}

impl Request {
    pub(crate) fn prepare(arguments: arguments::Report) -> Result<Self> {
        let arguments::Report { files, format, output } = arguments;
        let format = match (format, &output) {
            (Some(format), _) => format,
            (None, None) => Format::Text,
            (None, Some(path)) => {
                let names = Format::ALL.map(Format::name).join(", ");
                asked_for_by(path, &format!(".csv, .html or .json, or give --format ({names})"))?
            }
        };
        refuse_to_replace(&files, output.as_deref(), "results")?;
        let saved = Saved::read(&files)?;
        if format == Format::Csv && matches!(saved, Saved::Diagnoses(_)) {
            bail!("CSV is for the runs of a comparison; these files are diagnoses");
        }
        Ok(Self { saved, format, output })
    }

    pub(crate) fn perform(self) -> Result<Ending> {
        let output = self.output.as_deref();
        match &self.saved {
            Saved::Comparisons(document) => {
                write(render(document, self.format), self.format, output)?;
            }
            Saved::Diagnoses(diagnoses) => {
                let json = || serde_json::to_string_pretty(diagnoses);
                write_page(&diagnoses.page(), json, self.format, output)?;
            }
        }
        Ok(Ending::Done)
    }
}

/// The form of a page: JSON if the user asks for it, else the form that the output's name implies. An output that
/// cannot be written is refused at once, before there is something to write.
pub(crate) fn format_of(json: bool, output: Option<&Path>) -> Result<Format> {
    let format = named_format(json, output)?;
    output.map_or(Ok(()), try_to_write)?;
    Ok(format)
}

/// Refuses an output that cannot be written, before there is something to write; a file that is already there stays.
pub(crate) fn try_to_write(output: &Path) -> Result<()> {
    let is_new = fs::symlink_metadata(output).is_err();
    // The reader of a pipe would take this for its end.
    if fs::metadata(output).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    let opened = OpenOptions::new().append(true).create(true).open(output);
    opened.with_context(|| format!("writing {}", output.display()))?;
    if is_new {
        fs::remove_file(output).with_context(|| format!("trying {}", output.display()))?;
    }
    Ok(())
}

fn named_format(json: bool, output: Option<&Path>) -> Result<Format> {
    match output {
        Some(path) if json && Format::of_file(path).is_some_and(|named| named != Format::Json) => {
            bail!(
                "{}: --json writes JSON, and the name says another format; end it in .json, or leave --json out",
                path.display()
            )
        }
        _ if json => Ok(Format::Json),
        None => Ok(Format::Text),
        Some(path) => match asked_for_by(path, ".html or .json")? {
            Format::Csv => {
                bail!("{}: CSV is for the runs of a comparison: masu report", path.display())
            }
            format => Ok(format),
        },
    }
}

/// Prints or saves `page`; `json` says the same for programs. Where it cannot be saved it is printed, so that no work
/// is lost.
pub(crate) fn write_page(
    page: &Page,
    json: impl FnOnce() -> serde_json::Result<String>,
    format: Format,
    output: Option<&Path>,
) -> Result<()> {
    let text = match format {
        Format::Markdown => page.render(Form::Markdown, ""),
        Format::Html => page.render(Form::Html, ""),
        Format::Json => format!("{}\n", json().context("writing JSON")?),
        _ => page.render(Form::Text, ""),
    };
    let written = write(text, format, output);
    if written.is_err() && output.is_some() {
        write(page.render(Form::Text, ""), Format::Text, None)?;
    }
    written
}

fn write(mut page: String, format: Format, output: Option<&Path>) -> Result<()> {
    let Some(path) = output else {
        return match format {
            Format::Text => write!(anstream::stdout(), "{page}"),
            _ => io::stdout().lock().write_all(page.as_bytes()),
        }
        .context("printing the report");
    };
    if format == Format::Text {
        // Styles are for terminals; a file is read as it is.
        page = anstream::adapter::strip_str(&page).to_string();
    }
    save(path, page.as_bytes())?;
    notices::say(format_args!("The report is in {}.", path.display()));
    Ok(())
}

/// Writes a file whole or not at all: on a full disk the old one stays.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, bytes).with_context(|| format!("writing {}", path.display()))
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let old = fs::metadata(path).ok();
    // A pipe or a device is no file that another could replace.
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return fs::write(path, bytes);
    }
    // A link stays, and leads to the new file.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mode = old.map_or(Permissions::from_mode(0o666), |old| old.permissions());
    let mut builder = tempfile::Builder::new();
    let passing =
        builder.prefix(".masu-").permissions(mode).tempfile_in(folder.unwrap_or(Path::new(".")));
    let mut passing = match passing {
        Ok(passing) => passing,
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            return Err(error.kind().into());
        }
        // The folder takes no new file; the old file may still be written to.
        Err(_) => return fs::write(path, bytes),
    };
    passing.write_all(bytes)?;
    match passing.persist(path) {
        Ok(_) => Ok(()),
        // A file that a container mounts cannot be replaced; the disk has room for it.
        Err(refused) => {
            drop(refused.file);
            fs::write(path, bytes)
        }
    }
}

/// The form that a file's name asks for, in which `others` may be beside text and Markdown.
fn asked_for_by(path: &Path, others: &str) -> Result<Format> {
    let Some(format) = Format::of_file(path) else {
        bail!("{}: the name says no format; end it in .txt, .md, {others}", path.display());
    };
    Ok(format)
}

/// Refuses to write in place of the files that the output is made from: that would lose them.
pub(crate) fn refuse_to_replace<P: AsRef<Path>>(
    files: &[P],
    output: Option<&Path>,
    what: &str,
) -> Result<()> {
    let Some(output) = output.and_then(|path| path.canonicalize().ok()) else { return Ok(()) };
    for file in files.iter().map(AsRef::as_ref) {
        if file.canonicalize().is_ok_and(|file| file == output) {
            bail!("{}: the output would replace the {what} it is made from", file.display());
        }
    }
    Ok(())
}
