//! SOCKS5, SOCKS4, SOCKS4a and HTTP on one port, distinguished by the first byte.

use std::time::Duration;

use adit_stream::{BoxStream, Stream, fill};
use tokio::time::timeout;

use super::http::{self, HttpRules};
use super::socks::{self, SocksRules};
use super::{Acceptor, Inbound};
use crate::{AcceptError, BoxFuture, Peer, Place};

/// Reads requests of SOCKS and HTTP proxy clients.
pub struct Proxy {
    /// The settings for SOCKS, if enabled.
    pub(crate) socks: Option<SocksRules>,
    /// The settings for HTTP, if enabled.
    pub(crate) http: Option<HttpRules>,
    pub(crate) deadline: Duration,
}

impl Proxy {
    async fn read(&self, mut io: BoxStream, peer: Peer) -> Result<Inbound, AcceptError> {
        if fill(&mut io, 1).await? == 0 {
            return Err(AcceptError::Eof);
        }
        match (io.filled().first(), &self.socks, &self.http) {
            (Some(0x05), Some(rules), _) => socks::read5(rules, io, peer).await,
            (Some(0x04), Some(rules), _) => socks::read4(rules, io, peer).await,
            (Some(b'A'..=b'Z'), _, Some(rules)) => {
                let pending = http::read(rules.clone(), io).await?;
                Ok(Inbound::Stream(pending))
            }
            // Other protocols get no reply.
            (first, ..) => Err(AcceptError::Refused(format!(
                "first byte {:#04x} does not start a request of an enabled protocol",
                first.copied().unwrap_or(0)
            ))),
        }
    }
}

impl Acceptor for Proxy {
    fn accept(
        &self,
        io: BoxStream,
        peer: Peer,
        place: Place,
    ) -> BoxFuture<'_, Result<Inbound, AcceptError>> {
        Box::pin(async move {
            let read = async {
                timeout(self.deadline, self.read(io, peer))
                    .await
                    .unwrap_or(Err(AcceptError::Deadline))
            };
            place.keep(read).await
        })
    }
}
