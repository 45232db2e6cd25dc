//! `masu man`: the manual pages, made by clap_mangen from the same definition as the help.
//!
//! On a terminal `man` shows the page; anywhere else its source is written, as packagers and `man -l -` want it.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::{Command as Process, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::arguments::{self, Arguments};
use crate::exit::Ending;
use crate::notices;

/// The text of masu's own page beyond the help; a comment in the file marks the place of the commands.
const TEXT: &str = include_str!("manual/masu.roff");

/// The last section of every other page.
const SEE_ALSO: &str = ".SH SEE ALSO\n\\fBmasu\\fR(1)\n";

pub(crate) fn perform(arguments: &arguments::Manual) -> Result<Ending> {
    let commands = commands();
    if let Some(folder) = &arguments.output {
        write_all(&commands, folder)?;
        return Ok(Ending::Done);
    }
    let wanted = match &arguments.command {
        None => "masu".to_owned(),
        Some(name) => format!("masu-{name}"),
    };
    let Some(command) = commands.iter().find(|command| name(command) == wanted) else {
        let known: Vec<&str> =
            commands.iter().filter_map(|it| name(it).strip_prefix("masu-")).collect();
        let asked = arguments.command.as_deref().unwrap_or_default();
        bail!("no command `{asked}`; there are pages of {}", known.join(", "));
    };
    let page = page(command).context("making the page")?;
    if io::stdout().is_terminal() {
        show(&page)?;
    } else {
        io::stdout().write_all(&page).context("printing the page")?;
    }
    Ok(Ending::Done)
}

fn write_all(commands: &[Command], folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    for command in commands {
        let path = folder.join(format!("{}.1", name(command)));
        let page = page(command).context("making a page")?;
        fs::write(&path, page).with_context(|| format!("writing {}", path.display()))?;
    }
    notices::say(format_args!("{} pages are in {}.", commands.len(), folder.display()));
    Ok(())
}

/// Hands the page to `man`, which finds the pager.
fn show(page: &[u8]) -> Result<()> {
    let started = Process::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn();
    let mut man = match started {
        Ok(man) => man,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("no `man` here to show the page; `masu help COMMAND` has the options")
        }
        Err(error) => return Err(error).context("starting `man`"),
    };
    if let Some(mut input) = man.stdin.take() {
        // The write fails if the user leaves the pager early, which is no error.
        let _ = input.write_all(page);
    }
    man.wait().context("waiting for `man`")?;
    Ok(())
}

/// masu and all commands below it, each with its name in full and its usage as the help shows it.
fn commands() -> Vec<Command> {
    let mut root = Arguments::command().disable_help_subcommand(true);
    root.build();
    let mut all = vec![root];
    let mut done = 0;
    while let Some(command) = all.get(done) {
        let below: Vec<Command> = command.get_subcommands().cloned().collect();
        all.extend(below);
        done += 1;
    }
    all.into_iter().map(|command| command.mut_args(explained)).collect()
}

/// Options that `-h` leaves out still have a help text, which clap_mangen passes over.
fn explained(option: Arg) -> Arg {
    match option.get_long_help().or_else(|| option.get_help()).cloned() {
        Some(help) => option.long_help(help),
        None => option,
    }
}

/// `masu-compare`, the name of a page.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let name = name(command);
    let version = Arguments::command().get_version().unwrap_or_default().to_owned();
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .source(format!("masu {version}"))
        .manual("masu manual");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    let is_root = name == "masu";
    let (before, after) = TEXT.split_once(".\\\" commands\n").unwrap_or(("", TEXT));
    if is_root {
        page.extend(before.bytes());
    } else {
        man.render_description_section(&mut page)?;
        help(command).to_writer(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    page.extend(if is_root { after.bytes() } else { SEE_ALSO.bytes() });
    Ok(page)
}

/// The free text below a help page: its paragraphs, and the lines of examples as they are.
fn help(command: &Command) -> Roff {
    let text = command.get_after_long_help().or_else(|| command.get_after_help());
    let mut roff = Roff::new();
    for line in text.map(ToString::to_string).unwrap_or_default().lines() {
        match line {
            "" => roff.control("PP", []),
            // Each example stands on its own line.
            line if line.starts_with("  ") || line.starts_with("Exit:") => {
                roff.control("br", []).text([roman(line)])
            }
            line => roff.text([roman(line)]),
        };
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_and_every_command_is_on_its_page() {
        for command in commands() {
            let (file, text) =
                (name(&command), String::from_utf8(page(&command).unwrap()).unwrap());
            for option in command.get_arguments().filter(|it| !it.is_hide_set()) {
                let long = option.get_long().map(|it| format!("--{it}"));
                let help = option.get_help().map(ToString::to_string);
                for said in [long, help].into_iter().flatten() {
                    let said = said.replace('-', "\\-").replace('\'', "\\*(Aq");
                    assert!(text.contains(&said), "{said} is not in {file}");
                }
            }
            for below in command.get_subcommands() {
                let page = format!("{file}-{}(1)", below.get_name()).replace('-', "\\-");
                assert!(text.contains(&page), "{page}: {text}");
            }
            for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"] {
                let heading = [format!(".SH {section}\n"), format!(".SH \"{section}\"\n")];
                assert!(heading.iter().any(|it| text.contains(it)), "{section}: {file}");
            }
        }
    }

    #[test]
    fn roff_warns_of_nothing_and_no_line_is_too_long() {
        for command in commands() {
            let started = Process::new("groff")
                .args(["-k", "-man", "-Tutf8", "-ww", "-rLL=80n", "-P-cbou"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            let Ok(mut groff) = started else {
                eprintln!("skipped: no groff here (Debian: groff-base)");
                return;
            };
            let file = name(&command);
            groff.stdin.take().unwrap().write_all(&page(&command).unwrap()).unwrap();
            let output = groff.wait_with_output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{file}");
            let text = String::from_utf8(output.stdout).unwrap();
            let long = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{file}");
        }
    }
}
