//! Other people's cargo commands that chores run: cargo-deny, mdBook and the like.
//!
//! It relies on `cargo install`. They lie below the target folder, so nothing of the user's own is replaced, and a checkout
//! that is removed takes them along.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::commands;

/// A command of this tool in the workspace; the tool is installed where it is missing.
pub(crate) fn command(root: &Path, tool: &str, words: &[&str]) -> Result<Command> {
    let folder = commands::target_folder()?.join("tools");
    let program = folder.join("bin").join(tool);
    if !program.exists() {
        println!("installing {tool} into {}: minutes, once", folder.display());
        // Unoptimized: they run for seconds, and compiling them takes minutes.
        let install = ["install", "--quiet", "--locked", "--debug", "--root"];
        commands::run(commands::cargo(root, &install).arg(&folder).arg(tool))?;
    }
    let mut command = Command::new(program);
    command.args(words).current_dir(root);
    Ok(command)
}
