//! The filter: blocks of input, quoted on as many cores as asked for, written in order.

use std::io::{self, IsTerminal};
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

use masu_chunk::{Cause, Executor};

use crate::arguments::Arguments;
use crate::exit::{self, Ending};
use crate::input::Input;
use crate::output;
use crate::quote::Quoter;

/// Bytes read at once: input and output of a block stay in a core's own cache on their way.
const BLOCK_BYTES: usize = 128 << 10;

/// Quotes standard input to standard output.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Ending> {
    if !arguments.input_from_tty && io::stdin().is_terminal() {
        return Err(Ending::Refused(
            "standard input is a terminal: give it records, as in `find . -print0 | xquo`, \
             or type them with -t; `xquo --help` says more",
        ));
    }
    output::widen();
    let input_delimiter = arguments.in_delimiter.0;
    let quoter = Quoter::new(input_delimiter, arguments.out_delimiter.byte(), !arguments.no_escape);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let at_once = usize::from(arguments.workers).clamp(1, cores);
    // One more than quote at once, to read and write meanwhile; each has a block in its hands.
    let executor = Executor::new()
        .workers(at_once + 1)
        .concurrency(at_once)
        .window(at_once + 2)
        .chunk(BLOCK_BYTES);
    let spare: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
    let unlocked = || spare.lock().unwrap_or_else(PoisonError::into_inner);
    let mut last = None;
    let outcome = executor.blocks(Input::new()).deliver(
        |block| {
            let mut quoted = unlocked().pop().unwrap_or_default();
            quoted.clear();
            let begins = block.before().is_none_or(|before| before == input_delimiter);
            quoter.quote(&block, begins, &mut quoted);
            Ok((quoted, block.last().copied()))
        },
        |_, (quoted, ended_with)| {
            if let Err(error) = output::write_all(&quoted) {
                exit::now(&Ending::of_output(&error));
            }
            unlocked().push(quoted);
            last = ended_with;
            Ok::<(), std::convert::Infallible>(())
        },
    );
    // The last record may lack its delimiter; what was read of it is a record all the same.
    if last.is_some_and(|byte| byte != input_delimiter) {
        let end = quoter.end();
        output::write_all(&end).map_err(|error| Ending::of_output(&error))?;
    }
    match outcome {
        Ok(_) => Ok(()),
        Err(failure) => match failure.cause {
            Cause::Read(error) => Err(Ending::Failed(format!("reading standard input: {error}"))),
            _ => Err(Ending::Failed(failure.to_string())),
        },
    }
}
