//! Filtered chains: requests of clients are checked against the access rule before the first hop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_wire::Target;

use super::{BoundSocket, ConnectedStream, Connector};
use crate::access::AccessRule;
use crate::udp::{BoxDatagramPath, DatagramPath};
use crate::{BoxFuture, DialError};

/// Refuses what the listener's access rule denies, and passes everything else to the chain.
///
/// The last hop resolves names and connects. Without this check, clients could reach its private network.
pub struct FilteredChain {
    /// The access rule of the listener.
    pub access: AccessRule,
    /// The chain.
    pub chain: Arc<dyn Connector>,
}

impl Connector for FilteredChain {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        match self.access.check_target(to) {
            Ok(()) => self.chain.connect(to, first),
            Err(why) => Box::pin(async { Err(DialError::denied_by_rule(why)) }),
        }
    }

    fn rejects_all(&self) -> bool {
        self.chain.rejects_all()
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async move {
            let way = self.chain.open_datagrams().await?;
            let access = self.access.clone();
            Ok(Box::new(FilteredDatagrams { access, way }) as BoxDatagramPath)
        })
    }

    fn listen_for_one<'a>(
        &'a self,
        near: SocketAddr,
    ) -> BoxFuture<'a, Result<BoundSocket, DialError>> {
        self.chain.listen_for_one(near)
    }
}

struct FilteredDatagrams {
    access: AccessRule,
    way: BoxDatagramPath,
}

impl DatagramPath for FilteredDatagrams {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        self.access
            .check_target(to)
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
