//! A relay in front of a server that records the first bytes in both directions.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;

/// Number of bytes recorded per connection and direction.
const KEPT: usize = 64 * 1024;

/// A running relay. It ends with the process.
#[derive(Debug)]
pub struct Tap {
    addr: SocketAddr,
    seen: Arc<Mutex<Book>>,
}

/// The first bytes of every connection, in the order of arrival.
#[derive(Debug, Default)]
struct Book {
    requests: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtEnd {
    PassOn,
    CloseBoth,
}

impl Tap {
    /// Starts a relay to `upstream` that also passes on ends of streams.
    pub fn start(upstream: SocketAddr) -> Result<Self> {
        Self::with(upstream, AtEnd::PassOn, Duration::ZERO)
    }

    /// Starts a relay that delays the first answer of each connection.
    ///
    /// sing-box's client of the 2022 edition stores its request's salt only after the request has
    /// been sent; it refuses an answer that overtakes it ("bad request salt").
    pub fn not_at_once(upstream: SocketAddr) -> Result<Self> {
        Self::with(upstream, AtEnd::PassOn, Duration::from_millis(50))
    }

    /// Starts a relay with the fault that half-close tests look for.
    pub fn closing_at_first_end(upstream: SocketAddr) -> Result<Self> {
        Self::with(upstream, AtEnd::CloseBoth, Duration::ZERO)
    }

    fn with(upstream: SocketAddr, at_end: AtEnd, hold: Duration) -> Result<Self> {
        let any = if upstream.is_ipv4() {
            "127.0.0.1:0"
        } else {
            "[::1]:0"
        };
        let listener = TcpListener::bind(any)?;
        let addr = listener.local_addr()?;
        let seen: Arc<Mutex<Book>> = Arc::default();
        let book = Arc::clone(&seen);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let page = {
                    let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
                    book.requests.push(Vec::new());
                    book.answers.push(Vec::new());
                    book.requests.len() - 1
                };
                let book = Arc::clone(&book);
                thread::spawn(move || relay(near, upstream, at_end, hold, &book, page));
            }
        });
        Ok(Self { addr, seen })
    }

    /// Returns the address that clients connect to.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the first bytes of every connection so far, in the order of arrival.
    #[must_use]
    pub fn seen(&self) -> Vec<Vec<u8>> {
        self.book().requests.clone()
    }

    /// Returns the first bytes of the server's answer on each connection.
    #[must_use]
    pub fn answers(&self) -> Vec<Vec<u8>> {
        self.book().answers.clone()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the bytes that still fit.
fn keep(page: Option<&mut Vec<u8>>, bytes: &[u8]) {
    if let Some(kept) = page {
        let room = KEPT.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(&bytes[..room]);
    }
}

/// An error here is a connection that one side aborted.
fn relay(
    near: TcpStream,
    upstream: SocketAddr,
    at_end: AtEnd,
    hold: Duration,
    book: &Arc<Mutex<Book>>,
    page: usize,
) -> io::Result<()> {
    let far = TcpStream::connect(upstream)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (near_back, far_back) = (near.try_clone()?, far.try_clone()?);
    let answers = Arc::clone(book);
    let down = thread::spawn(move || {
        if !hold.is_zero() {
            far_back.peek(&mut [0])?;
            thread::sleep(hold);
        }
        pump(far_back, near_back, at_end, |bytes| {
            let mut book = answers.lock().unwrap_or_else(PoisonError::into_inner);
            keep(book.answers.get_mut(page), bytes);
        })
    });
    pump(near, far, at_end, |bytes| {
        let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
        keep(book.requests.get_mut(page), bytes);
    })?;
    let _ = down.join();
    Ok(())
}

fn pump(
    mut from: TcpStream,
    mut to: TcpStream,
    at_end: AtEnd,
    mut look: impl FnMut(&[u8]),
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
                AtEnd::PassOn => to.shutdown(Shutdown::Write),
                AtEnd::CloseBoth => {
                    to.shutdown(Shutdown::Both)?;
                    from.shutdown(Shutdown::Both)
                }
            };
        }
        look(&buf[..n]);
        to.write_all(&buf[..n])?;
    }
}
