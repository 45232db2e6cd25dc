//! One run under the emulator, with a limit of time, and the report that the plugin wrote.
//!
//! It relies on qemu's options: `-L` replaces the system's files by those below a folder. So the program reads more
//! CPUs from `/sys` than there are; the plugin answers system calls likewise.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::OPS_START;
use super::report::Report;
use crate::mallocs::Malloc;
use xtask::{commands, files};

pub(super) const QEMU: &str = "qemu-x86_64";

/// CPUs that every program is shown, as many as fit into the word that the kernel fills on a machine with few.
pub(super) const CPUS: usize = 64;

/// Instructions of a turn on average.
pub(super) const QUANTUM: u64 = 300;

/// A run takes seconds; one that hangs must not stop the others.
pub(super) const LIMIT: [&str; 3] = ["timeout", "--foreground", "400"];

#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) workload: &'a str,
    pub(super) threads: usize,
    pub(super) malloc: &'a Malloc,
    pub(super) seed: u64,
    pub(super) ops: u64,
}

pub(super) struct Watch {
    folder: PathBuf,
}

impl Watch {
    /// Writes the files that the emulator shows in place of `/sys`; `folder` has the builds.
    pub(super) fn new(folder: &Path) -> Result<Watch> {
        let cpus = folder.join("root/sys/devices/system/cpu");
        for file in ["online", "possible", "present"] {
            files::write(&cpus.join(file), format!("0-{}\n", CPUS - 1))?;
        }
        std::fs::create_dir_all(folder.join("reports"))?;
        Ok(Watch { folder: folder.to_path_buf() })
    }

    /// Runs the case, or takes the whole report that lies there if `is_kept`.
    pub(super) fn run(&self, case: &Case<'_>, is_kept: bool) -> Result<Report> {
        let name = format!(
            "{}-{}-{}-{}-{}",
            case.workload,
            case.threads,
            case.malloc.name.replace('/', "_"),
            case.ops,
            case.seed
        );
        let out = self.folder.join("reports").join(name);
        if is_kept
            && let Ok(text) = files::read(&out)
            && let Ok(report) = Report::parse(&text)
        {
            return Ok(report);
        }
        let _ = std::fs::remove_file(&out);
        let mut command = self.emulated("scale", &out, case.seed, &case.malloc.environment);
        command.args([case.workload, "--marks", "--threads", &case.threads.to_string()]);
        command.args(["--start", &OPS_START.to_string(), "--ops", &case.ops.to_string()]);
        command.args(["--seed", &case.seed.to_string()]);
        commands::output(&mut commands::behind(&LIMIT, &command))?;
        Report::parse(&files::read(&out).context("the plugin wrote no report")?)
    }

    /// A program of the folder under the emulator with the plugin, which writes to `out`.
    pub(super) fn emulated(
        &self,
        program: &str,
        out: &Path,
        seed: u64,
        environment: &[(std::ffi::OsString, std::ffi::OsString)],
    ) -> Command {
        let mut command = Command::new(QEMU);
        commands::unset_malloc_variables(&mut command);
        command.arg("-L").arg(self.folder.join("root"));
        for (name, value) in environment {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            command.arg("-E").arg(pair);
        }
        let plugin = self.folder.join("coherence.so");
        let (plugin, out) = (plugin.display(), out.display());
        command.arg("-plugin");
        command.arg(format!("{plugin},out={out},seed={seed},quantum={QUANTUM},cpus={CPUS}"));
        command.arg(self.folder.join(program));
        command
    }
}
