//! Manual pages and completions, as a packager and a shell take them.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::masu;

fn written(arguments: &[&str]) -> String {
    let output = masu(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.as_ref()), (Some(0), ""), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn one_page_is_written_where_no_terminal_is_and_all_into_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("share/man/man1");
    let output = masu(&["man", "--output"]).arg(&place).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for (command, file) in [(None, "masu.1"), (Some("compare"), "masu-compare.1")] {
        let page = written(&[&["man"], command.as_slice()].concat());
        assert_eq!(fs::read_to_string(place.join(file)).unwrap(), page);
        assert!(page.contains(".TH MASU"), "{page}");
    }
}

#[test]
fn each_shell_takes_its_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let script = written(&["completions", shell]);
        assert!(script.contains("memory-limit"), "{shell}");
        let started = Command::new(shell).arg("-n").stdin(Stdio::piped()).spawn();
        let Ok(mut child) = started else {
            eprintln!("skipped: no {shell} here");
            continue;
        };
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{shell}");
    }
}

#[test]
fn the_tab_key_offers_commands_and_options() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("masu.bash");
    fs::write(&script, written(&["completions", "bash"])).unwrap();
    let offered = |line: &str| {
        let tab = format!(
            "source '{}'; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _masu masu \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let output = Command::new("bash").args(["-c", &tab]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(offered("masu com"), "compare completions\n");
    assert_eq!(offered("masu compare --mem"), "--memory-limit\n");
}
