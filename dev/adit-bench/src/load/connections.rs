//! Many short connections, and many that are only held.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::OriginRoute;

/// Maximum number of connections from one address to one port: below the kernel's default number of
/// ports for outgoing sockets, 28,232.
pub(crate) const PER_ADDRESS: u32 = 20_000;

/// Returns the number of addresses 127.0.0.1, 127.0.0.2, … that this many connections need at
/// either end.
pub(crate) const fn lane_count(connections: u32) -> u8 {
    let lanes = connections.div_ceil(PER_ADDRESS);
    // 127.0.0.255 is the last.
    if lanes > 255 { 255 } else { lanes as u8 }
}

/// Returns the address of a lane, counted from 0.
pub(super) const fn lane_addr(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, number.saturating_add(1))
}

/// Opens `count` connections with `clients` concurrent clients, sends one byte through each, waits
/// for it to come back, and closes. Returns the total time.
pub(crate) fn run_short_connections(
    way: OriginRoute,
    count: u32,
    clients: u32,
) -> Result<Duration> {
    let next = AtomicU32::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        let work = || -> Result<()> {
            while next.fetch_add(1, Ordering::Relaxed) < count {
                echo_byte(way.dial()?)?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..clients).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| anyhow!("a client's thread panicked"))??;
        }
        Ok(start.elapsed())
    })
}

/// Opens `count` connections, transfers one byte there and back on each, and leaves them open.
///
/// Above [`PER_ADDRESS`], connections leave from the next address and lead to the next address of
/// the origin, so that neither this process nor the relay runs out of ports. `first` is the first
/// of these lanes.
pub(crate) fn open_connections(way: OriginRoute, count: u32, first: u8) -> Result<Vec<TcpStream>> {
    let one = |n: u32| {
        let lane = lane_addr(u8::try_from(n / PER_ADDRESS)?.saturating_add(first));
        echo_byte(way.dial_from(lane)?).with_context(|| format!("connection {} of {count}", n + 1))
    };
    (0..count).map(one).collect()
}

fn echo_byte(mut stream: TcpStream) -> Result<TcpStream> {
    stream.write_all(b"x")?;
    let mut back = [0];
    stream.read_exact(&mut back)?;
    ensure!(&back == b"x", "a different byte came back");
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::origin::{LoadOrigin, OriginService};

    #[test]
    fn every_connection_is_answered() {
        let origin = LoadOrigin::start(OriginService::Echo).unwrap();
        run_short_connections(OriginRoute::Entry(origin.addr()), 100, 8).unwrap();
    }

    #[test]
    fn held_connections_stay_open() {
        let origin = LoadOrigin::start(OriginService::Hold).unwrap();
        let mut held = open_connections(OriginRoute::Entry(origin.addr()), 20, 0).unwrap();
        let first = &mut held[0];
        first
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let why = first.read(&mut [0]).unwrap_err();
        assert_eq!(why.kind(), std::io::ErrorKind::WouldBlock);
    }

    #[test]
    fn each_lane_has_addresses_of_its_own() {
        assert_eq!(
            [1, PER_ADDRESS, PER_ADDRESS + 1, 50_000].map(lane_count),
            [1, 1, 2, 3]
        );
        let origin = LoadOrigin::start_on(OriginService::Hold, 3).unwrap();
        for number in 0..3 {
            let here = lane_addr(number);
            let stream = OriginRoute::Entry(origin.addr()).dial_from(here).unwrap();
            let to = std::net::SocketAddr::from((here, origin.addr().port()));
            assert_eq!(stream.local_addr().unwrap().ip(), here);
            // An entry has a fixed destination; only SOCKS can name the lane.
            assert_eq!(stream.peer_addr().unwrap(), origin.addr());
            assert!(echo_byte(stream).is_ok());
            assert!(echo_byte(OriginRoute::Entry(to).dial().unwrap()).is_ok());
        }
    }

    #[test]
    fn nobody_there_is_an_error() {
        let nobody = adit_interop::loopback_addr(adit_interop::free_port());
        assert!(run_short_connections(OriginRoute::Entry(nobody), 3, 2).is_err());
    }
}
