//! Many short connections, and many that are only held.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::Way;

/// Clients that open one connection after the other at the same time.
pub(crate) const WORKERS: usize = 8;

/// Opens `count` connections, sends one byte through each, waits for it to come back and closes;
/// gives the time of all.
pub(crate) fn churn(way: Way, count: u32) -> Result<Duration> {
    let next = AtomicU32::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        let work = || -> Result<()> {
            while next.fetch_add(1, Ordering::Relaxed) < count {
                echo(way)?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        Ok(start.elapsed())
    })
}

/// Opens `count` connections, each used for one byte there and back, and leaves them open.
pub(crate) fn hold(way: Way, count: u32) -> Result<Vec<TcpStream>> {
    let one = |n| echo(way).with_context(|| format!("connection {n} of {count}"));
    (1..=count).map(one).collect()
}

fn echo(way: Way) -> Result<TcpStream> {
    let mut stream = way.dial()?;
    stream.write_all(b"x")?;
    let mut back = [0];
    stream.read_exact(&mut back)?;
    ensure!(&back == b"x", "another byte came back");
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::origin::{Origin, Service};

    #[test]
    fn every_connection_is_answered() {
        let origin = Origin::start(Service::Echo).unwrap();
        churn(Way::Entry(origin.addr()), 100).unwrap();
    }

    #[test]
    fn held_connections_stay_open() {
        let origin = Origin::start(Service::Hold).unwrap();
        let mut held = hold(Way::Entry(origin.addr()), 20).unwrap();
        let first = &mut held[0];
        first
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let why = first.read(&mut [0]).unwrap_err();
        assert_eq!(why.kind(), std::io::ErrorKind::WouldBlock);
    }

    #[test]
    fn nobody_there_is_an_error() {
        let nobody = adit_interop::loopback(adit_interop::free_port());
        assert!(churn(Way::Entry(nobody), 3).is_err());
    }
}
