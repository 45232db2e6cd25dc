//! Comparisons of servers: kept warm side by side, loaded in turn, and gone afterwards in every case.
//!
//! The server is this test program itself, started again to run [`the_server`]. Every assertion
//! holds on the slowest machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use masu_lab::load::DEFAULT_TIMEOUT;
use masu_lab::results::Rounds;
use masu_lab::server::{Load, Ready, ServerPlan, ServerRequest};
use masu_lab::{
    Catalogue, CompareOptions, Comparison, Ending, Error, Event, Hooks, Input, Limits, Measure,
    Pace, Places, Plan, Run, Stop, Variant, Workload, compare,
};

/// A server that allocates a little for each request. Variables give it its port and
/// its misbehavior: `exit` when it starts, or at a request, under a preload, `die` if the file
/// `DEATH` is there, or `grow` by a megabyte; or answer `post` alone.
#[test]
#[ignore = "it is the server of the other tests, not a test"]
fn the_server() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let mode = variable("MODE");
    if mode == "exit" {
        eprintln!("first words\nthe config file is wrong");
        std::process::exit(3);
    }
    let data = PathBuf::from(variable("DIR"));
    // The folder has no data of another server, and none of an earlier start.
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0, "the data folder is not fresh");
    fs::write(data.join("data"), "data").unwrap();
    let mut log = fs::File::options().append(true).create(true).open(variable("LOG")).unwrap();
    writeln!(log, "{} {}", std::process::id(), data.display()).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", variable("PORT").parse().unwrap())).unwrap();
    let misbehaves = !variable("LD_PRELOAD").is_empty() || variable("ALWAYS") == "yes";
    for stream in listener.incoming().flatten() {
        let mode = mode.clone();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut kept = Vec::new();
            let mut is_post = false;
            while let Some(Ok(line)) = lines.next() {
                is_post |= line.starts_with("POST ");
                if !line.is_empty() {
                    continue;
                }
                if mode == "post" && !is_post {
                    let _ = (&stream).write_all(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n");
                    continue;
                }
                if misbehaves && mode == "die" && Path::new(&variable("DEATH")).exists() {
                    eprintln!("out of luck");
                    std::process::abort();
                }
                if misbehaves && mode == "grow" {
                    kept.push(vec![1_u8; 1 << 20]);
                }
                answer(&stream);
            }
        });
    }
}

fn answer(mut stream: &TcpStream) {
    let body: Vec<String> = (0..20).map(|number| format!("{number}")).collect();
    let body = body.join(" ");
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    // The client may be gone.
    let _ = stream.write_all(text.as_bytes());
}

/// A log that servers write their numbers and folders to.
struct Log(tempfile::TempPath);

impl Log {
    fn new() -> Log {
        Log(tempfile::NamedTempFile::new().unwrap().into_temp_path())
    }

    /// The servers that were started: number and data folder.
    fn started(&self) -> Vec<(String, PathBuf)> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let line = |line: &str| {
            let (pid, folder) = line.split_once(' ').unwrap();
            (pid.to_owned(), PathBuf::from(folder))
        };
        text.lines().map(line).collect()
    }

    /// Checks that nothing is left of any server: no process, no folder.
    fn assert_gone(&self, started_at_least: usize) {
        let started = self.started();
        assert!(started.len() >= started_at_least, "{started:?}");
        for (pid, folder) in started {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "process {pid} is left");
            assert!(!folder.exists(), "{} is left", folder.display());
        }
    }
}

/// The command of the server; `before` stands before it in the shell.
fn workload(log: &Log, variables: &str, before: &str) -> Workload {
    let itself = std::env::current_exe().unwrap();
    let script = format!(
        "export PORT={{port}} DIR={{dir}} LOG={} {variables}; {before} {} --ignored --exact \
         --nocapture the_server",
        log.0.display(),
        itself.display()
    );
    Workload::new(["sh", "-c", &script], Input::Empty).unwrap()
}

fn variants(names: &[&str], workload: &Workload) -> Vec<Variant> {
    let catalogue = Catalogue::find(&Places::default());
    let variant =
        |name: &&str| catalogue.resolve(&name.parse().unwrap(), &workload.program).unwrap();
    names.iter().map(variant).collect()
}

fn http(url: &str) -> Load {
    Load::Http {
        urls: vec![url.to_owned()],
        body: None,
        connections: 2,
        pace: Pace::Closed,
        latency_rate: None,
        timeout: DEFAULT_TIMEOUT,
    }
}

fn plan() -> ServerPlan {
    ServerPlan {
        ready: Ready::Port,
        ready_within: Duration::from_secs(60),
        load: http("http://127.0.0.1:{port}/"),
        burst: Duration::from_millis(100),
        one_at_a_time: false,
        counting: None,
    }
}

fn command(text: &str) -> ServerPlan {
    ServerPlan { load: Load::Command(text.to_owned()), ..plan() }
}

/// `plan` for these variants, and so many rounds.
fn planned(workload: &Workload, names: &[&str], server: ServerPlan, rounds: usize) -> Plan {
    let variants = variants(names, workload);
    let mut plan = Plan::single(workload, &variants, Rounds::Fixed(rounds));
    plan.cases[0].primary = server.primary();
    plan.cases[0].server = Some(server);
    plan
}

fn made(workload: &Workload, server: ServerPlan, rounds: usize) -> Result<Comparison, Error> {
    let plan = planned(workload, &["system", "jemalloc"], server, rounds);
    compare(&plan, &CompareOptions::default(), &Stop::never(), &mut |_| {})
}

/// Checks that the comparison is an error with these words, and that at least `started` servers were started and none
/// is left.
fn assert_refused(variables: &str, server: ServerPlan, words: &[&str], started: usize) {
    let log = Log::new();
    let error = made(&workload(&log, variables, "exec"), server, 10_000).unwrap_err().to_string();
    assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    log.assert_gone(started);
}

fn runs(comparison: &Comparison, variant: usize) -> Vec<&Run> {
    let lasting = comparison.tables[0].runs.iter().filter(|run| !run.replaced);
    lasting.filter(|run| run.variant == variant).collect()
}

fn is_said(comparison: &Comparison, words: &[&str]) -> bool {
    let summary = &comparison.tables[0].summary;
    summary
        .warnings
        .iter()
        .chain(&summary.notes)
        .any(|text| words.iter().all(|word| text.contains(word)))
}

#[test]
fn a_stranger_who_answers_there_already_is_not_loaded() {
    let log = Log::new();
    let workload = workload(&log, "", "exec");
    let stranger = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    stranger.set_nonblocking(true).unwrap();
    let address = stranger.local_addr().unwrap();
    let url = format!("http://{address}/");
    let load = http(&url);
    for (ready, load) in [(Ready::Port, load), (Ready::Url(url), plan().load)] {
        let server = ServerPlan { ready, load, one_at_a_time: true, ..plan() };
        let error = made(&workload, server, 1).unwrap_err().to_string();
        assert!(error.contains(&address.to_string()) && error.contains("{port}"), "{error}");
    }
    log.assert_gone(0);
    assert!(log.started().is_empty(), "{:?}", log.started());
    // A readiness check is a connection without any request.
    while let Ok((mut connection, _)) = stranger.accept() {
        assert_eq!(std::io::Read::read(&mut connection, &mut [0]).unwrap(), 0);
    }
}

#[test]
fn warm_servers_take_turns_and_are_gone_afterwards() {
    let log = Log::new();
    let workload = workload(&log, "", "exec");
    let comparison = made(&workload, plan(), 3).unwrap();
    for variant in 0..2 {
        let runs = runs(&comparison, variant);
        assert_eq!(runs.len(), 3);
        for run in runs {
            let burst = run.burst.unwrap();
            assert_eq!((&run.ending, burst.errors), (&Ending::Exited(0), 0));
            assert!(burst.requests.unwrap() > 0 && burst.throughput.unwrap() > 0.0, "{run:?}");
            assert!(burst.latency_s.unwrap().p50 > 0.0);
            assert!(run.user_s + run.sys_s > 0.0 && run.peak_rss_bytes > 1 << 20, "{run:?}");
            assert!(run.wall_s >= 0.1 && !run.rss_over_time.is_empty(), "{run:?}");
        }
    }
    let table = &comparison.tables[0];
    assert_eq!(table.summary.primary, Measure::Throughput);
    assert!(table.evidence[1].served.iter().any(|program| program.contains("server")));
    assert!(table.summary.repeatable);
    assert!(is_said(&comparison, &["CPU without load", "system", "jemalloc"]));
    // One server of the system's, and two of jemalloc's, the first of which was traced.
    assert_eq!(log.started().len(), 3);
    log.assert_gone(3);
}

#[test]
fn a_rate_gives_cpu_a_request_the_verdict() {
    let log = Log::new();
    let workload = workload(&log, "", "exec");
    let mut plan = plan();
    let Load::Http { pace, .. } = &mut plan.load else { unreachable!() };
    *pace = Pace::Open { rate: 200.0 };
    let comparison = made(&workload, plan, 2).unwrap();
    assert_eq!(comparison.tables[0].summary.primary, Measure::CpuPerRequest);
    let requests: Vec<u64> = comparison.tables[0]
        .runs
        .iter()
        .map(|run| run.burst.unwrap())
        .map(|burst| burst.requests.unwrap() + burst.errors)
        .collect();
    assert!(requests.iter().all(|count| *count == requests[0] && *count > 0), "{requests:?}");
}

#[test]
fn a_rate_for_latencies_is_the_same_for_all_and_throughput_decides() {
    let log = Log::new();
    let workload = workload(&log, "", "exec");
    let mut plan = plan();
    let Load::Http { latency_rate, .. } = &mut plan.load else { unreachable!() };
    *latency_rate = Some("20%".parse().unwrap());
    let comparison = made(&workload, plan, 2).unwrap();
    assert_eq!(comparison.tables[0].summary.primary, Measure::Throughput);
    let bursts = comparison.tables[0].runs.iter().map(|run| run.burst.unwrap());
    let rates: Vec<f64> = bursts.map(|burst| burst.latency_rate.unwrap()).collect();
    assert!(rates.iter().all(|rate| *rate > 0.0 && *rate == rates[0]), "{rates:?}");
    assert!(is_said(&comparison, &["two halves", &format!("{} requests a second", rates[0])]));
}

#[test]
fn what_is_around_a_server_runs_in_its_folder() {
    let log = Log::new();
    let folder = tempfile::tempdir().unwrap();
    let mut workload = workload(&log, "", "exec");
    workload.folder = Some(folder.path().to_owned());
    let mut whole = planned(&workload, &["system"], plan(), 1);
    let text = |text: &str| Some(text.into());
    whole.cases[0].hooks = Hooks {
        setup: text("touch was-set-up"),
        prepare: text("test -e was-set-up"),
        cleanup: text("mv was-set-up was-cleaned-up"),
    };
    compare(&whole, &CompareOptions::default(), &Stop::never(), &mut |_| {}).unwrap();
    assert!(folder.path().join("was-cleaned-up").exists());
}

#[test]
fn what_ends_a_comparison_is_said_with_the_servers_or_the_loads_last_words() {
    let ready = |text: &str, ready_within| {
        let ready = Ready::parse(text).unwrap();
        ServerPlan { ready, ready_within, ..plan() }
    };
    let short = Duration::from_millis(500);
    let words = ["`system`", "returned 3", "config file is wrong"];
    assert_refused("MODE=exit", plan(), &words, 0);
    assert_refused(
        "",
        ready("http://127.0.0.1:1/{port}", short),
        &["not ready", "no connection"],
        0,
    );
    assert_refused("", ready("test {port} = {dir}", short), &["not ready", "exit status: 1"], 0);
    assert_refused("MODE=die ALWAYS=yes DEATH=/", plan(), &["`system`", "signal 6"], 1);
    let failing = command("echo no such key >&2; exit 4");
    assert_refused("", failing, &["returned 4", "no such key"], 1);
    // No server listens at this port.
    let unheard = ServerPlan { load: http("http://127.0.0.1:1/"), ..plan() };
    assert_refused("", unheard, &["no request was answered", "refused"], 1);
}

#[test]
fn a_question_that_cannot_be_asked_is_said_at_once() {
    let ready = Ready::parse("masu-no-such-command {port}").unwrap();
    let began = Instant::now();
    let plan = ServerPlan { ready, ready_within: Duration::from_secs(600), ..self::plan() };
    assert_refused("", plan, &["`masu-no-such-command", "127"], 0);
    // This server has nothing that can be asked for without a body.
    let ready = Ready::parse("http://127.0.0.1:{port}/").unwrap();
    let plan = ServerPlan { ready, ready_within: Duration::from_secs(600), ..self::plan() };
    assert_refused("MODE=post", plan, &["status 405", "--ready"], 1);
    assert!(began.elapsed() < Duration::from_secs(300), "it waited all the same");
}

#[test]
fn a_load_with_a_body_asks_with_it_whether_the_server_is_ready_whatever_a_command_may_take() {
    let log = Log::new();
    let workload = workload(&log, "MODE=post", "exec");
    let load = vec!["http://127.0.0.1:{port}/".to_owned()];
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("body"), "x").unwrap();
    let (load_body, burst) = (Some("body".into()), Some(Duration::from_millis(100)));
    let asked = ServerRequest { load, load_body, burst, ..ServerRequest::default() };
    let server = asked.plan(folder.path()).unwrap();
    let mut plan = planned(&workload, &["system", "jemalloc"], server, 1);
    // No server starts in that time; it is the limit of load commands.
    plan.cases[0].limits.time = Some(Duration::from_millis(1));
    compare(&plan, &CompareOptions::default(), &Stop::never(), &mut |_| {}).unwrap();
    log.assert_gone(3);
}

#[test]
fn a_server_that_dies_is_named_and_its_bursts_stop_counting() {
    let (log, folder) = (Log::new(), tempfile::tempdir().unwrap());
    let death = folder.path().join("death");
    // The server dies only under a preload, in the second round or later.
    let workload = workload(&log, &format!("MODE=die DEATH={}", death.display()), "exec");
    let mut observe = |event: Event<'_>| {
        if matches!(event, Event::Ran { done: 2.. }) {
            fs::write(&death, "").unwrap();
        }
    };
    let plan = planned(&workload, &["system", "jemalloc"], plan(), 4);
    let options = CompareOptions::default();
    let comparison = compare(&plan, &options, &Stop::never(), &mut observe).unwrap();
    assert!(runs(&comparison, 0).iter().all(|run| run.ending == Ending::Exited(0)));
    assert_eq!(runs(&comparison, 1)[3].ending, Ending::Signalled(6));
    assert!(is_said(&comparison, &["`jemalloc`", "out of luck"]));
    log.assert_gone(3);
}

#[test]
fn memory_is_limited_over_all_servers_and_a_runaway_is_named() {
    let log = Log::new();
    let workload = workload(&log, "MODE=grow ALWAYS=yes", "exec");
    let mut plan = planned(&workload, &["system", "jemalloc"], plan(), 1000);
    plan.cases[0].limits = Limits { memory_bytes: Some(300 << 20), ..Limits::default() };
    let made = compare(&plan, &CompareOptions::default(), &Stop::never(), &mut |_| {});
    let error = made.unwrap_err().to_string();
    assert!(error.contains("memory limit") && error.contains("MiB"), "{error}");
    log.assert_gone(1);
}

#[test]
fn a_load_command_is_run_once_a_burst_and_its_time_is_what_counts() {
    let log = Log::new();
    let loads = Log::new();
    // A real load would send requests; here the shell sends none and only notes each burst in a file.
    let text = format!("echo {{variant}} {{port}} >> {}; sleep 0.01", loads.0.display());
    // The other tests ask whether the port takes connections, or a URL.
    let ready = Ready::parse("127.0.0.1:{port}").unwrap();
    let server = ServerPlan { ready, ..command(&text) };
    let comparison = made(&workload(&log, "", "exec"), server, 2).unwrap();
    assert_eq!(comparison.tables[0].summary.primary, Measure::Wall);
    for run in &comparison.tables[0].runs {
        let burst = run.burst.unwrap();
        assert!(run.wall_s >= 0.01 && burst.requests.is_none() && burst.throughput.is_none());
    }
    let lines = fs::read_to_string(&loads.0).unwrap();
    let of = |label: &str| lines.lines().filter(|line| line.starts_with(label)).count();
    assert!(of("system ") >= 4 + 2 && of("jemalloc ") >= 4 + 2, "{lines}");
    log.assert_gone(3);
}

#[test]
fn one_at_a_time_is_one_at_a_time_and_each_is_asked_to_end() {
    let log = Log::new();
    let lock = std::env::temp_dir().join(format!("masu-server-lock-{}", std::process::id()));
    let lock = lock.to_str().unwrap();
    // The shell holds the lock as long as the server runs, and gives it back only when asked to end.
    let before = format!(
        "mkdir {lock} || exit 9; trap 'kill $server; wait; rmdir {lock}; exit 0' TERM; \
         run() {{ \"$@\" & server=$!; wait; }}; run"
    );
    let workload = workload(&log, "", &before);
    let plan = ServerPlan { one_at_a_time: true, ..plan() };
    let compared = |server: ServerPlan| {
        let plan = planned(&workload, &["system", "glibc:arena_max=1"], server, 2);
        compare(&plan, &CompareOptions::default(), &Stop::never(), &mut |_| {})
    };
    let comparison = compared(plan.clone()).unwrap();
    // On a busy machine some runs are repeated.
    let runs = comparison.tables[0].runs.len();
    assert!(runs >= 4);
    assert!(comparison.tables[0].runs.iter().all(|run| run.ending == Ending::Exited(0)));
    assert!(is_said(&comparison, &["one server ran at a time"]));
    assert_eq!(log.started().len(), 2 + runs, "a start for each warm-up and each run");
    log.assert_gone(2 + runs);
    // Side by side, the second server finds the lock taken, which shows that the lock works.
    let plan = ServerPlan { one_at_a_time: false, ..plan };
    let error = compared(plan).unwrap_err().to_string();
    assert!(error.contains("returned 9"), "{error}");
    assert!(!Path::new(lock).exists(), "the first server was not asked to end");
}

#[test]
fn a_server_that_does_not_start_again_is_named_and_its_bursts_stop_counting() {
    let (log, starts) = (Log::new(), Log::new());
    // Under a preload: the proof, the warm-up and one run.
    let before = format!(
        "[ -z \"$LD_PRELOAD\" ] || {{ echo >> '{0}'; [ $(wc -l < '{0}') -lt 4 ] || {{ echo full >&2; exit 9; }}; }}; \
         exec",
        starts.0.display()
    );
    let server = ServerPlan { one_at_a_time: true, ..plan() };
    let comparison = made(&workload(&log, "", &before), server, 4).unwrap();
    assert!(runs(&comparison, 0).iter().all(|run| run.ending == Ending::Exited(0)));
    assert_eq!(runs(&comparison, 1)[3].ending, Ending::Exited(9));
    assert!(is_said(&comparison, &["`jemalloc`", "returned 9", "full", "its bursts stop there"]));
    log.assert_gone(2 + 5);
}

#[test]
fn a_server_that_goes_into_the_background_is_followed_there() {
    let log = Log::new();
    let workload = workload(&log, "", "setsid -f");
    let comparison = made(&workload, plan(), 2).unwrap();
    assert!(comparison.tables[0].runs.iter().all(|run| run.burst.unwrap().errors == 0));
    assert!(comparison.tables[0].runs.iter().all(|run| run.peak_rss_bytes > 1 << 20));
    assert!(is_said(&comparison, &["jemalloc", "foreground"]));
    log.assert_gone(2);
}

#[test]
fn a_stop_ends_every_server_and_keeps_what_was_measured() {
    let log = Log::new();
    let workload = workload(&log, "", "exec");
    let stop = Stop::never();
    let mut done = 0;
    let mut observe = |event: Event<'_>| {
        done += usize::from(matches!(event, Event::Ran { .. }));
        if done == 3 {
            stop.request();
        }
    };
    let plan = planned(&workload, &["system", "jemalloc"], plan(), 1000);
    let options = CompareOptions::default();
    let comparison = compare(&plan, &options, &stop, &mut observe).unwrap();
    assert!(comparison.stopped);
    assert!(comparison.tables[0].runs.len() >= 3);
    log.assert_gone(3);
}

#[test]
fn the_time_that_is_announced_is_that_of_bursts_that_count_and_of_each_warm_up_that_a_run_needs() {
    // Each burst is preceded by a tenth of a whole one that does not count; a warm-up has four at least, half as long.
    for (one_at_a_time, run_ms, starts) in [(false, 440, 2), (true, 4 * 240 + 440, 3)] {
        let log = Log::new();
        let workload = workload(&log, "", "exec");
        let stop = Stop::never();
        let mut announced = None;
        let mut observe = |event: Event<'_>| match event {
            Event::Planned { estimate, .. } => announced = Some(estimate),
            Event::Ran { .. } => stop.request(),
            _ => {}
        };
        let plan = ServerPlan { burst: Duration::from_millis(400), one_at_a_time, ..plan() };
        let plan = planned(&workload, &["system", "jemalloc"], plan, 1000);
        compare(&plan, &CompareOptions::default(), &stop, &mut observe).unwrap();
        assert_eq!(announced, Some(Duration::from_millis(2 * 1000 * run_ms)));
        log.assert_gone(starts);
    }
}

#[test]
fn servers_side_by_side_need_ports_of_their_own() {
    let workload = Workload::new(["sh", "-c", "sleep 1000"], Input::Empty).unwrap();
    let error = made(&workload, plan(), 2).unwrap_err().to_string();
    assert!(error.contains("{port}") && error.contains("--one-at-a-time"), "{error}");
}

/// A real server, linked with jemalloc, under a load command.
#[test]
fn redis_is_what_it_is_linked_with_unless_something_is_preloaded() {
    let words =
        ["redis-server", "--port", "{port}", "--dir", "{dir}", "--save", "", "--daemonize", "no"];
    let workload = Workload::new(words, Input::Empty)
        .expect("this test runs redis-server: apt-get install redis");
    assert_eq!(workload.program.linked_malloc.as_deref(), Some("libjemalloc.so.2"));
    let load = command("redis-benchmark -q -p {port} -n 500 -c 2 -t set,get");
    let plan = planned(&workload, &["system", "glibc", "mimalloc"], load, 2);
    let options = CompareOptions::default();
    let comparison = compare(&plan, &options, &Stop::never(), &mut |_| {}).unwrap();
    let table = &comparison.tables[0];
    assert!(table.runs.iter().all(|run| run.ending == Ending::Exited(0)), "{table:?}");
    assert!(table.runs.iter().all(|run| run.burst.unwrap().errors == 0), "{table:?}");
    for (variant, evidence) in table.case.variants.iter().zip(&table.evidence) {
        assert_eq!(variant.library.is_some(), !evidence.served.is_empty(), "{table:?}");
    }
    assert!(table.case.variants[1].library.is_some(), "glibc is preloaded");
    assert!(is_said(&comparison, &["`system`", "libjemalloc.so.2", "`-a glibc`"]));
}

/// A library that counts as the counting build of `libmasu.so` does: a page mapped from a file, its
/// third word the programs, its fourth the allocations.
const COUNTING: &str = include_str!("server/counting.c");

#[test]
fn allocations_a_request_are_counted_on_a_server_apart() {
    let log = Log::new();
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libcounting.so");
    // The run of another test takes any other child of this process for its own.
    let alone = masu_run::execute::alone();
    let mut compiler = std::process::Command::new("gcc")
        .args(["-shared", "-fPIC", "-O1", "-x", "c", "-", "-o"])
        .arg(&library)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("this test compiles a library: apt-get install gcc");
    compiler.stdin.take().unwrap().write_all(COUNTING.as_bytes()).unwrap();
    assert!(compiler.wait().unwrap().success());
    drop(alone);
    let plan = ServerPlan { counting: Some(library.clone()), ..plan() };
    for run in &made(&workload(&log, "", "exec"), plan, 2).unwrap().tables[0].runs {
        let allocations = run.burst.unwrap().allocations_a_request.unwrap();
        // An answer takes 20 strings, their list, the body and the text, and as many as reading
        // and formatting take besides.
        assert!((20.0..200.0).contains(&allocations), "{allocations}");
    }
    assert_eq!(log.started().len(), 4, "one more than without counting");
    log.assert_gone(4);
}
