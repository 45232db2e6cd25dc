//! `masu heap`: heap profiles, read, given names and shown; or a program run with its profile on.
//!
//! Relies on the lab for all of that; this file decides the form and the place of the output.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use masu_lab::heap::{Profile, Shape, ask, written_in};
use masu_lab::launch::launch_beside;
use masu_lab::{Input, Spec, Stop, Workload, report};

use crate::arguments::{HeapCommand, HeapDiff, HeapShow, Program, View, Which};
use crate::exit::{Ending, unless_left};
use crate::report::{refuse_to_replace, save, try_to_write};
use crate::{embedded, notices};

/// The time that a process may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn perform(command: HeapCommand) -> Result<Ending> {
    match command {
        HeapCommand::Show(HeapShow { file, pid, view }) => {
            let file = match (file, pid) {
                (Some(file), _) => file,
                (None, Some(pid)) => {
                    let file = ask(pid, PATIENCE)?;
                    notices::say(format_args!("The profile is in {}.", file.display()));
                    file
                }
                (None, None) => bail!("give a profile's file, or a process with -p"),
            };
            refuse_to_replace(&[&file], view.output.as_deref(), "profile")?;
            show(&Profile::read(&file)?, &view, &file.display().to_string())?;
        }
        HeapCommand::Diff(HeapDiff { old, new, view }) => {
            refuse_to_replace(&[&old, &new], view.output.as_deref(), "profile")?;
            let difference = Profile::read(&new)?.minus(Profile::read(&old)?);
            show(&difference, &view, &format!("{} less {}", new.display(), old.display()))?;
        }
    }
    Ok(Ending::Done)
}

/// Runs a program under masu with its heap profile on, and shows the blocks that it never freed. Its exit code is the
/// program's.
pub(crate) fn run(program: &Program, view: &View) -> Result<ExitStatus> {
    shape_of(view)?;
    view.output.as_deref().map_or(Ok(()), try_to_write)?;
    let workload = Workload::new(program.words.clone(), Input::Empty)?;
    let spec: Spec = "masu".parse()?;
    let catalogue = embedded::catalogue_for(std::slice::from_ref(&spec), &workload.program)?;
    let variant = catalogue.resolve(&spec, &workload.program)?;
    let folder = tempfile::Builder::new().prefix("masu-heap-").tempdir();
    let folder = folder.context("creating a folder for the profiles (TMPDIR says where)")?;
    let prefix = folder.path().join("heap");
    let mut variables = vec![(PROFILE, prefix.as_os_str())];
    if env::var_os(INTERVAL).is_none() {
        // A program that allocates little has samples too.
        variables.push((INTERVAL, OsStr::new(FINE)));
    }
    // Signals are for the program; masu then shows the memory that the program held.
    let stop = Stop::on_signals()?;
    let (process, status) = launch_beside(&workload, &variant, &variables, &stop)?;
    let files = written_in(folder.path(), process);
    let Some(file) = files.first() else {
        check_room(folder.path())?;
        notices::say(report::notice(
            "No profile was written: a program writes it at its end, and not where a signal or _exit ends it. While it \
             runs: MASU_PROFILE=/tmp/heap masu run -- PROGRAM, then masu heap show -p PID.",
        ));
        return Ok(status);
    };
    let profile = Profile::read(file).or_else(|error| {
        check_room(folder.path())?;
        Err(anyhow::Error::from(error))
    })?;
    let asks_more = view.blocks || matches!(view.of, Which::Allocated);
    if view.output.is_some() || view.format.is_some() || asks_more {
        unless_left(show(&profile, view, &workload.arguments[0].to_string_lossy()))?;
    } else {
        notices::say("");
        let end = "-o heap.svg draws it; --of allocated counts all there ever was.";
        for line in profile.never_freed().trim_end().lines().chain([end]) {
            // A line under a heading is a function's name, and stays whole.
            let is_sentence = !line.is_empty() && !line.starts_with(' ');
            notices::say(if is_sentence { report::notice(line) } else { line.to_owned() });
        }
    }
    if files.len() > 1 {
        let others = files.len() - 1;
        let more = format!("Processes that it started wrote {others} more, which are not shown.");
        notices::say(report::notice(&more));
    } else if profile.sum().allocated_bytes == 0 {
        notices::say(report::notice(
            "This is of its first process. Others that it started wrote no profile: they have not ended, or end by a \
             signal or _exit, or there were none.",
        ));
    }
    Ok(status)
}

/// Refuses a folder that is full. The program may have closed its standard error before it could say so.
fn check_room(folder: &Path) -> Result<()> {
    fs::write(folder.join("room"), [0; 64 << 10]).with_context(|| {
        let folder = env::temp_dir();
        format!("the profile has no room in {} (TMPDIR names another folder)", folder.display())
    })
}

/// The variables for the place of the program's profile and for the bytes between two samples.
const PROFILE: &str = "MASU_PROFILE";
const INTERVAL: &str = "MASU_PROFILE_INTERVAL";
const FINE: &str = "64K";

/// The form that the user asks for; without the option, the output's name decides.
fn shape_of(view: &View) -> Result<Shape> {
    match (view.format, &view.output) {
        (Some(shape), _) => Ok(shape),
        (None, None) => Ok(Shape::Text),
        (None, Some(path)) => Shape::of_file(path).with_context(|| {
            format!(
                "{}: the name says no format; end it in .txt, .folded, .svg, .json or .pb.gz, \
                 or give --format",
                path.display()
            )
        }),
    }
}

fn show(profile: &Profile, view: &View, title: &str) -> Result<()> {
    let shape = shape_of(view)?;
    let bytes = report::heap(profile, shape, view.what(), title);
    match &view.output {
        Some(path) => {
            save(path, &bytes)?;
            notices::say(format_args!("The profile is shown in {}.", path.display()));
        }
        None => {
            std::io::stdout().lock().write_all(&bytes).context("printing the profile")?;
        }
    }
    // The table shows the remarks above; other shapes have no place for them.
    if shape != Shape::Text || view.output.is_some() {
        for remark in &profile.remarks {
            notices::say(format_args!("Note: {remark}"));
        }
    }
    Ok(())
}
