//! Direct connections from this machine's own sockets: the end of every chain.

use std::net::SocketAddr;
use std::time::Duration;

use adit_net::dial::{self, Family};
use adit_net::tcp::{self, FastOpen};
use adit_stream::{Tcp, write_all};
use adit_wire::{Host, Target};
use tokio::time::timeout;

use super::{BoundSocket, ConnectedStream, Connector};
use crate::access::AccessRule;
use crate::dns::NameResolver;
use crate::error::DialStage;
use crate::loop_detection;
use crate::session_span::{connect_span, run_step};
use crate::udp::{BoxDatagramPath, DirectUdp, SenderFilter};
use crate::{BoxFuture, DialError};

/// Connects from this machine, to addresses that the listener's access rule allows.
#[derive(Debug, Clone)]
pub struct DirectConnector {
    /// The addresses that may be reached.
    pub access: AccessRule,
    /// The preferred address family.
    pub family: Family,
    /// Time limit for lookup and connecting together.
    pub deadline: Duration,
    /// The senders whose datagrams are accepted.
    pub filter: SenderFilter,
    /// True if first bytes are sent with the SYN (TCP Fast Open).
    pub fast_open: FastOpen,
    /// Looks the names of targets up.
    pub names: NameResolver,
}

impl DirectConnector {
    /// Returns the addresses of `to` that may be reached.
    async fn allowed_addrs(&self, to: &Target) -> Result<Vec<SocketAddr>, DialError> {
        let found = match &to.host {
            Host::Ip(ip) => vec![SocketAddr::new(*ip, to.port)],
            Host::Name(name) => {
                let asker = self.access.lookup_owner();
                let found = self.names.resolve(name.as_str(), to.port, self.family);
                let found = asker.scope(found).await;
                found.map_err(DialError::from_lookup_error)?
            }
        };
        let mut denied = None;
        let mut allowed = found;
        allowed.retain(|addr| match self.access.check_addr(*addr) {
            Ok(()) => true,
            Err(why) => {
                denied = Some(why);
                false
            }
        });
        match denied {
            Some(why) if allowed.is_empty() => Err(DialError::denied_by_rule(why)),
            _ => Ok(allowed),
        }
    }
}

impl Connector for DirectConnector {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        Box::pin(async move {
            let open = async {
                let candidates = self.allowed_addrs(to).await?;
                let socket = dial::connect_first_with(&candidates, self.fast_open)
                    .await
                    .map_err(|e| DialError::new(DialStage::Connect, e))?;
                loop_detection::record_own_connection(&socket, &candidates);
                let mut io = Tcp::new(socket);
                write_all(&mut io, first)
                    .await
                    .map_err(|e| DialError::new(DialStage::Connect, e))?;
                Ok(ConnectedStream {
                    io: Box::new(io),
                    is_direct: true,
                    first_wait: Duration::ZERO,
                    watch: None,
                })
            };
            let open = async {
                timeout(self.deadline, open).await.unwrap_or_else(|_| {
                    Err(DialError::new(
                        DialStage::Connect,
                        dial::connect_timeout_error(),
                    ))
                })
            };
            run_step(connect_span(), open).await
        })
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async move {
            let (access, names) = (self.access.clone(), self.names.clone());
            let way = DirectUdp::with_names(access, self.family, self.filter, names)
                .map_err(|e| DialError::new(DialStage::Connect, e))?;
            Ok(Box::new(way) as BoxDatagramPath)
        })
    }

    fn listen_for_one<'a>(
        &'a self,
        near: SocketAddr,
    ) -> BoxFuture<'a, Result<BoundSocket, DialError>> {
        Box::pin(async move {
            let socket = tcp::listen(SocketAddr::new(near.ip(), 0))
                .map_err(|e| DialError::new(DialStage::Connect, e))?;
            Ok(BoundSocket {
                socket,
                access: self.access.clone(),
            })
        })
    }
}
