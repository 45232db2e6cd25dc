//! `cargo xtask boot`: a program of aarch64 under a kernel of its own, whose OS pages are as long as one says.
//!
//! It relies on `qemu-system-aarch64`, which emulates a whole machine, so the kernel there is a real one; and on
//! kernels that `boot/build.rs` builds from Debian's source. Cargo calls it to run tests (`matrix.rs`), and the tests
//! of programs in C do. The hard part is to be no different from running the program here: its output, its errors and
//! how it ended are those of the program in the guest. A guest that has another size of OS pages than was asked for, or
//! that broke off, is an error.

mod build;
mod console;
mod guest;

use std::env;
use std::fs;
use std::io::{self, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::commands;
pub(crate) use build::provide;
use console::End;
use guest::Task;

/// The machine that qemu emulates: two CPUs, and memory as a small machine has it.
const MACHINE: [&str; 8] = ["-machine", "virt", "-cpu", "max", "-smp", "2", "-m", "4096"];

/// No messages but the last ones; a kernel that panics ends the guest.
const KERNEL_OPTIONS: &str = "console=ttyAMA0 loglevel=1 panic=-1 random.trust_cpu=on";

/// Run a program of aarch64 under a kernel with other OS pages (about 10 minutes the first time)
#[derive(Debug, clap::Parser)]
pub(crate) struct Request {
    /// How many KiB OS pages have there
    #[arg(long, value_name = "KIB", value_parser = parse_size)]
    pages: u32,
    /// A variable for the program; repeats. PATH and what begins with MASU_, MALLOC_ or RUST_ is there too
    #[arg(long = "env", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// A file that the program needs beside itself and the files among its arguments; repeats
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<PathBuf>,
    /// An empty folder for the program; repeats
    #[arg(long = "folder", value_name = "PATH")]
    folders: Vec<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

fn parse_size(text: &str) -> Result<u32, String> {
    let size = text.parse().ok().filter(|size| build::SIZES.contains(size));
    size.ok_or_else(|| format!("there are kernels with {:?} KiB", build::SIZES))
}

impl Request {
    fn task(&self) -> Result<Task> {
        let absolute = |paths: &[PathBuf]| {
            paths.iter().map(std::path::absolute).collect::<std::io::Result<Vec<_>>>()
        };
        let (program, arguments) = self.command.split_first().context("no program")?;
        Ok(Task {
            program: std::path::absolute(program)?,
            arguments: arguments.to_vec(),
            variables: inherited().into_iter().chain(self.variables.iter().cloned()).collect(),
            folder: env::current_dir()?,
            files: absolute(&self.files)?,
            folders: absolute(&self.folders)?,
        })
    }
}

/// The variables of this program that a guest's has too.
fn inherited() -> Vec<String> {
    let is_passed_on = |name: &str| {
        name == "PATH" || ["MASU_", "MALLOC_", "RUST_"].iter().any(|start| name.starts_with(start))
    };
    let variables = env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        is_passed_on(&name).then(|| format!("{name}={value}"))
    });
    variables.collect()
}

/// Runs the program and ends as it did.
pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    provide(root, &[request.pages])?;
    let end = boot(request.pages, &request.task()?)?;
    match end {
        End::Status(code) => std::process::exit(code),
        End::Signal(number) => Err(die(number)),
    }
}

/// Boots a guest for the task; returns how the program ended.
fn boot(size: u32, task: &Task) -> Result<End> {
    let archive = task.archive(&build::init()?)?;
    let files = env::temp_dir().join(format!("masu-guest-{}", std::process::id()));
    fs::write(&files, archive).with_context(|| format!("cannot write {}", files.display()))?;
    let followed = emulate(size, &files);
    fs::remove_file(&files)?;
    let said = followed?;
    if said.page != u64::from(size) << 10 {
        bail!("the guest has OS pages of {} bytes, and {size} KiB were asked for", said.page);
    }
    said.end.with_context(|| format!("the guest (kernel {}) broke off: see above", said.kernel))
}

fn emulate(size: u32, files: &Path) -> Result<console::Said> {
    let mut qemu = Command::new("qemu-system-aarch64");
    qemu.args(MACHINE).args(["-accel", "tcg,thread=multi", "-no-reboot", "-nodefaults"]);
    qemu.args(["-display", "none", "-monitor", "none", "-serial", "stdio", "-kernel"]);
    qemu.arg(build::image(size)?).arg("-initrd").arg(files).args(["-append", KERNEL_OPTIONS]);
    let shown = commands::show(&qemu);
    let mut qemu = qemu
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let console = qemu.stdout.take().context("the guest has no console")?;
    let said = console::follow(BufReader::new(console), io::stdout(), io::stderr());
    if said.is_err() {
        let _ = qemu.kill();
    }
    let status = qemu.wait()?;
    if !status.success() && said.is_ok() {
        bail!("`{shown}`: {status}");
    }
    said
}

/// Ends by the signal that ended the program.
fn die(number: i32) -> anyhow::Error {
    let script = format!("ulimit -c 0; kill -{number} $$");
    Command::new("sh").args(["-c", &script]).exec().into()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn what_follows_the_program_is_the_program_s() {
        let words = "boot --pages 16 --env A=1 /bin/x --pages 3".split(' ');
        let request = Request::try_parse_from(words).unwrap();
        let task = request.task().unwrap();
        assert_eq!(request.pages, 16);
        assert_eq!(task.arguments, ["--pages", "3"]);
        assert_eq!(task.program, Path::new("/bin/x"));
        assert!(task.variables.contains(&"A=1".to_owned()));
    }
}
