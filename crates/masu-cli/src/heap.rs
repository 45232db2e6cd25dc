//! `masu heap`: heap profiles, read, given names and shown.
//!
//! Relies on the lab for all of that. What is decided here is the shape and where it goes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use masu_lab::heap::{Profile, Shape, ask};

use crate::arguments::{HeapCommand, HeapDiff, HeapShow, View};
use crate::aside;
use crate::exit::Ending;

/// How long a process may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Does what was asked for.
pub(crate) fn perform(command: HeapCommand) -> Result<Ending> {
    match command {
        HeapCommand::Show(HeapShow { file, process, view }) => {
            let file = match (file, process) {
                (Some(file), _) => file,
                (None, Some(process)) => {
                    let file = ask(process, PATIENCE)?;
                    aside::say(format_args!("The profile is in {}.", file.display()));
                    file
                }
                (None, None) => bail!("give a profile's file, or a process with -p"),
            };
            refuse_to_replace(&[&file], &view)?;
            show(&Profile::read(&file)?, &view, &file.display().to_string())
        }
        HeapCommand::Diff(HeapDiff { old, new, view }) => {
            refuse_to_replace(&[&old, &new], &view)?;
            let difference = Profile::read(&new)?.minus(Profile::read(&old)?);
            show(&difference, &view, &format!("{} less {}", new.display(), old.display()))
        }
    }
}

fn show(profile: &Profile, view: &View, title: &str) -> Result<Ending> {
    let shape = match (view.format, &view.output) {
        (Some(shape), _) => shape,
        (None, None) => Shape::Text,
        (None, Some(path)) => Shape::of_file(path).with_context(|| {
            format!(
                "{}: the name says no format; end it in .txt, .folded, .svg or .pb.gz, or \
                 give --format",
                path.display()
            )
        })?,
    };
    let bytes = profile.shaped(shape, view.what(), title);
    match &view.output {
        Some(path) => {
            fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))?;
            aside::say(format_args!("The profile is shown in {}.", path.display()));
        }
        None => {
            std::io::stdout().lock().write_all(&bytes).context("printing the profile")?;
        }
    }
    // In the table remarks stand above; other shapes have no place for them.
    if shape != Shape::Text || view.output.is_some() {
        for remark in &profile.remarks {
            aside::say(format_args!("Note: {remark}"));
        }
    }
    Ok(Ending::Done)
}

/// A picture in place of the profile it was made from would lose it.
fn refuse_to_replace(files: &[&Path], view: &View) -> Result<()> {
    let Some(Ok(output)) = view.output.as_ref().map(|path| path.canonicalize()) else {
        return Ok(());
    };
    for file in files {
        if file.canonicalize().is_ok_and(|file| file == output) {
            bail!("{}: the output would replace the profile it is made from", file.display());
        }
    }
    Ok(())
}
