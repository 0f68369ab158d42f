//! The origin: the server that everybody's relay leads to.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use adit_interop::loopback;
use anyhow::Result;
use rustix::net::listen;

use super::connections::lane;
use super::tcp;

/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(30);
/// Connections that may wait to be accepted: a thousand clients come at once. The kernel takes no
/// more than its own bound.
const BACKLOG: i32 = 4096;
/// Threads that serve short connections one after the other.
const ECHO_THREADS: usize = 32;

/// What is done with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// Transfers as their header says, each in a thread of its own.
    Streams,
    /// One byte back, then the end; served without starting a thread.
    Echo,
    /// One byte back, then kept open as long as the origin lives.
    Hold,
}

/// A listener on loopback; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Origin {
    addr: SocketAddr,
    stop: Arc<AtomicBool>,
    /// Where a thread waits for connections.
    acceptors: Vec<SocketAddr>,
}

impl Origin {
    /// Starts it on a port that the kernel chooses.
    pub(crate) fn start(service: Service) -> Result<Self> {
        Self::start_on(service, 1)
    }

    /// Starts it on the same port of so many loopback addresses, of which [`Self::addr`] is the
    /// first.
    pub(crate) fn start_on(service: Service, lanes: u8) -> Result<Self> {
        let first = TcpListener::bind(loopback(0))?;
        let addr = first.local_addr()?;
        let mut origin = Self {
            addr,
            stop: Arc::new(AtomicBool::new(false)),
            acceptors: Vec::new(),
        };
        origin.serve(first, service)?;
        for number in 1..lanes {
            let listener = TcpListener::bind((lane(number), addr.port()))?;
            origin.serve(listener, service)?;
        }
        Ok(origin)
    }

    fn serve(&mut self, listener: TcpListener, service: Service) -> Result<()> {
        listen(&listener, BACKLOG)?;
        let at = listener.local_addr()?;
        let threads = if service == Service::Echo {
            ECHO_THREADS
        } else {
            1
        };
        for _ in 0..threads {
            let (listener, stop) = (listener.try_clone()?, Arc::clone(&self.stop));
            thread::spawn(move || accept(&listener, &stop, service));
            self.acceptors.push(at);
        }
        Ok(())
    }

    /// Where it listens.
    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes those who wait for a connection.
        for at in &self.acceptors {
            let _ = TcpStream::connect_timeout(at, Duration::from_secs(1));
        }
    }
}

fn accept(listener: &TcpListener, stop: &AtomicBool, service: Service) {
    let mut held = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // A connection that breaks is the client's to report: it does not get its answer.
        match service {
            Service::Streams => {
                thread::spawn(move || prepare(&stream).and_then(|()| tcp::serve(stream)));
            }
            Service::Echo => {
                let _ = echo(&stream).and_then(|()| wait_end(stream));
            }
            Service::Hold => {
                let _ = echo(&stream);
                held.push(stream);
            }
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))
}

fn echo(mut stream: &TcpStream) -> io::Result<()> {
    prepare(stream)?;
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    stream.write_all(&byte)
}

/// The client ends first, so that the waiting state after the end is on its side.
pub(super) fn wait_end(mut stream: TcpStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(|_| ())
}
