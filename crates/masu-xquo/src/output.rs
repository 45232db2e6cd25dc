//! Standard output, in large writes.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

/// The size requested for a pipe on either side.
const PIPE_BYTES: usize = 1 << 20;

/// Enlarges a pipe, so that reader and writer switch less often.
pub(crate) fn widen(pipe: BorrowedFd<'_>) {
    if fcntl_getpipe_size(pipe).is_ok_and(|size| size < PIPE_BYTES) {
        // Failure only makes it slower.
        let _ = fcntl_setpipe_size(pipe, PIPE_BYTES);
    }
}

pub(crate) fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let output = rustix::stdio::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(output, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                // The next write reports an error, if any.
                let _ = poll(&mut [PollFd::new(&output, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
