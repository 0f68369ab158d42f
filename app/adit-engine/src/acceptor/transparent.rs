//! Intercepted connections, whose original destination is the target.

use std::net::SocketAddr;

use adit_config::Steering;
use adit_net::transparent;
use adit_stream::{BoxStream, Stream};
use adit_wire::unmap;

use super::forward::Plain;
use super::{Acceptor, Inbound, Pending};
use crate::access::may_be_own;
use crate::{AcceptError, BoxFuture, Peer, Place, Request};

/// The acceptor of `redir://LISTEN` and `tproxy://LISTEN`.
pub struct Intercepted {
    /// The firewall mechanism that redirects connections.
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
                    // The connection is untracked, or tracked with its destination unchanged.
                    _ => return Err(refused("no `REDIRECT` rule redirected this connection")),
                }
            }
        };
        if leads_back(target, self.port) {
            return Err(refused("its destination is this listener itself"));
        }
        Ok(target)
    }
}

/// Returns true if `target` is the listener itself: a client connected to its port directly, and
/// connecting to the target would loop forever.
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
