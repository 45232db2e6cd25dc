//! A job of several processes on loopback: what it gives, and what each process says when a chunk
//! fails, a process never comes, or one is killed in the middle.
//!
//! Each process is this test program again, told by its environment which one it is.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use masu_chunk::cluster::Cluster;

/// `PROCESS;ADDRESSES;JOB`.
const TOLD: &str = "MASU_CHUNK_TEST_CLUSTER";

/// How long a process may take before it counts as hanging: far more than any of them needs.
const HANGS: Duration = Duration::from_secs(60);

/// Not a test of its own: what a process of a cluster does.
#[test]
fn process_of_a_cluster() {
    let Ok(told) = env::var(TOLD) else { return };
    let [process, addresses, job] = told.split(';').collect::<Vec<_>>()[..] else { panic!() };
    let addresses: Vec<String> = addresses.split(',').map(str::to_owned).collect();
    let process: usize = process.parse().unwrap();
    let cluster = Cluster::new(addresses, process).workers(2).chunk(100);
    let sum = |chunk: masu_chunk::Chunk<std::ops::Range<u64>>| chunk.into_inner().sum::<u64>();
    let said = match job {
        "map" => {
            format!("{:?}", cluster.try_map(0..1050, move |chunk| Ok::<_, String>(sum(chunk))))
        }
        "reduce" => {
            let cluster = cluster.unordered();
            let work = move |chunk| Ok::<_, String>(sum(chunk));
            format!("{:?}", cluster.try_reduce(0..1_000_000, work, |a, b| a + b))
        }
        "panic" => {
            let outcome = cluster.try_map(0..1_000_000, move |chunk| {
                assert!(chunk.place().index != 57, "no chunk 57");
                Ok::<_, String>(sum(chunk))
            });
            format!("{outcome:?}")
        }
        "absent" => {
            let cluster = cluster.patience(Duration::from_millis(300));
            format!("{:?}", cluster.try_map(0..10, move |chunk| Ok::<_, String>(sum(chunk))))
        }
        _ => {
            // Says that the job is under way, and never ends it.
            let outcome = cluster.try_map(0..1_000_000, move |chunk| {
                if chunk.place().index == 2 * process as u64 {
                    println!("\nunder way");
                }
                thread::sleep(Duration::from_millis(20));
                Ok::<_, String>(sum(chunk))
            });
            format!("{outcome:?}")
        }
    };
    println!("\nsaid: {said}");
}

/// Addresses on loopback that nobody listens at.
fn addresses(count: usize) -> String {
    let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let of = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
    listeners.iter().map(of).collect::<Vec<_>>().join(",")
}

fn start(process: usize, addresses: &str, job: &str) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "process_of_a_cluster", "--nocapture"]);
    command.env(TOLD, format!("{process};{addresses};{job}"));
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// What a process said at its end, which must come.
fn said(mut child: Child, mut rest: impl Read) -> String {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > HANGS {
            child.kill().unwrap();
            panic!("a process hangs");
        }
        thread::sleep(Duration::from_millis(10));
    }
    let mut output = String::new();
    rest.read_to_string(&mut output).unwrap();
    let line = output.lines().find_map(|line| line.strip_prefix("said: "));
    line.unwrap_or_else(|| panic!("nothing said: {output}")).to_owned()
}

/// What each of three processes says.
fn all_say(job: &str) -> Vec<String> {
    let addresses = addresses(3);
    let children: Vec<_> = (0..3).map(|process| start(process, &addresses, job)).collect();
    let say = |mut child: Child| {
        let output = child.stdout.take().unwrap();
        said(child, output)
    };
    children.into_iter().map(say).collect()
}

#[test]
fn results_come_to_the_first_process_in_order() {
    let sums: Vec<u64> =
        (0..1050).collect::<Vec<u64>>().chunks(100).map(|c| c.iter().sum()).collect();
    let expected = format!("Ok(Some({sums:?}))");
    assert_eq!(all_say("map"), [expected.as_str(), "Ok(None)", "Ok(None)"]);
}

#[test]
fn an_unordered_reduction_sends_one_result_a_worker() {
    assert_eq!(all_say("reduce"), ["Ok(Some(499999500000))", "Ok(None)", "Ok(None)"]);
}

#[test]
fn a_panic_is_reported_in_every_process_with_its_place() {
    for said in all_say("panic") {
        assert!(said.contains("index: 57, items: 5700..5800"), "{said}");
        assert!(said.contains("panicked: no chunk 57"), "{said}");
    }
}

#[test]
fn a_process_that_never_comes_is_an_error() {
    let addresses = addresses(2);
    for process in 0..2 {
        let mut child = start(process, &addresses, "absent");
        let output = child.stdout.take().unwrap();
        let said = said(child, output);
        assert!(said.starts_with("Err(Connect { address: \"127.0.0.1:"), "{said}");
    }
}

#[test]
fn a_killed_process_is_an_error_in_the_others_and_nobody_hangs() {
    let addresses = addresses(3);
    let children = (0..3).map(|process| start(process, &addresses, "killed"));
    let mut running: Vec<(Child, BufReader<_>)> = children
        .map(|mut child| {
            let output = BufReader::new(child.stdout.take().unwrap());
            (child, output)
        })
        .collect();
    for (_, output) in &mut running {
        let mut line = String::new();
        while line.trim() != "under way" {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "a process ended early");
        }
    }
    let (mut victim, _) = running.remove(1);
    victim.kill().unwrap();
    victim.wait().unwrap();
    for (child, output) in running {
        let said = said(child, output);
        assert!(said.starts_with("Err(Lost("), "{said}");
    }
}
