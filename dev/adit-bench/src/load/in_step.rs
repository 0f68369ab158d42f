//! Transfers in step: one thread sends a piece and receives it at the other end before the next one.
//!
//! In a usual transfer, it depends on who is run when how many bytes a process finds at each read, and with it what a GiB
//! costs. In step it finds the same number each time: the costs of two transfers of 64 MiB differed by 7 % instead of 20 to
//! 28 % (the middle half of 150 pairs, all on one processor).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use adit_interop::TEST_TIMEOUT;
use anyhow::{Context, Result, ensure};

use super::content::{ByteContent, CheckMode};
use super::{LoadDirection, OriginRoute};

/// Bytes of a piece. The sockets on the way have space for it, so that sending it needs no reader.
const PIECE: usize = 128 << 10;

/// An origin whose connections are served by the thread that transfers.
#[derive(Debug)]
pub(crate) struct OriginInStep(TcpListener);

impl OriginInStep {
    pub(crate) fn bind() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        Ok(Self(listener.context("cannot bind an origin")?))
    }

    pub(crate) fn addr(&self) -> Result<SocketAddr> {
        self.0.local_addr().context("the address of the origin")
    }

    /// Transfers `bytes`, rounded up to whole pieces, by a route that leads to this origin. Returns their number.
    pub(crate) fn transfer(
        &self,
        route: OriginRoute,
        direction: LoadDirection,
        bytes: u64,
    ) -> Result<u64> {
        let client = route.dial()?;
        let origin = self.accept()?;
        let (mut from, mut to) = match direction {
            LoadDirection::Up => (client, origin),
            LoadDirection::Down => (origin, client),
        };
        let (content, mut received) = (ByteContent::get(), vec![0; PIECE]);
        let mut moved = 0;
        while moved < bytes {
            from.write_all(content.slice_at(moved, PIECE))
                .context("sending")?;
            to.read_exact(&mut received).context("receiving")?;
            let is_same = content.matches(moved, &received, CheckMode::Sampled);
            ensure!(is_same, "other bytes were received");
            moved += PIECE as u64;
        }
        Ok(moved)
    }

    /// Accepts a connection; a proxy that never opens one is found by the reply that it does not send.
    fn accept(&self) -> Result<TcpStream> {
        let (stream, _) = self.0.accept().context("cannot accept")?;
        stream.set_read_timeout(Some(TEST_TIMEOUT))?;
        stream.set_write_timeout(Some(TEST_TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pieces_are_transferred_both_ways() {
        let origin = OriginInStep::bind().unwrap();
        let route = OriginRoute::Entry(origin.addr().unwrap());
        for direction in LoadDirection::BOTH {
            let moved = origin.transfer(route, direction, PIECE as u64 + 1);
            assert_eq!(moved.unwrap(), 2 * PIECE as u64);
        }
    }
}
