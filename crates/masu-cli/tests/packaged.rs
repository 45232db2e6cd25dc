//! `masu`, installed offline from the packaged crates alone, works from any folder.
//!
//! Relies on cargo, tar and the crates this build already downloaded. It builds everything a
//! second time, so it waits to be asked for: `MASU_SLOW=1 cargo test -p masu-cli --test packaged`.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn masu_installed_from_its_packages_carries_its_malloc() {
    if env::var_os("MASU_SLOW").is_none() {
        eprintln!("skipped: builds masu from its packages, about a minute; set MASU_SLOW=1");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut package = cargo(&workspace, &["package", "--no-verify", "--allow-dirty"]);
    package.args(["--package=masu-cli", "--package=masu-lab", "--package=masu-code"]);
    succeed(package.arg("--target-dir").arg(&target));

    let cli = unpack(&target, "masu-cli", folder.path());
    let root = folder.path().join("root");
    let mut install = cargo(folder.path(), &["install", "--debug"]);
    for used in ["masu-lab", "masu-code"] {
        // A registry would hand these out; here their unpacked packages stand in for that.
        let package = unpack(&target, used, folder.path());
        let patch = format!("patch.crates-io.{used}.path='{}'", package.display());
        install.arg("--config").arg(patch);
    }
    install.arg("--path").arg(&cli).arg("--root").arg(&root).arg("--target-dir").arg(&target);
    succeed(&mut install);

    let mut masu = Command::new(root.join("bin/masu"));
    masu.args(["run", "--", "cat", "/proc/self/maps"]).current_dir("/");
    let maps = succeed(masu.env("XDG_CACHE_HOME", folder.path()));
    assert!(maps.contains("/libmasu-"), "{maps}");
}

/// A cargo that asks no network, whatever it is told by the cargo that runs this test.
fn cargo(folder: &Path, arguments: &[&str]) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(folder).args(arguments).arg("--offline").env_remove("CARGO_TARGET_DIR");
    cargo
}

/// Unpacks the package called `name` that lies in `target`; returns its folder.
fn unpack(target: &Path, name: &str, folder: &Path) -> PathBuf {
    let package = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
    let archive = target.join("package").join(format!("{package}.crate"));
    succeed(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(folder));
    fs::canonicalize(folder.join(package)).unwrap()
}

/// Runs `command`, which must succeed; returns its output.
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let name = command.get_program().to_owned();
    assert!(output.status.success(), "{}: {said}", OsStr::display(&name));
    String::from_utf8(output.stdout).unwrap()
}
