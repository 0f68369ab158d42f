//! Connections that were on their way to somebody else: where they were going is the target.

use std::net::SocketAddr;

use adit_config::Steering;
use adit_net::transparent;
use adit_stream::{BoxStream, Stream};
use adit_wire::unmap;

use super::forward::Plain;
use super::{Acceptor, Inbound, Pending};
use crate::access::may_be_own;
use crate::{AcceptError, BoxFuture, Peer, Place, Request};

/// `redir://LISTEN` and `tproxy://LISTEN`.
pub struct Intercepted {
    /// How the firewall brings connections.
    pub steering: Steering,
    /// The port of the listener.
    pub port: u16,
}

impl Intercepted {
    fn target(&self, io: &mut BoxStream, peer: Peer) -> Result<SocketAddr, AcceptError> {
        let local = SocketAddr::new(unmap(peer.local.ip()), peer.local.port());
        let target = match self.steering {
            Steering::Tproxy => local,
            Steering::Redirect => {
                let socket = io
                    .bare()
                    .map(|tcp| transparent::original_dst(tcp.socket()?));
                match socket {
                    Some(Ok(target)) if target != local => target,
                    // Untracked, or tracked and going nowhere else.
                    _ => return Err(refused("no `REDIRECT` has brought this connection")),
                }
            }
        };
        if leads_back(target, self.port) {
            return Err(refused("it is meant for this listener itself"));
        }
        Ok(target)
    }
}

/// Whether `target` is the listener itself: somebody has connected to its port, and to go where
/// that connection goes would be to go round for ever.
pub(crate) fn leads_back(target: SocketAddr, port: u16) -> bool {
    target.port() == port && may_be_own(target.ip())
}

fn refused(why: &str) -> AcceptError {
    AcceptError::Refused(why.to_owned())
}

impl Acceptor for Intercepted {
    fn accept(
        &self,
        mut io: BoxStream,
        peer: Peer,
        _: Place,
    ) -> BoxFuture<'_, Result<Inbound, AcceptError>> {
        let target = self.target(&mut io, peer);
        Box::pin(async move {
            match target {
                Ok(target) => {
                    let request = Request::to(target.into());
                    Ok(Inbound::Stream(Pending::new(request, Plain { io })))
                }
                Err(why) => {
                    io.abort();
                    Err(why)
                }
            }
        })
    }
}
