//! Test traffic through a tunnel to an [`Origin`](crate::origin::Origin), and its checks.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::PATIENCE;
use crate::pattern::{Pattern, Sum};

/// Length of the long transfers, in bytes: enough to fill every buffer on the way many times.
pub const LONG: usize = 10 * 1024 * 1024;

/// The behaviour of a tunnel when one direction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Each direction ends separately, as in TCP: the half-close check runs.
    Each,
    /// Both directions close when one ends: a half close cannot pass.
    Both,
    /// Both directions close when the client ends; the end of the server's side does not pass.
    Up,
    /// Both directions close when the server's side ends; the end of the client does not pass.
    Down,
}

impl Ends {
    /// Returns the combined behaviour of two tunnels, one after the other. [`Up`](Self::Up) and
    /// [`Down`](Self::Down) together would leave nothing: no tested path combines them.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        [Self::Up, Self::Down, Self::Both]
            .into_iter()
            .find(|ends| [self, other].contains(ends))
            .unwrap_or(Self::Each)
    }

    /// Ends the local direction; the remote end must follow if the tunnel passes it on.
    fn ours(self, stream: &mut TcpStream) -> Result<()> {
        stream.shutdown(Shutdown::Write)?;
        match self {
            Self::Each | Self::Both | Self::Up => expect_end(stream),
            Self::Down => Ok(()),
        }
    }

    /// Expects the local end after the origin has ended its direction, if the tunnel passes that
    /// on.
    fn theirs(self, stream: &mut TcpStream) -> Result<()> {
        match self {
            Self::Each | Self::Both | Self::Down => expect_end(stream),
            Self::Up => Ok(()),
        }
    }
}

/// Runs every check of a stream: one byte, 10 MB up and down, both directions at the same time,
/// half close.
///
/// `open` returns a new stream to the origin each time.
pub fn streams(ends: Ends, open: impl Fn() -> Result<TcpStream>) -> Result<()> {
    bytes(open()?, ends).context("one byte")?;
    upward(open()?, LONG, ends).context("10 MB up")?;
    downward(open()?, LONG, ends).context("10 MB down")?;
    both_ways(open()?, LONG / 4, ends).context("both directions at the same time")?;
    match ends {
        Ends::Each => half_close(open()?, LONG / 10).context("half close"),
        Ends::Both | Ends::Up | Ends::Down => Ok(()),
    }
}

/// Opens a stream directly to `addr`, with deadlines, for the entry of a fixed forwarder.
pub fn dial(addr: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&addr, PATIENCE).with_context(|| addr.to_string())?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Checks that one byte comes back, then another: the tunnel does not wait for more data.
pub fn one_byte(stream: TcpStream) -> Result<()> {
    bytes(stream, Ends::Each)
}

fn bytes(mut stream: TcpStream, ends: Ends) -> Result<()> {
    stream.write_all(b"ECHO\n")?;
    for byte in [b"x", b"y"] {
        stream.write_all(byte)?;
        let mut back = [0];
        stream.read_exact(&mut back)?;
        ensure!(&back == byte, "sent {byte:?}, got {back:?}");
    }
    ends.ours(&mut stream)
}

/// Sends `len` bytes to the origin.
pub fn up(stream: TcpStream, len: usize) -> Result<()> {
    upward(stream, len, Ends::Each)
}

/// Receives `len` bytes from the origin, then its end of stream.
pub fn down(stream: TcpStream, len: usize) -> Result<()> {
    downward(stream, len, Ends::Each)
}

fn upward(mut stream: TcpStream, len: usize, ends: Ends) -> Result<()> {
    stream.write_all(format!("PUT {len}\n").as_bytes())?;
    let sent = send(&mut stream, len, 11)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let wanted = format!("{:016x}", sent.0);
    ensure!(
        line.trim() == wanted,
        "the origin received other bytes: {line:?}, not {wanted}"
    );
    ends.theirs(reader.get_mut())
}

fn downward(mut stream: TcpStream, len: usize, ends: Ends) -> Result<()> {
    stream.write_all(format!("GET {len} 12\n").as_bytes())?;
    receive(&mut stream, len, 12)?;
    ends.theirs(&mut stream)
}

/// Transfers `len` bytes in each direction at the same time: neither direction starves the other.
pub fn both(stream: TcpStream, len: usize) -> Result<()> {
    both_ways(stream, len, Ends::Each)
}

fn both_ways(mut stream: TcpStream, len: usize, ends: Ends) -> Result<()> {
    stream.write_all(b"ECHO\n")?;
    let mut writer = stream.try_clone()?;
    let sender = thread::spawn(move || -> Result<()> {
        send(&mut writer, len, 13)?;
        Ok(())
    });
    receive(&mut stream, len, 13)?;
    sender
        .join()
        .map_err(|_| anyhow::anyhow!("the sending thread panicked"))??;
    ends.ours(&mut stream)
}

/// Checks a half close: the origin answers only after the client's end of stream, so a tunnel that
/// closes both directions at the first end fails.
pub fn half_close(mut stream: TcpStream, len: usize) -> Result<()> {
    stream.write_all(format!("LATE {len} 14\n").as_bytes())?;
    let sent = send(&mut stream, len, 15)?;
    stream.shutdown(Shutdown::Write)?;
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        stream
            .read_exact(&mut byte)
            .context("the origin did not answer after the half close")?;
        line.extend_from_slice(&byte);
    }
    let (line, wanted) = (
        String::from_utf8_lossy(&line),
        format!("{len} {:016x}", sent.0),
    );
    ensure!(
        line.trim() == wanted,
        "the origin received {line:?}, not {wanted:?}"
    );
    receive(&mut stream, len, 14)?;
    expect_end(&mut stream)
}

/// Checks that the stream ends now, without a reset.
pub fn expect_end(stream: &mut TcpStream) -> Result<()> {
    let mut rest = [0; 64];
    let n = stream
        .read(&mut rest)
        .context("cannot wait for the end of the stream")?;
    ensure!(n == 0, "{n} bytes more than expected");
    Ok(())
}

const CHUNK: usize = 32 * 1024;

fn send(to: &mut TcpStream, len: usize, seed: u64) -> Result<Sum> {
    let (mut pattern, mut sum, mut left) = (Pattern::new(seed), Sum::EMPTY, len);
    while left > 0 {
        let bytes = pattern.take(left.min(CHUNK));
        to.write_all(&bytes)
            .with_context(|| format!("cannot send, with {left} bytes left"))?;
        sum = sum.with(&bytes);
        left -= bytes.len();
    }
    Ok(sum)
}

fn receive(from: &mut TcpStream, len: usize, seed: u64) -> Result<()> {
    let (mut pattern, mut left) = (Pattern::new(seed), len);
    let mut buf = vec![0; CHUNK];
    while left > 0 {
        let wanted = pattern.take(left.min(CHUNK));
        let got = &mut buf[..wanted.len()];
        from.read_exact(got)
            .with_context(|| format!("cannot receive, with {left} bytes left"))?;
        ensure!(got == wanted, "wrong bytes with {left} left");
        left -= wanted.len();
    }
    Ok(())
}

/// Datagrams to one origin and back.
pub trait Datagrams {
    /// Sends a datagram.
    fn send(&self, data: &[u8]) -> Result<()>;
    /// Receives a datagram from the origin. Fails after the socket's time-out, or if it is from
    /// another source.
    fn recv(&self) -> Result<Vec<u8>>;
}

/// A socket that sends to, and receives from, the entry of a fixed forwarder.
#[derive(Debug)]
pub struct Entry(UdpSocket);

impl Entry {
    /// Opens a new socket, and therefore a new session of the tunnel.
    pub fn open(addr: SocketAddr) -> Result<Self> {
        let any = if addr.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        let socket = UdpSocket::bind(any)?;
        // A connected socket drops datagrams from any other address.
        socket.connect(addr)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(socket))
    }

    /// Returns the next datagram, if it arrives within `patience`.
    pub fn recv_within(&self, patience: Duration) -> Result<Vec<u8>> {
        self.0.set_read_timeout(Some(patience))?;
        let back = self.recv();
        self.0.set_read_timeout(Some(PATIENCE))?;
        back
    }
}

impl Datagrams for Entry {
    fn send(&self, data: &[u8]) -> Result<()> {
        self.0.send(data)?;
        Ok(())
    }

    fn recv(&self) -> Result<Vec<u8>> {
        let mut buf = vec![0; 65_536];
        let len = self.0.recv(&mut buf).map_err(|why| match why.kind() {
            ErrorKind::WouldBlock => anyhow::anyhow!("no datagram came back"),
            _ => why.into(),
        })?;
        buf.truncate(len);
        Ok(buf)
    }
}

/// Runs every check of datagrams: 1, 512 and 1390 bytes, then 100 datagrams, each of which must
/// come back once.
pub fn datagrams(link: &dyn Datagrams) -> Result<()> {
    for (seed, len) in [(1, 1), (2, 512), (3, 1390)] {
        let data = Pattern::new(seed).take(len);
        link.send(&data)?;
        let back = link.recv().with_context(|| format!("{len} bytes"))?;
        ensure!(
            back == data,
            "{len} bytes came back as {} different ones",
            back.len()
        );
    }
    // In bursts that fit any receive buffer, since loopback drops the rest.
    for burst in 0..10u64 {
        let mut open: Vec<Vec<u8>> = (0..10)
            .map(|n| Pattern::new(100 + burst * 10 + n).take(200))
            .collect();
        for data in &open {
            link.send(data)?;
        }
        while !open.is_empty() {
            let back = link
                .recv()
                .with_context(|| format!("burst {burst}: {} missing", open.len()))?;
            let place = open.iter().position(|data| *data == back);
            open.swap_remove(place.context("a datagram was not sent, or came back twice")?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Origin;

    #[test]
    fn the_checks_pass_without_a_tunnel() {
        for origin in [Origin::start().unwrap(), Origin::start_v6().unwrap()] {
            streams(Ends::Each, || dial(origin.addr())).unwrap();
            datagrams(&Entry::open(origin.addr()).unwrap()).unwrap();
            assert_eq!(origin.connections(), 5);
        }
    }

    #[test]
    fn a_tunnel_that_closes_too_early_fails() {
        let origin = Origin::start().unwrap();
        let tap = crate::tap::Tap::closing_at_first_end(origin.addr()).unwrap();
        assert!(half_close(dial(tap.addr()).unwrap(), 100_000).is_err());
    }

    #[test]
    fn lost_datagrams_fail() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let entry = Entry::open(silent.local_addr().unwrap()).unwrap();
        entry
            .0
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        assert!(datagrams(&entry).is_err());
    }
}
