//! The files of an earlier experiment, kept: a rerun moves them into a folder of their own, page, plots and runs
//! together.
//!
//! Relies on the names that an experiment gives its files: the folder may hold a user's own beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use masu_run::Error;
use masu_run::error::Doing;

/// Moves the files of the experiment `name` out of `output`; returns their new folder, if there were any.
pub(super) fn put_aside(output: &Path, name: &str) -> Result<Option<PathBuf>, Error> {
    let reading = || format!("reading {}", output.display());
    let mut files: Vec<(PathBuf, SystemTime)> = Vec::new();
    for entry in fs::read_dir(output).doing(reading)? {
        let entry = entry.doing(reading)?;
        let about = entry.metadata().doing(reading)?;
        if about.is_file() && is_written(&entry.file_name().to_string_lossy(), name) {
            files.push((entry.path(), about.modified().unwrap_or(SystemTime::UNIX_EPOCH)));
        }
    }
    let Some(newest) = files.iter().map(|(_, time)| *time).max() else { return Ok(None) };
    let time = humantime::format_rfc3339_seconds(newest).to_string().replace(':', "-");
    let whole = format!("{name}-{}", time.trim_end_matches('Z'));
    let folders = (1..).map(|number| match number {
        1 => output.join("earlier").join(&whole),
        _ => output.join("earlier").join(format!("{whole}-{number}")),
    });
    let Some(folder) = folders.into_iter().find(|folder| !folder.exists()) else {
        unreachable!("there is always a next number")
    };
    fs::create_dir_all(&folder).doing(|| format!("making {}", folder.display()))?;
    for (file, _) in files {
        let to = folder.join(file.file_name().unwrap_or_default());
        fs::rename(&file, &to)
            .doing(|| format!("moving {} to {}", file.display(), to.display()))?;
    }
    Ok(Some(folder))
}

/// Whether the experiment `name` writes a file that is called so: a page, a plot, or runs.
fn is_written(file: &str, name: &str) -> bool {
    let rest = file.strip_prefix(name).unwrap_or_default();
    [".html", ".md"].contains(&rest)
        || rest.starts_with('-') && rest.ends_with(".svg")
        || rest.starts_with('.') && rest.ends_with(".jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of other experiments, and of the user.
    const OTHERS: [&str; 5] = ["quote.md", "brkless.md", "brk.c", "brk-notes.txt", "brk"];

    #[test]
    fn the_files_of_one_experiment_are_kept_together_and_others_stay() {
        let place = tempfile::tempdir().unwrap();
        let output = place.path();
        for round in ["first", "second"] {
            for name in ["brk.html", "brk-wall.svg", "brk.n50.jsonl"].iter().chain(&OTHERS) {
                fs::write(output.join(name), round).unwrap();
            }
            assert!(put_aside(output, "brk").unwrap().is_some());
            assert_eq!(put_aside(output, "brk").unwrap(), None, "nothing is left of it");
        }
        let kept: Vec<PathBuf> =
            fs::read_dir(output.join("earlier")).unwrap().map(|one| one.unwrap().path()).collect();
        let mut said: Vec<String> = kept
            .iter()
            .map(|folder| {
                assert!(folder.join("brk-wall.svg").exists() && folder.join("brk.html").exists());
                fs::read_to_string(folder.join("brk.n50.jsonl")).unwrap()
            })
            .collect();
        said.sort();
        assert_eq!(said, ["first", "second"]);
        assert!(OTHERS.iter().all(|name| output.join(name).exists()));
    }
}
