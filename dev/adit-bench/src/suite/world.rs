//! A link between two network namespaces, the origin behind it, and client and server at its ends.

use std::net::SocketAddr;

use adit_interop::free_port;
use adit_link::{FAR, Link};
use anyhow::Result;

use crate::peers::{Peer, Role};
use crate::topology::{Rig, Topology};

/// The link, the processes and an origin of any kind.
pub(super) struct World<O: Send> {
    pub(super) rig: Rig,
    pub(super) link: Link,
    origin: Option<O>,
}

impl<O: Send> World<O> {
    /// Starts the processes that lead to the origin; none for TCP alone.
    pub(super) fn start(
        link: Link,
        origin: impl FnOnce(SocketAddr) -> Result<O> + Send,
        who: Option<(&Peer, Topology)>,
    ) -> Result<Self> {
        let far = || SocketAddr::from((FAR, free_port()));
        let at = far();
        let origin = link.far().enter(|| origin(at))?;
        let mut world = Self {
            rig: Rig::straight(at),
            link,
            origin: Some(origin),
        };
        if let Some((peer, topology)) = who {
            let link = &world.link;
            let start = |part, role: &Role| match part {
                "server" => link.far().enter(|| peer.start_at(role, far(), None)),
                _ => link.near().enter(|| peer.start(role, None)),
            };
            world.rig = Rig::start_each(topology, at, start)?;
        }
        Ok(world)
    }
}

/// Drops the origin inside its namespace, where its threads wait.
impl<O: Send> Drop for World<O> {
    fn drop(&mut self) {
        let origin = self.origin.take();
        self.link.far().enter(|| drop(origin));
    }
}
