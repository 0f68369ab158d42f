//! The connection protocol (RFC 4254): channels with windows, requests inside and outside of them.
//!
//! A [`Connection`] is one end, client or server, above the payloads of a transport. The driver
//! passes each payload to [`Connection::handle_input`], then calls [`Connection::poll_event`] until
//! it returns `None`, then [`Connection::poll_output`] until it returns false, and seals what that
//! appends. Nothing blocks: a channel that is not read only stops at its own window.
//!
//! Channel data is not copied. [`HandledInput::Data`] contains its position in the payload; the driver
//! calls [`Connection::consume_data`] when the data was passed on, which widens the window again. To
//! send, [`Connection::send_capacity`] returns the number of bytes that fit, and [`Connection::begin_data`]
//! writes the fields in front of them. Control messages are never sent after later data: while some
//! are queued, it returns 0.
//!
//! [`ConnectionLimits`] bounds what a peer can make this end store: bytes by the windows; channels, requests
//! and answers by number. While [`Connection::wants_input`] is false, the driver should leave the
//! peer's bytes in the socket.
//!
//! `input` handles messages (`channel_open` and `global_requests` the more complex ones);
//! `channel_calls`, `flow` and `requests` contain the application's calls; `channel_kind`, `request`,
//! `pty`, `global` and `custom_message` define the wire formats; `receive_window` is the self-tuning
//! receive window, `channel_slots` the channel numbers.

mod call_error;
mod channel;
mod channel_calls;
mod channel_kind;
mod channel_open;
mod channel_slots;
mod custom_message;
mod event;
mod flow;
mod forwards;
mod global;
mod global_requests;
mod input;
mod limits;
mod ordered_replies;
mod outbox;
mod pty;
mod receive_window;
mod request;
mod requests;

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::collections::VecDeque;

use adit_wire::Role;

use crate::error::SshError;

pub use call_error::ChannelCallError;
pub use channel::ChannelId;
pub use channel_kind::{ChannelKind, OpenFailureReason, Originator};
pub use custom_message::{CustomMessage, CustomMessageError};
pub use event::{ConnectionEvent, DataKind, HandledInput};
pub use global::{GlobalAnswer, GlobalRequest, GlobalRequestId, PendingGlobalReply};
pub use limits::ConnectionLimits;
pub use pty::{PtyRequest, TerminalModes, TerminalSize};
pub use request::{PendingReply, SshChannelRequest, WantReply};

/// One end of a connection, after authentication.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    limits: ConnectionLimits,
    slots: channel_slots::ChannelSlots,
    /// Number of channels that the peer requested and the application has not answered.
    pending_opens: usize,
    /// Size of the names and data in bytes of those among them with application-defined types.
    pending_open_bytes: usize,
    /// The peer may open channels of unknown types.
    accepts_custom_channels: bool,
    budget: receive_window::WindowBudget,
    rtt: Option<Duration>,

    events: VecDeque<ConnectionEvent>,
    /// Approximate size of the messages that caused `events`, in bytes.
    event_octets: usize,
    outbox: outbox::ControlOutbox,
    /// Channels whose window has to be widened.
    pending_adjusts: VecDeque<ChannelId>,
    /// Channels that have data to write, the next one first.
    write_queue: VecDeque<ChannelId>,

    /// Answers owed to the peer, and answers expected from the peer, in the order of the requests.
    owed: ordered_replies::OrderedReplies<GlobalAnswer>,
    expected: VecDeque<(GlobalRequestId, forwards::ForwardChange)>,
    next_global: u64,
    forwards: forwards::GrantedForwards,
    no_more_sessions: bool,

    failed: Option<SshError>,
}

impl Connection {
    /// Creates a connection whose peer is authenticated (or has authenticated this end).
    ///
    /// `role` decides which end may request what: a client opens sessions and direct connections,
    /// and lets the server open the forwarded connections that it requested; a server lets the
    /// client open them.
    #[must_use]
    pub fn new(role: Role, limits: ConnectionLimits) -> Self {
        let limits = limits.normalized();
        Self {
            role,
            slots: channel_slots::ChannelSlots::default(),
            pending_opens: 0,
            pending_open_bytes: 0,
            accepts_custom_channels: false,
            budget: receive_window::WindowBudget::new(limits.buffer),
            rtt: None,
            events: VecDeque::new(),
            event_octets: 0,
            outbox: outbox::ControlOutbox::default(),
            pending_adjusts: VecDeque::new(),
            write_queue: VecDeque::new(),
            owed: ordered_replies::OrderedReplies::default(),
            expected: VecDeque::new(),
            next_global: 0,
            forwards: forwards::GrantedForwards::default(),
            no_more_sessions: false,
            failed: None,
            limits,
        }
    }

    /// Sets the latest measured round-trip time (from a PING, or a request with an answer). Until
    /// it is known, windows keep their initial size.
    pub const fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    /// Sets whether the peer's channels of [unknown types](ChannelKind::Custom) are reported as
    /// events. By default, they are refused as unknown.
    pub const fn set_accept_custom_channels(&mut self, takes: bool) {
        self.accepts_custom_channels = takes;
    }

    /// Returns the oldest event.
    pub fn poll_event(&mut self) -> Option<ConnectionEvent> {
        let event = self.events.pop_front();
        if self.events.is_empty() {
            self.event_octets = 0;
        }
        event
    }

    /// Returns the number of channels that have not ended, including requested ones and those whose
    /// last bytes were not consumed.
    #[must_use]
    pub const fn channel_count(&self) -> usize {
        self.slots.count()
    }

    /// True if the driver should read the next payload. It should not while too many events or
    /// answers are queued; if they exceed the limit 16 times, [`handle_input`](Self::handle_input)
    /// fails. During a key exchange, which holds the answers back, the driver has to continue
    /// reading.
    #[must_use]
    pub const fn wants_input(&self) -> bool {
        self.outbox.byte_len() < self.limits.queue && self.event_octets < self.limits.queue
    }
}
