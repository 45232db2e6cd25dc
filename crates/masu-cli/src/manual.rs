//! `masu man`: the manual pages, made from the same definition as the help.
//!
//! On a terminal `man` shows the page; anywhere else its source is written, as packagers and `man -l -` want it.

mod sections;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::{Command as Process, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::arguments::{self, Arguments};
use crate::aside;
use crate::exit::Ending;

/// One page: the file it goes by and its source.
struct Page {
    /// `masu-compare.1`.
    file: String,
    source: Vec<u8>,
}

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
    let page = page(command, &commands).context("making the page")?;
    if io::stdout().is_terminal() {
        show(&page)?;
    } else {
        io::stdout().write_all(&page.source).context("printing the page")?;
    }
    Ok(Ending::Done)
}

fn write_all(commands: &[Command], folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    for command in commands {
        let page = page(command, commands).context("making a page")?;
        let path = folder.join(&page.file);
        fs::write(&path, &page.source).with_context(|| format!("writing {}", path.display()))?;
    }
    aside::say(format_args!("{} pages are in {}.", commands.len(), folder.display()));
    Ok(())
}

/// Hands the page to `man`, which finds the pager.
fn show(page: &Page) -> Result<()> {
    let started = Process::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn();
    let mut man = match started {
        Ok(man) => man,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("no `man` here to show the page; `masu help COMMAND` has the options")
        }
        Err(error) => return Err(error).context("starting `man`"),
    };
    if let Some(mut input) = man.stdin.take() {
        // A pager that was left early has seen enough.
        let _ = input.write_all(&page.source);
    }
    man.wait().context("waiting for `man`")?;
    Ok(())
}

/// masu and its commands, each with its name in full and its usage as the help shows it.
fn commands() -> Vec<Command> {
    let mut root = Arguments::command().disable_help_subcommand(true);
    root.build();
    let below: Vec<Command> = root.get_subcommands().cloned().collect();
    std::iter::once(root).chain(below).map(|command| command.mut_args(explained)).collect()
}

/// What `-h` has no room for has a help all the same, which clap_mangen passes over.
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

fn page(command: &Command, all: &[Command]) -> io::Result<Page> {
    let name = name(command);
    let version = Arguments::command().get_version().unwrap_or_default().to_owned();
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .source(format!("masu {version}"))
        .manual("masu manual");
    let mut source = Vec::new();
    man.render_title(&mut source)?;
    man.render_name_section(&mut source)?;
    man.render_synopsis_section(&mut source)?;
    let help = command.get_after_long_help().or_else(|| command.get_after_help());
    let parsed = HelpText::of(&help.map(ToString::to_string).unwrap_or_default());
    let is_root = name == "masu";
    let mut roff = Roff::new();
    roff.control("SH", ["DESCRIPTION"]);
    if is_root {
        paragraphs(&mut roff, sections::DESCRIPTION);
        listed_commands(&mut roff, &all[1..]);
        sections::variants(&mut roff);
    } else {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        paragraphs(&mut roff, &[&format!("{about}.")]);
        let parsed: Vec<&str> = parsed.paragraphs.iter().map(String::as_str).collect();
        paragraphs(&mut roff, &parsed);
        let below: Vec<Command> = command.get_subcommands().cloned().collect();
        if !below.is_empty() {
            listed_commands(&mut roff, &below);
        }
    }
    roff.to_writer(&mut source)?;
    source.extend(options(&man)?);
    let mut roff = Roff::new();
    terms(&mut roff, "EXIT STATUS", &sections::exit_codes(name));
    terms(&mut roff, "ENVIRONMENT", &sections::environment(name));
    terms(&mut roff, "FILES", &sections::files(name));
    let examples = if is_root { owned(sections::EXAMPLES) } else { parsed.examples };
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        literal(&mut roff, &examples);
    }
    see_also(&mut roff, name, all);
    roff.to_writer(&mut source)?;
    Ok(Page { file: man.get_filename(), source })
}

/// The options in one section, their groups below its heading.
fn options(man: &Man) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    man.render_options_section(&mut plain)?;
    let mut section = b".SH OPTIONS\n".to_vec();
    for line in plain.split_inclusive(|byte| *byte == b'\n') {
        let group = line.strip_prefix(b".SH ").map(String::from_utf8_lossy);
        match group.as_deref().map(|name| name.trim().trim_matches('"')) {
            None => section.extend(line),
            Some("OPTIONS") => {}
            Some(name) => {
                let (first, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
                section.extend(format!(".SS {first}{}\n", rest.to_lowercase()).bytes());
            }
        }
    }
    Ok(section)
}

/// The free text under a help page, taken apart.
#[derive(Default)]
struct HelpText {
    paragraphs: Vec<String>,
    examples: Vec<String>,
}

impl HelpText {
    /// Exit codes are left out: the page has a section of its own for them.
    fn of(help: &str) -> Self {
        let mut parsed = Self::default();
        for part in help.split("\n\n") {
            let mut prose = Vec::new();
            for line in part.lines() {
                match line {
                    "Examples:" => {}
                    line if line.starts_with("Exit:") => {}
                    line if line.starts_with("  ") => parsed.examples.push(line.trim().to_owned()),
                    line => prose.push(line),
                }
            }
            if !prose.is_empty() {
                parsed.paragraphs.push(prose.join(" "));
            }
        }
        parsed
    }
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

fn paragraphs(roff: &mut Roff, texts: &[&str]) {
    for text in texts {
        roff.control("PP", []);
        roff.text([roman(*text)]);
    }
}

fn literal(roff: &mut Roff, lines: &[String]) {
    roff.control("PP", []);
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(line.as_str())]);
    }
    roff.control("fi", []);
}

/// A section of terms, each with what it means; none where there are none.
fn terms(roff: &mut Roff, heading: &str, entries: &[(String, &str)]) {
    if entries.is_empty() {
        return;
    }
    roff.control("SH", [heading]);
    for (term, meaning) in entries {
        roff.control("TP", []);
        roff.text([bold(term.as_str())]);
        roff.text([roman(*meaning)]);
    }
}

fn listed_commands(roff: &mut Roff, all: &[Command]) {
    let entry = |command: &Command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        (command.get_name().to_owned(), about)
    };
    roff.control("SH", ["COMMANDS"]);
    for (name, about) in all.iter().map(entry) {
        roff.control("TP", []);
        roff.text([bold(name)]);
        roff.text([roman(about)]);
    }
}

/// From a command to masu's own page, from there to all commands; then to what lies beside.
fn see_also(roff: &mut Roff, own: &str, all: &[Command]) {
    let is_root = own == "masu";
    let others = all.iter().map(name).filter(|name| *name != own && (is_root || *name == "masu"));
    let beside = sections::see_also(own);
    let names: Vec<&str> = others.chain(beside.iter().copied()).collect();
    roff.control("SH", ["SEE ALSO"]);
    for (index, name) in names.iter().enumerate() {
        // `ld.so(8)` names its section already; masu's own pages are all in the first.
        let (name, section) = name.split_once('(').unwrap_or((name, "1)"));
        let comma = if index + 1 < names.len() { "," } else { "" };
        roff.text([bold(name), roman(format!("({section}{comma}"))]);
    }
}
