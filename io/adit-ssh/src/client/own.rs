//! Channels and global requests of own types that the server begins.

use adit_ssh_proto::connection::{CallError, ChannelKind, Own};
use tokio::sync::mpsc;

use super::Session;
use crate::error::{End, OpenError};
use crate::forwards::{Arrival, Asked};
use crate::own::{OwnOpening, OwnRequest};

/// Global requests that may wait to be looked at; further ones are refused.
const REQUESTS: usize = 128;

/// Channels of an own type that the server opens. Once this is dropped they are refused as unknown.
#[derive(Debug)]
pub struct OwnChannels(mpsc::Receiver<Arrival>);

/// Global requests of own names that the server makes. Once this is dropped they are refused.
#[derive(Debug)]
pub struct OwnRequests(mpsc::Receiver<Arrival>);

impl OwnChannels {
    /// The next one, to be accepted or refused; `None` once the session is over. Cancel-safe.
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
    /// The next one, to be granted or refused; `None` once the session is over. Cancel-safe.
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
    /// The channels of an [own type](crate::own) that the server opens from now on. Asked again
    /// for the same name, the former gets no more.
    ///
    /// # Errors
    /// The name has not the form or is one of the [library's](crate::own#names); the session
    /// is over.
    pub fn own_channels(&self, name: impl Into<String>) -> Result<OwnChannels, OpenError> {
        let (name, _) = Own::new(name, [])?.into_parts();
        if ChannelKind::is_known(&name) {
            return Err(CallError::Reserved.into());
        }
        let arrivals = self.route_to(Asked::Channels(name), self.backlog)?;
        Ok(OwnChannels(arrivals))
    }

    /// The global requests of names that the [library](crate::own#names) does not handle, which
    /// the server makes from now on. Asked again, the former gets no more.
    ///
    /// # Errors
    /// The session is over.
    pub fn own_requests(&self) -> Result<OwnRequests, End> {
        let arrivals = self.route_to(Asked::Requests, REQUESTS)?;
        Ok(OwnRequests(arrivals))
    }
}
