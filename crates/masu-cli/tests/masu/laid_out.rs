//! `libmasu.so` finds a place, wherever `masu` is started and whatever its surroundings.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::masu;

/// The path of the library that serves `command`, a `masu run` of `cat /proc/self/maps`.
fn library(command: &mut Command) -> PathBuf {
    let output = command.output().unwrap();
    let maps = String::from_utf8_lossy(&output.stdout);
    let found = maps.split_whitespace().find(|word| word.contains("/libmasu-"));
    let said = String::from_utf8_lossy(&output.stderr);
    PathBuf::from(found.unwrap_or_else(|| panic!("not mapped: {said}")))
}

fn show_maps() -> Command {
    let mut command = masu(&["run", "--", "cat", "/proc/self/maps"]);
    for variable in ["XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "HOME"] {
        command.env_remove(variable);
    }
    command
}

#[test]
fn a_cache_home_gets_the_library() {
    let home = tempfile::tempdir().unwrap();
    let library = library(show_maps().env("XDG_CACHE_HOME", home.path()).current_dir("/"));
    let cache = fs::canonicalize(home.path()).unwrap().join("masu");
    assert_eq!(library.parent(), Some(cache.as_path()));
}

#[test]
fn a_program_that_root_starts_as_another_user_finds_the_library() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    // As root's own home, closed to others.
    let home = tempfile::tempdir().unwrap();
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut command = masu(&["run", "--"]);
    command.args(user).args(["cat", "/proc/self/maps"]).current_dir("/");
    command.env("HOME", home.path());
    for variable in ["XDG_CACHE_HOME", "XDG_RUNTIME_DIR"] {
        command.env_remove(variable);
    }
    library(&mut command);
}

#[test]
fn a_noexec_mount_is_passed_over() {
    let root = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o noexec,mode=700 none \"$XDG_CACHE_HOME\"";
    let namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.env("XDG_CACHE_HOME", root.path()).env_remove("LD_PRELOAD");
        command
    };
    if !namespace(mount).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine lets nobody mount inside a namespace of their own");
        return;
    }
    let masu = env!("CARGO_BIN_EXE_masu");
    let script = format!("{mount} && exec {masu} run -- cat /proc/self/maps");
    let library = library(&mut namespace(&script));
    assert!(!library.starts_with(root.path()), "{}", library.display());
}

#[test]
fn a_program_on_musl_gets_the_library_made_for_it() {
    let root = tempfile::tempdir().unwrap();
    let (source, program) = (root.path().join("maps.c"), root.path().join("maps"));
    let text = "#include <stdio.h>\n#include <stdlib.h>\n\
        int main(void) { char *line = malloc(4096); FILE *maps = fopen(\"/proc/self/maps\", \"r\");\
        while (fgets(line, 4096, maps)) fputs(line, stdout); return 0; }\n";
    fs::write(&source, text).unwrap();
    let mut compiler = Command::new("musl-gcc");
    if !compiler.arg("-o").args([&program, &source]).status().is_ok_and(|it| it.success()) {
        eprintln!("skipped: no musl-gcc here (Debian: musl-tools)");
        return;
    }
    let library = library(&mut masu(&["run", "--", program.to_str().unwrap()]));
    let name = library.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with("libmasu-musl-"), "{name}");
}
