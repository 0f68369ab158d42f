//! Chains with a layer that checks or replaces targets before the first hop.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_wire::Target;

use super::{BoundSocket, ConnectedStream, Connector};
use crate::udp::BoxDatagramPath;
use crate::{BoxFuture, DialError, ServerHealth};

/// Checks or replaces the targets of a chain.
pub trait ChainLayer: Send + Sync {
    /// Returns the target that the chain connects to instead of `to`, or the reason why it must not.
    fn target<'a>(&'a self, to: &'a Target) -> Result<&'a Target, DialError>;

    /// Wraps an opened path for datagrams, whose targets are treated in the same way.
    fn wrap_datagrams(&self, path: BoxDatagramPath) -> BoxDatagramPath;
}

/// A chain with a layer before it.
pub struct LayeredChain<L> {
    /// The layer.
    pub layer: L,
    /// The chain.
    pub chain: Arc<dyn Connector>,
}

impl<L: ChainLayer> Connector for LayeredChain<L> {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        match self.layer.target(to) {
            Ok(to) => self.chain.connect(to, first),
            Err(why) => Box::pin(ready(Err(why))),
        }
    }

    fn server_health(&self) -> Option<Arc<ServerHealth>> {
        self.chain.server_health()
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async move {
            let path = self.chain.open_datagrams().await?;
            Ok(self.layer.wrap_datagrams(path))
        })
    }

    fn rejects_all(&self) -> bool {
        self.chain.rejects_all()
    }

    fn listen_for_one<'a>(
        &'a self,
        near: SocketAddr,
    ) -> BoxFuture<'a, Result<BoundSocket, DialError>> {
        self.chain.listen_for_one(near)
    }
}
