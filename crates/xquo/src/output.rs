//! Standard output, in large writes.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

use crate::input::PIPE_BYTES;

/// Makes a pipe on standard output hold more, so that reader and writer change places less often.
pub(crate) fn widen() {
    let output = rustix::stdio::stdout();
    if fcntl_getpipe_size(output).is_ok_and(|size| size < PIPE_BYTES) {
        // It works without, only slower.
        let _ = fcntl_setpipe_size(output, PIPE_BYTES);
    }
}

/// Writes all bytes.
///
/// # Errors
///
/// What the system says, but not that it was interrupted or that the output is non-blocking.
pub(crate) fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let output = rustix::stdio::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(output, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                // Interrupted or not, the next write tells.
                let _ = poll(&mut [PollFd::new(&output, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
