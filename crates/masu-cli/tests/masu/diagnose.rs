//! `masu diagnose` from outside: a page, JSON, a process that runs, and its refusals.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::ending::{is_gone, wait_until};
use crate::guest::Folder;
use crate::{json, masu, printed};

#[test]
fn the_page_says_how_it_went_and_fits_a_terminal() {
    // A program that fails is no failure of its observer.
    let page = printed(&mut masu(&["diagnose", "--", "sh", "-c", "exit 3"]));
    assert!(page.starts_with("sh -c 'exit 3'\nIt returned 3 after "), "{page}");
    let long = page.lines().find(|line| line.chars().count() > 80);
    assert_eq!(long, None, "{page}");
}

#[test]
fn the_json_is_one_object_with_facts() {
    let all = json(&mut masu(&["diagnose", "--json", "--", "seq", "100000"]));
    assert_eq!((&all["schema"], &all["version"]), (&"masu-diagnosis".into(), &1.into()));
    assert_eq!(all["command"], serde_json::json!(["seq", "100000"]));
    assert!(all["facts"]["calls"]["counts"]["write"].as_u64().unwrap() > 0, "{all}");
}

#[test]
fn where_nothing_stands_out_others_are_tried_and_once_leaves_that_out() {
    const COUNT: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo $i";
    let diagnose = |option: &str| {
        let output =
            masu(&["diagnose", "--json", option, "--", "sh", "-c", COUNT]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        (all, said)
    };
    let (all, said) = diagnose("--timeout=60s");
    assert!(said.contains("--once leaves that out"), "{said}");
    let tried = all["trial"]["remedies"].as_array().unwrap();
    assert_eq!(tried[0]["label"], "masu", "{all}");
    let (all, said) = diagnose("--once");
    assert!(all["trial"].is_null() && !said.contains("--once leaves that out"), "{said}");
}

#[test]
fn a_process_that_runs_is_looked_at_and_goes_on() {
    let mut child = Command::new("sh")
        .args(["-c", "echo begun; while :; do read line || exit; done"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let pid = child.id().to_string();
    let all = json(&mut masu(&["diagnose", "-p", &pid, "--for", "300ms", "--json"]));
    assert!(all["facts"]["calls"].is_null() && all["command"][0] == "sh", "{all}");
    assert_eq!(all["findings"][0]["id"], "io-bound", "{all}");
    assert!(child.try_wait().unwrap().is_none(), "it goes on");
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn inside_tells_how_often_memory_is_asked_for() {
    let arguments = ["diagnose", "--inside", "--json", "--", "sort", "/proc/self/maps"];
    let all = json(&mut masu(&arguments));
    assert!(all["facts"]["inside"]["requests"][0].as_u64().unwrap() > 10, "{all}");
}

#[test]
fn where_no_remedy_can_be_run_nothing_is_proved() {
    let output = masu(&["diagnose", "--prove", "--json", "--", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("Nothing to prove"), "{said}");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(all["proof"].is_null(), "{all}");
}

#[test]
fn inside_names_the_functions_of_the_program_that_ask_for_memory() {
    let folder = Folder::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    for (compiler, options, name, asking) in [
        ("gcc", &["-O1", "-g"][..], "sites.c", "copy_names"),
        ("g++", &["-O1", "-g"], "sites.cpp", "Reader::copy_names<"),
        ("g++", &["-O1"], "sites.cpp", "Reader::copy_names<"),
        (&rustc, &["-O", "-g"], "sites.rs", "sites::copy_names"),
        (&rustc, &["-O"], "sites.rs", "sites::copy_names"),
    ] {
        let program = folder.path().join("program");
        let mut command = Command::new(compiler);
        command.args(options).arg("-o").args([&program, &sources.join(name)]);
        assert!(command.status().unwrap_or_else(|_| panic!("this needs {compiler}")).success());
        let all = json(masu(&["diagnose", "--inside", "--json", "--"]).arg(&program));
        let sites = all["facts"]["inside"]["sites"].as_array().unwrap();
        let functions: Vec<&str> = sites.iter().filter_map(|it| it["function"].as_str()).collect();
        let is_told = functions.len() >= 2
            && functions[0].starts_with(asking)
            && functions[1].ends_with("make_records")
            && !functions.concat().contains('(');
        assert!(is_told, "{name} {options:?}: {sites:?}");
        let shares = [0, 1].map(|at| sites[at]["share"].as_f64().unwrap());
        assert!(shares[0] > 0.5 && shares[1] > 0.15, "{name} {options:?}: {sites:?}");
        let place = sites[0]["place"].as_str().map(|place| place.starts_with(name));
        assert_eq!(place, options.contains(&"-g").then_some(true), "{sites:?}");
    }
}

#[test]
fn a_program_that_traces_others_runs_once_more_without_a_tracer() {
    let folder = Folder::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/traces.c");
    let program = folder.path().join("traces");
    assert!(Command::new("gcc").arg("-o").args([&program, &source]).status().unwrap().success());
    let all = json(masu(&["diagnose", "--json", "--"]).arg(&program));
    assert_eq!(all["facts"]["ending"], "returned 0", "{all}");
    let not_seen = all["not_seen"].as_array().unwrap();
    let is_said = |one: &Value| one.as_str().is_some_and(|one| one.contains("traced twice"));
    assert!(not_seen.iter().any(is_said) && all["facts"]["calls"].is_null(), "{all}");
}

#[test]
fn a_narrow_page_is_not_wider_than_it_may_be() {
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    for columns in ["40", "80"] {
        let mut command = masu(&["diagnose", "--once", "--", "sh", "-c", script]);
        let page = printed(command.env("COLUMNS", columns));
        let widest = page.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse().unwrap(), "{widest}: {page}");
    }
}

#[test]
fn a_signal_ends_it_while_it_reads_its_input() {
    for command in ["diagnose", "tune"] {
        let mut masu = masu(&[command, "--", "cat"]);
        masu.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = masu.spawn().unwrap();
        // The input does not end before this goes.
        let _input = child.stdin.take();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(said.any(|line| line.starts_with("Reading standard input")));
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        wait_until("masu ends", || is_gone(&child.id().to_string()));
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()), "{command}");
    }
}
