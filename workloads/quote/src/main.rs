//! The published xquo 0.2.3 as a library, with the one argument that the measurement varies: the number of workers.

mod allocator;

use std::io;
use std::process::ExitCode;

use xquo::cli::{XQuo, XQuoArgs, XQuoOutDelimiter};

fn main() -> ExitCode {
    let workers = std::env::args().nth(1).and_then(|workers| workers.parse().ok());
    let Some(workers) = workers else {
        eprintln!("usage: published-xquo WORKERS < RECORDS");
        return ExitCode::from(2);
    };
    let quoter = XQuo::new(XQuoArgs {
        no_escape: false,
        out_delimiter: XQuoOutDelimiter::Lf,
        workers,
        bulk_lines: 100,
        input_from_tty: false,
    });
    match quoter.quote(io::stdin(), io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("published-xquo: {error}");
            ExitCode::FAILURE
        }
    }
}
