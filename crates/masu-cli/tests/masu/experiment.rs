//! `masu experiment` from outside: the list, the refusals, and the smallest experiment in its smallest form.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::{masu, printed, unread};

#[test]
fn brk_is_rerun_and_its_pages_say_what_came_of_it() {
    let place = tempfile::tempdir().unwrap();
    let [output, cache] = ["out", "a cache"].map(|name| place.path().join(name));
    let folders = ["--output", output.to_str().unwrap(), "--cache", cache.to_str().unwrap()];
    let run = masu(&["experiment", "brk", "--tiny"]).args(folders).output().unwrap();
    let (said, stderr_text) =
        (String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap());
    assert!(run.status.success(), "{stderr_text}");
    assert!(said.starts_with("brk: Today's machine"), "{said}");
    assert!(stderr_text.contains("--clean"), "where the cache is: {stderr_text}");
    assert!(stderr_text.contains("\nbrk: A sed script"), "without signs for colors: {stderr_text}");
    markdown(&output);
    let html = fs::read_to_string(output.join("brk.html")).unwrap();
    assert!(html.contains("<svg ") && html.contains("The change that masu makes"), "{html}");
    assert!(!html.contains("<script"), "{html}");

    printed(&mut masu(&["experiment", "--clean", "--cache", cache.to_str().unwrap()]));
    assert!(!cache.exists() && output.exists());
}

#[test]
fn what_fails_is_named_on_the_page() {
    let place = tempfile::tempdir().unwrap();
    let [output, cache, tools] = ["out", "cache", "tools"].map(|name| place.path().join(name));
    fs::create_dir(&tools).unwrap();
    // It makes the list for the check, whose input is a pipe, and never again.
    let sed =
        "#!/bin/sh\necho 19,29,41,43,47\n[ -p /dev/stdin ] || { echo 'no memory' >&2; exit 3; }\n";
    fs::write(tools.join("sed"), sed).unwrap();
    fs::set_permissions(tools.join("sed"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let page = |code| {
        let folders = ["--output", output.to_str().unwrap(), "--cache", cache.to_str().unwrap()];
        // Nobody reads the verdict, which changes nothing.
        let mut run = masu(&["experiment", "brk", "--tiny"]);
        let run = unread(run.args(folders).env("PATH", &path));
        assert_eq!(run.status.code(), Some(code), "{}", String::from_utf8_lossy(&run.stderr));
        fs::read_to_string(output.join("brk.md")).unwrap()
    };
    let failed = page(0);
    assert!(failed.contains("the program returned 3: no memory"), "{failed}");
    assert!(failed.contains("no claim could be decided"), "{failed}");
    // The page's own command reads every file of runs.
    let runs = output.join("brk.n5.jsonl");
    assert!(fs::metadata(&runs).is_ok_and(|file| file.len() > 0), "with the runs that failed");
    let input = cache.join("brk/5.txt");
    fs::remove_file(&input).unwrap();
    fs::create_dir(&input).unwrap();
    assert!(
        page(2).contains("Is a directory"),
        "nothing is measured, because the input cannot be written"
    );
}

/// Checks the Markdown page and the files that it links to.
fn markdown(output: &Path) {
    let page = fs::read_to_string(output.join("brk.md")).unwrap();
    let parts = [
        "**Today's machine",
        "## The author's figures",
        "| 10,000,000 | 3 | 1.578 |",
        "## This machine's figures",
        "MALLOC\\_TOP\\_PAD\\_=100000",
        "## The author's claims today",
        "## The lab's own diagnosis",
        "counted: `sed -rf '/",
        "\n#### ",
        "## The change that masu makes",
        "## By hand",
        "## The machine",
    ];
    for part in parts {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    let plots = page.split("](brk-").skip(1).map(|rest| rest.split(')').next().unwrap());
    let plots: Vec<String> = plots.map(|end| format!("brk-{end}")).collect();
    assert_eq!(plots.len(), 2, "{page}");
    for plot in plots {
        let svg = fs::read_to_string(output.join(plot)).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("<style>"), "{svg}");
    }
    assert!(output.join("brk.n5.jsonl").is_file());
}
