//! Intercepted connections, whose original destination is the target.

use std::net::SocketAddr;

use adit_config::InterceptMethod;
use adit_net::transparent;
use adit_stream::{BoxStream, Stream};
use adit_wire::unmap_ipv4;

use super::fixed_target::PlainReply;
use super::{InboundRequest, PendingRequest, RequestAcceptor};
use crate::access::may_be_local_addr;
use crate::{AcceptError, BoxFuture, ConnectionAddrs, HandshakeSlot, Request};

/// The acceptor of `redir://LISTEN` and `tproxy://LISTEN`.
pub struct InterceptedAcceptor {
    /// The firewall mechanism that redirects connections.
    pub steering: InterceptMethod,
    /// The port of the listener.
    pub port: u16,
}

impl InterceptedAcceptor {
    fn original_target(
        &self,
        io: &mut BoxStream,
        peer: ConnectionAddrs,
    ) -> Result<SocketAddr, AcceptError> {
        let local = SocketAddr::new(unmap_ipv4(peer.local.ip()), peer.local.port());
        let target = match self.steering {
            InterceptMethod::Tproxy => local,
            InterceptMethod::Redirect => {
                let socket = io
                    .bare()
                    .map(|tcp| transparent::original_destination(tcp.socket()?));
                match socket {
                    Some(Ok(target)) if target != local => target,
                    // The connection is untracked, or tracked with its destination unchanged.
                    _ => {
                        return Err(refusal_error(
                            "no `REDIRECT` rule redirected this connection",
                        ));
                    }
                }
            }
        };
        if is_own_listener(target, self.port) {
            return Err(refusal_error("its destination is this listener itself"));
        }
        Ok(target)
    }
}

/// Returns true if `target` is the listener itself: a client connected to its port directly, and
/// connecting to the target would loop forever.
pub(crate) fn is_own_listener(target: SocketAddr, port: u16) -> bool {
    target.port() == port && may_be_local_addr(target.ip())
}

fn refusal_error(why: &str) -> AcceptError {
    AcceptError::Refused(why.to_owned())
}

impl RequestAcceptor for InterceptedAcceptor {
    fn accept_request(
        &self,
        mut io: BoxStream,
        peer: ConnectionAddrs,
        _: HandshakeSlot,
    ) -> BoxFuture<'_, Result<InboundRequest, AcceptError>> {
        let target = self.original_target(&mut io, peer);
        Box::pin(async move {
            match target {
                Ok(target) => {
                    let request = Request::for_target(target.into());
                    Ok(InboundRequest::Stream(PendingRequest::new(
                        request,
                        PlainReply { io },
                    )))
                }
                Err(why) => {
                    io.abort();
                    Err(why)
                }
            }
        })
    }
}
