//! Proof that a library is a malloc that works: real programs run under it, watched by the lab.
//!
//! It relies on the lab's `verify`, which sees that the library is mapped and asked for memory. A request alone does
//! not show that the answer is right, so the programs check their own results and report errors by their exit status.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use masu_lab::verify::verify;
use masu_lab::{Allocator, Catalogue, Ending, Input, Limits, Stop, Workload};

/// Far more than any of the programs takes, also traced and on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Programs that allocate. The second has several threads that free blocks of other threads, and blocks of every size
/// class and beyond.
const PROGRAMS: [&[&str]; 2] = [
    &["sh", "-c", "a=1; for b in 1 2 3 4 5 6 7 8; do a=$a$a; done; test ${#a} = 256"],
    &["python3", "-c", include_str!("proof/threads.py")],
];

pub(super) fn prove(catalogue: &Catalogue, allocator: &Allocator) -> Result<String> {
    let mut served = Vec::new();
    for arguments in PROGRAMS {
        let workload = Workload::new(arguments.iter().copied(), Input::Empty)?;
        let program = arguments[0];
        let spec = allocator.name.parse().context("the catalogue's name is no variant")?;
        let variant = catalogue.resolve(&spec, &workload.program)?;
        let limits = Limits { time: Some(PATIENCE), memory_bytes: None };
        let (run, evidence) = verify(&workload, &variant, &limits.into(), &Stop::never())?;
        if run.ending != Ending::Exited(0) {
            bail!("{program} {}: {}", run.ending, run.stderr.tail.trim());
        }
        if evidence.served.is_empty() || !evidence.not_served.is_empty() {
            bail!("{program} was not served: {}", evidence.not_served.join("; "));
        }
        served.push(program);
    }
    Ok(served.join(", "))
}
