//! A port that drops every SYN, as a server behind a firewall does: its queue is full and nobody
//! accepts.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Result, bail};
use socket2::{Domain, Socket, Type};

use crate::port::{free_port, loopback};

/// How long a connection is waited for that the queue still takes: it comes at once.
const SOON: Duration = Duration::from_millis(200);
/// More than a queue of the shortest kind holds.
const ENOUGH: usize = 8;

/// The port. It is closed when this is dropped.
#[derive(Debug)]
pub struct Deaf {
    addr: SocketAddr,
    _listener: Socket,
    _queue: Vec<TcpStream>,
}

impl Deaf {
    /// On 127.0.0.1.
    pub fn start() -> Result<Self> {
        let addr = loopback(free_port());
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        listener.bind(&addr.into())?;
        listener.listen(0)?;
        let mut queue = Vec::new();
        while queue.len() < ENOUGH {
            match TcpStream::connect_timeout(&addr, SOON) {
                Ok(stream) => queue.push(stream),
                Err(_) => {
                    return Ok(Self {
                        addr,
                        _listener: listener,
                        _queue: queue,
                    });
                }
            }
        }
        bail!("{addr} still takes connections after {ENOUGH}")
    }

    /// Where it is.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_in_and_nobody_is_refused() {
        let deaf = Deaf::start().unwrap();
        let tried = TcpStream::connect_timeout(&deaf.addr(), SOON).unwrap_err();
        assert_eq!(tried.kind(), std::io::ErrorKind::TimedOut);
    }
}
