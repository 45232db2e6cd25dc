//! The steps of a parallel executor, from a thread for each chunk to this crate, on the same work:
//! sums over chunks of whole numbers, as in a field report of 2024 that built one step by step.
//!
//! ```text
//! cargo build --release --example steps
//! target/release/examples/steps ours --items 100000000
//! masu compare -P step=pool,rayon,ours -- target/release/examples/steps {step} --repeat 20
//! ```
//!
//! Making the data, working on it and printing the results are timed apart: in the report the last
//! took most of what was thought to be the second. `--print` prints every result, as the report did.

mod engines;

use std::hint::black_box;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use engines::{ENGINES, Engine};

/// What is asked for.
struct Request {
    engine: &'static Engine,
    items: i64,
    job: Job,
    repeat: u32,
    print: bool,
}

/// How the work is cut.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) chunk: usize,
    pub(crate) workers: usize,
    /// Turns of a loop for each chunk, beside the sum.
    pub(crate) turns: u64,
}

impl Job {
    /// The report's function, with so many turns more where heavy work was asked for.
    #[inline(always)]
    pub(crate) fn work(self, chunk: &[i64]) -> i64 {
        for turn in 0..self.turns {
            black_box(turn);
        }
        chunk.iter().sum::<i64>() * 100 / 10 + 1
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let request = match parse(&arguments) {
        Ok(request) => request,
        Err(said) => {
            eprintln!("steps: {said}\n{}", usage());
            return ExitCode::from(2);
        }
    };
    match run(&request) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("steps: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = "Usage: steps STEP [--items N] [--chunk N] [--workers N] [--turns N] [--repeat N] [--print]\n"
        .to_owned();
    for Engine { name, about, .. } in ENGINES {
        text.push_str(&format!("  {name:<12} {about}\n"));
    }
    text
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let (first, rest) = arguments.split_first().ok_or("a step is missing")?;
    let engine = ENGINES.iter().find(|engine| engine.name == first);
    let engine = engine.ok_or_else(|| format!("there is no step `{first}`"))?;
    let job = Job { chunk: 100, workers: 2, turns: 0 };
    let mut request = Request { engine, items: 10_000_000, job, repeat: 1, print: false };
    let mut rest = rest.iter();
    while let Some(option) = rest.next() {
        if option == "--print" {
            request.print = true;
            continue;
        }
        let value = rest.next().ok_or_else(|| format!("{option} lacks its number"))?;
        let number: u32 = value.parse().map_err(|_| format!("{option}: `{value}` is no number"))?;
        match option.as_str() {
            "--items" => request.items = i64::from(number),
            "--chunk" => request.job.chunk = (number as usize).max(1),
            "--workers" => request.job.workers = (number as usize).max(1),
            "--turns" => request.job.turns = u64::from(number),
            "--repeat" => request.repeat = number.max(1),
            _ => return Err(format!("there is no option {option}")),
        }
    }
    Ok(request)
}

fn run(request: &Request) -> io::Result<()> {
    let begin = Instant::now();
    let mut data: Vec<i64> = (1..=request.items).collect();
    let generation = begin.elapsed();
    let mut times = Vec::new();
    let mut results = Vec::new();
    for _ in 0..request.repeat {
        drop(std::mem::take(&mut results));
        let begin = Instant::now();
        (results, data) = (request.engine.run)(data, request.job);
        times.push(begin.elapsed());
    }
    times.sort();
    let begin = Instant::now();
    if request.print {
        let mut output = BufWriter::new(io::stdout().lock());
        for result in &results {
            writeln!(output, "{result}")?;
        }
        output.flush()?;
    }
    let output = begin.elapsed();
    let check = results.iter().fold(0_i64, |sum, result| sum.wrapping_add(*result));
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let median = times[times.len() / 2];
    let speed = (request.items * 8) as f64 / median.as_secs_f64() / 1e9;
    eprintln!(
        "{:<12} generation {:8.2} ms  compute {:8.3} ms ({:.3} to {:.3})  {speed:5.1} GB/s  output {:7.2} ms  sum {check}",
        request.engine.name,
        ms(generation),
        ms(median),
        ms(times[0]),
        ms(times[times.len() - 1]),
        ms(output),
    );
    Ok(())
}
