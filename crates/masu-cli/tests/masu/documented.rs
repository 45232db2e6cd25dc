//! The commands that `docs/compare.md` shows, each run as it stands there, but for fewer runs; and the options of every
//! `masu` command on every page.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where masu stands for the program under test.
const START: &str = "masu() { command \"$MASU\" \"$@\"; }; ";

/// The commands in the page's blocks of shell.
fn shown() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compare.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh\n").skip(1).filter_map(|block| block.split_once("```"));
    blocks.flat_map(|(block, _)| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The same with few runs: the figures are not what is tested.
fn shortened(line: &str) -> String {
    let line = line.replace("-n 100", "-n 1");
    // So wide that the first look is enough.
    let wide = "--budget 5m --precision 1000";
    let line = line.replace("--budget 10m", wide).replace("--precision 3", wide);
    let is_said = ["-n 1", "--budget"].iter().any(|it| line.contains(it));
    if is_said { line } else { line.replace("masu compare ", "masu compare -n 1 ") }
}

#[test]
fn every_command_of_the_page_does_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("tree")).unwrap();
    write("tree/Makefile", "out:\n\techo made > out\n");
    write("words.txt", "b\na\n");
    write("input", "b\na\n");
    write("sorting.toml", "[[workload]]\nname = \"sort\"\ncommand = [\"sort\", \"words.txt\"]\n");
    for program in ["job", "old", "new"] {
        write(program, "#!/bin/sh\nsort input\n");
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path().join(program), executable).unwrap();
    }
    let commands = shown();
    assert!(commands.len() > 15, "{commands:?}");
    for line in &commands {
        let script = format!("{START}{}", shortened(line));
        let output = Command::new("bash")
            .args(["-c", &script])
            .current_dir(folder.path())
            .env("MASU", env!("CARGO_BIN_EXE_masu"))
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("no allocator `") {
            eprintln!("skipped: {line}: {said}");
            continue;
        }
        // With so few runs a gate cannot be judged, which is an error of its own.
        let is_gate = ["--fail-if-slower", "--decide"].iter().any(|it| line.contains(it));
        let expected = if is_gate { 2 } else { 0 };
        assert_eq!(output.status.code(), Some(expected), "{line}: {said}");
        let says_so = said.contains("the gate cannot judge") || said.contains("cannot be judged");
        assert!(expected == 0 || says_so, "{line}: {said}");
        assert!(!output.stdout.is_empty() || line.contains("-o "), "{line}");
        if line.contains("--json runs.jsonl") {
            for name in ["laptop.jsonl", "server.jsonl"] {
                fs::copy(folder.path().join("runs.jsonl"), folder.path().join(name)).unwrap();
            }
        }
    }
}

/// The `masu` commands in a page's blocks of shell, up to the program that they name, each on one line.
fn commands_in(page: &str) -> Vec<String> {
    let joined = page.replace("\\\n", " ");
    let blocks = joined.split("\n```").skip(1).step_by(2);
    let shell = blocks.filter_map(|block| {
        let (language, text) = block.split_once('\n')?;
        (language == "sh").then_some(text)
    });
    let lines = shell.flat_map(str::lines).filter(|line| line.starts_with("masu "));
    let without_program = lines.map(|line| {
        let line = line.split(" -- ").next().unwrap_or(line);
        // A process's number stands for any; a remark is none of the command.
        let line = line.split(" # ").next().unwrap_or(line);
        line.replace("PID", "1").replace("$!", "1").replace(" &", "")
    });
    without_program.collect()
}

#[test]
fn every_option_that_a_page_shows_is_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "md") {
            continue;
        }
        for line in commands_in(&fs::read_to_string(&path).unwrap()) {
            // Help is shown only where all that stands before it is understood.
            let script = format!("{START}{line} --help");
            let mut bash = Command::new("bash");
            bash.args(["-c", &script]).env("MASU", env!("CARGO_BIN_EXE_masu"));
            let output = bash.stdin(Stdio::null()).output().unwrap();
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {line}\n{complaint}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen} commands");
}
