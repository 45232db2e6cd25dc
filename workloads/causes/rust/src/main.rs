//! Runs one named cause: a program that is slow, or large, for one reason that was put into it.
//!
//! The causes and the arguments are the same as in the C program beside it. The work is not the same, so that rules
//! learned from one program can be judged on the other. The contents of memory are checked: a panic says which check
//! failed.

mod cause;
mod kernel;
mod memory;
mod other;
#[path = "../../../rust/src/random.rs"]
mod random;
mod threads;
mod work;

use std::process::ExitCode;
use std::time::Instant;

use cause::{CAUSES, Cause};
use work::Work;

const USAGE: &str = "\
Usage: rust-causes NAME [--threads T] [--size N] [--rounds N] [--libraries DIR]
       rust-causes --list";

/// The exit code for arguments that are not understood.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if arguments == ["--list"] {
        CAUSES.iter().for_each(list);
        return ExitCode::SUCCESS;
    }
    match understand(&arguments) {
        Ok((cause, work)) => {
            run(cause, &work);
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("rust-causes: {reason}\n{USAGE}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn list(cause: &Cause) {
    let Cause { name, threads, size, unit, rounds, about, .. } = cause;
    println!(
        "{name:<20} threads {:<2} size {:>9} {unit:<11} rounds {rounds:<9} {about}",
        threads.usual, size.usual
    );
}

/// The cause and the work that the arguments request, or the error in the arguments.
fn understand(arguments: &[&str]) -> Result<(&'static Cause, Work), String> {
    let (name, options) = arguments.split_first().ok_or("name a cause; --list shows them")?;
    let cause = CAUSES
        .iter()
        .find(|cause| cause.name == *name)
        .ok_or_else(|| format!("`{name}` is not a cause; --list shows them"))?;
    let mut work = Work {
        threads: cause.threads.usual,
        size: cause.size.usual,
        rounds: cause.rounds,
        libraries: None,
    };
    for option in options.chunks(2) {
        let [option, value] = option else {
            return Err(format!("`{}` is not an option, or lacks its value", option[0]));
        };
        let number = |least: usize, most: usize| {
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| {
                format!("{option} needs a number from {least} to {most}, not `{value}`")
            })
        };
        match *option {
            "--threads" if cause.threads.usual == 0 => {
                return Err(format!("{name} takes no --threads"));
            }
            "--threads" => work.threads = number(cause.threads.least, cause.threads.most)?,
            "--size" => work.size = number(cause.size.least, cause.size.most)?,
            "--rounds" => work.rounds = number(1, u32::MAX as usize)?,
            "--libraries" => work.libraries = Some((*value).into()),
            other => return Err(format!("`{other}` is not an option")),
        }
    }
    Ok((cause, work))
}

fn run(cause: &Cause, work: &Work) {
    let begun = Instant::now();
    let sum = (cause.run)(work);
    let ms = begun.elapsed().as_millis();
    let Work { threads, size, rounds, .. } = work;
    eprintln!("{} ms {ms} rss_kb {}", cause.name, kernel::peak_rss_kb());
    println!(
        "{} threads {threads} size {size} rounds {rounds} checksum {:016x}",
        cause.name,
        random::mix(sum)
    );
}
