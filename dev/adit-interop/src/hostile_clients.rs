//! Clients that misbehave, and observations of how a server reacts.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use socket2::{Domain, Socket, Type};

use crate::traffic::connect_directly;

/// The way in which the bytes of a probe are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// In one write.
    OneWrite,
    /// Each byte in a segment of its own.
    ByteByByte,
}

/// The action of a probe after its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterWrite {
    /// Waits with the stream open.
    Hold,
    /// Ends its direction and waits.
    HalfClose,
    /// Closes the stream, and sees nothing more.
    Close,
}

/// The reaction that a probe sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// No reaction while the probe waited.
    Silence,
    /// An end of stream.
    End,
    /// A reset.
    Reset,
    /// An answer of this many bytes.
    Answer(usize),
}

/// Sends `bytes` to `addr` and watches the reaction for `timeout`.
pub fn probe_server(
    addr: SocketAddr,
    bytes: &[u8],
    mode: WriteMode,
    after_write: AfterWrite,
    timeout: Duration,
) -> Result<Reaction> {
    let mut stream = connect_directly(addr)?;
    let sent = match mode {
        WriteMode::OneWrite => stream.write_all(bytes),
        WriteMode::ByteByByte => bytes.iter().try_for_each(|byte| {
            sleep(Duration::from_micros(300));
            stream.write_all(&[*byte])
        }),
    };
    if sent.is_err() {
        return Ok(Reaction::Reset);
    }
    if after_write == AfterWrite::HalfClose && stream.shutdown(Shutdown::Write).is_err() {
        return Ok(Reaction::Reset);
    }
    if after_write == AfterWrite::Close {
        return Ok(Reaction::Silence);
    }
    watch_reaction(&mut stream, timeout)
}

/// Watches what the server sends within `timeout`.
pub fn watch_reaction(stream: &mut TcpStream, timeout: Duration) -> Result<Reaction> {
    stream.set_read_timeout(Some(timeout))?;
    let mut buf = [0; 4096];
    match stream.read(&mut buf) {
        Ok(0) => Ok(Reaction::End),
        Ok(n) => Ok(Reaction::Answer(n)),
        Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(Reaction::Silence)
        }
        Err(_) => Ok(Reaction::Reset),
    }
}

/// Returns the time until the server ends or resets a stream on which nothing is sent; `None` if
/// the stream outlives `timeout`.
pub fn time_to_end(stream: &mut TcpStream, timeout: Duration) -> Result<Option<Duration>> {
    let start = Instant::now();
    loop {
        let left = timeout.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(None);
        }
        match watch_reaction(stream, left)? {
            Reaction::End | Reaction::Reset => return Ok(Some(start.elapsed())),
            Reaction::Silence => return Ok(None),
            Reaction::Answer(_) => {}
        }
    }
}

/// Opens `count` connections and keeps them without sending a byte. Connections that the server
/// does not accept immediately stay in its queue, so this function never waits long.
#[must_use]
pub fn open_idle_connections(addr: SocketAddr, count: usize) -> Vec<TcpStream> {
    let limit = Duration::from_secs(1);
    (0..count)
        .filter_map(|_| TcpStream::connect_timeout(&addr, limit).ok())
        .collect()
}

/// Opens idle connections from the addresses `sources` of this machine in turn.
pub fn open_idle_connections_from(
    sources: &[Ipv4Addr],
    addr: SocketAddr,
    count: usize,
) -> Result<Vec<TcpStream>> {
    let limit = Duration::from_secs(1);
    let mut connections = Vec::with_capacity(count);
    for source in sources.iter().cycle().take(count) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((*source, 0)).into())?;
        if socket.connect_timeout(&addr.into(), limit).is_ok() {
            connections.push(socket.into());
        }
    }
    Ok(connections)
}

/// Returns the reaction that each of these connections has seen so far.
pub fn read_reactions(connections: &mut [TcpStream]) -> Result<Vec<Reaction>> {
    connections
        .iter_mut()
        .map(|stream| {
            stream.set_nonblocking(true)?;
            let mut buf = [0; 64];
            Ok(match stream.read(&mut buf) {
                Ok(0) => Reaction::End,
                Ok(n) => Reaction::Answer(n),
                Err(why) if why.kind() == ErrorKind::WouldBlock => Reaction::Silence,
                Err(_) => Reaction::Reset,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BytePattern;
    use crate::origin::OriginServer;
    use crate::shadowsocks::{AES_128, BLAKE3_AES_128, ShadowsocksPeer};

    const SHORT: Duration = Duration::from_millis(400);

    #[test]
    fn reactions_are_told_apart() {
        let origin = OriginServer::start().unwrap();
        for (line, wanted) in [
            ("LATE 1 1\n", Reaction::Silence),
            ("PUT 0\n", Reaction::Answer(17)),
            ("nothing\n", Reaction::End),
            ("RESET\n", Reaction::Reset),
        ] {
            let bytes = line.as_bytes();
            let seen = probe_server(
                origin.addr(),
                bytes,
                WriteMode::ByteByByte,
                AfterWrite::Hold,
                SHORT,
            )
            .unwrap();
            assert_eq!(seen, wanted, "{line}");
        }
        let line = b"LATE 0 1\n";
        let seen = probe_server(
            origin.addr(),
            line,
            WriteMode::OneWrite,
            AfterWrite::HalfClose,
            SHORT,
        )
        .unwrap();
        assert!(matches!(seen, Reaction::Answer(_)));
    }

    /// Known from other measurements: sing-box resets with the 2022 edition, libev keeps silent.
    #[test]
    fn known_peers_react_as_known() {
        let garbage = BytePattern::new(5).next_bytes(200);
        for (peer, method, wanted) in [
            (ShadowsocksPeer::SingBox, BLAKE3_AES_128, Reaction::Reset),
            (ShadowsocksPeer::Libev, AES_128, Reaction::Silence),
        ] {
            let server = peer.start_server(method).unwrap();
            let seen = probe_server(
                server.addr(),
                &garbage,
                WriteMode::OneWrite,
                AfterWrite::Hold,
                SHORT,
            );
            assert_eq!(seen.unwrap(), wanted, "{peer:?}");
        }
    }
}
