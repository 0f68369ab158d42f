//! The client of Shadowsocks servers, for hops.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_config::UdpWay;
use adit_net::ambient::{Chance, SystemClock};
use adit_shadowsocks::{KeyChain, tcp, uot};
use adit_stream::{BoxStream, Layered, put};
use adit_wire::Target;

use super::{Dialect, DialogueError, Spoken};
use crate::connector::{Connector, Watch};
use crate::udp::{BoxDatagrams, ShadowsocksUdp};
use crate::{BoxFuture, DialError, Health};

/// A client of one Shadowsocks server.
pub struct Shadowsocks {
    /// The key, after those of identity headers.
    pub keys: KeyChain,
    /// The method for datagrams.
    pub udp: UdpWay,
    /// Maximum time to wait for a first payload that can be sent with the request header.
    pub first_wait: Duration,
    /// The health of the server.
    pub health: Arc<Health>,
}

impl Dialect for Shadowsocks {
    fn speak<'a>(
        &'a self,
        io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Spoken, DialogueError>> {
        Box::pin(async move {
            let (seal, open) = tcp::client(&self.keys, to, Arc::new(SystemClock), &mut Chance)
                .map_err(io::Error::other)?;
            let watch = Watch {
                health: self.health.clone(),
                progress: open.progress(),
                since: Instant::now(),
            };
            let mut io: BoxStream = Box::new(Layered::new(io, seal, open));
            put(&mut io, first).await?;
            Ok(Spoken {
                io,
                first_wait: self.first_wait,
                watch: Some(watch),
            })
        })
    }

    fn stream_of_datagrams(&self) -> Option<Target> {
        match self.udp {
            UdpWay::OverTcp => uot::name(uot::Version::V2),
            UdpWay::Native | UdpWay::Off => None,
        }
    }

    fn health(&self) -> Option<&Arc<Health>> {
        Some(&self.health)
    }

    fn associate<'a>(
        &'a self,
        via: &'a dyn Connector,
        server: &'a Target,
    ) -> BoxFuture<'a, Result<BoxDatagrams, DialError>> {
        Box::pin(async move {
            if self.udp != UdpWay::Native {
                return Err(DialError::unsupported(
                    "this hop has `udp=false` in its URL",
                ));
            }
            let below = via.associate().await?;
            let health = self.health.clone();
            let udp = ShadowsocksUdp::new(&self.keys, server.clone(), below, health);
            Ok(Box::new(udp) as BoxDatagrams)
        })
    }
}
