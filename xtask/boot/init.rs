//! The first process of a kernel that `cargo xtask boot` starts: runs one program, says how it ended, and
//! powers the machine off.
//!
//! It relies on the initial files from `boot.sh`: the program, and below `/boot` its arguments, variables and folder.
//! The program's standard output goes to the console as it comes; its standard error follows when the program has
//! ended, because there is only one line for both. This process's own messages follow a byte that no text has.
//!
//! Programs under test start `/bin/true` as the smallest program there is; in a guest it is this one.
//!
//! It is built by rustc alone, for the guest; cargo builds it only to check it.

use std::ffi::{CString, OsStr, c_char, c_int, c_long, c_ulong, c_void};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

unsafe extern "C" {
    fn mount(
        source: *const c_char,
        target: *const c_char,
        kind: *const c_char,
        flags: c_ulong,
        data: *const c_void,
    ) -> c_int;
    safe fn reboot(what: c_int) -> c_int;
    safe fn sysconf(name: c_int) -> c_long;
}

// COUPLING: `boot.sh` reads the text behind this byte.
const MARK: char = '\u{1e}';

fn main() {
    const POWER_OFF: c_int = 0x4321_fedc;
    // A process other than the first runs this file as `/bin/true`, so it only succeeds.
    if std::process::id() != 1 {
        return;
    }
    if let Err(error) = start() {
        println!("{MARK}error {error}");
    }
    let _ = io::stdout().flush();
    let _ = reboot(POWER_OFF);
}

fn start() -> io::Result<()> {
    mount_at("proc", "/proc")?;
    mount_at("sysfs", "/sys")?;
    mount_at("devtmpfs", "/dev")?;
    fs::create_dir_all("/dev/shm")?;
    mount_at("tmpfs", "/dev/shm")?;
    const PAGE_SIZE: c_int = 30;
    println!("{MARK}page {}", sysconf(PAGE_SIZE));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    println!("{MARK}kernel {}", release.trim());
    let (status, errors) = run()?;
    // Standard error begins behind the end of the line and ends before its mark.
    println!("{MARK}errors");
    io::stdout().write_all(&errors)?;
    match (status.code(), status.signal()) {
        (Some(code), _) => println!("{MARK}status {code}"),
        (None, signal) => println!("{MARK}signal {}", signal.unwrap_or_default()),
    }
    Ok(())
}

fn mount_at(kind: &str, target: &str) -> io::Result<()> {
    let (kind, target) = (CString::new(kind)?, CString::new(target)?);
    // SAFETY: The kernel reads the three texts, which end with a zero and live as long as the call.
    let result =
        unsafe { mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Runs the program to its end; returns its exit status and its standard error.
fn run() -> io::Result<(ExitStatus, Vec<u8>)> {
    const ERRORS: &str = "/boot/errors";
    let (arguments, variables) = (fs::read("/boot/arguments")?, fs::read("/boot/variables")?);
    let (program, folder) = (fs::read("/boot/program")?, fs::read("/boot/folder")?);
    let variables = texts(&variables).filter_map(|text| {
        let place = text.as_bytes().iter().position(|byte| *byte == b'=')?;
        let (name, value) = text.as_bytes().split_at(place);
        Some((OsStr::from_bytes(name), OsStr::from_bytes(&value[1..])))
    });
    let mut command = Command::new(OsStr::from_bytes(&program));
    command
        .args(texts(&arguments))
        .env_clear()
        .envs(variables)
        .current_dir(OsStr::from_bytes(&folder));
    let status = command.stdin(Stdio::null()).stderr(File::create(ERRORS)?).status()?;
    Ok((status, fs::read(ERRORS)?))
}

fn texts(bytes: &[u8]) -> impl Iterator<Item = &OsStr> {
    bytes.split_inclusive(|byte| *byte == 0).map(|text| OsStr::from_bytes(&text[..text.len() - 1]))
}
