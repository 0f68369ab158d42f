//! The connection protocol (RFC 4254): channels with windows, requests inside and outside of them.
//!
//! A [`Connection`] is one end, client or server, over the payloads that a transport opened. The
//! driver gives each payload to [`Connection::handle_input`], then asks [`Connection::poll_event`]
//! until there is nothing, then [`Connection::poll_output`] until there is nothing, and seals what
//! that appends. Nothing here waits: a channel that is not read freezes by its own window alone.
//!
//! Bytes of channels are not copied. [`Handled::Data`] says where they lie in the payload; the
//! driver says [`Connection::consumed`] when they have gone on, which is what widens the window
//! again. To send, [`Connection::room`] tells how many bytes fit and [`Connection::data_header`]
//! writes what stands in front of them. Control messages never come behind later data: while some
//! wait in the output there is no room.
//!
//! What a peer can make this end hold is bounded by [`Limits`]: bytes by the windows, channels,
//! requests and answers by number. While [`Connection::wants_input`] is false the driver should
//! leave the peer's bytes in the socket.
//!
//! `input` takes messages in (`openings` and `globals` have the longer stories), `channels`,
//! `flow` and `requests` are what the application does; `kind`, `request`, `pty`, `global` and
//! `own` have the forms on the wire; `intake` is the receive window that tunes itself, `slots` the numbers.

mod call;
mod channel;
mod channels;
mod event;
mod flow;
mod forwards;
mod global;
mod globals;
mod input;
mod intake;
mod kind;
mod limits;
mod openings;
mod outbox;
mod own;
mod pty;
mod replies;
mod request;
mod requests;
mod slots;

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::collections::VecDeque;

use adit_wire::Role;

use crate::error::SshError;

pub use call::CallError;
pub use channel::ChannelId;
pub use event::{Event, Handled, Kind};
pub use global::{GlobalAnswer, GlobalId, GlobalReplyTo, GlobalRequest};
pub use kind::{ChannelKind, OpenFailure, Originator};
pub use limits::Limits;
pub use own::{Own, OwnError};
pub use pty::{Modes, Pty, Size};
pub use request::{ReplyTo, Request, WantReply};

/// One end of a connection, above authentication.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: Limits,
    slots: slots::Slots,
    /// Channels the peer wants and the application has not answered.
    asked: usize,
    /// Octets of the names and data of those among them that are of the program's own types.
    asked_octets: usize,
    /// The peer may want channels of types that are not known here.
    takes_own: bool,
    budget: intake::Budget,
    rtt: Option<Duration>,

    events: VecDeque<Event>,
    /// Octets of the messages that led to `events`, roughly.
    event_octets: usize,
    outbox: outbox::Outbox,
    /// Channels whose window is to be widened.
    adjusts: VecDeque<ChannelId>,
    /// Channels that want to write, the next one first.
    turns: VecDeque<ChannelId>,

    /// What we owe the peer, and what the peer owes us, in the order of the requests.
    owed: replies::InOrder<GlobalAnswer>,
    expected: VecDeque<(GlobalId, forwards::Change)>,
    next_global: u64,
    forwards: forwards::Forwards,
    no_more_sessions: bool,

    broken: Option<SshError>,
}

impl Connection {
    /// A connection whose peer is authenticated (or has authenticated itself).
    ///
    /// `role` decides what may be asked for by whom: a client opens sessions and direct connections
    /// and lets the server open what it asked to be forwarded; a server lets the client open them.
    #[must_use]
    pub fn new(role: Role, limits: Limits) -> Self {
        let limits = limits.made_whole();
        Self {
            role,
            slots: slots::Slots::default(),
            asked: 0,
            asked_octets: 0,
            takes_own: false,
            budget: intake::Budget::new(limits.buffer),
            rtt: None,
            events: VecDeque::new(),
            event_octets: 0,
            outbox: outbox::Outbox::default(),
            adjusts: VecDeque::new(),
            turns: VecDeque::new(),
            owed: replies::InOrder::default(),
            expected: VecDeque::new(),
            next_global: 0,
            forwards: forwards::Forwards::default(),
            no_more_sessions: false,
            broken: None,
            limits,
        }
    }

    /// The round-trip time as measured last (by PING, or a request with an answer). Until it is
    /// known the windows keep their first size.
    pub const fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    /// Whether the peer's channels of [types that are not known here](ChannelKind::Own) come as
    /// events. They are refused as unknown until this says so.
    pub const fn set_takes_own(&mut self, takes: bool) {
        self.takes_own = takes;
    }

    /// What happened, the oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if self.events.is_empty() {
            self.event_octets = 0;
        }
        event
    }

    /// Channels that have not ended, with those that are only wanted, and those whose last bytes
    /// were not consumed.
    #[must_use]
    pub const fn channels(&self) -> usize {
        self.slots.count()
    }

    /// Whether the next payload should be read. It should not while too many events or answers
    /// wait; if they grow sixteen times beyond, [`handle_input`](Self::handle_input) gives up. In
    /// the middle of a key exchange, which holds the answers back, the driver reads on nevertheless.
    #[must_use]
    pub const fn wants_input(&self) -> bool {
        self.outbox.octets() < self.limits.queue && self.event_octets < self.limits.queue
    }
}
