//! Channels and global requests of application-defined types that the server starts.

use adit_ssh_proto::connection::{CallError, ChannelKind, Own};
use tokio::sync::mpsc;

use super::Session;
use crate::error::{End, OpenError};
use crate::forwards::{Arrival, Asked};
use crate::own::{OwnOpening, OwnRequest};

/// Maximum number of global requests that wait; further ones are refused.
const REQUESTS: usize = 128;

/// A queue of channels of an application-defined type that the server opens. Once it is dropped they
/// are refused as unknown.
#[derive(Debug)]
pub struct OwnChannels(mpsc::Receiver<Arrival>);

/// A queue of global requests with application-defined names from the server. Once it is dropped they
/// are refused.
#[derive(Debug)]
pub struct OwnRequests(mpsc::Receiver<Arrival>);

impl OwnChannels {
    /// Returns the next channel, to be accepted or refused; `None` once the session is over.
    /// This method is cancel-safe.
    pub async fn accept(&mut self) -> Option<OwnOpening> {
        loop {
            if let Arrival::Open(opening) = self.0.recv().await?
                && let Some(opening) = OwnOpening::of(opening)
            {
                return Some(opening);
            }
        }
    }
}

impl OwnRequests {
    /// Returns the next request, to be granted or refused; `None` once the session is over.
    /// This method is cancel-safe.
    pub async fn next(&mut self) -> Option<OwnRequest> {
        loop {
            if let Arrival::Global(request, reply) = self.0.recv().await?
                && let Some(request) = OwnRequest::of(request, reply)
            {
                return Some(request);
            }
        }
    }
}

impl Session {
    /// Returns a queue of the channels of an [application-defined type](crate::own) that the server
    /// opens from now on. A second call for the same name takes over from the first queue.
    ///
    /// # Errors
    /// The name is malformed or [reserved](crate::own#names), or the session is over.
    pub fn own_channels(&self, name: impl Into<String>) -> Result<OwnChannels, OpenError> {
        let (name, _) = Own::new(name, [])?.into_parts();
        if ChannelKind::is_known(&name) {
            return Err(CallError::Reserved.into());
        }
        let arrivals = self.route_to(Asked::Channels(name), self.backlog)?;
        Ok(OwnChannels(arrivals))
    }

    /// Returns a queue of the server's global requests from now on whose names the
    /// [library](crate::own#names) does not handle. A second call takes over from the first queue.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn own_requests(&self) -> Result<OwnRequests, End> {
        let arrivals = self.route_to(Asked::Requests, REQUESTS)?;
        Ok(OwnRequests(arrivals))
    }
}
