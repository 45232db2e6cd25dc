//! Results as people and other programs read them: a page for the terminal, Markdown, CSV, JSON, HTML with plots.
//!
//! Nothing is judged here. A comparison that was just made and a results file that was read back both become a
//! [`Document`], shown by the same code.

use std::path::{Path, PathBuf};

use crate::heap::{Profile, Shape, What};
use crate::page::Form;
use crate::results::{self, Row};
use crate::{Error, Measure};
use document::Detail;
use masu_run::named;

mod across;
mod comparison;
mod csv;
mod diagnosed;
mod diagnoses;
mod document;
mod drawn;
#[cfg(test)]
pub(crate) mod fixtures;
mod json;
mod measure;
mod overview;
mod plot;
mod proof;
mod settings;
mod sheets;
mod tuning;
mod verdict;

pub use crate::page::{visible, width, wrap, wrapped as notice};
pub use diagnosed::diagnosed;
pub(crate) use diagnosed::findings;
pub use diagnoses::Diagnoses;
pub use document::Document;
pub(crate) use masu_run::quantity::ratio;
pub use masu_run::quantity::{about, bytes, count, digits, nanoseconds, seconds};
pub(crate) use plot::bars_of_bytes;
pub use plot::{Bar, Chart, Line, bars, lines, standalone};
pub use settings::{plan, too_few};
pub use tuning::tuned;

pub use masu_run::workload::{COMMAND_LINES, shortened};

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    #[non_exhaustive]
    pub enum Format as "format" {
        /// A page for the terminal, with its styles.
        #[default]
        Text = "text",
        /// For an issue or a wiki.
        Markdown = "markdown",
        /// A line for every run.
        Csv = "csv",
        /// One file with plots, for a browser.
        Html = "html",
        /// Medians, ratios and verdicts as one object.
        Json = "json",
    }
}

impl Format {
    /// The format for a file's name; none if the name does not show one.
    ///
    /// ```
    /// use masu_lab::report::Format;
    /// assert_eq!(Format::of_file("out/report.md".as_ref()), Some(Format::Markdown));
    /// assert_eq!(Format::of_file("report".as_ref()), None);
    /// ```
    pub fn of_file(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" | "text" => Some(Format::Text),
            "md" | "markdown" => Some(Format::Markdown),
            "csv" => Some(Format::Csv),
            "html" | "htm" => Some(Format::Html),
            "json" => Some(Format::Json),
            _ => None,
        }
    }
}

type Content = (PathBuf, Vec<u8>);

/// Saved results, read back.
#[derive(Debug, Clone)]
pub enum Saved {
    Comparisons(Document),
    Diagnoses(Diagnoses),
}

impl Saved {
    /// Reads the files at `paths`, each once: it may be a pipe, or `-` for standard input. An error without files, and
    /// for files that have nothing in common.
    pub fn read(paths: &[PathBuf]) -> Result<Saved, Error> {
        let content = |path: &PathBuf| Ok((path.clone(), results::contents(path)?));
        let files = paths.iter().map(content).collect::<Result<Vec<Content>, Error>>()?;
        Ok(match Diagnoses::of(&files)? {
            Some(diagnoses) => Saved::Diagnoses(diagnoses),
            None => Saved::Comparisons(Document::of(&files)?),
        })
    }
}

/// The verdict on `row` by the measure `primary`, in plain words.
pub(crate) fn verdict(row: &Row, primary: Measure) -> String {
    verdict::words(row, primary).0
}

pub fn render(document: &Document, format: Format) -> String {
    let page = |form, detail| comparison::page(document, detail).render(form, "");
    match format {
        Format::Text => page(Form::Text, Detail::Brief),
        Format::Markdown => page(Form::Markdown, Detail::Brief),
        Format::Html => page(Form::Html, Detail::Full),
        Format::Csv => csv::page(document),
        Format::Json => json::page(document),
    }
}

pub fn heap(profile: &Profile, shape: Shape, what: What, title: &str) -> Vec<u8> {
    match shape {
        Shape::Text => profile.text(what, title).into_bytes(),
        Shape::Folded => profile.folded(what).into_bytes(),
        Shape::Flame => plot::heap(profile, what, title).into_bytes(),
        Shape::Speedscope => profile.speedscope(what, title).into_bytes(),
        Shape::Pprof => profile.message(),
    }
}
