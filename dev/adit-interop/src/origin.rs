//! The server behind the tunnel: treats a stream as its first line says, and echoes datagrams.
//!
//! | line | then |
//! |---|---|
//! | `ECHO` | every byte comes back; its end of stream answers ours |
//! | `PUT n` | `n` bytes are read, their checksum is answered |
//! | `GET n seed` | `n` bytes of a [`BytePattern`] are sent, then the stream ends |
//! | `LATE n seed` | all is read until our end of stream; only then count and checksum are answered, followed by `n` bytes |
//! | `RESET` | the connection is reset |

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use socket2::SockRef;

use crate::ports::free_port;
use crate::test_pattern::{BytePattern, Checksum};

const CHUNK: usize = 64 * 1024;
const DEADLINE: Duration = Duration::from_secs(60);

/// A running origin. It ends with the process.
#[derive(Debug)]
pub struct OriginServer {
    addr: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl OriginServer {
    /// Starts the origin on 127.0.0.1, with TCP and UDP on one port.
    pub fn start() -> Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, free_port()).into())
    }

    /// Starts the origin on ::1.
    pub fn start_v6() -> Result<Self> {
        Self::start_at((Ipv6Addr::LOCALHOST, free_port()).into())
    }

    /// Starts the origin at this address.
    pub fn start_at(addr: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(addr).with_context(|| addr.to_string())?;
        let socket = UdpSocket::bind(addr).with_context(|| addr.to_string())?;
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || serve_stream(stream));
            }
        });
        thread::spawn(move || {
            let mut buf = vec![0; 65_536];
            while let Ok((len, from)) = socket.recv_from(&mut buf) {
                let _ = socket.send_to(&buf[..len], from);
            }
        });
        Ok(Self { addr, connections })
    }

    /// Returns its address.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the number of streams that have reached it.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// An error here is a stream that its client aborted.
fn serve_stream(stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::with_capacity(CHUNK, stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let verb = words.next().unwrap_or_default();
    let mut number = || {
        words
            .next()
            .and_then(|word| word.parse::<u64>().ok())
            .unwrap_or(0)
    };
    match verb {
        "ECHO" => {
            io::copy(&mut reader, &mut writer)?;
        }
        "PUT" => {
            let (_, sum) = checksum_to_end(&mut reader.take(number()))?;
            writer.write_all(format!("{:016x}\n", sum.0).as_bytes())?;
        }
        "GET" => send_pattern(&mut writer, number(), number())?,
        "LATE" => {
            let (count, sum) = checksum_to_end(&mut reader)?;
            writer.write_all(format!("{count} {:016x}\n", sum.0).as_bytes())?;
            send_pattern(&mut writer, number(), number())?;
        }
        "RESET" => {
            SockRef::from(&writer).set_linger(Some(Duration::ZERO))?;
            return Ok(());
        }
        _ => {}
    }
    writer.shutdown(Shutdown::Write)
}

fn checksum_to_end(from: &mut impl Read) -> io::Result<(u64, Checksum)> {
    let (mut count, mut sum) = (0, Checksum::EMPTY);
    let mut buf = vec![0; CHUNK];
    loop {
        let n = from.read(&mut buf)?;
        if n == 0 {
            return Ok((count, sum));
        }
        count += n as u64;
        sum = sum.extend_with(&buf[..n]);
    }
}

fn send_pattern(to: &mut impl Write, mut len: u64, seed: u64) -> io::Result<()> {
    let mut pattern = BytePattern::new(seed);
    while len > 0 {
        let now = len.min(CHUNK as u64);
        to.write_all(&pattern.next_bytes(usize::try_from(now).unwrap_or(CHUNK)))?;
        len -= now;
    }
    Ok(())
}
