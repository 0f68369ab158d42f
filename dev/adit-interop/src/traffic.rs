//! Test traffic through a tunnel to an [`OriginServer`](crate::origin::OriginServer), and its checks.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::TEST_TIMEOUT;
use crate::test_pattern::{BytePattern, Checksum};

/// Length of the long transfers, in bytes: enough to fill every buffer on the way many times.
pub const LONG_LEN: usize = 10 * 1024 * 1024;

/// The behaviour of a tunnel when one direction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseBehavior {
    /// Each direction ends separately, as in TCP: the half-close check runs.
    Independent,
    /// Both directions close when one ends: a half close cannot pass.
    OnEitherEnd,
    /// Both directions close when the client ends; the end of the server's side does not pass.
    OnClientEnd,
    /// Both directions close when the server's side ends; the end of the client does not pass.
    OnServerEnd,
}

impl CloseBehavior {
    /// Returns the combined behaviour of two tunnels, one after the other.
    ///
    /// [`OnClientEnd`](Self::OnClientEnd) and [`OnServerEnd`](Self::OnServerEnd) together would leave
    /// nothing: no tested path combines them.
    #[must_use]
    pub fn combine_with(self, other: Self) -> Self {
        [Self::OnClientEnd, Self::OnServerEnd, Self::OnEitherEnd]
            .into_iter()
            .find(|ends| [self, other].contains(ends))
            .unwrap_or(Self::Independent)
    }

    /// Ends the local direction; the remote end must follow if the tunnel passes it on.
    fn end_local(self, stream: &mut TcpStream) -> Result<()> {
        stream.shutdown(Shutdown::Write)?;
        match self {
            Self::Independent | Self::OnEitherEnd | Self::OnClientEnd => expect_end(stream),
            Self::OnServerEnd => Ok(()),
        }
    }

    /// Expects the local end after the origin has ended its direction, if the tunnel passes that
    /// on.
    fn expect_remote_end(self, stream: &mut TcpStream) -> Result<()> {
        match self {
            Self::Independent | Self::OnEitherEnd | Self::OnServerEnd => expect_end(stream),
            Self::OnClientEnd => Ok(()),
        }
    }
}

/// Runs every check of a stream: one byte, 10 MB up and down, both directions at the same time,
/// half close.
///
/// `open` returns a new stream to the origin each time.
pub fn check_streams(ends: CloseBehavior, open: impl Fn() -> Result<TcpStream>) -> Result<()> {
    check_one_byte_with(open()?, ends).context("one byte")?;
    upload_with(open()?, LONG_LEN, ends).context("10 MB up")?;
    download_with(open()?, LONG_LEN, ends).context("10 MB down")?;
    transfer_both_ways_with(open()?, LONG_LEN / 4, ends)
        .context("both directions at the same time")?;
    match ends {
        CloseBehavior::Independent => {
            check_half_close(open()?, LONG_LEN / 10).context("half close")
        }
        CloseBehavior::OnEitherEnd | CloseBehavior::OnClientEnd | CloseBehavior::OnServerEnd => {
            Ok(())
        }
    }
}

/// Opens a stream directly to `addr`, with deadlines, for the entry of a fixed forwarder.
pub fn connect_directly(addr: SocketAddr) -> Result<TcpStream> {
    let stream =
        TcpStream::connect_timeout(&addr, TEST_TIMEOUT).with_context(|| addr.to_string())?;
    stream.set_read_timeout(Some(TEST_TIMEOUT))?;
    stream.set_write_timeout(Some(TEST_TIMEOUT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Checks that one byte comes back, then another: the tunnel does not wait for more data.
pub fn check_one_byte(stream: TcpStream) -> Result<()> {
    check_one_byte_with(stream, CloseBehavior::Independent)
}

fn check_one_byte_with(mut stream: TcpStream, ends: CloseBehavior) -> Result<()> {
    stream.write_all(b"ECHO\n")?;
    for byte in [b"x", b"y"] {
        stream.write_all(byte)?;
        let mut back = [0];
        stream.read_exact(&mut back)?;
        ensure!(&back == byte, "sent {byte:?}, got {back:?}");
    }
    ends.end_local(&mut stream)
}

/// Sends `len` bytes to the origin.
pub fn upload(stream: TcpStream, len: usize) -> Result<()> {
    upload_with(stream, len, CloseBehavior::Independent)
}

/// Receives `len` bytes from the origin, then its end of stream.
pub fn download(stream: TcpStream, len: usize) -> Result<()> {
    download_with(stream, len, CloseBehavior::Independent)
}

fn upload_with(mut stream: TcpStream, len: usize, ends: CloseBehavior) -> Result<()> {
    stream.write_all(format!("PUT {len}\n").as_bytes())?;
    let sent = send_pattern(&mut stream, len, 11)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let wanted = format!("{:016x}", sent.0);
    ensure!(
        line.trim() == wanted,
        "the origin received other bytes: {line:?}, not {wanted}"
    );
    ends.expect_remote_end(reader.get_mut())
}

fn download_with(mut stream: TcpStream, len: usize, ends: CloseBehavior) -> Result<()> {
    stream.write_all(format!("GET {len} 12\n").as_bytes())?;
    receive_pattern(&mut stream, len, 12)?;
    ends.expect_remote_end(&mut stream)
}

/// Transfers `len` bytes in each direction at the same time: neither direction starves the other.
pub fn transfer_both_ways(stream: TcpStream, len: usize) -> Result<()> {
    transfer_both_ways_with(stream, len, CloseBehavior::Independent)
}

fn transfer_both_ways_with(mut stream: TcpStream, len: usize, ends: CloseBehavior) -> Result<()> {
    stream.write_all(b"ECHO\n")?;
    let mut writer = stream.try_clone()?;
    let sender = thread::spawn(move || -> Result<()> {
        send_pattern(&mut writer, len, 13)?;
        Ok(())
    });
    receive_pattern(&mut stream, len, 13)?;
    sender
        .join()
        .map_err(|_| anyhow::anyhow!("the sending thread panicked"))??;
    ends.end_local(&mut stream)
}

/// Checks a half close: the origin answers only after the client's end of stream, so a tunnel that
/// closes both directions at the first end fails.
pub fn check_half_close(mut stream: TcpStream, len: usize) -> Result<()> {
    stream.write_all(format!("LATE {len} 14\n").as_bytes())?;
    let sent = send_pattern(&mut stream, len, 15)?;
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
    receive_pattern(&mut stream, len, 14)?;
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

fn send_pattern(to: &mut TcpStream, len: usize, seed: u64) -> Result<Checksum> {
    let (mut pattern, mut sum, mut left) = (BytePattern::new(seed), Checksum::EMPTY, len);
    while left > 0 {
        let bytes = pattern.next_bytes(left.min(CHUNK));
        to.write_all(&bytes)
            .with_context(|| format!("cannot send, with {left} bytes left"))?;
        sum = sum.extend_with(&bytes);
        left -= bytes.len();
    }
    Ok(sum)
}

fn receive_pattern(from: &mut TcpStream, len: usize, seed: u64) -> Result<()> {
    let (mut pattern, mut left) = (BytePattern::new(seed), len);
    let mut buf = vec![0; CHUNK];
    while left > 0 {
        let wanted = pattern.next_bytes(left.min(CHUNK));
        let got = &mut buf[..wanted.len()];
        from.read_exact(got)
            .with_context(|| format!("cannot receive, with {left} bytes left"))?;
        ensure!(got == wanted, "wrong bytes with {left} left");
        left -= wanted.len();
    }
    Ok(())
}

/// Datagrams to one origin and back.
pub trait DatagramLink {
    /// Sends a datagram.
    fn send(&self, data: &[u8]) -> Result<()>;
    /// Receives a datagram from the origin. Fails after the socket's time-out, or if it is from
    /// another source.
    fn recv(&self) -> Result<Vec<u8>>;
}

/// A socket that sends to, and receives from, the entry of a fixed forwarder.
#[derive(Debug)]
pub struct ForwarderEntry(UdpSocket);

impl ForwarderEntry {
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
        socket.set_read_timeout(Some(TEST_TIMEOUT))?;
        Ok(Self(socket))
    }

    /// Returns the next datagram, if it arrives within `timeout`.
    pub fn recv_within(&self, timeout: Duration) -> Result<Vec<u8>> {
        self.0.set_read_timeout(Some(timeout))?;
        let back = self.recv();
        self.0.set_read_timeout(Some(TEST_TIMEOUT))?;
        back
    }
}

impl DatagramLink for ForwarderEntry {
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
pub fn check_datagrams(link: &dyn DatagramLink) -> Result<()> {
    for (seed, len) in [(1, 1), (2, 512), (3, 1390)] {
        let data = BytePattern::new(seed).next_bytes(len);
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
            .map(|n| BytePattern::new(100 + burst * 10 + n).next_bytes(200))
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
    use crate::origin::OriginServer;

    #[test]
    fn the_checks_pass_without_a_tunnel() {
        for origin in [
            OriginServer::start().unwrap(),
            OriginServer::start_v6().unwrap(),
        ] {
            check_streams(CloseBehavior::Independent, || {
                connect_directly(origin.addr())
            })
            .unwrap();
            check_datagrams(&ForwarderEntry::open(origin.addr()).unwrap()).unwrap();
            assert_eq!(origin.connection_count(), 5);
        }
    }

    #[test]
    fn a_tunnel_that_closes_too_early_fails() {
        let origin = OriginServer::start().unwrap();
        let tap =
            crate::recording_relay::RecordingRelay::start_closing_both(origin.addr()).unwrap();
        assert!(check_half_close(connect_directly(tap.addr()).unwrap(), 100_000).is_err());
    }

    #[test]
    fn lost_datagrams_fail() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let entry = ForwarderEntry::open(silent.local_addr().unwrap()).unwrap();
        entry
            .0
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        assert!(check_datagrams(&entry).is_err());
    }
}
