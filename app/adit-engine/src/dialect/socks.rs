//! The client of SOCKS5 and SOCKS4a proxies, for hops.

use adit_socks::Command;
use adit_socks::client::{ClientError, Connect, Connect4a};
use adit_stream::{BoxStream, put, run};
use adit_wire::{Host, Target};

use super::{Dialect, DialogueError, Spoken};
use crate::connector::Connector;
use crate::udp::{BoxDatagrams, SocksUdp};
use crate::{BoxFuture, Cause, DialError};

/// A client of one SOCKS5 server.
pub struct Socks5 {
    /// User name and password (RFC 1929).
    pub login: Option<(String, String)>,
    /// True if datagrams may use this hop.
    pub udp: bool,
}

impl Dialect for Socks5 {
    fn speak<'a>(
        &'a self,
        mut io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Spoken, DialogueError>> {
        Box::pin(async move {
            let mut core = Connect::new(Command::Connect, to.clone(), self.login.clone());
            run(&mut io, &mut core)
                .await
                .map_err(|e| DialogueError::of(e, cause))?;
            put(&mut io, first).await?;
            Ok(Spoken::plain(io))
        })
    }

    fn associate<'a>(
        &'a self,
        via: &'a dyn Connector,
        server: &'a Target,
    ) -> BoxFuture<'a, Result<BoxDatagrams, DialError>> {
        Box::pin(async move {
            if !self.udp {
                return Err(DialError::unsupported(
                    "this hop has `udp=false` in its URL",
                ));
            }
            let mut control = via.connect(server, &[]).await?.io;
            // Zeros: datagrams may be sent from any local port.
            let any = Target::from(std::net::SocketAddr::from(([0u8; 4], 0)));
            let mut core = Connect::new(Command::UdpAssociate, any, self.login.clone());
            let mut relay = run(&mut control, &mut core)
                .await
                .map_err(|e| DialogueError::of(e, cause).with(server.to_string()))?;
            if matches!(relay.host, Host::Ip(ip) if ip.is_unspecified()) {
                relay.host = server.host.clone();
            }
            let below = via.associate().await?;
            Ok(Box::new(SocksUdp::new(control, relay, below)) as BoxDatagrams)
        })
    }
}

/// A client of one SOCKS4a server.
pub struct Socks4a {
    /// The user ID.
    pub user: Option<String>,
}

impl Dialect for Socks4a {
    fn speak<'a>(
        &'a self,
        mut io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Spoken, DialogueError>> {
        Box::pin(async move {
            let mut core = Connect4a::new(Command::Connect, to.clone(), self.user.clone());
            run(&mut io, &mut core)
                .await
                .map_err(|e| DialogueError::of(e, cause))?;
            put(&mut io, first).await?;
            Ok(Spoken::plain(io))
        })
    }
}

/// Returns the cause for the reply of a proxy. The client then learns the same as it would from a direct
/// connection.
const fn cause(why: &ClientError) -> Cause {
    match why {
        ClientError::Replied(reply) => Cause::of_socks_reply(*reply),
        ClientError::NoMethod | ClientError::BadCredentials => Cause::LoginRefused,
        _ => Cause::Malformed,
    }
}
