//! Direct connections from this machine's own sockets: the end of every chain.

use std::net::SocketAddr;
use std::time::Duration;

use adit_net::dial::{self, Family};
use adit_net::tcp::{self, FastOpen};
use adit_stream::{Tcp, put};
use adit_wire::{Host, Target};
use tokio::time::timeout;

use super::{Bound, Connected, Connector};
use crate::access::Access;
use crate::circle;
use crate::error::Stage;
use crate::udp::{BoxDatagrams, DirectUdp, Filter};
use crate::{BoxFuture, DialError};

/// Connects from this machine, to addresses that the listener's access rule allows.
#[derive(Debug, Clone)]
pub struct Direct {
    /// The addresses that may be reached.
    pub access: Access,
    /// The preferred address family.
    pub family: Family,
    /// Time limit for lookup and connecting together.
    pub deadline: Duration,
    /// The senders whose datagrams are accepted.
    pub filter: Filter,
    /// True if first bytes are sent with the SYN (TCP Fast Open).
    pub fast_open: FastOpen,
}

impl Direct {
    /// Returns the addresses of `to` that may be reached.
    async fn candidates(&self, to: &Target) -> Result<Vec<SocketAddr>, DialError> {
        let found = match &to.host {
            Host::Ip(ip) => vec![SocketAddr::new(*ip, to.port)],
            Host::Name(name) => {
                let asker = self.access.asker();
                let found = dial::resolve(name.as_str(), to.port, self.family);
                let found = asker.scope(found).await;
                found.map_err(DialError::unresolved)?
            }
        };
        let mut denied = None;
        let mut allowed = found;
        allowed.retain(|addr| match self.access.check(*addr) {
            Ok(()) => true,
            Err(why) => {
                denied = Some(why);
                false
            }
        });
        match denied {
            Some(why) if allowed.is_empty() => Err(DialError::denied(why)),
            _ => Ok(allowed),
        }
    }
}

impl Connector for Direct {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Connected, DialError>> {
        Box::pin(async move {
            let open = async {
                let candidates = self.candidates(to).await?;
                let socket = dial::race_by(&candidates, self.fast_open)
                    .await
                    .map_err(|e| DialError::new(Stage::Connect, e))?;
                circle::made(&socket, &candidates);
                let mut io = Tcp::new(socket);
                put(&mut io, first)
                    .await
                    .map_err(|e| DialError::new(Stage::Connect, e))?;
                Ok(Connected {
                    io: Box::new(io),
                    direct: true,
                    first_wait: Duration::ZERO,
                    watch: None,
                    standing: None,
                })
            };
            timeout(self.deadline, open)
                .await
                .unwrap_or_else(|_| Err(DialError::new(Stage::Connect, dial::no_answer())))
        })
    }

    fn associate(&self) -> BoxFuture<'_, Result<BoxDatagrams, DialError>> {
        Box::pin(async move {
            let way = DirectUdp::new(self.access.clone(), self.family, self.filter)
                .map_err(|e| DialError::new(Stage::Connect, e))?;
            Ok(Box::new(way) as BoxDatagrams)
        })
    }

    fn listen<'a>(&'a self, near: SocketAddr) -> BoxFuture<'a, Result<Bound, DialError>> {
        Box::pin(async move {
            let socket = tcp::listen(SocketAddr::new(near.ip(), 0))
                .map_err(|e| DialError::new(Stage::Connect, e))?;
            Ok(Bound {
                socket,
                access: self.access.clone(),
            })
        })
    }
}
