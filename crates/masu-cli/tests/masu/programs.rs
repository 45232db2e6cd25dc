//! Programs that a malloc cannot be preloaded into, made for a test.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn static_program(folder: &Path) -> PathBuf {
    let source = folder.join("static.rs");
    fs::write(&source, "fn main() { println!(\"{:?}\", vec![1, 2]); }").unwrap();
    let program = folder.join("static");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args(["-Ctarget-feature=+crt-static", "-o"])
        .args([&program, &source])
        .status()
        .expect("this test needs rustc");
    assert!(status.success());
    program
}

pub(crate) fn setuid_program(folder: &Path) -> PathBuf {
    let program = folder.join("setuid");
    fs::copy("/bin/true", &program).unwrap();
    // Only root may give a file away; every other user finds a file that belongs to root.
    if chown(&program, Some(1), None).is_err() {
        let known = ["/usr/bin/su", "/bin/su", "/usr/bin/passwd"].map(PathBuf::from);
        return known.into_iter().find(|path| path.exists()).expect("a setuid program");
    }
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).unwrap();
    program
}
