//! `masu top`: its view of a program from outside, and its messages where it can see nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value;

use crate::ending::wait_until;
use crate::{failure, json, masu, printed};

/// A program that says when it has started and goes on until its input ends.
struct Waiting {
    child: Child,
    input: Option<ChildStdin>,
}

impl Waiting {
    /// Starts `script` behind these arguments of masu, usually `run`.
    fn start(masu_arguments: &[&str], script: &str) -> Waiting {
        let script = format!("{script}\necho ready\nread line\nexit 0");
        let mut command = masu(masu_arguments);
        command.env_remove("MASU_STATISTICS_PAGE").args(["bash", "-c", &script]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let input = child.stdin.take();
        Waiting { child, input }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn end(mut self) {
        drop(self.input.take());
        self.child.wait().unwrap();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn seen(pid: &str) -> Value {
    json(&mut masu(&["top", "-p", pid, "--once", "--json"]))
}

/// True if this user may read other processes' memory, as root and where Yama lets everyone.
fn may_read_memory() -> bool {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    rustix::process::geteuid().is_root() || ["", "0"].contains(&scope.trim())
}

#[test]
fn a_program_that_was_run_is_seen() {
    let program = Waiting::start(&["run", "--"], "x=$(seq 100000)");
    let seen = seen(&program.pid());
    assert_eq!(seen["schema"], "masu-top");
    assert_eq!(seen["name"], "bash");
    assert_eq!(seen["pid"].to_string(), program.pid());
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    let total = &seen["total"];
    assert!(number(total, "live_bytes") > 0, "{seen}");
    assert!(number(total, "committed_bytes") >= number(total, "live_bytes"), "{seen}");
    assert!(number(&seen, "resident_bytes") > 1 << 20, "{seen}");
    let classes = seen["classes"].as_array().unwrap();
    let of_class = |class: &Value| number(class, "live_blocks") * number(class, "size");
    let small: u64 = classes.iter().map(of_class).sum();
    assert_eq!(small + number(total, "large_bytes"), number(total, "live_bytes"), "{seen}");
    assert_eq!(seen["threads"][0]["name"], "bash");

    let page = printed(&mut masu(&["top", "-p", &program.pid(), "--once"]));
    assert!(page.starts_with("bash ") && page.contains("waste %"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(printed(&mut masu(&["top", "--once"])).contains(&program.pid()));
    program.end();
}

#[test]
fn json_of_several_programs_asks_for_one_of_them() {
    let programs = [Waiting::start(&["run", "--"], ""), Waiting::start(&["run", "--"], "")];
    let (message, code) = failure(&["top", "--once", "--json"]);
    assert!(message.contains("-p PID") && code == 2, "{message}");
    for program in programs {
        assert!(message.contains(&program.pid()), "{message}");
        program.end();
    }
}

#[test]
fn json_is_a_line_each_time_until_the_process_ends() {
    let program = Waiting::start(&["run", "--"], "");
    let arguments = ["top", "-p", &program.pid(), "--json", "--interval", "100ms"];
    let mut top = masu(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(first["rates"].is_null(), "nothing is known of before");
    let second: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(second["rates"]["slow_calls"].is_number(), "{second}");
    program.end();
    lines.for_each(|line| drop(serde_json::from_str::<Value>(&line.unwrap()).unwrap()));
    assert_eq!(top.wait().unwrap().code(), Some(0));
}

#[test]
fn a_forked_child_has_its_own_page_and_is_told_from_its_parent() {
    // The child has its page once it has printed something.
    let child = "exec 3< <(echo begun; read line); read -u 3 line";
    let program = Waiting::start(&["run", "--"], child);
    let children = format!("/proc/{0}/task/{0}/children", program.pid());
    let children = fs::read_to_string(children).unwrap_or_default();
    let Some(child) = children.split_whitespace().next() else {
        eprintln!("not tested: this kernel does not list children");
        return;
    };
    assert_eq!(seen(child)["pid"].to_string(), child);
    assert_eq!(seen(&program.pid())["pid"].to_string(), program.pid());
    program.end();
}

#[test]
fn a_program_that_closed_its_descriptors_is_seen_by_who_may_read_memory() {
    let close = "for d in /proc/$$/fd/*; do d=${d##*/}; [ $d -gt 2 ] && eval \"exec $d>&-\"; done";
    let program = Waiting::start(&["run", "--"], close);
    if may_read_memory() {
        assert_eq!(seen(&program.pid())["name"], "bash");
    } else {
        let (message, code) = failure(&["top", "-p", &program.pid(), "--once"]);
        assert!(message.contains("descriptor") && code == 2, "{message}");
    }
    program.end();
}

#[test]
fn a_program_that_becomes_another_one_is_said_to_have_no_page() {
    let other = Waiting::start(&["run", "--", "env", "-u", "LD_PRELOAD"], "");
    let (message, code) = failure(&["top", "-p", &other.pid(), "--once"]);
    assert!(message.contains("masu run --") && code == 2, "{message}");
    other.end();
}

#[test]
fn whoever_wants_no_page_has_none() {
    let script = "echo ready; read line";
    let mut command = masu(&["run", "--", "bash", "-c", script]);
    command.env("MASU_STATISTICS_PAGE", "0").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let (message, code) = failure(&["top", "-p", &child.id().to_string(), "--json"]);
    assert!(message.contains("MASU_STATISTICS_PAGE=1") && code == 2, "{message}");
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    let program = Waiting::start(&["run", "--"], "");
    let folder = tempfile::tempdir().unwrap();
    let (pid, typed) = (folder.path().join("pid"), folder.path().join("typescript"));
    // A program that starts with SIGHUP ignored, as under nohup, must notice the closed terminal by itself.
    let shell = format!(
        "stty rows 24 cols 80; trap '' HUP; echo $$ > {}; exec {} top -p {}",
        pid.display(),
        env!("CARGO_BIN_EXE_masu"),
        program.pid()
    );
    let mut script = Command::new("script");
    script.args(["--quiet", "--flush", "--command", &shell]).arg(&typed);
    let mut script = script.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let shown = || String::from_utf8_lossy(&fs::read(&typed).unwrap_or_default()).into_owned();
    wait_until("it is shown", || shown().contains("live"));
    assert!(script.try_wait().unwrap().is_none(), "{:?}", shown());
    // The process ends too, after which nothing changes on the screen and nothing is written to it.
    program.end();
    script.kill().unwrap();
    script.wait().unwrap();
    let pid = fs::read_to_string(&pid).unwrap();
    let is_there = || {
        let status = fs::read_to_string(format!("/proc/{}/status", pid.trim()));
        status.is_ok_and(|text| text.starts_with("Name:\tmasu\n") && !text.contains("Z (zombie)"))
    };
    wait_until("it ends without its terminal", || !is_there());
}
