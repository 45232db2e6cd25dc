//! The steps of a parallel executor, from a thread for each chunk to this crate, on the same work:
//! sums over chunks of whole numbers, as in a field report of 2024 that built one step by step.
//!
//! ```text
//! cargo build --release --example steps
//! target/release/examples/steps ours --items 100000000
//! masu compare --suite workloads/steps.toml     # all of them, measured in turns
//! ```
//!
//! Making the data, working on it and printing the results are timed apart: in the report the printing took most of
//! the time that was thought to be work. `--print` prints every result, a line at a time, as the report did.
//! A comparison measures whole processes: its row `none` shows the cost of everything but the work. `--figures FILE`
//! appends the three times to a file, for suites that want them.

mod engines;

use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use engines::{Engine, engines};

/// The request on the command line.
struct Request {
    step: String,
    items: u64,
    /// The items are bytes, so that a billion of them is a gigabyte.
    bytes: bool,
    job: Job,
    repeat: u32,
    /// The data is made for each repetition, as it must be where it is handed over.
    fresh: bool,
    print: bool,
    /// A file to which the times are appended as a line of JSON.
    figures: Option<PathBuf>,
}

/// An item of the data.
pub(crate) trait Item: Copy + Send + Sync + 'static {
    /// The item at this place, counted from 1.
    fn at(place: u64) -> Self;
    fn widen(self) -> i64;
}

impl Item for i64 {
    fn at(place: u64) -> Self {
        place as Self
    }

    #[inline(always)]
    fn widen(self) -> i64 {
        self
    }
}

impl Item for u8 {
    fn at(place: u64) -> Self {
        place as Self
    }

    #[inline(always)]
    fn widen(self) -> i64 {
        self.into()
    }
}

/// The division of the work, and the work on each chunk.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) chunk: usize,
    pub(crate) workers: usize,
    /// Turns of a loop for each chunk, beside the sum.
    pub(crate) turns: u64,
    /// The sleep of each chunk after those turns.
    pub(crate) sleep: Duration,
}

impl Job {
    /// The report's function, after `turns` turns of a loop and a sleep if the request is for heavy work.
    #[inline(always)]
    pub(crate) fn work<T: Item>(self, chunk: &[T]) -> i64 {
        for turn in 0..self.turns {
            black_box(turn);
        }
        if !self.sleep.is_zero() {
            std::thread::sleep(self.sleep);
        }
        chunk.iter().map(|item| item.widen()).sum::<i64>() * 100 / 10 + 1
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
    let ran = if request.bytes { run::<u8>(&request) } else { run::<i64>(&request) };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("steps: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = "\
Usage: steps STEP [--items N] [--bytes] [--chunk N] [--workers N] [--turns N] [--sleep NANOSECONDS]
       [--repeat N] [--fresh] [--print] [--figures FILE]
"
    .to_owned();
    for Engine { name, about, .. } in engines::<i64>() {
        text.push_str(&format!("  {name:<12} {about}\n"));
    }
    text
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let (first, rest) = arguments.split_first().ok_or("a step is missing")?;
    if !engines::<i64>().iter().any(|engine| engine.name == first) {
        return Err(format!("there is no step `{first}`"));
    }
    let mut request = Request {
        step: first.clone(),
        items: 10_000_000,
        bytes: false,
        job: Job { chunk: 100, workers: 2, turns: 0, sleep: Duration::ZERO },
        repeat: 1,
        fresh: false,
        print: false,
        figures: None,
    };
    let mut rest = rest.iter();
    while let Some(option) = rest.next() {
        let flag = match option.as_str() {
            "--bytes" => Some(&mut request.bytes),
            "--fresh" => Some(&mut request.fresh),
            "--print" => Some(&mut request.print),
            _ => None,
        };
        if let Some(flag) = flag {
            *flag = true;
            continue;
        }
        let value = rest.next().ok_or_else(|| format!("{option} lacks its value"))?;
        if option == "--figures" {
            request.figures = Some(value.into());
            continue;
        }
        let number: u32 = value.parse().map_err(|_| format!("{option}: `{value}` is no number"))?;
        match option.as_str() {
            "--items" => request.items = number.into(),
            "--chunk" => request.job.chunk = (number as usize).max(1),
            "--workers" => request.job.workers = (number as usize).max(1),
            "--turns" => request.job.turns = u64::from(number),
            "--sleep" => request.job.sleep = Duration::from_nanos(number.into()),
            "--repeat" => request.repeat = number.max(1),
            _ => return Err(format!("there is no option {option}")),
        }
    }
    Ok(request)
}

fn run<T: Item>(request: &Request) -> io::Result<()> {
    let engine = engines::<T>().into_iter().find(|engine| engine.name == request.step);
    let engine = engine.expect("the name was looked up when the arguments were read");
    let make = || -> Vec<T> { (1..=request.items).map(T::at).collect() };
    let begin = Instant::now();
    let mut data = make();
    let generation = begin.elapsed();
    let mut times = Vec::new();
    let mut results = Vec::new();
    for turn in 0..request.repeat {
        if turn > 0 && (data.is_empty() || request.fresh) {
            drop(std::mem::take(&mut data));
            data = make();
        }
        drop(std::mem::take(&mut results));
        let begin = Instant::now();
        let (made, returned) = (engine.run)(data, request.job);
        times.push(begin.elapsed());
        results = made;
        data = returned.unwrap_or_default();
    }
    times.sort();
    let begin = Instant::now();
    if request.print {
        // Not buffered, because the report's output was not: standard output passes each line on at once.
        let mut output = io::stdout().lock();
        for result in &results {
            writeln!(output, "{result}")?;
        }
    }
    let output = begin.elapsed();
    let check = results.iter().fold(0_i64, |sum, result| sum.wrapping_add(*result));
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let median = times[times.len() / 2];
    let speed = request.items as f64 * size_of::<T>() as f64 / median.as_secs_f64() / 1e9;
    eprintln!(
        "{:<12} generation {:8.2} ms  compute {:8.3} ms ({:.3} to {:.3})  {speed:5.1} GB/s  output {:7.2} ms  sum {check}",
        engine.name,
        ms(generation),
        ms(median),
        ms(times[0]),
        ms(times[times.len() - 1]),
        ms(output),
    );
    if let Some(path) = &request.figures {
        let line = format!(
            "{{\"step\":\"{}\",\"generation_ms\":{:.4},\"compute_ms\":{:.4},\"output_ms\":{:.4}}}\n",
            engine.name,
            ms(generation),
            ms(median),
            ms(output),
        );
        OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())?;
    }
    Ok(())
}
