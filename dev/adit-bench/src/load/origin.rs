//! The origin: the server that everybody's relay leads to.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use adit_interop::loopback;
use anyhow::Result;

use super::tcp;

/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(30);
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
    acceptors: usize,
}

impl Origin {
    /// Starts it on a port that the kernel chooses.
    pub(crate) fn start(service: Service) -> Result<Self> {
        let listener = TcpListener::bind(loopback(0))?;
        let addr = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let acceptors = if service == Service::Echo {
            ECHO_THREADS
        } else {
            1
        };
        for _ in 0..acceptors {
            let (listener, stop) = (listener.try_clone()?, Arc::clone(&stop));
            thread::spawn(move || accept(&listener, &stop, service));
        }
        Ok(Self {
            addr,
            stop,
            acceptors,
        })
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
        for _ in 0..self.acceptors {
            let _ = TcpStream::connect_timeout(&self.addr, Duration::from_secs(1));
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
