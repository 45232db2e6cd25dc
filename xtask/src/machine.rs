//! The needs of the chores on a machine, and their installation.
//!
//! `machine/needs.txt` lists the needs of each chore, with a test that each is there, the Debian package that brings
//! it, and the reason. A need that is already there, from any source, is never installed again.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::commands;

/// Something a chore needs that cargo does not bring: a line of `machine/needs.txt`.
pub struct Need {
    /// The kind of file that shows the need is there: `program`, `library` or `file`.
    sign: &'static str,
    /// The name of that file.
    pub name: &'static str,
    package: &'static str,
    reason: &'static str,
}

const NEEDS: &str = include_str!("machine/needs.txt");

macro_rules! lists {
    ($($name:ident = $heading:literal,)+) => {
        $(#[expect(missing_docs, reason = "the file has a line on each")]
        pub const $name: &str = $heading;)+

        #[cfg(test)]
        const LISTS: &[&str] = &[$($name),+];
    };
}

// The lists of that file.
lists! {
    PEERS = "peers",
    PEER_BUILDS = "peer-builds",
    HARDENED_PEERS = "hardened-peers",
    RUST_PEERS = "rust-peers",
    PATTERNS = "patterns",
    MUSL_PATTERNS = "musl-patterns",
    PROGRAMS = "programs",
    ORDINARY = "ordinary",
    JUDGED = "judged",
    TESTED = "tested",
    FOREIGN = "foreign",
    GUEST = "guest",
    EMULATED = "emulated",
    DEBIAN = "debian",
    DEBIAN_CHECKED = "debian-checked",
    MANUAL = "manual",
    PYTHON = "python",
    CONTAINERS = "containers",
}

/// The needs in `list`: a line for each, `SIGN NAME PACKAGE: REASON`.
pub fn needs(list: &str) -> Vec<Need> {
    let heading = format!("\n[{list}]\n");
    let (_, lines) = NEEDS.split_once(&heading).expect("a test looks each list up");
    let lines = lines.lines().take_while(|line| !line.is_empty());
    lines.map(|line| Need::read(line).expect("a test reads each line")).collect()
}

impl Need {
    fn read(line: &'static str) -> Option<Need> {
        let (start, reason) = line.split_once(": ")?;
        let mut words = start.split(' ');
        let (sign, name, package) = (words.next()?, words.next()?, words.next()?);
        Some(Need { sign, name, package, reason })
    }

    fn is_there(&self) -> bool {
        match self.sign {
            "program" => is_program(self.name),
            "library" => ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"]
                .iter()
                .any(|folder| Path::new(folder).join(self.name).exists()),
            _ => Path::new(self.name).exists(),
        }
    }
}

pub fn is_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

pub const MUSL: &str = "x86_64-unknown-linux-musl";

pub const HOST: &str = "x86_64-unknown-linux-gnu";

pub const OTHER_CPU: &str = "aarch64-unknown-linux-gnu";

/// The same for programs that bring no C library with them.
pub const OTHER_CPU_MUSL: &str = "aarch64-unknown-linux-musl";

/// Systems on which `masu` hands requests to the system's allocator: it must compile for them.
pub const OTHER_SYSTEMS: &[&str] =
    &["x86_64-pc-windows-gnu", "aarch64-apple-darwin", "armv7-unknown-linux-gnueabihf"];

/// The oldest Rust that the libraries compile with. COUPLING: `rust-version` in their manifests.
pub const OLDEST_RUST: &str = "1.88.0";

/// The toolchain with tools that a stable one lacks.
pub const NIGHTLY: &str = "nightly";

/// The same where a chore works with fewer: a failure is printed.
pub fn provide_what_there_is(lists: &[&str]) {
    if let Err(error) = provide_all(lists) {
        println!("going on without: {error:#}");
    }
}

/// Installs the missing needs of these lists, as root by apt-get.
pub fn provide_all(lists: &[&str]) -> Result<()> {
    let mut missing: Vec<Need> = lists.iter().flat_map(|list| needs(list)).collect();
    missing.retain(|need| !need.is_there());
    if missing.is_empty() {
        return Ok(());
    }
    for Need { package, reason, .. } in &missing {
        println!("missing: {package} ({reason})");
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    let by_hand = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if !is_root() || !is_program("apt-get") {
        bail!("install what is missing, on Debian as root by `{by_hand}`, then run this again");
    }
    println!("installing as root: {by_hand}");
    // The list of packages may be old or empty, so a first failure is answered with a fresh one.
    if apt_get(&["install"], &packages).is_err() {
        apt_get(&["update"], &[])?;
        apt_get(&["install"], &packages)?;
    }
    match missing.iter().find(|need| !need.is_there()) {
        Some(need) => bail!("{} was installed and is still not found", need.package),
        None => Ok(()),
    }
}

fn apt_get(action: &[&str], packages: &[&str]) -> Result<()> {
    let _started = NothingStarts::new();
    let mut command = Command::new("apt-get");
    command.args(["--yes", "--quiet=2", "--no-install-recommends"]).args(action).args(packages);
    command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    commands::run(&mut command)
}

/// While this lives, Debian's packages start none of the servers that they install: tests start their own.
struct NothingStarts(Option<&'static Path>);

impl NothingStarts {
    /// The program that Debian asks whether a service may be started (invoke-rc.d(8)).
    const POLICY: &str = "/usr/sbin/policy-rc.d";
    const TEXT: &str = "#!/bin/sh\n# Of `cargo xtask`, while it installs.\nexit 101\n";

    fn new() -> NothingStarts {
        let policy = Path::new(NothingStarts::POLICY);
        // Another policy is the machine's own; this one was left by a call that was cut off.
        let is_left = fs::read(policy).is_ok_and(|text| text == NothingStarts::TEXT.as_bytes());
        let is_written = (is_left || !policy.exists())
            && fs::write(policy, NothingStarts::TEXT).is_ok()
            && fs::set_permissions(policy, Permissions::from_mode(0o755)).is_ok();
        NothingStarts(is_written.then_some(policy))
    }
}

impl Drop for NothingStarts {
    fn drop(&mut self) {
        if let Some(policy) = self.0 {
            let _ = fs::remove_file(policy);
        }
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Adds the missing parts of the Rust toolchain, by rustup.
pub fn provide_toolchain(root: &Path) -> Result<()> {
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !commands::succeeds(&mut commands::cargo(root, &[tool, "--version"])) {
            rustup(root, &["component", "add", component])?;
        }
    }
    for target in [MUSL, OTHER_CPU, OTHER_CPU_MUSL].iter().chain(OTHER_SYSTEMS) {
        provide_target(root, target)?;
    }
    provide_rust(root, OLDEST_RUST, &["rustc"], &[])
}

/// Has rustup install the nightly toolchain, whose rustdoc writes JSON.
pub fn provide_nightly(root: &Path) -> Result<()> {
    provide_rust(root, NIGHTLY, &["rustdoc"], &[])
}

/// Has rustup install Miri, which only nightly compilers have.
pub fn provide_miri(root: &Path) -> Result<()> {
    let parts = ["--component", "miri", "--component", "rust-src"];
    provide_rust(root, NIGHTLY, &["cargo", "miri"], &parts)
}

/// Has rustup install a toolchain with these parts where it does not run the tool yet.
fn provide_rust(root: &Path, toolchain: &str, tool: &[&str], parts: &[&str]) -> Result<()> {
    let mut version = Command::new("rustup");
    if commands::succeeds(version.args(["run", toolchain]).args(tool).arg("--version")) {
        return Ok(());
    }
    rustup(root, &[&["toolchain", "install", toolchain, "--profile", "minimal"], parts].concat())
}

/// Adds the standard library for `target` where the toolchain lacks it.
pub fn provide_target(root: &Path, target: &str) -> Result<()> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--print", "target-libdir", "--target", target]).current_dir(root);
    if commands::answer(&mut rustc).is_ok_and(|folder| Path::new(&folder).is_dir()) {
        return Ok(());
    }
    rustup(root, &["target", "add", target])
}

fn rustup(root: &Path, arguments: &[&str]) -> Result<()> {
    println!("running rustup {}", arguments.join(" "));
    let mut command = Command::new("rustup");
    command.args(arguments).current_dir(root);
    commands::run(&mut command).context("the Rust toolchain lacks a part that rustup would add")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_missed() {
        let is_there = |line| Need::read(line).unwrap().is_there();
        for sign in ["program", "library", "file"] {
            let line = format!("{sign} no-such-thing-is-here package: why");
            assert!(!is_there(line.leak()), "{sign}");
        }
        assert!(is_there("program cargo package: why") && is_there("file /proc package: why"));
    }

    #[test]
    fn every_line_is_a_need_and_each_package_of_a_list_stands_there_once() {
        for list in NEEDS.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']')) {
            let needs = needs(list);
            assert!(!needs.is_empty(), "{list}");
            for (at, need) in needs.iter().enumerate() {
                assert!(["program", "library", "file"].contains(&need.sign), "{}", need.name);
                assert!(needs[..at].iter().all(|one| one.package != need.package), "{}", need.name);
            }
        }
        assert!(LISTS.iter().all(|list| !needs(list).is_empty()));
    }
}
