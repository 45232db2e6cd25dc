//! The published xquo 0.2.3 as a library, with the one argument that the measurement varies: the number of workers.

use std::io;
use std::process::ExitCode;

use xquo::cli::{XQuo, XQuoArgs, XQuoOutDelimiter};

#[cfg(feature = "masu")]
#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

#[cfg(feature = "jemalloc")]
#[global_allocator]
static GLOBAL: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
