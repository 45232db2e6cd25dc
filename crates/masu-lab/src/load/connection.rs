//! One connection: opened when needed, kept as long as the server keeps it, one request at a time.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::target::Target;

#[derive(Debug, Default)]
pub(super) struct Connection(Option<SendRequest<Full<Bytes>>>);

/// An answer whose status is below 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    /// The status, if it is a redirect.
    pub(super) redirect: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Refused,
    /// The connection broke, or the bytes received were no HTTP.
    Broken,
    TimedOut,
    /// An answer that says it is an error: 400 or more.
    Status(u16),
}

impl Connection {
    pub(super) async fn open(&mut self, addresses: &[SocketAddr]) -> Result<(), Failure> {
        if let Some(sender) = &mut self.0 {
            // Waits until the last answer is wholly read; fails if the server has hung up.
            if sender.ready().await.is_ok() {
                return Ok(());
            }
            self.0 = None;
        }
        let stream = TcpStream::connect(addresses).await.map_err(|_| Failure::Refused)?;
        stream.set_nodelay(true).map_err(|_| Failure::Broken)?;
        let shaken = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|_| Failure::Broken)?;
        // The connection's task ends by itself when the sender is dropped or the server hangs up.
        tokio::spawn(connection);
        self.0 = Some(sender);
        Ok(())
    }

    /// Sends the request and reads the whole answer. After a failure the connection is closed. A
    /// redirect is an answer and not followed.
    pub(super) async fn ask(&mut self, target: &Target) -> Result<Answer, Failure> {
        // The connection is taken out until the answer is there: if this future is dropped on the way (a time limit, a
        // stop), a half-read connection must not be used again.
        let mut open = std::mem::take(self);
        let answered = open.send(target).await;
        if matches!(answered, Ok(_) | Err(Failure::Status(_))) {
            *self = open;
        }
        answered
    }

    async fn send(&mut self, target: &Target) -> Result<Answer, Failure> {
        let mut again = true;
        let response = loop {
            self.open(target.addresses()).await?;
            let Some(sender) = &mut self.0 else { return Err(Failure::Broken) };
            match sender.send_request(target.request()).await {
                Ok(response) => break response,
                // The server hung up on the idle connection before anything was sent.
                Err(error) if error.is_canceled() && again => {
                    self.0 = None;
                    again = false;
                }
                Err(_) => return Err(Failure::Broken),
            }
        };
        let status = response.status().as_u16();
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            frame.map_err(|_| Failure::Broken)?;
        }
        if status >= 400 {
            return Err(Failure::Status(status));
        }
        let redirect = matches!(status, 301..=303 | 307 | 308).then_some(status);
        Ok(Answer { redirect })
    }
}
