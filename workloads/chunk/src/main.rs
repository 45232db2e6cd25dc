//! masu-chunk beside the other executors of Rust: each job in a process of its own, in turns.
//!
//! `cargo run --release --manifest-path workloads/chunk/Cargo.toml --target-dir target/chunk` prints the table, with
//! `-- JOB…` some of its rows. Relies on the ratio of a
//! round, in which every executor has its turn: on a machine with other work no time alone says anything.

use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

mod jobs;
mod peers;

/// Turns of each executor, and the runs in a turn, of which the shortest counts: others' programs only add to a time.
const ROUNDS: usize = 5;
const RUNS: usize = 25;

/// A turn ends after so long, for machines that are busy.
const TURN: Duration = Duration::from_millis(500);

/// The figures of a turn, in seconds, and its answer.
struct Turn {
    wall: f64,
    /// CPU time of the whole process, idle workers included.
    cpu: f64,
    first: f64,
    answer: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [run, job, peer] = &words[..]
        && run == "run"
    {
        return turn(job, peer);
    }
    println!("| | {} |", peers::PEERS.join(" | "));
    println!("| --- |{}", " ---: |".repeat(peers::PEERS.len()));
    for (job, what) in jobs::JOBS {
        if words.is_empty() || words.iter().any(|word| word == job) {
            row(job, what)?;
        }
    }
    Ok(())
}

/// Prints what a turn in this process measured.
fn turn(job: &str, peer: &str) -> Result<(), Box<dyn Error>> {
    let run = jobs::prepare(job);
    let began = Instant::now();
    let mut peer = peers::find(peer);
    let Some(answer) = run(&mut *peer) else { return Ok(()) };
    let first = began.elapsed();
    let (mut wall, mut cpu) = (Duration::MAX, Duration::MAX);
    for _ in 0..RUNS {
        let (cpu_before, began_run) = (cpu_time(), Instant::now());
        let again = run(&mut *peer);
        wall = wall.min(began_run.elapsed());
        cpu = cpu.min(cpu_time() - cpu_before);
        if again != Some(answer) {
            return Err("two runs gave different answers".into());
        }
        if began.elapsed() > TURN {
            break;
        }
    }
    let [wall, cpu, first] = [wall, cpu, first].map(|time| time.as_secs_f64());
    println!("{wall} {cpu} {first} {answer}");
    Ok(())
}

/// CPU time of this process, all threads.
fn cpu_time() -> Duration {
    #[repr(C)]
    struct Time {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Time) -> i32;
    }
    const PROCESS: i32 = 2;
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: The call writes the structure, which has the form of 64-bit Linux.
    unsafe { clock_gettime(PROCESS, &raw mut time) };
    Duration::new(time.seconds as u64, time.nanoseconds as u32)
}

/// A turn in a process of its own; none where the executor has no way for the job.
fn spawn(job: &str, peer: &str) -> Result<Option<Turn>, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).args(["run", job, peer]).output()?;
    if !output.status.success() {
        return Err(format!("{job}, {peer}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let [wall, cpu, first, answer] = words[..] else { return Ok(None) };
    let turn = Turn {
        wall: wall.parse()?,
        cpu: cpu.parse()?,
        first: first.parse()?,
        answer: answer.parse()?,
    };
    Ok(Some(turn))
}

/// Rows of the table: the first executor's milliseconds, and the others' over it with quartiles.
fn row(job: &str, what: &str) -> Result<(), Box<dyn Error>> {
    let mut turns: Vec<Vec<Turn>> = peers::PEERS.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        for turn in 0..peers::PEERS.len() {
            let at = (turn + round) % peers::PEERS.len();
            turns[at].extend(spawn(job, peers::PEERS[at])?);
        }
    }
    let answer = turns[0].first().map(|turn| turn.answer);
    if turns.iter().flatten().any(|turn| Some(turn.answer) != answer) {
        return Err(format!("{job}: the executors have different answers").into());
    }
    let cells = |figure: fn(&Turn) -> f64| {
        let own: Vec<f64> = turns[0].iter().map(figure).collect();
        let mut cells = vec![format!("{:.3} ms", quartiles(&own)[1] * 1e3)];
        for others in &turns[1..] {
            let pairs = others.iter().map(figure).zip(&own);
            cells.push(written(&pairs.map(|(other, own)| other / own).collect::<Vec<f64>>()));
        }
        cells.join(" | ")
    };
    if job == "first" {
        println!("| {what} | {} |", cells(|turn| turn.first));
    } else {
        println!("| {what} | {} |", cells(|turn| turn.wall));
        println!("| … CPU time | {} |", cells(|turn| turn.cpu));
    }
    Ok(())
}

fn written(ratios: &[f64]) -> String {
    if ratios.is_empty() {
        return "–".to_owned();
    }
    let [low, middle, high] = quartiles(ratios);
    format!("{middle:.2} ({low:.2}–{high:.2})")
}

fn quartiles(figures: &[f64]) -> [f64; 3] {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| sorted[(sorted.len() - 1) * quarter / 4])
}
