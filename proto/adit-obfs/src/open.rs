//! The opening codec.

use std::sync::Arc;

use adit_wire::{HandshakeProgress, Open, Opened, ProtocolError};

use crate::http::HeadSkipper;
use crate::tls::{RecordReader, Tagger, read_flight};

/// The receiving codec of a connection.
#[derive(Debug)]
pub struct ObfsOpen(OpenState);

#[derive(Debug)]
enum OpenState {
    Raw,
    /// A client of an HTTP kind, before the end of the response head.
    Response(HeadSkipper),
    /// A client that did not wait for the server's flight.
    Flight {
        tagger: Arc<Tagger>,
        joined: bool,
    },
    Records(RecordReader),
}

impl ObfsOpen {
    pub(crate) const fn new_raw() -> Self {
        Self(OpenState::Raw)
    }

    pub(crate) fn after_response_head() -> Self {
        Self(OpenState::Response(HeadSkipper::default()))
    }

    pub(crate) const fn after_flight(tagger: Arc<Tagger>) -> Self {
        let joined = false;
        Self(OpenState::Flight { tagger, joined })
    }

    pub(crate) fn new_records() -> Self {
        Self(OpenState::Records(RecordReader::default()))
    }

    /// Opens several records at a time; see [`Codecs::with_joined_records`](crate::Codecs::with_joined_records).
    pub(crate) fn with_joined_records(mut self) -> Self {
        match &mut self.0 {
            OpenState::Records(records) => records.join_records(),
            OpenState::Flight { joined, .. } => *joined = true,
            OpenState::Raw | OpenState::Response(_) => {}
        }
        self
    }

    /// True if bytes pass unchanged from now on.
    #[must_use]
    pub const fn is_raw(&self) -> bool {
        matches!(self.0, OpenState::Raw)
    }
}

impl Open for ObfsOpen {
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        match &mut self.0 {
            OpenState::Records(records) => records.open_records(wire),
            OpenState::Raw if wire.is_empty() => Ok(Opened::NeedMore { total: 1 }),
            OpenState::Raw => Ok(Opened::Record {
                consumed: wire.len(),
                payload: 0..wire.len(),
            }),
            OpenState::Response(skip) => {
                let (opened, ended) = skip.skip_head(wire)?;
                if ended {
                    self.0 = OpenState::Raw;
                }
                Ok(opened)
            }
            OpenState::Flight { tagger, joined } => Ok(match read_flight(wire, tagger)? {
                HandshakeProgress::NeedMore { total } => Opened::NeedMore { total },
                HandshakeProgress::Done(consumed) => {
                    let records = Self::new_records();
                    *self = if *joined {
                        records.with_joined_records()
                    } else {
                        records
                    };
                    let payload = consumed..consumed;
                    Opened::Record { consumed, payload }
                }
            }),
        }
    }

    /// A server without data does not send a head either, so that is a valid end.
    fn is_at_boundary(&self, unread: usize) -> bool {
        let whole = match &self.0 {
            OpenState::Raw | OpenState::Flight { .. } => true,
            OpenState::Response(skip) => !skip.has_begun(),
            OpenState::Records(records) => records.at_boundary(),
        };
        whole && unread == 0
    }
}
