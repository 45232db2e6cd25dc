//! The programs that a chore runs one after the other; steps, each announced and timed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

/// Announces a step, takes it, and says how long it took.
pub fn step<T>(name: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("==> {name}");
    let (start, cpu) = (Instant::now(), cpu_s());
    let done = step();
    let seconds = start.elapsed().as_secs_f64();
    match done {
        Ok(value) => {
            // On a machine that others use, too, this says more.
            let used = cpu_s().zip(cpu).map_or(0.0, |(now, then)| now - then);
            println!("==> {name}: done in {seconds:.1} s, {used:.1} s of CPU");
            Ok(value)
        }
        Err(error) => {
            Err(error).with_context(|| format!("step \"{name}\" failed after {seconds:.1} s"))
        }
    }
}

/// CPU seconds that this process and those that it started and saw end have used: the fields 14 to 17 of proc(5)'s
/// `stat`, in hundredths.
fn cpu_s() -> Option<f64> {
    let line = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name before the third field may hold anything.
    let fields = line.rsplit_once(") ")?.1.split(' ').skip(14 - 3).take(4);
    let hundredths = fields.map(|field| field.parse::<u32>().ok()).sum::<Option<u32>>()?;
    Some(f64::from(hundredths) / 100.0)
}

/// A cargo command in the workspace, by the cargo that runs this chore.
pub fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(root);
    command
}

/// Cargo's folder for its builds: this program lies in a profile's folder of it, a test in `deps` there.
pub fn target_folder() -> Result<PathBuf> {
    let program = std::env::current_exe().context("this program's own path is unknown")?;
    let mut folders = program.ancestors().skip(1).filter(|folder| !folder.ends_with("deps"));
    let folder = folders.nth(1).context("xtask lies outside a target folder")?;
    Ok(folder.to_path_buf())
}

/// Builds packages as users get them; `words` name them.
pub fn build(root: &Path, words: &[&str]) -> Result<()> {
    run(cargo(root, &["build", "--release", "--locked"]).args(words))
}

/// Builds `libmasu.so` with a feature, in a target folder that has the feature's name, because cargo gives it the
/// ordinary library's name.
pub fn build_library_with(root: &Path, feature: &str) -> Result<PathBuf> {
    let folder = target_folder()?.join(feature);
    let mut build = cargo(root, &["build", "--release", "--locked", "--package", "masu-abi"]);
    run(build.args(["--features", feature, "--target-dir"]).arg(&folder))?;
    Ok(folder.join("release/libmasu.so"))
}

/// Runs a command to its end; its output goes where ours goes.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}`: {status}");
    }
    Ok(())
}

/// Runs a command that must succeed; returns its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{shown}`: {}\n{}", output.status, said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a command succeeds, of which nothing is shown.
pub fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Has a cargo command compile with these flags alone.
pub fn set_flags<'a>(cargo: &'a mut Command, flags: &str) -> &'a mut Command {
    // Flags of `CARGO_ENCODED_RUSTFLAGS` would replace these.
    cargo.env("RUSTFLAGS", flags).env_remove("CARGO_ENCODED_RUSTFLAGS")
}

/// The one line that a command answers with.
pub fn answer(command: &mut Command) -> Result<String> {
    output(command).map(|text| text.trim().to_owned())
}

/// The command behind another one that starts it: `nice -n 19`, `timeout 60`.
pub fn behind(words: &[&str], command: &Command) -> Command {
    let mut whole = Command::new(words[0]);
    whole.args(&words[1..]).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        whole.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => whole.env(name, value),
            None => whole.env_remove(name),
        };
    }
    whole
}

/// Removes the variables that would change a malloc.
pub fn unset_malloc_variables(command: &mut Command) {
    for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX"] {
        command.env_remove(name);
    }
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.as_encoded_bytes().starts_with(b"MASU_")) {
        command.env_remove(name);
    }
}

/// Runs `make` in `sources`, with `out` as the folder for its builds.
pub fn make(sources: &Path, out: &Path) -> Result<()> {
    make_by(None, sources, out)
}

/// The same by this compiler of C.
pub fn make_by(compiler: Option<&str>, sources: &Path, out: &Path) -> Result<()> {
    let mut variable = OsString::from("OUT=");
    variable.push(out);
    let mut make = Command::new("make");
    make.args(compiler.map(|compiler| format!("CC={compiler}")));
    run(make.arg("--no-print-directory").arg("-C").arg(sources).arg(variable))
}

/// Makes `workloads/NAME` in a folder of that name, which it returns.
pub fn make_workload(root: &Path, name: &str) -> Result<PathBuf> {
    let out = target_folder()?.join(name);
    step(&format!("make workloads/{name}"), || make(&root.join("workloads").join(name), &out))?;
    Ok(out)
}

/// The command as one would type it.
pub fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(name).chain(arguments).collect::<Vec<_>>().join(" ")
}
