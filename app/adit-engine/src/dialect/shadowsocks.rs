//! The client of Shadowsocks servers, for hops.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_config::UdpTransport;
use adit_net::system::{SystemClock, ThreadRng};
use adit_shadowsocks::{KeyChain, tcp, uot};
use adit_stream::{BoxStream, Layered, write_all};
use adit_wire::Target;

use super::{HopDialect, HopError, RequestedStream};
use crate::connector::{Connector, HopWatch};
use crate::udp::{BoxDatagramPath, ShadowsocksUdp};
use crate::{BoxFuture, DialError, ServerHealth};

/// A client of one Shadowsocks server.
pub struct ShadowsocksDialect {
    /// The key, after those of identity headers.
    pub keys: KeyChain,
    /// The method for datagrams.
    pub udp: UdpTransport,
    /// Maximum time to wait for a first payload that can be sent with the request header.
    pub first_wait: Duration,
    /// The health of the server.
    pub health: Arc<ServerHealth>,
}

impl HopDialect for ShadowsocksDialect {
    fn request_target<'a>(
        &'a self,
        io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<RequestedStream, HopError>> {
        Box::pin(async move {
            let (seal, open) =
                tcp::client_codecs(&self.keys, to, Arc::new(SystemClock), &mut ThreadRng)
                    .map_err(io::Error::other)?;
            let watch = HopWatch {
                health: self.health.clone(),
                progress: open.progress(),
                since: Instant::now(),
            };
            let mut io: BoxStream = Box::new(Layered::new(io, seal, open));
            write_all(&mut io, first).await?;
            Ok(RequestedStream {
                io,
                first_wait: self.first_wait,
                watch: Some(watch),
            })
        })
    }

    fn udp_over_tcp_target(&self) -> Option<Target> {
        match self.udp {
            UdpTransport::OverTcp => uot::reserved_target(uot::Version::V2),
            UdpTransport::Native | UdpTransport::Off => None,
        }
    }

    fn server_health(&self) -> Option<&Arc<ServerHealth>> {
        Some(&self.health)
    }

    fn open_datagrams<'a>(
        &'a self,
        via: &'a dyn Connector,
        server: &'a Target,
    ) -> BoxFuture<'a, Result<BoxDatagramPath, DialError>> {
        Box::pin(async move {
            if self.udp != UdpTransport::Native {
                return Err(DialError::unsupported(
                    "this hop has `udp=false` in its URL",
                ));
            }
            let below = via.open_datagrams().await?;
            let health = self.health.clone();
            let udp = ShadowsocksUdp::new(&self.keys, server.clone(), below, health);
            Ok(Box::new(udp) as BoxDatagramPath)
        })
    }
}
