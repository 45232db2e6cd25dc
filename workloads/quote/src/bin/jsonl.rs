//! JSON by the line, parsed on workers, built as xquo 0.2.3 is: a reader hands lines on in bulks, workers parse each
//! into a tree and write it out again, one thread writes in the order of the input. `jsonl WORKERS < LINES`.

#[path = "../allocator.rs"]
mod allocator;

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufWriter, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// Lines that are handed on together.
const BULK: usize = 100;

/// The most bulks that wait.
const WAITING: usize = 64;

type Bulk = (usize, Vec<String>);

fn main() -> ExitCode {
    let workers = std::env::args().nth(1).and_then(|workers| workers.parse::<usize>().ok());
    let Some(workers) = workers.filter(|workers| *workers > 0) else {
        eprintln!("usage: jsonl WORKERS < LINES");
        return ExitCode::from(2);
    };
    match convert(workers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("jsonl: {error}");
            ExitCode::FAILURE
        }
    }
}

fn convert(workers: usize) -> io::Result<()> {
    let (put, waiting) = sync_channel::<Bulk>(WAITING);
    let (done, results) = sync_channel::<Bulk>(WAITING);
    let waiting = Arc::new(Mutex::new(waiting));
    let workers: Vec<_> = (0..workers)
        .map(|_| {
            let (waiting, done) = (Arc::clone(&waiting), done.clone());
            thread::spawn(move || work(&waiting, &done))
        })
        .collect();
    drop(done);
    let printer = thread::spawn(move || print(&results));
    let read = read(&put);
    drop(put);
    for worker in workers {
        worker.join().expect("a worker ends by itself");
    }
    printer.join().expect("the printer ends by itself")?;
    read
}

fn read(put: &SyncSender<Bulk>) -> io::Result<()> {
    let mut bulk = Vec::with_capacity(BULK);
    let mut number = 0;
    for line in io::stdin().lock().lines() {
        bulk.push(line?);
        if bulk.len() == BULK {
            let full = std::mem::replace(&mut bulk, Vec::with_capacity(BULK));
            if put.send((number, full)).is_err() {
                return Ok(());
            }
            number += 1;
        }
    }
    // If the output is gone, no thread is left to take the bulk.
    let _ = put.send((number, bulk));
    Ok(())
}

fn work(waiting: &Mutex<Receiver<Bulk>>, done: &SyncSender<Bulk>) {
    loop {
        let next = waiting.lock().expect("nobody panics with the lock").recv();
        let Ok((number, lines)) = next else { return };
        let converted = lines.iter().map(|line| match serde_json::from_str::<Value>(line) {
            Ok(value) => value.to_string(),
            Err(error) => format!("{{\"error\":{:?}}}", error.to_string()),
        });
        if done.send((number, converted.collect())).is_err() {
            return;
        }
    }
}

fn print(results: &Receiver<Bulk>) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut early = BTreeMap::new();
    let mut next = 0;
    for (number, lines) in results {
        early.insert(number, lines);
        while let Some(lines) = early.remove(&next) {
            for line in lines {
                writeln!(output, "{line}")?;
            }
            next += 1;
        }
    }
    output.flush()
}
