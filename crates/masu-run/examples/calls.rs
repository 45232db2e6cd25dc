//! Counts the system calls of a command, as `strace -f -c` does, and prints them:
//!
//! ```sh
//! cargo run --release -p masu-run --example calls -- sh -c 'echo hello'
//! ```

use masu_run::calls::{self, Call};
use masu_run::execute::Conditions;
use masu_run::{Error, Input, Stop, Variant, Workload};

fn main() -> Result<(), Error> {
    let workload = Workload::new(std::env::args_os().skip(1), Input::own()?)?;
    // The program as it is.
    let variant = Variant::default();
    let stop = Stop::on_signals()?;
    let (run, calls) = calls::count(&workload, &variant, &Conditions::default(), &stop)?;
    for call in Call::ALL {
        match calls.total.of(call) {
            0 => {}
            count => println!("{count:>12} {}", call.name()),
        }
    }
    let total = calls.total;
    println!("{:>12} waits for a futex, {} wakes", total.futex_waits, total.futex_wakes);
    println!("{:>12} processes, {} threads", calls.processes, calls.threads_begun);
    for (program, reason) in &calls.privileged {
        println!("{} ran without its rights: {reason}", program.display());
    }
    println!("it {} after {:.2} s under the tracer", run.ending, run.wall_s);
    Ok(())
}
