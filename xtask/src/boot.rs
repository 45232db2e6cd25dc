//! `cargo xtask boot`: a program of aarch64 under a kernel of its own, whose OS pages are as long as one says.
//!
//! It relies on `qemu-system-aarch64`, which emulates a whole machine, so the kernel there is a real one; and on
//! kernels that `boot/build.rs` builds from Debian's source. Cargo calls it to run tests (`matrix.rs`), and the tests
//! of programs in C do. The hard idea is to be no different from running the program here: its output, its errors
//! and how it ended are those of the program in the guest. A guest that has another size of OS pages than was asked
//! for, or that broke off, is an error.

mod build;
mod console;
mod guest;

use std::env;
use std::fs;
use std::io::{self, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::steps;
pub(crate) use build::provide;
use console::End;
use guest::Task;

const USAGE: &str = "\
Usage: cargo xtask boot --pages KIB [--env NAME=VALUE]... [--file PATH]... PROGRAM [ARGUMENT]...
  --pages KIB       4, 16 or 64: how long OS pages are there
  --env NAME=VALUE  a variable for the program; repeats. PATH and what begins with MASU_, MALLOC_ or RUST_ is there too
  --file PATH       a file that the program needs beside itself and the files among its arguments; repeats
  --folder PATH     an empty folder for the program; repeats";

/// What qemu makes the machine of: each CPU that a program may count on, and memory as a small machine has it.
const MACHINE: [&str; 8] = ["-machine", "virt", "-cpu", "max", "-smp", "2", "-m", "4096"];

/// No messages but the last ones; a kernel that panics ends the guest.
const KERNEL_OPTIONS: &str = "console=ttyAMA0 loglevel=1 panic=-1 random.trust_cpu=on";

struct Request {
    size: u32,
    task: Task,
}

impl Request {
    fn parse(arguments: &[&str]) -> Result<Request> {
        let mut size = None;
        let (mut variables, mut files, mut folders) = (inherited(), Vec::new(), Vec::new());
        let mut rest = arguments.iter();
        let program = loop {
            let next = *rest.next().with_context(|| format!("boot: no program\n{USAGE}"))?;
            let mut value =
                || rest.next().with_context(|| format!("{next} lacks its value\n{USAGE}"));
            match next {
                "--pages" => size = value()?.parse().ok(),
                "--env" => variables.push((*value()?).to_owned()),
                "--file" => files.push(std::path::absolute(value()?)?),
                "--folder" => folders.push(std::path::absolute(value()?)?),
                _ => break std::path::absolute(next)?,
            }
        };
        let size = size.filter(|size| build::SIZES.contains(size));
        let size = size.with_context(|| format!("boot: how long are OS pages?\n{USAGE}"))?;
        let arguments = rest.map(|argument| (*argument).to_owned()).collect();
        let folder = env::current_dir()?;
        let task = Task { program, arguments, variables, folder, files, folders };
        Ok(Request { size, task })
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
///
/// # Errors
///
/// When the guest cannot be started, or is not what was asked for, or broke off.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let Request { size, task } = Request::parse(arguments)?;
    provide(root, &[size])?;
    let end = boot(size, &task)?;
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
    let shown = steps::show(&qemu);
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
    use super::*;

    #[test]
    fn what_follows_the_program_is_the_program_s() {
        let request =
            Request::parse(&["--pages", "16", "--env", "A=1", "/bin/x", "--pages", "3"]).unwrap();
        assert_eq!(request.size, 16);
        assert_eq!(request.task.arguments, ["--pages", "3"]);
        assert_eq!(request.task.program, Path::new("/bin/x"));
        assert!(request.task.variables.contains(&"A=1".to_owned()));
    }

    #[test]
    fn a_request_that_is_not_whole_is_refused() {
        for wrong in [&["/bin/x"][..], &["--pages", "8", "/bin/x"], &["--pages", "4"], &["--pages"]]
        {
            assert!(Request::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
