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
    for (text, line, said) in [
        (format!("round = 3\n{ONE}"), 1, "unknown field `round`, expected one of `name`, `values`"),
        (
            format!("{ONE}comand = []\n"),
            4,
            "unknown field `comand`, expected one of `name`, `command`",
        ),
        (String::new(), 1, "missing field `workload`"),
        ("\n[[workload]]\nname = \"x\"\n".to_owned(), 2, "missing field `command`"),
        ("workload = 3\n".to_owned(), 1, "invalid type: integer `3`, expected a sequence"),
        (format!("rounds = 0\n{ONE}"), 1, "expected a nonzero"),
        (format!("budget = \"soon\"\n{ONE}"), 1, "a time such as"),
        (format!("precision = -1\n{ONE}"), 1, "above 0"),
        (format!("rounds = 3\nbudget = 9\n{ONE}"), 1, "exclude each other"),
        (format!("primary = \"speed\"\n{ONE}"), 1, "there are wall, user"),
        (format!("variants = \"all\"\n{ONE}"), 1, "write \"found\""),
        (format!("variants = []\n{ONE}"), 1, "write \"found\""),
        (
            format!("variants = [\n{{ variant = \"masu\", maybe = true }}]\n{ONE}"),
            1,
            "a list of variants",
        ),
        (format!("variants = [\n\":\"]\n{ONE}"), 1, "no allocator named"),
        (format!("{ONE}memory-limit = \"much\"\n"), 4, "a number of bytes"),
        (format!("{ONE}memory-limit = 512\n"), 4, "from 1M on"),
        (format!("{ONE}scratch = true\nserver = {{ load = \"x\" }}\n"), 5, "leave `scratch`"),
        (format!("{ONE}parameters = {{ n = [] }}\n"), 4, "it has no values"),
        (format!("{ONE}each = {{ port = [1] }}\n"), 4, "take another name"),
        (format!("[values]\n\"a b\" = 1\n{ONE}"), 2, "a name is made of"),
        (format!("{ONE}{ONE}"), 5, "two workloads are called `one`"),
        ("[[workload]]\nname = \"x\"\ncommand = []\n".to_owned(), 2, "names no program"),
        (format!("{ONE}= 3\n"), 4, ""),
    ] {
        match read(&text) {
            Err(Error::Suite { line: at, reason, .. }) => {
                assert!(reason.contains(said), "{said}: {reason}");
                assert_eq!(at, line, "{reason}");
            }
            other => panic!("not refused as a suite: {other:?}"),
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Suite::read(Path::new("/no/such/suite.toml")).unwrap_err().to_string();
    assert!(error.contains("/no/such/suite.toml"), "{error}");
}
