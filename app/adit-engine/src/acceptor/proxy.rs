//! SOCKS5, SOCKS4, SOCKS4a and HTTP on one port, distinguished by the first byte.

use std::time::Duration;

use adit_stream::{BoxStream, Stream, fill_to};
use tokio::time::timeout;

use super::http::{self, HttpRules};
use super::socks::{self, SocksRules};
use super::{InboundRequest, RequestAcceptor};
use crate::{AcceptError, BoxFuture, ConnectionAddrs, HandshakeSlot};

/// Reads requests of SOCKS and HTTP proxy clients.
pub struct ProxyAcceptor {
    /// The settings for SOCKS, if enabled.
    pub(crate) socks: Option<SocksRules>,
    /// The settings for HTTP, if enabled.
    pub(crate) http: Option<HttpRules>,
    pub(crate) deadline: Duration,
}

impl ProxyAcceptor {
    async fn read_request(
        &self,
        mut io: BoxStream,
        peer: ConnectionAddrs,
    ) -> Result<InboundRequest, AcceptError> {
        if fill_to(&mut io, 1).await? == 0 {
            return Err(AcceptError::Eof);
        }
        match (io.filled().first(), &self.socks, &self.http) {
            (Some(0x05), Some(rules), _) => socks::read_socks5(rules, io, peer).await,
            (Some(0x04), Some(rules), _) => socks::read_socks4(rules, io, peer).await,
            (Some(b'A'..=b'Z'), _, Some(rules)) => {
                let pending = http::read_request(rules.clone(), io).await?;
                Ok(InboundRequest::Stream(pending))
            }
            // Other protocols get no reply.
            (first, ..) => Err(AcceptError::Refused(format!(
                "first byte {:#04x} does not start a request of an enabled protocol",
                first.copied().unwrap_or(0)
            ))),
        }
    }
}

impl RequestAcceptor for ProxyAcceptor {
    fn accept_request(
        &self,
        io: BoxStream,
        peer: ConnectionAddrs,
        place: HandshakeSlot,
    ) -> BoxFuture<'_, Result<InboundRequest, AcceptError>> {
        Box::pin(async move {
            let read = async {
                timeout(self.deadline, self.read_request(io, peer))
                    .await
                    .unwrap_or(Err(AcceptError::Deadline))
            };
            place.run_while_held(read).await
        })
    }
}
