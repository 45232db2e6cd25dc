//! Tests of suite files: valid files are understood, and mistakes are refused with their line.

use std::path::Path;
use std::time::Duration;

use super::*;
use masu_run::Error;

fn read(text: &str) -> Result<Suite, Error> {
    let file = tempfile::Builder::new().prefix("masu-suite-").tempfile().unwrap();
    let path = file.into_temp_path();
    std::fs::write(&path, text).unwrap();
    Suite::read(&path)
}

const ONE: &str = "[[workload]]\nname = \"one\"\ncommand = [\"true\"]\n";

#[test]
fn everything_a_file_can_say_is_understood() {
    let suite = read(include_str!("tests/everything.toml")).unwrap();
    assert_eq!(suite.name.as_deref(), Some("all"));
    assert_eq!(suite.rounds, Rounds::Budget { seconds: 5400.0, precision: 0.02 });
    let values = [("bin", "../bin"), ("width", "80")];
    assert_eq!(suite.values, values.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let [list, shell] = suite.entries.as_slice() else { panic!("{suite:?}") };
    assert_eq!(list.command, ["{bin}/prog", "1", "{z}{a}{threads}"]);
    assert!(matches!(&list.input, Source::File(path) if path == Path::new("in.txt")));
    assert_eq!(list.folder.as_deref(), Some(Path::new("work")));
    let names: Vec<&str> = list.parameters.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["z", "a"], "in the order they are written");
    assert_eq!(list.each[0].values, ["1", "2"]);
    let Choice::Named(named) = &list.variants else { panic!("{list:?}") };
    assert_eq!([named[0].optional, named[1].optional], [false, true]);
    assert_eq!((list.primary, shell.primary), (Measure::Cpu, Measure::PeakRss));
    assert_eq!(list.limits.time, Some(Duration::from_secs(30)));
    assert_eq!(list.limits.memory_bytes, Some(2 << 30));
    assert_eq!([list.shuffle_heap, shell.shuffle_heap], [true, false]);
    assert_eq!(shell.limits.time, Some(Duration::from_millis(500)));
    assert_eq!(shell.limits.memory_bytes, None);
    let hook = |hook: &str| Some(hook.into());
    let hooks = Hooks { setup: hook("make {bin}"), prepare: hook("sync"), cleanup: None };
    assert_eq!(list.hooks, hooks);
    assert_eq!((&shell.hooks.prepare, &shell.hooks.cleanup), (&None, &hook("rm -f x")));
    assert_eq!((&list.scratch, &shell.scratch), (&Scratch::CopyOf("tree".into()), &Scratch::Empty));
    assert_eq!(shell.command, ["sh", "-c", "{bin}/prog | sort"]);
    assert_eq!(shell.variants, Choice::Found);
}

#[test]
fn what_a_file_does_not_say_has_its_usual_value() {
    let suite = read(ONE).unwrap();
    assert!(suite.name.unwrap().starts_with("masu-suite-"));
    assert_eq!(suite.rounds, Rounds::Fixed(DEFAULT_ROUNDS));
    let entry = &suite.entries[0];
    assert_eq!((&entry.variants, entry.primary), (&Choice::Found, Measure::Wall));
    assert!(matches!(entry.input, Source::Empty));
    assert_eq!((&entry.base, &entry.folder), (&std::env::temp_dir(), &None));
    let precise = read(&format!("precision = 0.5\n{ONE}")).unwrap().rounds;
    assert_eq!(precise, Rounds::Budget { seconds: 600.0, precision: 0.005 });
}

#[test]
fn libraries_start_at_the_folder_of_the_file() {
    let suite =
        read(&format!("variants = [\"glibc\", \"../lib/a.so\", \"/b.so\"]\n{ONE}")).unwrap();
    let Choice::Named(named) = &suite.entries[0].variants else { panic!("{suite:?}") };
    let allocators: Vec<_> = named.iter().map(|one| one.spec.allocator.as_str()).collect();
    let relative = std::env::temp_dir().join("../lib/a.so");
    assert_eq!(allocators, ["glibc", relative.to_str().unwrap(), "/b.so"]);
}

#[test]
fn a_mistake_is_named_with_its_line() {
    let cases = include_str!("tests/mistakes.txt").split("=== ").skip(1);
    for case in cases {
        let (expected, text) = case.split_once('\n').unwrap();
        let (expected_line, said) = expected.split_once(' ').unwrap();
        match read(&text.replace("ONE\n", ONE)) {
            Err(Error::Suite { line, reason, .. }) => {
                assert!(reason.contains(said), "{said}: {reason}");
                assert_eq!(line.to_string(), expected_line, "{reason}");
            }
            other => panic!("not refused as a suite: {said}: {other:?}"),
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Suite::read(Path::new("/no/such/suite.toml")).unwrap_err().to_string();
    assert!(error.contains("/no/such/suite.toml"), "{error}");
}
