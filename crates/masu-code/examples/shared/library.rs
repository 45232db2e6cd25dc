//! Shared by the examples that load code: gcc, the dynamic linker, and the kernel's figures of this process.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

pub(crate) fn compile(folder: &Path, arguments: &[&str]) -> Outcome<()> {
    let output = Command::new("gcc").args(arguments).current_dir(folder).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default();
    Err(format!("gcc {arguments:?}: {first}").into())
}

pub(crate) fn open(path: &Path) -> Outcome<*mut libc::c_void> {
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: The libraries are this program's own and have no initialisers.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() { Err(format!("dlopen {}", path.display()).into()) } else { Ok(handle) }
}

pub(crate) fn symbol(library: *mut libc::c_void, name: &str) -> Outcome<*mut libc::c_void> {
    let c = std::ffi::CString::new(name)?;
    // SAFETY: The handle is of a loaded library, the name a C string.
    let address = unsafe { libc::dlsym(library, c.as_ptr()) };
    if address.is_null() { Err(format!("no symbol {name}").into()) } else { Ok(address) }
}

/// A figure of `/proc/self/status`, in KiB.
pub(crate) fn status(name: &str) -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such figure")?;
    Ok(line.split_whitespace().next().ok_or("no figure")?.parse()?)
}
