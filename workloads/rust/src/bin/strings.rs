//! Strings parsed, cloned and sorted, some lists of them kept: a program that hardly does anything but ask for memory.
//!
//! It relies on the features for the allocator (`allocator.rs`). What it is for is the cost of a heap profile
//! (`cargo xtask profile`), which grows with the requests and with the sampled blocks that live; so how many lists
//! live is its second argument.

#[path = "../allocator.rs"]
mod allocator;
#[path = "../random.rs"]
mod random;

use std::process::ExitCode;

use random::Random;

const USAGE: &str = "Usage: strings ROUNDS LISTS";

/// The exit code for arguments that are not understood.
const EXIT_USAGE: u8 = 2;

/// Lines that a round makes, and words of each.
const LINES: usize = 400;
const WORDS: usize = 8;

/// One round in so many has its list kept.
const KEPT_EVERY: usize = 4;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Option<Vec<usize>> = arguments.iter().map(|text| text.parse().ok()).collect();
    let Some([rounds, lists]) = numbers.as_deref() else {
        eprintln!("{USAGE}");
        return ExitCode::from(EXIT_USAGE);
    };
    println!("{}", work(*rounds, *lists));
    ExitCode::SUCCESS
}

/// A checksum of all rounds; at most `lists` lists live at once besides those of the round.
fn work(rounds: usize, lists: usize) -> u64 {
    let mut random = Random::new(1);
    let mut sum = 0_u64;
    let mut kept: Vec<Vec<String>> = Vec::new();
    for round in 0..rounds {
        let lines: Vec<String> = (0..LINES).map(|_| line(&mut random)).collect();
        let words = lines.iter().flat_map(|line| line.split_whitespace().map(str::to_owned));
        let words: Vec<String> = words.collect();
        let mut sorted = words.clone();
        sorted.sort();
        let moved = sorted.iter().zip(&words).filter(|(sorted, word)| sorted > word).count();
        let numbers: Vec<u64> = sorted.iter().filter_map(|word| word.parse().ok()).collect();
        sum = numbers.iter().fold(sum ^ moved as u64, |sum, number| sum.rotate_left(5) ^ number);
        if round % KEPT_EVERY == 0 {
            kept.push(sorted);
        }
        if kept.len() > lists {
            kept.remove(0);
        }
    }
    sum
}

/// Numbers of one to ten digits with a space behind each, by a string that grows.
fn line(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..WORDS {
        let shift = random.below(16);
        text.push_str(&(random.bits() >> shift).to_string());
        text.push(' ');
    }
    text
}
