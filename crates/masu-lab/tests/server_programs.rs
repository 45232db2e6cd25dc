//! A real server compared: redis-server, which is linked with jemalloc, under a load command.

use std::time::Duration;

use masu_lab::results::Rounds;
use masu_lab::server::{Load, Ready, ServerPlan};
use masu_lab::{
    Catalogue, CompareOptions, Comparison, Ending, Input, Places, Plan, Stop, Variant, Workload,
    compare,
};

fn workload(words: &[&str]) -> Workload {
    Workload::new(words.iter().copied(), Input::Empty)
        .expect("this test runs redis-server: apt-get install redis")
}

fn compared(workload: &Workload, names: &[&str], plan: ServerPlan) -> Comparison {
    let catalogue = Catalogue::find(&Places::default());
    let variant =
        |name: &&str| catalogue.resolve(&name.parse().unwrap(), &workload.program).unwrap();
    let variants: Vec<Variant> = names.iter().map(variant).collect();
    let mut whole = Plan::single(workload, &variants, Rounds::Fixed(2));
    let case = &mut whole.cases[0];
    case.primary = plan.primary();
    case.server = Some(plan);
    compare(&whole, &CompareOptions::default(), &Stop::never(), &mut |_| {}).unwrap()
}

fn plan(load: Load) -> ServerPlan {
    ServerPlan {
        ready: Ready::Port,
        ready_within: Duration::from_secs(60),
        load,
        burst: Duration::from_millis(100),
        one_at_a_time: false,
        counting: None,
    }
}

fn assert_all_ran(comparison: &Comparison) {
    let table = &comparison.tables[0];
    assert!(table.runs.iter().all(|run| run.ending == Ending::Exited(0)), "{table:?}");
    assert!(table.runs.iter().all(|run| run.burst.unwrap().errors == 0), "{table:?}");
    for (variant, evidence) in table.case.variants.iter().zip(&table.evidence) {
        assert_eq!(variant.library.is_some(), !evidence.served.is_empty(), "{table:?}");
    }
}

#[test]
fn redis_is_what_it_is_linked_with_unless_something_is_preloaded() {
    let arguments =
        ["redis-server", "--port", "{port}", "--dir", "{dir}", "--save", "", "--daemonize", "no"];
    let workload = workload(&arguments);
    assert_eq!(workload.program.linked_malloc.as_deref(), Some("libjemalloc.so.2"));
    let load = "redis-benchmark -q -p {port} -n 500 -c 2 -t set,get";
    let plan = plan(Load::Command(load.to_owned()));
    let comparison = compared(&workload, &["system", "glibc", "mimalloc"], plan);
    assert_all_ran(&comparison);
    let table = &comparison.tables[0];
    assert!(table.case.variants[1].library.is_some(), "glibc is preloaded");
    let words = ["`system`", "libjemalloc.so.2", "`-a glibc`"];
    let warned = |text: &String| words.iter().all(|word| text.contains(word));
    assert!(table.summary.warnings.iter().any(warned), "{:?}", table.summary.warnings);
}
