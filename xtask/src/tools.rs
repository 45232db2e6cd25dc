//! Other people's cargo commands that chores run: cargo-deny, mdBook and the like.
//!
//! It relies on `cargo install`. They lie below the target folder, so nothing of the user's own is replaced, and a checkout that is
//! removed takes them along.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::commands;

pub(crate) struct Tools<'a> {
    root: &'a Path,
    folder: PathBuf,
}

impl<'a> Tools<'a> {
    pub(crate) fn new(root: &'a Path) -> Result<Tools<'a>> {
        Ok(Tools { root, folder: commands::target_folder()?.join("tools") })
    }

    fn program(&self, tool: &str) -> PathBuf {
        self.folder.join("bin").join(tool)
    }

    /// A command of this tool in the workspace; the tool is installed where it is missing.
    pub(crate) fn command(&self, tool: &str, words: &[&str]) -> Result<Command> {
        let program = self.program(tool);
        if !program.exists() {
            println!("installing {tool} into {}: minutes, once", self.folder.display());
            // Unoptimized: they run for seconds, and compiling them takes minutes.
            let install = ["install", "--quiet", "--locked", "--debug", "--root"];
            commands::run(commands::cargo(self.root, &install).arg(&self.folder).arg(tool))?;
        }
        let mut command = Command::new(program);
        command.args(words).current_dir(self.root);
        Ok(command)
    }

    pub(crate) fn run(&self, tool: &str, words: &[&str]) -> Result<()> {
        commands::run(&mut self.command(tool, words)?)
    }

    pub(crate) fn output(&self, tool: &str, words: &[&str]) -> Result<String> {
        commands::output(&mut self.command(tool, words)?)
    }
}
