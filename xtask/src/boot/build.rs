//! Kernels for guests: Debian's source, configured to have little more than what tests ask of a kernel, compiled
//! once for each size of an OS page.
//!
//! It relies on Debian's package `linux-source-6.1`, on its cross compiler and on rustc for the first process. The hard
//! part is `allnoconfig` with a list: what the list asks for and the kernel's own rules then drop would be missed only
//! in a guest, so it is missed here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{commands, machine};

/// The sizes of an OS page that aarch64 has, in KiB.
pub(crate) const SIZES: [u32; 3] = [4, 16, 64];

const SOURCE: &str = "/usr/src/linux-source-6.1.tar.xz";

/// The configuration beside the size of an OS page.
const WANTED: &str = "\
CONFIG_EXPERT=y
CONFIG_SMP=y
CONFIG_NR_CPUS=4
CONFIG_HZ_100=y
CONFIG_HIGH_RES_TIMERS=y
CONFIG_NO_HZ_IDLE=y
CONFIG_PREEMPT_VOLUNTARY=y
CONFIG_PRINTK=y
CONFIG_BUG=y
CONFIG_KALLSYMS=y
CONFIG_TTY=y
CONFIG_UNIX98_PTYS=y
CONFIG_SERIAL_AMBA_PL011=y
CONFIG_SERIAL_AMBA_PL011_CONSOLE=y
CONFIG_BLK_DEV_INITRD=y
CONFIG_BINFMT_ELF=y
CONFIG_BINFMT_SCRIPT=y
CONFIG_PROC_FS=y
CONFIG_PROC_SYSCTL=y
CONFIG_PROC_PAGE_MONITOR=y
CONFIG_SYSFS=y
CONFIG_DEVTMPFS=y
CONFIG_SHMEM=y
CONFIG_TMPFS=y
CONFIG_MEMFD_CREATE=y
CONFIG_MULTIUSER=y
CONFIG_FUTEX=y
CONFIG_MEMBARRIER=y
CONFIG_RSEQ=y
CONFIG_POSIX_TIMERS=y
CONFIG_EPOLL=y
CONFIG_EVENTFD=y
CONFIG_SIGNALFD=y
CONFIG_TIMERFD=y
CONFIG_AIO=y
CONFIG_FILE_LOCKING=y
CONFIG_ADVISE_SYSCALLS=y
CONFIG_CROSS_MEMORY_ATTACH=y
CONFIG_TRANSPARENT_HUGEPAGE=y
CONFIG_TRANSPARENT_HUGEPAGE_MADVISE=y
CONFIG_NET=y
CONFIG_UNIX=y
CONFIG_SECCOMP=y
CONFIG_SECCOMP_FILTER=y
CONFIG_ARM64_VA_BITS_48=y
";

/// Builds the kernels that are not there yet for OS pages of these sizes, in KiB.
pub(crate) fn provide(root: &Path, sizes: &[u32]) -> Result<()> {
    machine::provide_all(&[machine::GUEST])?;
    machine::provide_target(root, machine::OTHER_CPU_MUSL)?;
    let folder = folder()?;
    fs::create_dir_all(&folder)?;
    let mut missing = Vec::new();
    for size in sizes {
        if !is_kept(&configuration_path(*size)?, &wanted(*size)) {
            missing.push(*size);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let source = folder.join("source");
    commands::step("unpack the kernel's source", || {
        fs::create_dir_all(&source)?;
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--strip-components=1", "--file", SOURCE, "--directory"]);
        commands::run(tar.arg(&source))
    })?;
    for size in missing {
        commands::step(&format!("kernel with OS pages of {size} KiB"), || compile(&source, size))?;
    }
    fs::remove_dir_all(&source).context("cannot remove the kernel's source")
}

/// The kernel that [`provide`] built.
pub(super) fn image(size: u32) -> Result<PathBuf> {
    Ok(folder()?.join(format!("image-{size}")))
}

/// The first process of a guest, built if it is not what its source says.
pub(super) fn init() -> Result<PathBuf> {
    const INIT: &str = include_str!("init.rs");
    let folder = folder()?;
    let (program, source) = (folder.join("init"), folder.join("init.rs"));
    if program.is_file() && is_kept(&source, INIT) {
        return Ok(program);
    }
    // Written aside, for another guest may start now.
    let aside = folder.join(format!("init-{}.rs", std::process::id()));
    fs::write(&aside, INIT)?;
    let built = aside.with_extension("");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--target", machine::OTHER_CPU_MUSL, "--crate-name", "init"]);
    rustc.args(["-C", "linker=rust-lld", "-C", "opt-level=1", "-C", "panic=abort"]);
    commands::run(rustc.args(["-C", "strip=symbols", "-o"]).arg(&built).arg(&aside))?;
    fs::rename(built, &program)?;
    fs::rename(aside, source)?;
    Ok(program)
}

fn folder() -> Result<PathBuf> {
    Ok(commands::target_folder()?.join("kernels"))
}

/// The configuration that an image was built with.
fn configuration_path(size: u32) -> Result<PathBuf> {
    Ok(folder()?.join(format!("config-{size}")))
}

fn wanted(size: u32) -> String {
    format!("CONFIG_ARM64_{size}K_PAGES=y\n{WANTED}")
}

fn is_kept(path: &Path, text: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|kept| kept == text)
}

fn compile(source: &Path, size: u32) -> Result<()> {
    let build = source.with_file_name(format!("build-{size}"));
    fs::create_dir_all(&build)?;
    let wanted = wanted(size);
    let list = build.join("wanted");
    fs::write(&list, &wanted)?;
    let make = || {
        let mut make = Command::new("make");
        make.arg("--silent").arg("-C").arg(source).arg(format!("O={}", build.display()));
        make.args(["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"]);
        make
    };
    let mut configure = make();
    configure.arg(format!("KCONFIG_ALLCONFIG={}", list.display())).arg("allnoconfig");
    commands::run(&mut configure)?;
    if let Some(line) = dropped(&wanted, &fs::read_to_string(build.join(".config"))?) {
        bail!("the kernel's own rules drop `{line}`: what does it depend on?");
    }
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    commands::run(make().arg(format!("-j{jobs}")).arg("Image"))?;
    fs::copy(build.join("arch/arm64/boot/Image"), image(size)?)?;
    fs::write(configuration_path(size)?, wanted)?;
    fs::remove_dir_all(build).context("cannot remove what the kernel was built from")
}

/// The first line of what was asked for that the configuration lacks.
fn dropped<'a>(wanted: &'a str, configuration: &str) -> Option<&'a str> {
    wanted.lines().find(|line| !configuration.lines().any(|there| there == *line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_configuration_lacks_is_named() {
        let wanted = wanted(16);
        assert_eq!(dropped(&wanted, &format!("# all\n{wanted}")), None);
        let without = wanted.replace("CONFIG_SECCOMP=y\n", "# CONFIG_SECCOMP is not set\n");
        assert_eq!(dropped(&wanted, &without), Some("CONFIG_SECCOMP=y"));
    }
}
