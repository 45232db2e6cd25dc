//! `masu experiment`: the field reports, each rerun by one command.
//!
//! Folders, messages during the runs, and the list are here; the lab does the rest.

mod cache;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, bail};
use masu_lab::experiment::{self, Agreement, Asked, Depth, Experiment, News, Workbench, Written};
use masu_lab::page::width;
use masu_lab::report::{bytes, notice};
use masu_lab::{Checkup, Error as LabError, Stop};

use self::cache::Cache;
use crate::compare::mallocs;
use crate::exit::{Ending, unless_left};
use crate::progress::Progress;
use crate::{arguments, embedded, line_wrap, notices};

const BOLD: Style = Style::new().bold();
const AGREES: Style = AnsiColor::Green.on_default().bold();
const DISAGREES: Style = AnsiColor::Yellow.on_default().bold();

pub(crate) fn perform(arguments: &arguments::Experiment) -> Result<Ending> {
    if arguments.clean {
        return clean(&Cache::at(arguments.cache.as_deref())?);
    }
    let chosen = chosen(arguments)?;
    if chosen.is_empty() {
        let page = line_wrap::fit(&list(), width());
        write!(anstream::stdout(), "{page}").context("printing the list")?;
        return Ok(Ending::Done);
    }
    let cache = Cache::at(arguments.cache.as_deref())?;
    cache.make()?;
    let source = source(arguments.source.as_deref())?;
    let stop = Stop::on_signals()?;
    notices::say(notice("Looking at this machine."));
    let checkup = Checkup::here(&embedded::whole_catalogue().0);
    let mut failed = None;
    for experiment in &chosen {
        match run(experiment, arguments, &cache, source.as_deref(), &checkup, &stop) {
            Err(LabError::Stopped) => notices::say(notice("Stopped before its first run.")),
            made => {
                let said = made.map_err(Into::into).and_then(|written| tell(experiment, &written));
                if let Err(error) = said {
                    // The others go on, so this is said now.
                    if chosen.len() > 1 {
                        notices::say(notice(&format!("{}: {error}", experiment.name)));
                    }
                    failed = failed.or(Some(error.context(experiment.name)));
                }
            }
        }
        if stop.requested() {
            break;
        }
    }
    notices::say(notice(&format!(
        "Built programs and inputs stay in {} ({}) for the next time; `masu experiment --clean` removes them.",
        cache.folder().display(),
        bytes(cache.size())
    )));
    match failed {
        Some(error) => Err(error),
        None => Ok(if stop.requested() { Ending::Stopped } else { Ending::Done }),
    }
}

fn chosen(arguments: &arguments::Experiment) -> Result<Vec<&'static Experiment>> {
    for name in &arguments.names {
        if experiment::find(name).is_none() {
            let known = experiment::ALL.map(|one| one.name).join(", ");
            bail!("there is no experiment `{name}`; there are {known}");
        }
    }
    let is_chosen =
        |one: &&Experiment| arguments.all || arguments.names.iter().any(|name| name == one.name);
    Ok(experiment::ALL.into_iter().filter(is_chosen).collect())
}

fn source(named: Option<&Path>) -> Result<Option<PathBuf>> {
    match named {
        Some(folder) => {
            let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
            match experiment::source_above(&whole) {
                Some(tree) => Ok(Some(tree)),
                None => bail!(
                    "{}: no checkout of masu (it has no workloads/quote/Cargo.toml); name the folder that holds its \
                     Cargo.toml",
                    folder.display()
                ),
            }
        }
        None => Ok(std::env::current_dir().ok().and_then(|here| experiment::source_above(&here))),
    }
}

fn depth(arguments: &arguments::Experiment) -> Depth {
    match (arguments.tiny, arguments.quick, arguments.full) {
        (true, ..) => Depth::Tiny,
        (_, true, _) => Depth::Quick,
        (_, _, true) => Depth::Full,
        _ => Depth::Usual,
    }
}

fn run(
    experiment: &Experiment,
    arguments: &arguments::Experiment,
    cache: &Cache,
    source: Option<&Path>,
    checkup: &Checkup,
    stop: &Stop,
) -> Result<Written, LabError> {
    let depth = depth(arguments);
    notices::say("");
    notices::say_behind(
        format_args!("{BOLD}{}{BOLD:#}: ", experiment.name),
        format_args!("{} ({})", experiment.about, experiment.takes(depth)),
    );
    let mut progress: Option<Progress> = None;
    let mut tell = |news: News<'_>| hear(&news, &mut progress);
    let asked = Asked {
        depth,
        output: arguments.output.clone(),
        cache: cache.folder().to_owned(),
        source: source.map(Path::to_owned),
        install: arguments.install,
        checkup,
        mallocs: &mut mallocs,
        stop,
        tell: &mut tell,
    };
    let mut bench = Workbench::open(experiment, asked)?;
    experiment::perform(experiment, &mut bench)
}

fn hear(news: &News<'_>, progress: &mut Option<Progress>) {
    /// A step that took less time needs no second line.
    const WORTH_TELLING: Duration = Duration::from_secs(2);
    match news {
        News::Begins(what) => notices::say(format_args!("  {what}")),
        News::Done(took) if *took >= WORTH_TELLING => {
            notices::say(format_args!("  … done in {:.0} s", took.as_secs_f64()));
        }
        News::Missing(missing) => {
            notices::say(notice(&format!(
                "  Going on without {}: {}",
                missing.what, missing.reason
            )));
        }
        News::Comparing(event) => {
            progress.get_or_insert_with(|| Progress::on_stderr("")).observe(event);
        }
        News::Compared => {
            if let Some(progress) = progress.take() {
                progress.finish();
            }
        }
        _ => {}
    }
}

/// Reports the verdict and the place of the pages.
fn tell(experiment: &Experiment, written: &Written) -> Result<()> {
    let style = match written.verdict.agreement {
        Agreement::Full => AGREES,
        Agreement::None => DISAGREES,
        Agreement::Partial | Agreement::Undecided => BOLD,
    };
    let text = notice(&format!("{}: {}", experiment.name, written.verdict.sentence));
    let printed = writeln!(
        anstream::stdout(),
        "{style}{text}{style:#}\n{}\n{}",
        written.html.display(),
        written.markdown.display()
    )
    .context("printing the verdict");
    unless_left(printed)?;
    if written.is_empty {
        bail!("nothing could be measured; the page has the reasons");
    }
    Ok(())
}

fn list() -> String {
    let mut page = format!(
        "{BOLD}{:<9} {:>7} {:>7} {:>7}  the report{BOLD:#}\n",
        "name", "--quick", "usual", "--full"
    );
    for one in experiment::ALL {
        let [quick, usual, full] =
            [Depth::Quick, Depth::Usual, Depth::Full].map(|depth| one.takes(depth));
        let (name, about) = (one.name, one.about);
        page.push_str(&format!("{name:<9} {quick:>7} {usual:>7} {full:>7}  {about}\n"));
    }
    page.push_str(
        "\nTimes are those of two cores, builds included.\n\
         masu experiment NAME --quick runs one, --all all of them.\n",
    );
    page
}

fn clean(cache: &Cache) -> Result<Ending> {
    let folder = cache.folder().display();
    match cache.remove()? {
        None => notices::say(notice(&format!("There is nothing to remove: no {folder}."))),
        Some(size) => notices::say(notice(&format!("{folder} is removed, {}.", bytes(size)))),
    }
    Ok(Ending::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_every_experiment() {
        let page = anstream::adapter::strip_str(&list()).to_string();
        for columns in [40, 80] {
            let page = line_wrap::fit(&page, columns);
            assert!(page.lines().all(|line| line.chars().count() <= columns), "{page}");
        }
        for one in experiment::ALL {
            assert!(page.contains(&format!("\n{} ", one.name)), "{page}");
        }
    }
}
