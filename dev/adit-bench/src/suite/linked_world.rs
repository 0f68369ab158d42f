//! A link between two network namespaces, the origin behind it, and client and server at its ends.

use std::net::SocketAddr;

use adit_interop::free_port;
use adit_link::{FAR, NamespaceLink};
use anyhow::Result;

use crate::peers::{InstalledPeer, PeerRole};
use crate::topology::{ProcessRig, Topology};

/// The link, the processes and an origin of any kind.
pub(super) struct LinkedWorld<O: Send> {
    pub(super) rig: ProcessRig,
    pub(super) link: NamespaceLink,
    origin: Option<O>,
}

impl<O: Send> LinkedWorld<O> {
    /// Starts the processes that lead to the origin; none for TCP alone.
    pub(super) fn start(
        link: NamespaceLink,
        origin: impl FnOnce(SocketAddr) -> Result<O> + Send,
        who: Option<(&InstalledPeer, Topology)>,
    ) -> Result<Self> {
        let far = || SocketAddr::from((FAR, free_port()));
        let at = far();
        let origin = link.far().run_inside(|| origin(at))?;
        let mut world = Self {
            rig: ProcessRig::direct(at),
            link,
            origin: Some(origin),
        };
        if let Some((peer, topology)) = who {
            let link = &world.link;
            let start = |part, role: &PeerRole| match part {
                "server" => link.far().run_inside(|| peer.start_at(role, far(), None)),
                _ => link.near().run_inside(|| peer.start(role, None)),
            };
            world.rig = ProcessRig::start_each(topology, at, start)?;
        }
        Ok(world)
    }
}

/// Drops the origin inside its namespace, where its threads wait.
impl<O: Send> Drop for LinkedWorld<O> {
    fn drop(&mut self) {
        let origin = self.origin.take();
        self.link.far().run_inside(|| drop(origin));
    }
}
