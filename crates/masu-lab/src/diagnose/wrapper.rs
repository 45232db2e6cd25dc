//! Commands that only start the program of interest: shells, build tools, runners.
//!
//! Relies on names alone. The CPU clocks show whether the time really went into the started programs.

use std::path::Path;

use super::facts::ProgramTime;
use masu_run::Program;

/// Names of commands that start other programs. Compiler drivers are not among them: a user who measures `gcc` means
/// `gcc` itself.
const WRAPPERS: [&str; 38] = [
    "ash", "bash", "bundle", "bunx", "busybox", "cargo", "csh", "dash", "doas", "dotnet", "env",
    "fish", "gradle", "hyperfine", "just", "ksh", "make", "mvn", "ninja", "npm", "npx", "parallel",
    "pipenv", "pnpm", "poetry", "rake", "rustup", "sh", "strace", "sudo", "tcsh", "time",
    "timeout", "uv", "xargs", "yarn", "zsh", "go",
];

/// The name of the command, if it is a wrapper, or the script of one.
pub(super) fn name(program: &Program) -> Option<String> {
    let is_one = is_wrapper(&program.path) || is_wrapper(&program.binary);
    is_one.then(|| program.path.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

fn is_wrapper(command: &Path) -> bool {
    let name = command.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| WRAPPERS.contains(&name))
}

/// Keeps the mark of the command only on these programs of the first process: the command's own, and wrappers that it
/// became. For example, rustup's `cargo` becomes the toolchain's.
pub(super) fn mark(programs: &mut [ProgramTime], own: &Path) {
    for program in programs {
        program.is_command &= program.path == own || is_wrapper(&program.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_wrapper_that_goes_on_as_another_is_the_command_and_what_it_goes_on_as_at_last_is_not() {
        let program = |path: &str| ProgramTime {
            path: path.into(),
            cpu_s: 1.0,
            is_command: true,
            ..ProgramTime::default()
        };
        let paths = ["/home/a/.cargo/bin/rustup", "/opt/toolchain/bin/cargo", "/tmp/debug/job"];
        let mut programs = paths.map(program).to_vec();
        // Another cargo, of another process, is work of its own.
        programs.push(ProgramTime { is_command: false, ..program(paths[1]) });
        mark(&mut programs, Path::new(paths[0]));
        let marked: Vec<bool> = programs.iter().map(|program| program.is_command).collect();
        assert_eq!(marked, [true, true, false, false]);
    }

    #[test]
    fn shells_and_runners_are_wrappers_and_compilers_are_not() {
        for (path, is_one) in
            [("/bin/sh", true), ("/home/a/.cargo/bin/cargo", true), ("/usr/bin/gcc", false)]
        {
            assert_eq!(is_wrapper(Path::new(path)), is_one, "{path}");
        }
    }

    #[test]
    fn a_script_of_a_shell_is_a_wrapper_by_its_own_name() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("start");
        std::fs::write(&script, "#!/bin/sh\nexec sort\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let program = Program::find(script.as_os_str()).unwrap();
        assert_eq!(name(&program).as_deref(), Some("start"));
    }
}
