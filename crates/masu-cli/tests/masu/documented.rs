//! The commands that `docs/compare.md` shows, each run as written there, but with fewer runs; and the options of
//! every `masu` command on every page and in README.md.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The start of each script: `masu` stands for the program under test.
const START: &str = "masu() { command \"$MASU\" \"$@\"; }; ";

/// The commands in the page's blocks of shell.
fn shown() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compare.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh\n").skip(1).filter_map(|block| block.split_once("```"));
    blocks.flat_map(|(block, _)| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The same command with few runs: the figures are not tested.
fn shortened(line: &str) -> String {
    let line = line.replace("-n 100", "-n 1");
    // The precision is so wide that the first check is enough.
    let wide = "--budget 5m --precision 1000";
    let line = line.replace("--budget 10m", wide).replace("--precision 3", wide);
    let is_said = ["-n 1", "--budget", "--resume"].iter().any(|it| line.contains(it));
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
        // A gate cannot be judged with so few runs, which is an error of its own.
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

/// README.md and the pages of docs/, each with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = folder.chain([root.join("README.md")]);
    let pages = pages.filter(|path| path.extension().is_some_and(|end| end == "md"));
    pages.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The `masu` commands in a page's blocks of shell, up to the program that they name, each on one line.
fn commands_in(page: &str) -> Vec<String> {
    let joined = page.replace("\\\n", " ");
    let blocks = joined.split("\n```").skip(1).step_by(2);
    let lines = blocks.flat_map(|block| {
        let (language, text) = block.split_once('\n').unwrap_or_default();
        // A block that shows output has a prompt before the command.
        let prompt = match language {
            "sh" => Some(""),
            "console" => Some("$ "),
            _ => None,
        };
        let lines = text.lines().filter_map(move |line| line.strip_prefix(prompt?));
        lines.map(str::to_owned).collect::<Vec<_>>()
    });
    lines.filter_map(|line| command_in(&line)).collect()
}

/// The `masu` command of a line of shell, without the command that feeds it and without the program that it names.
fn command_in(line: &str) -> Option<String> {
    let line = line.split(" -- ").next()?.split(" # ").next()?;
    let line = line.rsplit(" | ").next()?;
    let at = line.find("masu ").filter(|at| {
        line[..*at].split_whitespace().all(|word| word.contains('=') || word.ends_with('/'))
    })?;
    // Any process's number may replace the name.
    Some(line[at..].replace("PID", "1").replace("$!", "1").replace(" &", ""))
}

#[test]
fn every_option_that_a_page_shows_is_there() {
    let mut seen = 0;
    for (path, text) in pages() {
        for line in commands_in(&text) {
            // Help is shown only if all options before it are understood.
            let script = format!("{START}{line} --help");
            let mut bash = Command::new("bash");
            bash.args(["-c", &script]).env("MASU", env!("CARGO_BIN_EXE_masu"));
            let output = bash.stdin(Stdio::null()).output().unwrap();
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {line}\n{complaint}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} commands");
}

/// `masu` commands between backquotes in a page's text and tables, up to the program that they name.
fn mentioned_in(page: &str) -> Vec<String> {
    let text: Vec<&str> = page.split("\n```").step_by(2).collect();
    let spans = text.iter().flat_map(|text| text.split('`').skip(1).step_by(2));
    spans.filter_map(command_in).collect()
}

#[test]
fn every_command_that_a_page_mentions_is_there() {
    let mut helps: HashMap<String, String> = HashMap::new();
    let mut seen = 0;
    for (path, text) in pages() {
        for command in mentioned_in(&text) {
            let words: Vec<&str> = command.split_whitespace().skip(1).collect();
            let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            let mut names = words.iter().take_while(is_name).filter(|it| !it.starts_with('-'));
            let Some(name) = names.next() else { continue };
            // Two commands have commands of their own.
            let name = match names.next() {
                Some(second) if ["heap", "code"].contains(name) => format!("{name} {second}"),
                _ => (*name).to_owned(),
            };
            let help = helps.entry(name.clone()).or_insert_with(|| {
                let mut masu = Command::new(env!("CARGO_BIN_EXE_masu"));
                let output = masu.args(name.split(' ')).arg("--help").output().unwrap();
                assert!(output.status.success(), "{}: `{command}`", path.display());
                String::from_utf8(output.stdout).unwrap()
            });
            for word in words.iter().filter(|word| word.starts_with('-') && word.len() > 1) {
                let option = word.split('=').next().unwrap();
                let is_there = help.split([' ', ',', '\n', '=', '[']).any(|it| it == option);
                assert!(is_there, "{}: `{command}`: no {option}", path.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 80, "{seen} commands");
}

#[test]
fn the_pod_that_a_page_shows_is_the_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/containers.md")).unwrap();
    let (_, pod) = page.split_once("```yaml\n").unwrap();
    let pod = pod.split("```").next().unwrap();
    assert_eq!(pod, fs::read_to_string(root.join("packaging/kubernetes.yaml")).unwrap());
}
