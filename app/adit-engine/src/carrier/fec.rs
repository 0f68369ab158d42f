//! Both ends of `udp+fec`: error-corrected channels as datagram paths.

use std::io;
use std::task::{Context, Poll};

use adit_config::Fec as Plan;
use adit_kcp::fec::{Lane, Settings};
use adit_net::PacketBuf;
use adit_wire::Target;

use super::kcp::address;
use super::settings::{self, SealError};
use crate::connector::{Connected, Connector};
use crate::error::Stage;
use crate::udp::{BoxDatagrams, Datagrams};
use crate::{BoxFuture, DialError};

/// A hop for datagrams to a server that chooses the target. Each association uses a channel of its own.
pub struct FecHop {
    server: Target,
    name: String,
    settings: Settings,
}

impl FecHop {
    /// Creates a hop to `server`. `name` is used in errors.
    ///
    /// # Errors
    ///
    /// Returns a [`SealError`] if the plan's key does not fit its cipher.
    pub fn new(server: Target, name: String, plan: &Plan) -> Result<Self, SealError> {
        Ok(Self {
            server,
            name,
            settings: settings::datagrams(plan)?,
        })
    }
}

impl FecHop {
    /// Opens a channel to the server.
    pub(crate) async fn open(&self) -> Result<Lane, DialError> {
        let lane = match address(&self.server).await {
            Ok(addr) => Lane::connect(addr, self.settings.clone()),
            Err(why) => Err(why),
        };
        let hop = || self.name.clone();
        lane.map_err(|why| DialError::new(Stage::Dial { hop: hop() }, why))
    }
}

impl Connector for FecHop {
    fn connect<'a>(
        &'a self,
        _to: &'a Target,
        _first: &'a [u8],
    ) -> BoxFuture<'a, Result<Connected, DialError>> {
        Box::pin(async { Err(DialError::unsupported("`udp+fec` carries only datagrams")) })
    }

    fn associate(&self) -> BoxFuture<'_, Result<BoxDatagrams, DialError>> {
        Box::pin(async move {
            let lane = self.open().await?;
            let target = self.server.clone();
            Ok(Box::new(LaneWay { lane, target }) as BoxDatagrams)
        })
    }
}

/// A channel as a datagram path. All datagrams have the same remote end.
pub(super) struct LaneWay {
    pub(super) lane: Lane,
    pub(super) target: Target,
}

impl Datagrams for LaneWay {
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
            if packet.load(datagram) {
                each(packet, &self.target);
            }
        })
    }
}
