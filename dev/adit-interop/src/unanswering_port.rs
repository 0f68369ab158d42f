//! A port that drops every SYN, like a server behind a firewall: its accept queue is full, and
//! nothing accepts.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Result, bail};
use socket2::{Domain, Socket, Type};

use crate::ports::{free_port, loopback_addr};

/// Time to wait for a connection that the queue still takes: it is made immediately.
const CONNECT_WAIT: Duration = Duration::from_millis(200);
/// Number of connections that exceeds the shortest possible queue.
const MAX_CONNECTIONS: usize = 8;

/// An unanswering port; dropping it closes it.
#[derive(Debug)]
pub struct UnansweringPort {
    addr: SocketAddr,
    _listener: Socket,
    _queue: Vec<TcpStream>,
}

impl UnansweringPort {
    /// Opens the port on 127.0.0.1.
    pub fn start() -> Result<Self> {
        let addr = loopback_addr(free_port());
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        listener.bind(&addr.into())?;
        listener.listen(0)?;
        let mut queue = Vec::new();
        while queue.len() < MAX_CONNECTIONS {
            match TcpStream::connect_timeout(&addr, CONNECT_WAIT) {
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
        bail!("{addr} still accepts connections after {MAX_CONNECTIONS}")
    }

    /// Returns its address.
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
        let deaf = UnansweringPort::start().unwrap();
        let tried = TcpStream::connect_timeout(&deaf.addr(), CONNECT_WAIT).unwrap_err();
        assert_eq!(tried.kind(), std::io::ErrorKind::TimedOut);
    }
}
