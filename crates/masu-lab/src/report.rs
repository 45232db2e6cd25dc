//! Results as people and other programs read them: a page for the terminal, Markdown, CSV, JSON and
//! one HTML file with plots.
//!
//! Relies on [`summarise`](crate::summary::summarise) for every figure: nothing is judged here. The
//! one idea is the [`Document`]: a comparison that has just been made and a results file that was
//! read back become the same thing, so that both are shown by the same code.

mod document;
mod lines;
#[cfg(test)]
mod made_up;
mod measure;
mod quantity;
mod text;
mod verdict;

pub use document::{Document, Extent, Source, Table};
pub use quantity::about;
pub use text::{page, plan};
