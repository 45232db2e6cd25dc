//! The pages say everything that the commands take, and roff has nothing to object to.

use std::io::Write;
use std::process::{Command as Process, Stdio};

use super::{Page, commands, name, page};

fn pages() -> Vec<Page> {
    let commands = commands();
    commands.iter().map(|command| page(command, &commands).unwrap()).collect()
}

#[test]
fn every_option_and_every_command_is_on_its_page() {
    let commands = commands();
    for (command, page) in commands.iter().zip(pages()) {
        let text = String::from_utf8(page.source).unwrap();
        for option in command.get_arguments().filter(|it| !it.is_hide_set()) {
            let long = option.get_long().map(|it| format!("--{it}"));
            let help = option.get_help().map(ToString::to_string);
            for said in [long, help].into_iter().flatten() {
                let said = said.replace('-', "\\-").replace('\'', "\\*(Aq");
                assert!(text.contains(&said), "{said} is not in {}", page.file);
            }
        }
        for below in command.get_subcommands() {
            assert!(text.contains(&format!("\\fB{}\\fR", below.get_name())), "{text}");
        }
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"] {
            let heading = [format!(".SH {section}\n"), format!(".SH \"{section}\"\n")];
            assert!(heading.iter().any(|it| text.contains(it)), "{section}: {}", page.file);
        }
        assert!(!text.contains("Exit:"), "exit codes have a section of their own: {}", page.file);
        assert_eq!(page.file, format!("{}.1", name(command)));
    }
}

#[test]
fn roff_warns_of_nothing_and_no_line_is_too_long() {
    for Page { file, source } in pages() {
        let started = Process::new("groff")
            .args(["-k", "-man", "-Tutf8", "-ww", "-rLL=80n", "-P-cbou"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut groff) = started else {
            eprintln!("skipped: no groff here (Debian: groff-base)");
            return;
        };
        groff.stdin.take().unwrap().write_all(&source).unwrap();
        let output = groff.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{file}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("SEE ALSO"), "{file}: {text}");
        let long = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{file}");
    }
}
