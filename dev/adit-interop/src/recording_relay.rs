//! A relay in front of a server that records the first bytes in both directions.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;

/// Number of bytes recorded per connection and direction.
const KEPT_LEN: usize = 64 * 1024;

/// A running relay. It ends with the process.
#[derive(Debug)]
pub struct RecordingRelay {
    addr: SocketAddr,
    recording: Arc<Mutex<Recording>>,
}

/// The first bytes of every connection, in the order of arrival.
#[derive(Debug, Default)]
struct Recording {
    requests: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndOfStreamAction {
    PassOn,
    CloseBoth,
}

impl RecordingRelay {
    /// Starts a relay to `upstream` that also passes on ends of streams.
    pub fn start(upstream: SocketAddr) -> Result<Self> {
        Self::start_with(upstream, EndOfStreamAction::PassOn, Duration::ZERO)
    }

    /// Starts a relay that delays the first answer of each connection.
    ///
    /// sing-box's client of the 2022 edition stores its request's salt only after the request has
    /// been sent; it refuses an answer that overtakes it ("bad request salt").
    pub fn start_delayed(upstream: SocketAddr) -> Result<Self> {
        Self::start_with(
            upstream,
            EndOfStreamAction::PassOn,
            Duration::from_millis(50),
        )
    }

    /// Starts a relay with the fault that half-close tests look for.
    pub fn start_closing_both(upstream: SocketAddr) -> Result<Self> {
        Self::start_with(upstream, EndOfStreamAction::CloseBoth, Duration::ZERO)
    }

    fn start_with(
        upstream: SocketAddr,
        at_end: EndOfStreamAction,
        delay: Duration,
    ) -> Result<Self> {
        let any = if upstream.is_ipv4() {
            "127.0.0.1:0"
        } else {
            "[::1]:0"
        };
        let listener = TcpListener::bind(any)?;
        let addr = listener.local_addr()?;
        let seen: Arc<Mutex<Recording>> = Arc::default();
        let recording = Arc::clone(&seen);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let index = {
                    let mut recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
                    recording.requests.push(Vec::new());
                    recording.answers.push(Vec::new());
                    recording.requests.len() - 1
                };
                let recording = Arc::clone(&recording);
                thread::spawn(move || {
                    relay_connection(client, upstream, at_end, delay, &recording, index)
                });
            }
        });
        Ok(Self {
            addr,
            recording: seen,
        })
    }

    /// Returns the address that clients connect to.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the first bytes of every connection so far, in the order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Vec<u8>> {
        self.lock_recording().requests.clone()
    }

    /// Returns the first bytes of the server's answer on each connection.
    #[must_use]
    pub fn answers(&self) -> Vec<Vec<u8>> {
        self.lock_recording().answers.clone()
    }

    fn lock_recording(&self) -> MutexGuard<'_, Recording> {
        self.recording
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the bytes that still fit.
fn append_up_to_limit(kept: Option<&mut Vec<u8>>, bytes: &[u8]) {
    if let Some(kept) = kept {
        let room = KEPT_LEN.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(&bytes[..room]);
    }
}

/// An error here is a connection that one side aborted.
fn relay_connection(
    client: TcpStream,
    upstream: SocketAddr,
    at_end: EndOfStreamAction,
    delay: Duration,
    recording: &Arc<Mutex<Recording>>,
    index: usize,
) -> io::Result<()> {
    let server = TcpStream::connect(upstream)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (client_writer, server_reader) = (client.try_clone()?, server.try_clone()?);
    let answers = Arc::clone(recording);
    let answer_thread = thread::spawn(move || {
        if !delay.is_zero() {
            server_reader.peek(&mut [0])?;
            thread::sleep(delay);
        }
        copy_direction(server_reader, client_writer, at_end, |bytes| {
            let mut recording = answers.lock().unwrap_or_else(PoisonError::into_inner);
            append_up_to_limit(recording.answers.get_mut(index), bytes);
        })
    });
    copy_direction(client, server, at_end, |bytes| {
        let mut recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
        append_up_to_limit(recording.requests.get_mut(index), bytes);
    })?;
    let _ = answer_thread.join();
    Ok(())
}

fn copy_direction(
    mut from: TcpStream,
    mut to: TcpStream,
    at_end: EndOfStreamAction,
    mut record: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut buf = vec![0; 16 * 1024];
    loop {
        let n = match from.read(&mut buf) {
            Ok(n) => n,
            Err(_) => {
                let _ = to.shutdown(Shutdown::Both);
                return Ok(());
            }
        };
        if n == 0 {
            return match at_end {
                EndOfStreamAction::PassOn => to.shutdown(Shutdown::Write),
                EndOfStreamAction::CloseBoth => {
                    to.shutdown(Shutdown::Both)?;
                    from.shutdown(Shutdown::Both)
                }
            };
        }
        record(&buf[..n]);
        to.write_all(&buf[..n])?;
    }
}
