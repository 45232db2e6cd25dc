//! The filter: blocks of input, quoted on several cores, written in order.
//!
//! Relies on masu-chunk for large input. The hard part is when to start threads: at the first full block, which means
//! that more may wait, and never for input that one thread keeps up with.

use std::convert::Infallible;
use std::io::{self, IsTerminal, Read};
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

use masu_chunk::{Cause, Executor};

use crate::arguments::Arguments;
use crate::exit::{self, Ending};
use crate::input::Input;
use crate::output;
use crate::quote::Quoter;

/// Bytes read at once: a block's input and output stay in a core's own cache.
const BLOCK_BYTES: usize = 128 << 10;

/// Quotes standard input to standard output.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Ending> {
    if !arguments.input_from_tty && io::stdin().is_terminal() {
        return Err(Ending::Refused(
            "standard input is a terminal: give it records, as in `find . -print0 | xquo`, \
             or type them with -t; `xquo --help` says more",
        ));
    }
    output::widen(rustix::stdio::stdin());
    output::widen(rustix::stdio::stdout());
    let delimiter = arguments.in_delimiter;
    let quoter = Quoter::new(delimiter, arguments.out_delimiter.byte(), !arguments.no_escape);
    let stream = Stream { quoter, delimiter };
    let mut input = Input::default();
    let mut last = None;
    let outcome = match stream.alone(&mut input, &mut last) {
        Ok(true) => stream.together(arguments.workers, input, &mut last),
        Ok(false) => Ok(()),
        Err(error) => Err(Ending::of_input(&error)),
    };
    // The last record may lack its delimiter and still counts.
    if last.is_some_and(|byte| byte != delimiter) {
        write(&stream.quoter.end());
    }
    outcome
}

/// The settings of every block. The last quoted byte is passed along, because it shows whether the next one begins a
/// record.
struct Stream {
    quoter: Quoter,
    delimiter: u8,
}

impl Stream {
    /// Quotes block after block on this thread while reads are short: one thread keeps up with such
    /// input, and little input is done before another could start. Returns whether there may be more.
    fn alone(&self, input: &mut Input, last: &mut Option<u8>) -> io::Result<bool> {
        let (mut block, mut quoted) = (vec![0; BLOCK_BYTES], Vec::new());
        loop {
            let count = input.read(&mut block)?;
            let Some(&ends_with) = block[..count].last() else { return Ok(false) };
            self.quote(&block[..count], *last, &mut quoted);
            write(&quoted);
            *last = Some(ends_with);
            if count == BLOCK_BYTES {
                return Ok(true);
            }
        }
    }

    /// Quotes the rest of the input on several threads.
    fn together(&self, workers: u8, input: Input, last: &mut Option<u8>) -> Result<(), Ending> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let at_once = usize::from(workers).clamp(1, cores);
        // One worker more than the number that quote at once, if there is a core for it, so that one reads and writes
        // at the same time; each worker has one block.
        let executor = Executor::new()
            .workers((at_once + 1).min(cores))
            .concurrency(at_once)
            .window(at_once + 2)
            .chunk(BLOCK_BYTES);
        let spare: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
        let unlocked = || spare.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *last;
        let outcome = executor.blocks(input).deliver(
            |block| {
                let mut quoted = unlocked().pop().unwrap_or_default();
                self.quote(&block, block.before().or(before), &mut quoted);
                Ok((quoted, block.last().copied()))
            },
            |_, (quoted, ended_with)| {
                write(&quoted);
                unlocked().push(quoted);
                *last = ended_with;
                Ok::<(), Infallible>(())
            },
        );
        match outcome.map_err(|failure| (failure.to_string(), failure.cause)) {
            Ok(_) => Ok(()),
            Err((_, Cause::Read(error))) => Err(Ending::of_input(&error)),
            Err((said, _)) => Err(Ending::Failed(said)),
        }
    }

    /// Quotes `block`, which follows the byte `before`, into `quoted`.
    fn quote(&self, block: &[u8], before: Option<u8>, quoted: &mut Vec<u8>) {
        quoted.clear();
        self.quoter.quote(block, before.is_none_or(|byte| byte == self.delimiter), quoted);
    }
}

/// Writes, or ends the program at once, because other threads may wait for input.
fn write(bytes: &[u8]) {
    if let Err(error) = output::write_all(bytes) {
        exit::now(&Ending::of_output(&error));
    }
}
