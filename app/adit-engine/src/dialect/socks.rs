//! The client of SOCKS5 and SOCKS4a proxies, for hops.

use adit_socks::Command;
use adit_socks::client::{ClientError, Socks4Connect, Socks5Connect};
use adit_stream::{BoxStream, run_handshake, write_all};
use adit_wire::{Host, Target};

use super::{HopDialect, HopError, RequestedStream};
use crate::connector::Connector;
use crate::udp::{BoxDatagramPath, SocksUdp};
use crate::{BoxFuture, DialError, FailureCause};

/// A client of one SOCKS5 server.
pub struct Socks5 {
    /// User name and password (RFC 1929).
    pub login: Option<(String, String)>,
    /// True if datagrams may use this hop.
    pub udp: bool,
}

impl HopDialect for Socks5 {
    fn request_target<'a>(
        &'a self,
        mut io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<RequestedStream, HopError>> {
        Box::pin(async move {
            let mut core = Socks5Connect::new(Command::Connect, to.clone(), self.login.clone());
            run_handshake(&mut io, &mut core)
                .await
                .map_err(|e| HopError::from_handshake(e, cause_of))?;
            write_all(&mut io, first).await?;
            Ok(RequestedStream::without_wait(io))
        })
    }

    fn open_datagrams<'a>(
        &'a self,
        via: &'a dyn Connector,
        server: &'a Target,
    ) -> BoxFuture<'a, Result<BoxDatagramPath, DialError>> {
        Box::pin(async move {
            if !self.udp {
                return Err(DialError::unsupported(
                    "this hop has `udp=false` in its URL",
                ));
            }
            let mut control = via.connect(server, &[]).await?.io;
            // Zeros: datagrams may be sent from any local port.
            let any = Target::from(std::net::SocketAddr::from(([0u8; 4], 0)));
            let mut core = Socks5Connect::new(Command::UdpAssociate, any, self.login.clone());
            let mut relay = run_handshake(&mut control, &mut core).await.map_err(|e| {
                HopError::from_handshake(e, cause_of).into_dial_error(server.to_string())
            })?;
            if matches!(relay.host, Host::Ip(ip) if ip.is_unspecified()) {
                relay.host = server.host.clone();
            }
            let below = via.open_datagrams().await?;
            Ok(Box::new(SocksUdp::new(control, relay, below)) as BoxDatagramPath)
        })
    }
}

/// A client of one SOCKS4a server.
pub struct Socks4a {
    /// The user ID.
    pub user: Option<String>,
}

impl HopDialect for Socks4a {
    fn request_target<'a>(
        &'a self,
        mut io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<RequestedStream, HopError>> {
        Box::pin(async move {
            let mut core = Socks4Connect::new(Command::Connect, to.clone(), self.user.clone());
            run_handshake(&mut io, &mut core)
                .await
                .map_err(|e| HopError::from_handshake(e, cause_of))?;
            write_all(&mut io, first).await?;
            Ok(RequestedStream::without_wait(io))
        })
    }
}

/// Returns the cause for the reply of a proxy. The client then learns the same as it would from a direct
/// connection.
const fn cause_of(why: &ClientError) -> FailureCause {
    match why {
        ClientError::Replied(reply) => FailureCause::from_socks_reply(*reply),
        ClientError::NoMethod | ClientError::BadCredentials => FailureCause::LoginRefused,
        _ => FailureCause::Malformed,
    }
}
