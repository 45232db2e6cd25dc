//! `masu diagnose` and `masu compare` as guests in someone's system: with no rights, in a sandbox, killed in the middle.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::ending::{is_gone, wait_until};
use crate::masu;

/// A folder that is open to every user.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        Folder(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A copy of masu: the folders above the one that was built may be closed to others.
    pub(crate) fn masu(&self) -> PathBuf {
        let copy = self.path().join("masu");
        fs::copy(env!("CARGO_BIN_EXE_masu"), &copy).unwrap();
        fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
        copy
    }

    /// The sandbox of `tests/c/refuse.c`.
    pub(crate) fn sandbox(&self) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/refuse.c");
        let program = self.path().join("refuse");
        let status = Command::new("gcc").arg("-o").args([&program, &source]).status();
        assert!(status.expect("this test needs gcc").success());
        program
    }
}

/// The diagnosis that a successful run printed.
fn diagnosis(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let diagnosis: Value = serde_json::from_slice(&output.stdout).expect("a diagnosis is JSON");
    assert_eq!(diagnosis["version"], 1, "{diagnosis}");
    assert!(diagnosis["findings"].is_array(), "{diagnosis}");
    diagnosis
}

/// The lines of the diagnosis about the things it could not see that begin with `of`.
fn blindness<'a>(diagnosis: &'a Value, of: &str) -> Vec<&'a str> {
    let not_seen = diagnosis["not_seen"].as_array().expect("what was not seen is a list");
    let all = not_seen.iter().filter_map(Value::as_str);
    all.filter(|said| said.starts_with(of)).collect()
}

#[test]
fn a_user_without_rights_or_home_gets_a_diagnosis_that_names_setuid_programs() {
    let folder = Folder::new();
    let copy = folder.masu();
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
        command
    } else {
        Command::new(&copy)
    };
    command.args(["diagnose", "--json", "--", "sh", "-c", "echo hello; /bin/su --version"]);
    command.env_remove("HOME").env_remove("XDG_CACHE_HOME").env_remove("XDG_RUNTIME_DIR");
    command.env_remove("LD_PRELOAD").env_remove("GLIBC_TUNABLES").current_dir("/");
    let diagnosis = diagnosis(&command.output().expect("masu starts"));
    let named = diagnosis["not_seen"].to_string();
    assert!(named.contains("su as it is: it is setuid"), "{diagnosis}");
}

/// masu with these arguments, on a program that writes 3,000 lines, where these calls are refused.
fn masu_sandboxed(folder: &Folder, refused: &[&str], arguments: &[&str]) -> Output {
    let mut command = Command::new(folder.sandbox());
    command.args(refused).arg("--").arg(env!("CARGO_BIN_EXE_masu")).args(arguments);
    let script = "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done";
    command.args(["--", "sh", "-c", script]).output().expect("the sandbox starts")
}

/// `masu diagnose` there.
fn sandboxed(folder: &Folder, refused: &[&str], options: &[&str]) -> Output {
    masu_sandboxed(folder, refused, &[&["diagnose"], options].concat())
}

#[test]
fn a_sandbox_without_perf_events_and_filters_hides_where_cpu_time_goes_and_is_reported_once() {
    let folder = Folder::new();
    let refused = ["perf_event_open", "seccomp"];
    let diagnosis = diagnosis(&sandboxed(&folder, &refused, &["--json"]));
    assert_eq!(blindness(&diagnosis, "system calls").len(), 0, "{diagnosis}");
    assert_eq!(blindness(&diagnosis, "where the CPU time").len(), 1, "{diagnosis}");
    assert!(diagnosis["facts"]["samples"].is_null(), "{diagnosis}");
    let writes = diagnosis["facts"]["calls"]["counts"]["write"].as_u64();
    assert!(writes.is_some_and(|writes| writes >= 3000), "{diagnosis}");
}

#[test]
fn a_sandbox_without_tracing_is_reported_once() {
    let folder = Folder::new();
    let refused = ["perf_event_open", "ptrace"];
    let diagnosis = diagnosis(&sandboxed(&folder, &refused, &["--json"]));
    assert_eq!(blindness(&diagnosis, "system calls").len(), 1, "{diagnosis}");
    assert!(diagnosis["facts"]["calls"].is_null(), "{diagnosis}");
    let page = sandboxed(&folder, &refused, &[]);
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    assert_eq!(page.matches("system calls:").count(), 1, "{page}");
}

#[test]
fn without_tracing_the_loaders_log_proves_the_malloc_of_a_comparison() {
    let folder = Folder::new();
    let arguments = ["compare", "--runs", "3", "-a", "system", "-a", "masu"];
    let output = masu_sandboxed(&folder, &["ptrace"], &arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(page.contains("tracing is not permitted here"), "{page}");
}

/// `masu diagnose` on a line of output in namespaces of its own, the first of which makes this user their root;
/// `first` is done before. None where this machine allows no such namespaces.
fn in_namespaces(options: &[&str], first: &str) -> Option<Value> {
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.arg("--map-root-user").args(options).args(["sh", "-c", script]);
        command
    };
    let tried = unshare(first).output();
    let refused = match &tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(reason) = refused {
        eprintln!("skipped: no namespaces here: {}", reason.trim());
        return None;
    }
    let script = format!("{first}; exec \"$0\" diagnose --json -- sh -c 'echo hello'");
    let output = unshare(&script).arg(env!("CARGO_BIN_EXE_masu")).output();
    Some(diagnosis(&output.expect("unshare starts")))
}

#[test]
fn root_of_a_user_namespace_gets_a_diagnosis() {
    let Some(diagnosis) = in_namespaces(&["--user"], "true") else { return };
    assert!(!diagnosis["facts"]["calls"].is_null(), "{diagnosis}");
}

#[test]
fn where_the_kernels_settings_cannot_be_read_there_is_a_diagnosis() {
    let hide = "mount -t tmpfs none /proc/sys && test ! -e /proc/sys/kernel";
    let Some(diagnosis) = in_namespaces(&["--user", "--mount"], hide) else { return };
    let calls = &diagnosis["facts"]["calls"];
    assert!(calls["counts"]["write"].as_u64().is_some_and(|writes| writes > 0), "{diagnosis}");
}

/// `masu diagnose` on two processes that make counted calls without end, so that they are stopped most of the
/// time, and their numbers.
fn endless(folder: &Folder) -> (Child, Vec<String>) {
    let numbers = folder.path().join("numbers");
    let script =
        "(while :; do echo; done) & echo $$ $! > $0.new; mv $0.new $0; while :; do echo; done";
    let mut command = masu(&["diagnose", "--", "sh", "-c", script]);
    command.arg(&numbers).stdout(Stdio::null()).stderr(Stdio::null());
    let masu = command.spawn().expect("masu starts");
    wait_until("the program runs", || numbers.exists());
    let text = fs::read_to_string(&numbers).unwrap();
    let pids: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    assert_eq!(pids.len(), 2, "{text}");
    (masu, pids)
}

#[test]
fn nothing_is_left_whichever_process_is_ended() {
    let folder = Folder::new();
    // masu is killed; it alone is interrupted; the first of the two programs is killed, whose child masu then ends.
    for (signal, is_masu) in [("-KILL", true), ("-INT", true), ("-KILL", false)] {
        let (mut masu, pids) = endless(&folder);
        let victim = if is_masu { masu.id().to_string() } else { pids[0].clone() };
        let status = Command::new("kill").args([signal, &victim]).status();
        assert!(status.expect("kill starts").success());
        let status = masu.wait().unwrap();
        assert!(
            !is_masu || !status.success(),
            "a diagnosis that was interrupted is none: {status}"
        );
        assert!(is_masu || status.signal().is_none(), "masu ends by itself: {status}");
        for pid in pids {
            wait_until("the program is gone", || is_gone(&pid));
        }
        fs::remove_file(folder.path().join("numbers")).unwrap();
    }
}

#[test]
fn a_place_without_proc_or_threads_is_named() {
    let folder = Folder::new();
    let masu = folder.masu();
    let unshared = ["unshare", "--user", "--map-root-user", "--mount"];
    let hidden = ("mount -t tmpfs none /proc", "compare", "there is no /proc here");
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let limited = ("ulimit -u 1", "diagnose", "allow more processes (ulimit -u");
    for (place, (first, verb, expected)) in [(unshared, hidden), (nobody, limited)] {
        let run = |then: &str| {
            let script = format!("{first} || exit 99; {then}");
            let mut command = Command::new(place[0]);
            command.args(&place[1..]).args(["bash", "-c", &script]).current_dir("/");
            command.env_remove("LD_PRELOAD").output().expect("util-linux is here")
        };
        // A sandbox may forbid namespaces, or other users.
        if run("exit 0").status.code() != Some(0) {
            eprintln!("skipped: {place:?} is not allowed here");
            continue;
        }
        let output = run(&format!("exec {} {verb} -- true", masu.display()));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(expected), "{said}");
    }
}
