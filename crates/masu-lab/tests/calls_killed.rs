//! The counting process is killed while the program is traced: nothing of it stays, stopped or running. Alone in its
//! file because runs take whatever this process starts for their own.

mod ending;

use std::fs;
use std::process::{Command, Stdio};

use ending::{is_gone, wait_until};
use masu_lab::calls;
use masu_lab::execute::Conditions;
use masu_lab::{Catalogue, Input, Places, Stop, Workload};

/// Where the traced processes write their numbers.
const VARIABLE: &str = "MASU_TEST_NUMBERS";

#[test]
#[ignore = "started by the other test"]
fn the_one_that_counts() {
    // Two processes that make counted calls without end, so that they are stopped most of the time.
    let script = "(while :; do echo; done) & echo $$ $! > $MASU_TEST_NUMBERS.new; \
                  mv $MASU_TEST_NUMBERS.new $MASU_TEST_NUMBERS; while :; do echo; done";
    let workload = Workload::new(["sh", "-c", script], Input::Empty).unwrap();
    let catalogue = Catalogue::find(&Places::default());
    let variant = catalogue.resolve(&"system".parse().unwrap(), &workload.program).unwrap();
    let _ = calls::count(&workload, &variant, &Conditions::default(), &Stop::never());
}

#[test]
fn no_stopped_process_is_left_when_the_tracer_is_killed() {
    let numbers = std::env::temp_dir().join(format!("masu-calls-numbers-{}", std::process::id()));
    let mut tracer = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "the_one_that_counts"])
        .env(VARIABLE, &numbers)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the traced processes run", || numbers.exists());
    let text = fs::read_to_string(&numbers).unwrap();
    fs::remove_file(&numbers).unwrap();
    tracer.kill().unwrap();
    tracer.wait().unwrap();
    let pids: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(pids.len(), 2, "{text}");
    for pid in pids {
        wait_until("the traced processes are gone", || is_gone(pid));
    }
}
