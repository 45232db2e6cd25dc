//! Commands that start the program that is meant: shells, build tools, runners.
//!
//! Relies on names alone. Whether the time really went into what they started is told by the CPU clocks.

use std::path::Path;

/// Names of commands whose work is to start others. Compilers' drivers are none: who measures `gcc` means it.
const WRAPPERS: [&str; 38] = [
    "ash",
    "bash",
    "bundle",
    "bunx",
    "busybox",
    "cargo",
    "csh",
    "dash",
    "doas",
    "dotnet",
    "env",
    "fish",
    "gradle",
    "hyperfine",
    "just",
    "ksh",
    "make",
    "mvn",
    "ninja",
    "npm",
    "npx",
    "parallel",
    "pipenv",
    "pnpm",
    "poetry",
    "rake",
    "rustup",
    "sh",
    "strace",
    "sudo",
    "tcsh",
    "time",
    "timeout",
    "uv",
    "xargs",
    "yarn",
    "zsh",
    "go",
];

/// The name of the command if it is one of them.
pub(super) fn name(command: &Path) -> Option<String> {
    let name = command.file_name()?.to_str()?;
    WRAPPERS.contains(&name).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_and_runners_are_wrappers_and_compilers_are_not() {
        for (path, is_one) in
            [("/bin/sh", true), ("/home/a/.cargo/bin/cargo", true), ("/usr/bin/gcc", false)]
        {
            assert_eq!(name(Path::new(path)).is_some(), is_one, "{path}");
        }
    }
}
