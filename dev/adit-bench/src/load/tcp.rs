//! Transfers over streams: a number of bytes up or down, split over parallel connections.
//!
//! No side half-closes, since not every rival passes that on: the client announces how much it will
//! send, and the origin answers with its verdict when it has received all of it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::content::{ByteContent, CHUNK, CheckMode};
use super::origin::wait_end;
use super::{LoadDirection, OriginRoute, latency};

const VERDICT_OK: u8 = b'+';
const VERDICT_MISMATCH: u8 = b'-';

/// The kind of a request; the discriminant is sent over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum StreamRequest {
    /// This many bytes to the origin, and its verdict back.
    Up = b'U',
    /// This many bytes from the origin.
    Down = b'D',
    /// Everything back immediately, until the client ends.
    Echo = b'E',
    /// Bytes until the client ends: at this rate per second, or as fast as possible if it is 0.
    Flow = b'F',
    /// This many bytes, then the end.
    Download = b'G',
}

/// The request of a client: the first bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestHeader {
    request: StreamRequest,
    check: CheckMode,
    number: u64,
}

impl RequestHeader {
    const LEN: usize = 10;

    /// Creates a request with its number, of which no byte is compared.
    pub(super) const fn new(request: StreamRequest, number: u64) -> Self {
        let check = CheckMode::Sampled;
        Self {
            request,
            check,
            number,
        }
    }

    pub(super) fn encode(self) -> [u8; Self::LEN] {
        let mut wire = [0; Self::LEN];
        wire[..2].copy_from_slice(&[self.request as u8, self.check as u8]);
        wire[2..].copy_from_slice(&self.number.to_be_bytes());
        wire
    }

    fn decode(wire: [u8; Self::LEN]) -> Option<Self> {
        use StreamRequest::{Down, Download, Echo, Flow, Up};
        let [what, check, number @ ..] = wire;
        let known = [Up, Down, Echo, Flow, Download].into_iter();
        let checks = [CheckMode::Whole, CheckMode::Sampled].into_iter();
        Some(Self {
            request: known.into_iter().find(|one| *one as u8 == what)?,
            check: checks.into_iter().find(|one| *one as u8 == check)?,
            number: u64::from_be_bytes(number),
        })
    }
}

/// The result of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransferResult {
    /// Payload of all connections together, in bytes.
    pub(crate) bytes: u64,
    /// Time from the first byte of payload to the last one checked.
    pub(crate) elapsed: Duration,
}

/// Transfers `bytes`, except for a remainder that does not divide, split over `streams`
/// connections. These are open before the clock starts.
pub(crate) fn transfer(
    way: OriginRoute,
    direction: LoadDirection,
    bytes: u64,
    streams: u32,
    check: CheckMode,
) -> Result<TransferResult> {
    let each = RequestHeader {
        request: match direction {
            LoadDirection::Up => StreamRequest::Up,
            LoadDirection::Down => StreamRequest::Down,
        },
        check,
        number: bytes / u64::from(streams.max(1)),
    };
    let dialled: Result<Vec<TcpStream>> = (0..streams).map(|_| way.dial()).collect();
    let dialled = dialled.context("cannot connect to the origin")?;
    let barrier = Barrier::new(dialled.len() + 1);
    thread::scope(|scope| {
        let ends: Vec<_> = dialled
            .into_iter()
            .map(|stream| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    run_client(stream, each)
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        for end in ends {
            end.join()
                .map_err(|_| anyhow!("a stream's thread panicked"))??;
        }
        let elapsed = start.elapsed();
        Ok(TransferResult {
            bytes: each.number * u64::from(streams),
            elapsed,
        })
    })
}

/// Runs the client's side of one connection.
fn run_client(mut stream: TcpStream, header: RequestHeader) -> Result<()> {
    stream.write_all(&header.encode())?;
    if header.request == StreamRequest::Up {
        send_content(&mut stream, header.number).context("sending")?;
        let mut verdict = [0];
        let told = stream.read_exact(&mut verdict);
        told.context("cannot read the origin's verdict")?;
        ensure!(verdict == [VERDICT_OK], "the origin received other bytes");
    } else {
        let good =
            receive_content(&mut stream, header.number, header.check).context("receiving")?;
        ensure!(good, "the client received other bytes");
    }
    Ok(())
}

/// Runs the origin's side of a connection.
pub(super) fn serve_stream(mut stream: TcpStream) -> io::Result<()> {
    let mut wire = [0; RequestHeader::LEN];
    stream.read_exact(&mut wire)?;
    let header = RequestHeader::decode(wire).ok_or(ErrorKind::InvalidData)?;
    match header.request {
        StreamRequest::Up => {
            let good = receive_content(&mut stream, header.number, header.check)?;
            stream.write_all(&[if good { VERDICT_OK } else { VERDICT_MISMATCH }])?;
            wait_end(stream)
        }
        StreamRequest::Down => {
            send_content(&mut stream, header.number)?;
            wait_end(stream)
        }
        StreamRequest::Echo => latency::serve_echo(stream),
        StreamRequest::Flow => latency::serve_flow(stream, header.number),
        StreamRequest::Download => {
            send_content(&mut stream, header.number)?;
            stream.shutdown(Shutdown::Write)
        }
    }
}

pub(super) fn send_content(stream: &mut TcpStream, bytes: u64) -> io::Result<()> {
    let mut sent = 0;
    while sent < bytes {
        let len = usize::try_from(bytes - sent).unwrap_or(CHUNK).min(CHUNK);
        let n = stream.write(ByteContent::get().slice_at(sent, len))?;
        if n == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        sent += n as u64;
    }
    Ok(())
}

/// Receives exactly this many bytes. Returns true if they were the right ones.
fn receive_content(stream: &mut TcpStream, bytes: u64, check: CheckMode) -> io::Result<bool> {
    let mut buf = vec![0; CHUNK];
    let (mut got, mut good) = (0, true);
    while got < bytes {
        let len = usize::try_from(bytes - got).unwrap_or(CHUNK).min(CHUNK);
        let n = stream.read(buf.get_mut(..len).unwrap_or_default())?;
        if n == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        good &= ByteContent::get().matches(got, buf.get(..n).unwrap_or_default(), check);
        got += n as u64;
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::origin::{LoadOrigin, OriginService};
    use adit_interop::loopback_addr;
    use std::net::TcpListener;

    #[test]
    fn headers_survive_the_wire() {
        for what in [
            StreamRequest::Up,
            StreamRequest::Echo,
            StreamRequest::Flow,
            StreamRequest::Download,
        ] {
            for check in [CheckMode::Whole, CheckMode::Sampled] {
                let number = 0x0102_0304_0506_0708;
                let header = RequestHeader {
                    check,
                    ..RequestHeader::new(what, number)
                };
                assert_eq!(RequestHeader::decode(header.encode()), Some(header));
            }
        }
        assert_eq!(RequestHeader::decode([0; RequestHeader::LEN]), None);
    }

    #[test]
    fn all_bytes_arrive_in_both_directions() {
        let origin = LoadOrigin::start(OriginService::Streams).unwrap();
        let way = OriginRoute::Entry(origin.addr());
        for direction in LoadDirection::BOTH {
            for (streams, check) in [(1, CheckMode::Whole), (3, CheckMode::Sampled)] {
                let moved = transfer(way, direction, 3_000_001, streams, check).unwrap();
                assert_eq!(
                    moved.bytes,
                    3_000_001 / u64::from(streams) * u64::from(streams)
                );
            }
        }
    }

    /// A relay that passes everything but flips one bit at an offset of the upward stream.
    fn flipping_relay(to: std::net::SocketAddr, at: usize) -> std::net::SocketAddr {
        let listener = TcpListener::bind(loopback_addr(0)).unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || {
            let mut near = listener.accept().unwrap().0;
            let mut far = TcpStream::connect(to).unwrap();
            let (mut back_from, mut back_to) =
                (far.try_clone().unwrap(), near.try_clone().unwrap());
            thread::spawn(move || io::copy(&mut back_from, &mut back_to));
            let (mut buf, mut seen) = (vec![0; 1000], 0);
            while let Ok(n @ 1..) = near.read(&mut buf) {
                if (seen..seen + n).contains(&at) {
                    buf[at - seen] ^= 1;
                }
                seen += n;
                far.write_all(&buf[..n]).unwrap();
            }
        });
        addr
    }

    #[test]
    fn a_flipped_bit_fails_the_transfer() {
        let origin = LoadOrigin::start(OriginService::Streams).unwrap();
        let relay = flipping_relay(origin.addr(), 50_000);
        let why = transfer(
            OriginRoute::Entry(relay),
            LoadDirection::Up,
            100_000,
            1,
            CheckMode::Whole,
        )
        .unwrap_err();
        assert!(format!("{why:#}").contains("other bytes"), "{why:#}");
    }

    #[test]
    fn a_connection_cut_short_fails_the_transfer() {
        let listener = TcpListener::bind(loopback_addr(0)).unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || listener.accept().unwrap().0.write_all(&[1; 10]).unwrap());
        let way = OriginRoute::Entry(addr);
        assert!(transfer(way, LoadDirection::Down, 100_000, 1, CheckMode::Sampled).is_err());
    }
}
