//! A job of several processes on loopback: its results, and the errors in each process when a chunk
//! fails, a process never comes, or one is killed.
//!
//! Each process is this test program again, with its number in the environment.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use masu_chunk::cluster::Cluster;
use masu_chunk::{Block, Chunk, Place};

/// `PROCESS;ADDRESSES;JOB`.
const SETTING: &str = "MASU_CHUNK_TEST_CLUSTER";

/// The time after which a process counts as hanging, far more than any needs.
const HANGS: Duration = Duration::from_secs(600);

/// Not a test of its own: the work of a process of a cluster.
#[test]
fn process_of_a_cluster() {
    let Ok(setting) = env::var(SETTING) else { return };
    let [process, addresses, job] = setting.split(';').collect::<Vec<_>>()[..] else { panic!() };
    let addresses: Vec<String> = addresses.split(',').map(str::to_owned).collect();
    let process: usize = process.parse().unwrap();
    let cluster = Cluster::new(addresses, process).workers(2).chunk(100);
    let said = outcome(job, &cluster, process).or_else(|| error(job, cluster, process));
    println!("\nsaid: {}", said.expect("there is such a job"));
}

fn sum(chunk: Chunk<Range<u64>>) -> u64 {
    chunk.into_inner().sum()
}

fn numbers() -> Vec<u64> {
    (0..1050).collect()
}

/// The results of jobs that end well.
fn outcome(job: &str, cluster: &Cluster, process: usize) -> Option<String> {
    Some(match job {
        "range" => format!("{:?}", cluster.range(0..1050).map(sum)),
        "slice" => {
            let data = numbers();
            format!("{:?}", cluster.slice(&data).map(|chunk| chunk.iter().sum::<u64>()))
        }
        "iterator" => {
            // Only the first process has the data.
            let data = if process == 0 { numbers() } else { Vec::new() };
            format!("{:?}", cluster.iter(data).map(|chunk| chunk.iter().sum::<u64>()))
        }
        "records" => {
            let text = numbers().iter().map(|n| format!("{n}\n")).collect::<String>();
            let reader = text.as_bytes();
            let lines = |chunk: Chunk<Block>| {
                let text = std::str::from_utf8(&chunk).unwrap();
                assert!(text.ends_with('\n') && chunk.before().is_none_or(|byte| byte == b'\n'));
                text.lines().map(|line| line.parse::<u64>().unwrap()).collect::<Vec<_>>()
            };
            let lines = cluster.records(reader, b'\n').map(lines).unwrap();
            format!("{:?}", lines.map(|lines| lines.concat() == numbers()))
        }
        "blocks" => {
            let text = "0123456789".repeat(105);
            let joined = cluster
                .blocks(text.as_bytes())
                .reduce(|chunk| chunk.to_vec(), |a, b| [a, b].concat());
            format!("{:?}", joined.unwrap().map(|joined| joined == text.as_bytes()))
        }
        "unordered" => {
            let sums = cluster.clone().unordered().range(0..1_000_000).reduce(sum, |a, b| a + b);
            format!("{sums:?}")
        }
        "patient" => {
            format!("{:?}", cluster.clone().patience(Duration::MAX).range(0..1050).map(sum))
        }
        "nothing" => {
            let none = cluster.range(5..5).reduce(sum, |a, b| a + b).unwrap();
            let some = cluster.range(5..6).reduce(sum, |a, b| a + b).unwrap();
            format!("{none:?} {some:?}")
        }
        _ => return None,
    })
}

/// The errors of jobs that fail.
fn error(job: &str, cluster: Cluster, process: usize) -> Option<String> {
    Some(match job {
        "window" => {
            // An endless iterator: at most the window beyond the taken results may be pulled.
            let (asked, mut most, mut taken) = (AtomicU64::new(0), 0, Vec::new());
            let endless = (0_u64..).inspect(|_| {
                asked.fetch_add(1, Ordering::SeqCst);
            });
            let take = |place: Place, sum: u64| {
                let chunks = asked.load(Ordering::SeqCst).div_ceil(100);
                most = most.max(chunks - place.index);
                taken.push(sum);
                if place.index == 40 { Err("enough") } else { Ok(()) }
            };
            let work = |chunk: Chunk<Vec<u64>>| Ok(chunk.iter().sum::<u64>());
            let outcome = cluster.window(3).iter(endless).deliver(work, take);
            let expected: Vec<u64> =
                (0..=40).map(|index| (index * 100..index * 100 + 100).sum()).collect();
            let right = taken == if process == 0 { expected } else { Vec::new() };
            format!("{} {right} {}", outcome.unwrap_err(), most <= 3)
        }
        "error" => {
            let mut taken = 0;
            let outcome = cluster.range(0..1_000_000).deliver(
                |chunk| {
                    if chunk.place().index >= 57 { Err("bad") } else { Ok(chunk.place().index) }
                },
                |place, index| {
                    assert_eq!((place.index, index), (taken, taken));
                    taken += 1;
                    Ok(())
                },
            );
            format!("{} {taken}", outcome.unwrap_err())
        }
        "panic" => {
            let outcome = cluster.range(0..1_000_000).map(|chunk| {
                assert!(chunk.place().index != 57, "no chunk 57");
                sum(chunk)
            });
            outcome.unwrap_err().to_string()
        }
        "unreadable" => {
            let reader = File::open("/").unwrap();
            cluster.records(reader, b'\n').for_each(|_| ()).unwrap_err().to_string()
        }
        "different" => {
            let data = numbers();
            let data = if process == 0 { &data[..] } else { &data[..100] };
            let first = |chunk: Chunk<&[u64]>| chunk[0];
            cluster.slice(data).map(first).unwrap_err().to_string()
        }
        "absent" => {
            let cluster = cluster.patience(Duration::from_millis(300));
            format!("{:?}", cluster.range(0..10).map(sum))
        }
        "killed" | "killed-iterator" => {
            // Reports that the job runs, and never ends it.
            let begun = AtomicU64::new(0);
            let slowly = || {
                if begun.fetch_add(1, Ordering::SeqCst) == 2 {
                    println!("\nunder way");
                }
                thread::sleep(Duration::from_millis(20));
            };
            let outcome = if job == "killed" {
                cluster.range(0..100_000_000).for_each(|_| slowly())
            } else {
                cluster.iter(0_u64..).for_each(|_| slowly())
            };
            format!("{outcome:?}")
        }
        _ => return None,
    })
}

/// Addresses on loopback that no process listens at; each address is used once. A port that the kernel chooses could
/// be taken by another test or by an outgoing connection, before a process of this test listens there.
fn addresses(count: usize) -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Below the ports of outgoing connections.
    let first = 10_000 + (process::id() % 20_000) as u16;
    let ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed) % 2_000);
    let addresses = ports.map(|port| format!("127.0.0.1:{port}"));
    let free = addresses.filter(|address| TcpListener::bind(address).is_ok());
    free.take(count).collect::<Vec<_>>().join(",")
}

fn start(process: usize, addresses: &str, job: &str) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "process_of_a_cluster", "--nocapture"]);
    command.env(SETTING, format!("{process};{addresses};{job}"));
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// The output of a process, which must end.
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

/// The output of each of three processes.
fn all_say(job: &str) -> Vec<String> {
    let addresses = addresses(3);
    let children: Vec<_> = (0..3).map(|process| start(process, &addresses, job)).collect();
    children.into_iter().map(say).collect()
}

fn say(mut child: Child) -> String {
    let output = child.stdout.take().unwrap();
    said(child, output)
}

#[test]
fn results_come_to_the_first_process_in_order_whatever_the_data_is() {
    let sums: Vec<u64> =
        (0..1050).collect::<Vec<u64>>().chunks(100).map(|c| c.iter().sum()).collect();
    let sums = format!("Ok(Some({sums:?}))");
    for (job, first, other) in [
        ("range", sums.as_str(), "Ok(None)"),
        ("slice", &sums, "Ok(None)"),
        ("iterator", &sums, "Ok(None)"),
        ("records", "Some(true)", "None"),
        ("blocks", "Some(true)", "None"),
        // Each process sends one result.
        ("unordered", "Ok(Some(499999500000))", "Ok(None)"),
        // Two jobs of the same cluster.
        ("nothing", "None Some(5)", "None None"),
    ] {
        assert_eq!(all_say(job), [first, other, other], "{job}");
    }
}

#[test]
fn results_before_an_error_are_taken() {
    let error = "chunk 57, which is 5700 to 5799, failed: bad";
    let expected = [format!("{error} 57"), format!("{error} 0"), format!("{error} 0")];
    assert_eq!(all_say("error"), expected);
}

#[test]
fn a_failure_is_reported_in_every_process_with_its_place() {
    for (job, says) in [
        // No more is read than the window has room for, and the taker ends the job.
        ("window", "chunk 40, which is 4000 to 4099, failed: enough true true"),
        ("panic", "chunk 57, which is 5700 to 5799, panicked: no chunk 57"),
        ("unreadable", "chunk 0, which begins at 0, cannot be read: Is a dir"),
        ("different", ", failed: the slice of this process has 100 items"),
    ] {
        all_say(job).iter().for_each(|said| assert!(said.contains(says), "{job}: {said}"));
    }
}

#[test]
fn a_process_that_never_comes_is_an_error() {
    let addresses = addresses(2);
    for process in 0..2 {
        let said = say(start(process, &addresses, "absent"));
        assert!(said.starts_with("Err(Connect { address: \"127.0.0.1:"), "{said}");
    }
}

#[test]
fn a_silent_stranger_keeps_nobody_waiting() {
    let addresses = addresses(2);
    let first = start(0, &addresses, "patient");
    let address = addresses.split(',').next().unwrap();
    let begin = Instant::now();
    let mut tries = std::iter::repeat_with(|| TcpStream::connect(address));
    let _stranger = tries.find(|it| it.is_ok() || begin.elapsed() > HANGS).unwrap().unwrap();
    let second = start(1, &addresses, "patient");
    assert!(say(first).starts_with("Ok(Some([4950, "));
    assert_eq!(say(second), "Ok(None)");
}

#[test]
fn a_killed_process_is_an_error_in_the_others_and_nobody_hangs() {
    // The first process deals, so its end is a case of its own.
    for (job, victim) in [("killed", 1), ("killed-iterator", 2), ("killed", 0)] {
        kill(job, victim);
    }
}

fn kill(job: &str, victim: usize) {
    let addresses = addresses(3);
    let children = (0..3).map(|process| start(process, &addresses, job));
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
    let (mut victim, _) = running.remove(victim);
    victim.kill().unwrap();
    victim.wait().unwrap();
    for (child, output) in running {
        let said = said(child, output);
        assert!(said.starts_with("Err(Lost("), "{said}");
    }
}
