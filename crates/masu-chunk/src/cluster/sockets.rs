//! The connections of a cluster: each process connects to those before it and accepts those after
//! it, within a time limit.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use super::ClusterError;

/// The first bytes of a connection, by which a stranger is rejected; the caller's number follows.
const GREETING: &[u8; 8] = b"masu-chk";

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// The longest try to connect to an address, because a name may have further ones.
const TRY: Duration = Duration::from_secs(5);

/// A time limit that is never reached and can be added to any time.
const NEVER: Duration = Duration::from_secs(1 << 32);

/// A connection to each process but this one.
pub(super) fn connect(
    addresses: &[String],
    process: usize,
    patience: Duration,
) -> Result<Vec<Option<TcpStream>>, ClusterError> {
    let deadline = Instant::now() + patience.min(NEVER);
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
    // Connections whose greeting is not there yet: a stranger may keep silent.
    let mut callers = Vec::new();
    while let Some(missing) = (process + 1..addresses.len()).find(|&it| sockets[it].is_none()) {
        match listener.accept() {
            Ok((socket, _)) => callers.push(socket),
            // A caller that has gone is none.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let absent = "this process did not come in time";
                pause(deadline, absent).map_err(at(&addresses[missing]))?;
            }
            Err(error) => return Err(at(own)(error)),
        }
        for socket in std::mem::take(&mut callers) {
            match greeting(&socket) {
                Ok(None) => callers.push(socket),
                Ok(Some(caller)) if caller > process => {
                    if let Some(slot @ None) = sockets.get_mut(caller) {
                        *slot = Some(socket);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(sockets)
}

fn call(address: &str, process: usize, deadline: Instant) -> io::Result<TcpStream> {
    loop {
        match reach(address, deadline) {
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

/// Connects to one of the addresses of a name.
fn reach(address: &str, deadline: Instant) -> io::Result<TcpStream> {
    let mut failed = io::Error::other("the name has no address");
    for address in address.to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.clamp(PAUSE, TRY)) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// The number of the process that calls; `None`: it has not sent all of its greeting yet.
fn greeting(mut socket: &TcpStream) -> io::Result<Option<usize>> {
    socket.set_nonblocking(true)?;
    let mut bytes = [0; 16];
    match socket.peek(&mut bytes) {
        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(count) if count < bytes.len() => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        read => read?,
    };
    socket.set_nonblocking(false)?;
    socket.set_nodelay(true)?;
    socket.read_exact(&mut bytes)?;
    let (name, number) = bytes.split_at(GREETING.len());
    if name != GREETING {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let number = number.try_into().map(u64::from_le_bytes).map_err(io::Error::other)?;
    usize::try_from(number).map(Some).map_err(io::Error::other)
}

fn pause(deadline: Instant, why: &str) -> io::Result<()> {
    if Instant::now() >= deadline {
        return Err(io::Error::new(io::ErrorKind::TimedOut, why.to_owned()));
    }
    thread::sleep(PAUSE);
    Ok(())
}
