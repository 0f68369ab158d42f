//! A server that reads everything and counts it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::Result;

/// A server of TCP. A connection begins with one byte: after a `d` it sends for as long as it can, anything else it reads
/// to its end. It runs until the process ends.
#[derive(Debug, Clone)]
pub struct CountingSink {
    addr: SocketAddr,
    received: Arc<AtomicU64>,
}

impl CountingSink {
    /// Starts a sink on a free port of 127.0.0.1.
    pub fn start() -> Result<Self> {
        Self::start_at(([127, 0, 0, 1], 0).into())
    }

    /// Starts a sink at an address.
    pub fn start_at(addr: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(addr)?;
        let addr = listener.local_addr()?;
        let received = Arc::new(AtomicU64::new(0));
        let counter = received.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counter = counter.clone();
                // A killed node resets its streams.
                thread::spawn(move || serve(stream, &counter));
            }
        });
        Ok(Self { addr, received })
    }

    /// Returns its address.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the number of bytes that it has read.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, counter: &AtomicU64) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    let count = |n: usize| counter.fetch_add(n as u64, Ordering::SeqCst);
    let n = stream.read(&mut bytes[..1])?;
    count(n);
    if bytes.starts_with(b"d") {
        loop {
            stream.write_all(&bytes)?;
        }
    }
    loop {
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            n => count(n),
        };
    }
}
