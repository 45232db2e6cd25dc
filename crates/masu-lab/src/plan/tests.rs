//! Tests of plans: their rows, the commands in them, and the variants left out.

use super::*;

fn mallocs(_: Libc) -> Mallocs {
    Mallocs { catalogue: Catalogue::find(&masu_run::Places::default()), ..Mallocs::default() }
}

fn entry(command: &[&str]) -> Entry {
    Entry {
        name: "work".to_owned(),
        command: command.iter().map(OsString::from).collect(),
        ..Entry::default()
    }
}

fn planned(entry: Entry) -> Result<Plan, Error> {
    Plan::make(&Suite::single(entry, Rounds::Fixed(1)), &mut mallocs)
}

fn refused(entry: Entry) -> String {
    planned(entry).unwrap_err().to_string()
}

fn named(variants: &[&str]) -> Choice {
    Choice::of(variants.iter().map(|text| text.parse().unwrap()).collect())
}

fn parameters(texts: &[&str]) -> Vec<Parameter> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn labels(prepared: &Prepared) -> Vec<&str> {
    prepared.rows.iter().map(|row| row.variant.label.as_str()).collect()
}

#[test]
fn variants_times_parameters_are_the_rows_of_one_table() {
    let plan = planned(Entry {
        variants: named(&["system", "system:top_pad=1M"]),
        parameters: parameters(&["n=1,2"]),
        ..entry(&["echo", "{n}", "{variant}", "{x}"])
    });
    let plan = plan.unwrap();
    let [prepared] = plan.cases.as_slice() else { panic!("{plan:?}") };
    assert_eq!(
        labels(prepared),
        ["system n=1", "system n=2", "system:top_pad=1M n=1", "system:top_pad=1M n=2"]
    );
    assert_eq!(prepared.rows[3].workload.arguments, ["echo", "2", "system:top_pad=1M n=2", "{x}"]);
    assert_eq!(prepared.rows[3].variant.parameters, [("n".to_owned(), "2".to_owned())]);
    assert_eq!(prepared.case().command, ["echo", "{n}", "{variant}", "{x}"]);
}

#[test]
fn a_shuffled_heap_is_every_row_s_and_is_kept() {
    let plan = |shuffle_heap| {
        let variants = named(&["system", "system:top_pad=1M"]);
        planned(Entry { variants, shuffle_heap, ..entry(&["true"]) }).unwrap().cases.remove(0)
    };
    let shuffles = |case: &Prepared| case.rows.iter().all(|row| row.workload.shuffles_heap);
    assert!(shuffles(&plan(true)) && !shuffles(&plan(false)));
    assert_eq!(plan(true).case().settings, [("shuffle-heap".to_owned(), "true".to_owned())]);
    assert!(plan(false).case().settings.is_empty());
}

#[test]
fn a_parameter_that_makes_no_row_different_is_refused() {
    let with = |hooks: Hooks, scratch: Scratch| Entry {
        parameters: parameters(&["n=1,2"]),
        hooks,
        scratch,
        ..entry(&["true"])
    };
    let command = || Some("echo {n}".into());
    let (setup, cleanup) = (
        Hooks { setup: command(), ..Hooks::default() },
        Hooks { cleanup: command(), ..Hooks::default() },
    );
    let copy = Scratch::CopyOf("data{n}".into());
    for entry in [
        with(setup.clone(), Scratch::None),
        with(cleanup, Scratch::None),
        with(Hooks::default(), copy.clone()),
    ] {
        assert!(refused(entry.clone()).contains("its rows would be the same"), "{entry:?}");
    }
    let prepare = Hooks { prepare: command(), setup: command(), ..Hooks::default() };
    assert!(planned(with(prepare, Scratch::None)).is_ok());
    let each = Entry { each: parameters(&["n=1,2"]), parameters: Vec::new(), ..with(setup, copy) };
    assert!(planned(each).is_ok());
}

#[test]
fn a_parameter_may_be_the_program() {
    let entry = Entry { parameters: parameters(&["bin=true,false"]), ..entry(&["{bin}"]) };
    let plan = planned(entry).unwrap();
    let rows = &plan.cases[0].rows;
    // The suite names no mallocs: the rows differ in their programs.
    assert_eq!(labels(&plan.cases[0]), ["system bin=true", "system bin=false"]);
    assert!(rows[0].workload.program.path.ends_with("true"));
    assert!(rows[1].workload.program.path.ends_with("false"));
}

#[test]
fn a_program_that_one_of_several_workloads_lacks_is_said_with_its_name() {
    let missing = Entry { name: "missing".to_owned(), ..entry(&["no-such-program"]) };
    let alone = refused(missing.clone());
    assert!(alone.starts_with("no-such-program: ") && !alone.contains("--only"), "{alone}");
    let mut suite = Suite::single(entry(&["true"]), Rounds::Fixed(1));
    suite.entries.push(missing);
    let said = Plan::make(&suite, &mut mallocs).unwrap_err().to_string();
    assert!(said.contains("`missing`") && said.contains("--only"), "{said}");
}

#[test]
fn a_parameter_of_tables_makes_one_for_each_value() {
    let plan = planned(Entry {
        variants: named(&["system"]),
        each: parameters(&["a=1,2", "b=x"]),
        ..entry(&["echo", "{a}{b}"])
    });
    let plan = plan.unwrap();
    let names: Vec<&str> = plan.cases.iter().map(|prepared| prepared.name.as_str()).collect();
    assert_eq!(names, ["work a=1 b=x", "work a=2 b=x"]);
    assert_eq!(plan.cases[1].rows[0].workload.arguments, ["echo", "2x"]);
}

#[test]
fn values_reach_folders_hooks_and_files_below_the_suite() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path();
    std::fs::create_dir_all(base.join("in-7")).unwrap();
    std::fs::write(base.join("in-7/data"), "x").unwrap();
    std::fs::copy("/bin/true", base.join("in-7/own")).unwrap();
    let entry = Entry {
        base: base.to_owned(),
        folder: Some("in-{n}".into()),
        input: Source::File("in-{n}/data".into()),
        hooks: Hooks { setup: Some("echo {n}".into()), ..Hooks::default() },
        variants: named(&["system"]),
        ..entry(&["./own"])
    };
    let suite = Suite {
        values: vec![("n".to_owned(), "7".to_owned())],
        ..Suite::single(entry, Rounds::Fixed(1))
    };
    let plan = Plan::make(&suite, &mut mallocs).unwrap();
    let Prepared { rows, hooks, .. } = &plan.cases[0];
    let workload = &rows[0].workload;
    assert_eq!(workload.folder.as_deref(), Some(base.join("in-7").as_path()));
    assert_eq!(workload.program.path, base.join("in-7/./own"));
    assert!(matches!(workload.input, Input::File { .. }));
    assert_eq!(hooks.setup, Some("echo 7".into()));
}

#[test]
fn names_that_are_of_no_use_are_refused() {
    let lost = Entry { parameters: parameters(&["n=1"]), ..entry(&["echo", "{m}"]) };
    assert!(refused(lost).contains("nothing of `work` holds {n}"));
    let twice = Entry {
        parameters: parameters(&["n=1"]),
        each: parameters(&["n=2"]),
        ..entry(&["echo", "{n}"])
    };
    assert!(refused(twice).contains("declared twice"));
    let suite = Suite {
        values: vec![("n".to_owned(), "7".to_owned())],
        ..Suite::single(entry(&["echo"]), Rounds::Fixed(1))
    };
    let error = Plan::make(&suite, &mut mallocs).unwrap_err().to_string();
    assert!(error.contains("no workload holds {n}"), "{error}");
}

#[test]
fn what_was_named_must_be_there_and_what_is_optional_need_not() {
    let strict = Entry { variants: named(&["system", "no-such-malloc"]), ..entry(&["true"]) };
    assert!(refused(strict).contains("no-such-malloc"));
    let spec = |text: &str, optional: bool| Named { spec: text.parse().unwrap(), optional };
    let lenient = Entry {
        variants: Choice::Named(vec![spec("system", false), spec("no-such-malloc", true)]),
        ..entry(&["true"])
    };
    let plan = planned(lenient).unwrap();
    assert_eq!(labels(&plan.cases[0]), ["system"]);
    assert_eq!(plan.cases[0].left_out[0].label, "no-such-malloc");
}

#[test]
fn a_malloc_that_should_be_there_is_left_out_or_refused_with_its_own_reason() {
    let mut mallocs = |_| {
        let reason = "this masu carries none".to_owned();
        let absent = vec![LeftOut { label: "masu".to_owned(), reason }];
        Mallocs { catalogue: Catalogue::find(&masu_run::Places::default()), absent, counting: None }
    };
    let found = Suite::single(entry(&["true"]), Rounds::Fixed(1));
    let plan = Plan::make(&found, &mut mallocs).unwrap();
    assert_eq!(plan.cases[0].left_out[0].label, "masu");
    let rows = &plan.cases[0].rows;
    assert!(!rows[0].optional && rows[1..].iter().all(|row| row.optional));
    let strict = Entry { variants: named(&["masu"]), ..entry(&["true"]) };
    let error = Plan::make(&Suite::single(strict, Rounds::Fixed(1)), &mut mallocs).unwrap_err();
    assert!(error.to_string().contains("carries none"), "{error}");
}

#[test]
fn one_variant_alone_is_held_against_the_systems_malloc() {
    let own = planned(entry(&["true"])).unwrap().cases[0].rows[0].variant.label.clone();
    for (alone, is_it) in [("system", true), (&*own, true), ("system:top_pad=1M", false)] {
        let plan = planned(Entry { variants: named(&[alone]), ..entry(&["true"]) }).unwrap();
        let expected = if is_it { vec![alone] } else { vec![&*own, alone] };
        assert_eq!(labels(&plan.cases[0]), expected);
    }
}
