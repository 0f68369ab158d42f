//! The origin: the server that the relays of all implementations lead to.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use adit_interop::loopback_addr;
use anyhow::Result;
use rustix::net::listen;

use super::connections::lane_addr;
use super::tcp;

/// Maximum silence of a connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Backlog of connections: a thousand clients connect at the same time. The kernel applies its own
/// limit.
const BACKLOG: i32 = 4096;
/// Number of threads that serve short connections one after the other.
const ECHO_THREADS: usize = 32;
/// Time that such a thread waits for the end of a connection; a relay that passes the end on later
/// must not block the thread.
const END_WAIT: Duration = Duration::from_millis(2);
/// Number of late connections checked for each new one: more than are added meanwhile.
const SWEEP_COUNT: usize = 2;

/// The service of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OriginService {
    /// Transfers according to their header, each in a thread of its own.
    Streams,
    /// One byte back, then the end; served without starting a thread.
    Echo,
    /// One byte back, then kept open for as long as the origin lives.
    Hold,
}

/// A listener on loopback; dropping it ends it.
#[derive(Debug)]
pub(crate) struct LoadOrigin {
    addr: SocketAddr,
    stop: Arc<AtomicBool>,
    /// Addresses at which a thread waits for connections.
    acceptors: Vec<SocketAddr>,
}

impl LoadOrigin {
    /// Starts the origin on a port that the kernel chooses.
    pub(crate) fn start(service: OriginService) -> Result<Self> {
        Self::start_on(service, 1)
    }

    /// Starts the origin at this address.
    pub(crate) fn start_at(service: OriginService, at: SocketAddr) -> Result<Self> {
        Self::start_first(service, TcpListener::bind(at)?)
    }

    /// Starts the origin on the same port of `lanes` loopback addresses, the first of which is
    /// [`Self::addr`].
    pub(crate) fn start_on(service: OriginService, lanes: u8) -> Result<Self> {
        let mut origin = Self::start_first(service, TcpListener::bind(loopback_addr(0))?)?;
        let addr = origin.addr;
        for number in 1..lanes {
            let listener = TcpListener::bind((lane_addr(number), addr.port()))?;
            origin.serve_listener(listener, service)?;
        }
        Ok(origin)
    }

    fn start_first(service: OriginService, first: TcpListener) -> Result<Self> {
        let mut origin = Self {
            addr: first.local_addr()?,
            stop: Arc::new(AtomicBool::new(false)),
            acceptors: Vec::new(),
        };
        origin.serve_listener(first, service)?;
        Ok(origin)
    }

    fn serve_listener(&mut self, listener: TcpListener, service: OriginService) -> Result<()> {
        listen(&listener, BACKLOG)?;
        let at = listener.local_addr()?;
        let threads = if service == OriginService::Echo {
            ECHO_THREADS
        } else {
            1
        };
        for _ in 0..threads {
            let (listener, stop) = (listener.try_clone()?, Arc::clone(&self.stop));
            thread::spawn(move || accept_loop(&listener, &stop, service));
            self.acceptors.push(at);
        }
        Ok(())
    }

    /// Returns the address it listens on.
    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for LoadOrigin {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the threads that wait for a connection.
        for at in &self.acceptors {
            let _ = TcpStream::connect_timeout(at, Duration::from_secs(1));
        }
    }
}

fn accept_loop(listener: &TcpListener, stop: &AtomicBool, service: OriginService) {
    let (mut held, mut late) = (Vec::new(), VecDeque::new());
    while let Ok((stream, _)) = listener.accept() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // The client reports a broken connection: it does not receive its answer.
        match service {
            OriginService::Streams => {
                thread::spawn(move || {
                    configure_stream(&stream).and_then(|()| tcp::serve_stream(stream))
                });
            }
            OriginService::Echo => {
                if echo_once(&stream).is_ok() && !has_ended(&stream, Some(END_WAIT)) {
                    late.push_back(stream);
                }
                sweep_closed(&mut late);
            }
            OriginService::Hold => {
                let _ = echo_once(&stream);
                held.push(stream);
            }
        }
    }
}

fn configure_stream(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
    stream.set_write_timeout(Some(IDLE_TIMEOUT))
}

fn echo_once(mut stream: &TcpStream) -> io::Result<()> {
    configure_stream(stream)?;
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    stream.write_all(&byte)
}

/// Checks some of the late connections, and drops those that have ended.
fn sweep_closed(late: &mut VecDeque<TcpStream>) {
    for _ in 0..SWEEP_COUNT.min(late.len()) {
        if let Some(stream) = late.pop_front().filter(|one| !has_ended(one, None)) {
            late.push_back(stream);
        }
    }
}

/// Returns true if the other side has ended within this time, or already.
fn has_ended(mut stream: &TcpStream, within: Option<Duration>) -> bool {
    let ready = match within {
        Some(_) => stream.set_read_timeout(within),
        None => stream.set_nonblocking(true),
    };
    let told = ready.and_then(|()| stream.read(&mut [0]));
    !told.is_err_and(|why| why.kind() == ErrorKind::WouldBlock)
}

/// Waits for the client to end first, so that the TIME-WAIT state is on its side.
pub(super) fn wait_end(mut stream: TcpStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_ends_keep_nobody_waiting() {
        let origin = LoadOrigin::start(OriginService::Echo).unwrap();
        let talk = || {
            let mut stream = TcpStream::connect(origin.addr()).unwrap();
            stream.set_read_timeout(Some(IDLE_TIMEOUT)).unwrap();
            stream.write_all(b"x").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            stream
        };
        // More than there are threads, none of them ended.
        let open: Vec<TcpStream> = (0..2 * ECHO_THREADS).map(|_| talk()).collect();
        drop(talk());
        drop(open);
    }
}
