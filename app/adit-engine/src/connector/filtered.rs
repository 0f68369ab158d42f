//! Filtered chains: requests of clients are checked against the access rule before the first hop.

use std::io;
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_wire::Target;

use super::layered_chain::{ChainLayer, LayeredChain};
use crate::DialError;
use crate::access::AccessRule;
use crate::udp::{BoxDatagramPath, DatagramPath};

/// Refuses what the listener's access rule denies, and passes everything else to the chain.
///
/// The last hop resolves names and connects. Without this check, clients could reach its private network.
pub type FilteredChain = LayeredChain<AccessRule>;

impl ChainLayer for AccessRule {
    fn target<'a>(&'a self, to: &'a Target) -> Result<&'a Target, DialError> {
        let checked = self.check_target(to).map_err(DialError::denied_by_rule);
        checked.map(|()| to)
    }

    fn wrap_datagrams(&self, way: BoxDatagramPath) -> BoxDatagramPath {
        let access = self.clone();
        Box::new(FilteredDatagrams { access, way })
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
