//! The connections of a cluster: each process connects to those before it and accepts those after
//! it, within a time limit.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::ClusterError;

/// The first bytes of a connection, by which a stranger is rejected.
const GREETING: &[u8; 8] = b"masu-chk";

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// A connection to each process but this one.
pub(super) fn connect(
    addresses: &[String],
    process: usize,
    patience: Duration,
) -> Result<Vec<Option<TcpStream>>, ClusterError> {
    let deadline = Instant::now() + patience;
    let at = |address: &str| {
        let address = address.to_owned();
        move |error| ClusterError::Connect { address, error }
    };
    let Some(own) = addresses.get(process) else {
        let error = io::Error::other(format!("no process {process} of {}", addresses.len()));
        return Err(at("the list of addresses")(error));
    };
    let listener = TcpListener::bind(own).map_err(at(own))?;
    let mut sockets: Vec<Option<TcpStream>> = addresses.iter().map(|_| None).collect();
    for (other, address) in addresses.iter().enumerate().take(process) {
        sockets[other] = Some(call(address, process, deadline).map_err(at(address))?);
    }
    listener.set_nonblocking(true).map_err(at(own))?;
    while let Some(missing) = (process + 1..addresses.len()).find(|&it| sockets[it].is_none()) {
        match listener.accept() {
            Ok((socket, _)) => {
                if let Ok(caller) = greeted(&socket, deadline)
                    && caller > process
                    && let Some(slot @ None) = sockets.get_mut(caller)
                {
                    *slot = Some(socket);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let absent = "this process did not come in time";
                pause(deadline, absent).map_err(at(&addresses[missing]))?;
            }
            Err(error) => return Err(at(own)(error)),
        }
    }
    Ok(sockets)
}

fn call(address: &str, process: usize, deadline: Instant) -> io::Result<TcpStream> {
    loop {
        match TcpStream::connect(address) {
            Ok(mut socket) => {
                socket.set_nodelay(true)?;
                socket.write_all(GREETING)?;
                socket.write_all(&(process as u64).to_le_bytes())?;
                return Ok(socket);
            }
            Err(error) => pause(deadline, &error.to_string())?,
        }
    }
}

fn greeted(mut socket: &TcpStream, deadline: Instant) -> io::Result<usize> {
    let left = deadline.saturating_duration_since(Instant::now()).max(PAUSE);
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(left))?;
    let (mut greeting, mut number) = ([0; 8], [0; 8]);
    socket.read_exact(&mut greeting)?;
    socket.read_exact(&mut number)?;
    socket.set_read_timeout(None)?;
    socket.set_nodelay(true)?;
    if &greeting != GREETING {
        return Err(io::ErrorKind::InvalidData.into());
    }
    usize::try_from(u64::from_le_bytes(number)).map_err(io::Error::other)
}

fn pause(deadline: Instant, why: &str) -> io::Result<()> {
    if Instant::now() >= deadline {
        return Err(io::Error::new(io::ErrorKind::TimedOut, why.to_owned()));
    }
    thread::sleep(PAUSE);
    Ok(())
}
