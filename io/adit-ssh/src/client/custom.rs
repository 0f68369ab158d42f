//! Channels and global requests of application-defined types that the server starts.

use adit_ssh_proto::connection::{ChannelCallError, ChannelKind, CustomMessage};
use tokio::sync::mpsc;

use super::Session;
use crate::custom::{CustomRequest, IncomingCustomChannel};
use crate::error::{OpenError, SessionEnd};
use crate::routes::{PeerRequest, RouteKind};

/// Maximum number of global requests that wait; further ones are refused.
const MAX_WAITING_REQUESTS: usize = 128;

/// A queue of channels of an application-defined type that the server opens. Once it is dropped they
/// are refused as unknown.
#[derive(Debug)]
pub struct CustomChannels(mpsc::Receiver<PeerRequest>);

/// A queue of global requests with application-defined names from the server. Once it is dropped they
/// are refused.
#[derive(Debug)]
pub struct CustomRequests(mpsc::Receiver<PeerRequest>);

impl CustomChannels {
    /// Returns the next channel, to be accepted or refused; `None` once the session is over.
    /// This method is cancel-safe.
    pub async fn accept(&mut self) -> Option<IncomingCustomChannel> {
        loop {
            if let PeerRequest::Open(opening) = self.0.recv().await?
                && let Some(opening) = IncomingCustomChannel::from_incoming(opening)
            {
                return Some(opening);
            }
        }
    }
}

impl CustomRequests {
    /// Returns the next request, to be granted or refused; `None` once the session is over.
    /// This method is cancel-safe.
    pub async fn next_request(&mut self) -> Option<CustomRequest> {
        loop {
            if let PeerRequest::Global(request, reply) = self.0.recv().await?
                && let Some(request) = CustomRequest::from_global_request(request, reply)
            {
                return Some(request);
            }
        }
    }
}

impl Session {
    /// Returns a queue of the channels of an [application-defined type](crate::custom) that the server
    /// opens from now on. A second call for the same name takes over from the first queue.
    ///
    /// # Errors
    /// The name is malformed or [reserved](crate::custom#names), or the session is over.
    pub fn custom_channels(&self, name: impl Into<String>) -> Result<CustomChannels, OpenError> {
        let (name, _) = CustomMessage::new(name, [])?.into_parts();
        if ChannelKind::is_builtin(&name) {
            return Err(ChannelCallError::Reserved.into());
        }
        let arrivals = self.add_route(RouteKind::Channels(name), self.backlog)?;
        Ok(CustomChannels(arrivals))
    }

    /// Returns a queue of the server's global requests from now on whose names the
    /// [library](crate::custom#names) does not handle. A second call takes over from the first queue.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn custom_requests(&self) -> Result<CustomRequests, SessionEnd> {
        let arrivals = self.add_route(RouteKind::Requests, MAX_WAITING_REQUESTS)?;
        Ok(CustomRequests(arrivals))
    }
}
