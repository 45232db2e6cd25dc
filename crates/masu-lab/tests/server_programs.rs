//! Real servers compared: nginx under HTTP load, and redis-server, which is linked with jemalloc,
//! under a load command.

use std::time::Duration;

use masu_lab::load::DEFAULT_TIMEOUT;
use masu_lab::results::Rounds;
use masu_lab::server::{Load, Ready, ServerPlan};
use masu_lab::{
    Catalogue, CompareOptions, Comparison, Ending, Hooks, Input, Pace, Places, Plan, Stop, Variant,
    Workload, compare,
};

/// Writes a configuration that leaves nothing outside the data folder.
const NGINX: &str = "cat > {dir}/nginx.conf <<END
    daemon off; user root; worker_processes 1; pid {dir}/pid; error_log stderr error; events {}
    http { access_log off; client_body_temp_path {dir}/1; proxy_temp_path {dir}/2;
    fastcgi_temp_path {dir}/3; uwsgi_temp_path {dir}/4; scgi_temp_path {dir}/5;
    server { listen 127.0.0.1:{port}; location / { return 200 hello; } } }
END";

fn workload(words: &[&str]) -> Workload {
    Workload::new(words.iter().copied(), Input::Empty)
        .expect("this test runs nginx and redis-server: apt-get install nginx-light redis")
}

fn compared(
    workload: &Workload,
    names: &[&str],
    plan: ServerPlan,
    prepare: Option<&str>,
) -> Comparison {
    let catalogue = Catalogue::find(&Places::default());
    let variant =
        |name: &&str| catalogue.resolve(&name.parse().unwrap(), &workload.program).unwrap();
    let variants: Vec<Variant> = names.iter().map(variant).collect();
    let mut whole = Plan::single(workload, &variants, Rounds::Fixed(2));
    let case = &mut whole.cases[0];
    case.primary = plan.primary();
    case.server = Some(plan);
    case.hooks = Hooks { prepare: prepare.map(Into::into), ..Hooks::default() };
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
fn nginx_serves_under_every_malloc() {
    let workload = workload(&["nginx", "-e", "stderr", "-p", "{dir}", "-c", "{dir}/nginx.conf"]);
    let plan = plan(Load::Http {
        urls: vec!["http://127.0.0.1:{port}/".to_owned()],
        body: None,
        connections: 2,
        pace: Pace::Closed,
        latency_rate: None,
        timeout: DEFAULT_TIMEOUT,
    });
    assert_all_ran(&compared(&workload, &["glibc", "jemalloc", "mimalloc"], plan, Some(NGINX)));
}

#[test]
fn redis_is_what_it_is_linked_with_unless_something_is_preloaded() {
    let arguments =
        ["redis-server", "--port", "{port}", "--dir", "{dir}", "--save", "", "--daemonize", "no"];
    let workload = workload(&arguments);
    assert_eq!(workload.program.linked_malloc.as_deref(), Some("libjemalloc.so.2"));
    let load = "redis-benchmark -q -p {port} -n 500 -c 2 -t set,get";
    let plan = plan(Load::Command(load.to_owned()));
    let comparison = compared(&workload, &["system", "glibc", "mimalloc"], plan, None);
    assert_all_ran(&comparison);
    let table = &comparison.tables[0];
    assert!(table.case.variants[1].library.is_some(), "glibc is preloaded");
    let words = ["`system`", "libjemalloc.so.2", "`-a glibc`"];
    let warned = |text: &String| words.iter().all(|word| text.contains(word));
    assert!(table.summary.warnings.iter().any(warned), "{:?}", table.summary.warnings);
}
