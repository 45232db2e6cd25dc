//! `masu code`: how scattered a process's machine code is, and objects loaded by a code arena.

mod load;
mod map;

use anyhow::Result;

use crate::arguments::CodeCommand;

pub(crate) fn perform(command: &CodeCommand) -> Result<()> {
    match command {
        CodeCommand::Map(arguments) => map::perform(arguments),
        CodeCommand::Load(arguments) => load::perform(arguments),
    }
}
