//! The opening codec.

use std::sync::Arc;

use adit_wire::{Broken, Open, Opened, Step};

use crate::http::Skip;
use crate::tls::{Records, Tagger, read_flight};

/// The receiving codec of a connection.
#[derive(Debug)]
pub struct ObfsOpen(State);

#[derive(Debug)]
enum State {
    Raw,
    /// A client of an HTTP kind, before the end of the response head.
    Response(Skip),
    /// A client that did not wait for the server's flight.
    Flight {
        tagger: Arc<Tagger>,
        joined: bool,
    },
    Records(Records),
}

impl ObfsOpen {
    pub(crate) const fn raw() -> Self {
        Self(State::Raw)
    }

    pub(crate) fn response() -> Self {
        Self(State::Response(Skip::default()))
    }

    pub(crate) const fn flight(tagger: Arc<Tagger>) -> Self {
        let joined = false;
        Self(State::Flight { tagger, joined })
    }

    pub(crate) fn records() -> Self {
        Self(State::Records(Records::default()))
    }

    /// Opens several records at a time; see [`Codecs::joined`](crate::Codecs::joined).
    pub(crate) fn joined(mut self) -> Self {
        match &mut self.0 {
            State::Records(records) => records.join(),
            State::Flight { joined, .. } => *joined = true,
            State::Raw | State::Response(_) => {}
        }
        self
    }

    /// True if bytes pass unchanged from now on.
    #[must_use]
    pub const fn is_raw(&self) -> bool {
        matches!(self.0, State::Raw)
    }
}

impl Open for ObfsOpen {
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, Broken> {
        match &mut self.0 {
            State::Records(records) => records.open(wire),
            State::Raw if wire.is_empty() => Ok(Opened::NeedMore { total: 1 }),
            State::Raw => Ok(Opened::Record {
                consumed: wire.len(),
                payload: 0..wire.len(),
            }),
            State::Response(skip) => {
                let (opened, ended) = skip.open(wire)?;
                if ended {
                    self.0 = State::Raw;
                }
                Ok(opened)
            }
            State::Flight { tagger, joined } => Ok(match read_flight(wire, tagger)? {
                Step::NeedMore { total } => Opened::NeedMore { total },
                Step::Done(consumed) => {
                    let records = Self::records();
                    *self = if *joined { records.joined() } else { records };
                    let payload = consumed..consumed;
                    Opened::Record { consumed, payload }
                }
            }),
        }
    }

    /// A server without data does not send a head either, so that is a valid end.
    fn at_boundary(&self, unread: usize) -> bool {
        let whole = match &self.0 {
            State::Raw | State::Flight { .. } => true,
            State::Response(skip) => !skip.begun(),
            State::Records(records) => records.at_boundary(),
        };
        whole && unread == 0
    }
}
