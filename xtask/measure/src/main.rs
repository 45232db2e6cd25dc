//! The chores that measure, run as `cargo xtask CHORE`.
//!
//! It relies on the lab's engine for every run that is timed. What each chore is for stands in
//! `cargo xtask help`.

mod bench;
mod causes;
mod duel;
mod judge;
mod layout;
mod misuse;
mod peers;
mod profile;
mod rust;
mod scale;

use std::process::ExitCode;

use xtask::root;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["bench", options @ ..] => root().and_then(|root| bench::run(root, options)),
        ["causes", options @ ..] => root().and_then(|root| causes::run(root, options)),
        ["duel", options @ ..] => root().and_then(|root| duel::run(root, options)),
        ["judge", options @ ..] => root().and_then(|root| judge::run(root, options)),
        ["layout", options @ ..] => root().and_then(|root| layout::run(root, options)),
        ["misuse", options @ ..] => root().and_then(|root| misuse::run(root, options)),
        ["peers", options @ ..] => peers::run(options),
        ["profile", options @ ..] => root().and_then(|root| profile::run(root, options)),
        ["rust", options @ ..] => root().and_then(|root| rust::run(root, options)),
        ["scale", options @ ..] => root().and_then(|root| scale::run(root, options)),
        _ => {
            eprintln!("xtask-measure: not a chore that measures: see `cargo xtask help`");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask-measure: {error:#}");
            ExitCode::FAILURE
        }
    }
}
