//! `masu completions`: the script that completes masu's commands in a shell, from the same definition as the help.

use std::io::{self, Write};

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use masu_lab::catalogue::known_names;

use crate::arguments::{self, Arguments};
use crate::exit::Ending;

/// The definition with variants limited to mallocs that are known by name, because Tab can offer only those. Users type
/// paths and settings by hand.
fn with_names(command: Command) -> Command {
    let named = |command: Command| {
        command.mut_args(|option| match option.get_long() {
            Some("allocator") => option
                .value_parser(PossibleValuesParser::new(known_names()))
                // A default that is a variant is none of the values that this parser makes.
                .default_values(Vec::<&str>::new()),
            _ => option,
        })
    };
    let names: Vec<String> =
        command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, named))
}

pub(crate) fn perform(arguments: &arguments::Completions) -> Result<Ending> {
    // The script is made whole first: clap_complete takes a failed write for a bug, and panics.
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut with_names(Arguments::command()),
        "masu",
        &mut script,
    );
    io::stdout().write_all(&script).context("printing the completions")?;
    Ok(Ending::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mallocs_are_offered_by_name() {
        for shell in
            [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish]
        {
            let mut script = Vec::new();
            clap_complete::generate(
                shell,
                &mut with_names(Arguments::command()),
                "masu",
                &mut script,
            );
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("jemalloc") && script.contains("masu-secure"), "{shell}");
        }
    }
}
