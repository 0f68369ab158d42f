//! Filtered chains: requests of clients are checked against the access rule before the first hop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_wire::Target;

use super::{Bound, Connected, Connector};
use crate::access::Access;
use crate::udp::{BoxDatagrams, Datagrams};
use crate::{BoxFuture, DialError};

/// Refuses what the listener's access rule denies, and passes everything else to the chain.
///
/// The last hop resolves names and connects. Without this check, clients could reach its private network.
pub struct Judged {
    /// The access rule of the listener.
    pub access: Access,
    /// The chain.
    pub chain: Arc<dyn Connector>,
}

impl Connector for Judged {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Connected, DialError>> {
        match self.access.check_named(to) {
            Ok(()) => self.chain.connect(to, first),
            Err(why) => Box::pin(async { Err(DialError::denied(why)) }),
        }
    }

    fn associate(&self) -> BoxFuture<'_, Result<BoxDatagrams, DialError>> {
        Box::pin(async move {
            let way = self.chain.associate().await?;
            let access = self.access.clone();
            Ok(Box::new(JudgedDatagrams { access, way }) as BoxDatagrams)
        })
    }

    fn listen<'a>(&'a self, near: SocketAddr) -> BoxFuture<'a, Result<Bound, DialError>> {
        self.chain.listen(near)
    }
}

struct JudgedDatagrams {
    access: Access,
    way: BoxDatagrams,
}

impl Datagrams for JudgedDatagrams {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        self.access
            .check_named(to)
            .map_err(|why| io::Error::new(io::ErrorKind::PermissionDenied, why))?;
        self.way.send(packet, to)
    }

    fn flush(&self) -> io::Result<()> {
        self.way.flush()
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>> {
        self.way.poll_recv(cx, packet, each)
    }
}
