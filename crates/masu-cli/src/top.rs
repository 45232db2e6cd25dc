//! `masu top`: the memory of a program that runs on masu, on a screen that follows it, as text, or as JSON.
//!
//! A process may end at any time, which is no failure of its observer.

mod screen;
mod table;

use std::env;
use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use masu_lab::process::{self, Found, Observation, Observer};
use masu_lab::{Error as LabError, Stop};

use crate::arguments;

pub(crate) fn perform(arguments: &arguments::Top) -> Result<()> {
    let Some(pid) = chosen(arguments)? else { return Ok(()) };
    let mut observer = Observer::new(pid)?;
    if arguments.json {
        return follow(&mut observer, arguments.interval, arguments.once, json);
    }
    if arguments.once || !io::stdout().is_terminal() {
        return print(&table::page(&observer.observe()?));
    }
    if env::var_os("TERM").is_none_or(|terminal| terminal.is_empty() || terminal == "dumb") {
        // The output cannot be overwritten, so the pages follow one another.
        return follow(&mut observer, arguments.interval, false, |seen| {
            Ok(table::page(seen) + "\n")
        });
    }
    let stop = Stop::on_signals()?;
    screen::show(&mut observer, arguments.interval, &stop).context("showing it on the terminal")
}

/// The process to show; `None` where there are several, which are then listed.
fn chosen(arguments: &arguments::Top) -> Result<Option<u32>> {
    if arguments.pid.is_some() {
        return Ok(arguments.pid);
    }
    let found = process::find();
    match &found[..] {
        [] => bail!(
            "no process here keeps statistics that this user may see: start one with \
             `masu run -- PROGRAM`, or with MASU_STATISTICS_PAGE=1 where libmasu is in it already"
        ),
        [only] => Ok(Some(only.pid)),
        // A reader of JSON would take the list for it.
        several if arguments.json => {
            bail!(
                "--json is of one process, and there are several:\n\n{}",
                list(several).trim_end()
            )
        }
        several => print(&list(several)).map(|()| None),
    }
}

fn list(found: &[Found]) -> String {
    let mut page = format!("{:>10}  {:<15}  command\n", "pid", "name");
    for Found { pid, name, command, .. } in found {
        let command: String = command.chars().take(50).collect();
        page.push_str(&format!("{pid:>10}  {name:<15}  {command}\n"));
    }
    page + "\nShow one of them: masu top -p PID\n"
}

fn follow(
    observer: &mut Observer,
    interval: Duration,
    once: bool,
    form: impl Fn(&Observation) -> Result<String>,
) -> Result<()> {
    let mut next = Instant::now();
    loop {
        match observer.observe() {
            Ok(seen) => print(&form(&seen)?)?,
            Err(LabError::Ended { .. }) if !once => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if once {
            return Ok(());
        }
        // A look that is late, as after Ctrl-Z, is not made up for.
        next = Instant::now().max(next + interval);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

fn json(seen: &Observation) -> Result<String> {
    Ok(serde_json::to_string(seen).context("writing JSON")? + "\n")
}

fn print(text: &str) -> Result<()> {
    let mut output = anstream::stdout();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).context("printing it")
}
