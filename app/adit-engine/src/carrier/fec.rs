//! Both ends of `udp+fec`: error-corrected channels as datagram paths.

use std::io;
use std::task::{Context, Poll};

use adit_config::FecSettings as Plan;
use adit_kcp::fec::{FecChannel, FecSettings};
use adit_net::PacketBuf;
use adit_wire::Target;

use super::kcp::resolve_server;
use super::settings::{self, CarrierError};
use crate::connector::{ConnectedStream, Connector};
use crate::dns::NameResolver;
use crate::error::DialStage;
use crate::udp::{BoxDatagramPath, DatagramPath};
use crate::{BoxFuture, DialError};

/// A hop for datagrams to a server that chooses the target. Each association uses a channel of its own.
pub struct FecHop {
    server: Target,
    name: String,
    settings: FecSettings,
    names: NameResolver,
}

impl FecHop {
    /// Creates a hop to `server`. `name` is used in errors, and `names` looks up the name of the server.
    ///
    /// # Errors
    ///
    /// Returns a [`CarrierError`] if the plan's key does not fit its cipher.
    pub fn new(
        server: Target,
        name: String,
        plan: &Plan,
        names: NameResolver,
    ) -> Result<Self, CarrierError> {
        Ok(Self {
            server,
            name,
            settings: settings::fec_settings(plan)?,
            names,
        })
    }
}

impl FecHop {
    /// Opens a channel to the server.
    pub(crate) async fn open_channel(&self) -> Result<FecChannel, DialError> {
        let lane = match resolve_server(&self.server, &self.names).await {
            Ok(addr) => FecChannel::connect(addr, self.settings.clone()),
            Err(why) => Err(why),
        };
        let hop = || self.name.clone();
        lane.map_err(|why| DialError::new(DialStage::Dial { hop: hop() }, why))
    }
}

impl Connector for FecHop {
    fn connect<'a>(
        &'a self,
        _to: &'a Target,
        _first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        Box::pin(async { Err(DialError::unsupported("`udp+fec` carries only datagrams")) })
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async move {
            let lane = self.open_channel().await?;
            let target = self.server.clone();
            Ok(Box::new(FecPath { lane, target }) as BoxDatagramPath)
        })
    }
}

/// A channel as a datagram path. All datagrams have the same remote end.
pub(super) struct FecPath {
    pub(super) lane: FecChannel,
    pub(super) target: Target,
}

impl DatagramPath for FecPath {
    fn send(&self, packet: &mut PacketBuf, _to: &Target) -> io::Result<()> {
        self.lane.send(packet.payload())
    }

    fn flush(&self) -> io::Result<()> {
        self.lane.flush()
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>> {
        self.lane.poll_recv(cx, &mut |datagram| {
            if packet.copy_from(datagram) {
                each(packet, &self.target);
            }
        })
    }
}
