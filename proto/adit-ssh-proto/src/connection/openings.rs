//! Opening of channels: the peer's requests and answers.

use adit_wire::Role;

use super::channel::{Channel, Stage};
use super::{ChannelKind, Connection, Event, OpenFailure, Own};
use crate::error::SshError;
use crate::msg;
use crate::wire::{Put, Reader};

/// Maximum number of characters kept of the peer's text.
const MAX_WORDS: usize = 256;

impl Connection {
    pub(super) fn asked_to_open(&mut self, body: &[u8]) -> Result<(), SshError> {
        let mut r = Reader::new(body, "CHANNEL_OPEN");
        let name = r.string()?;
        let remote = r.u32()?;
        let (window, max_packet) = (r.u32()?, r.u32()?);
        let kind = match ChannelKind::parse(name, &mut r)? {
            Err(OpenFailure::UnknownType) => self.of_own_type(name, r.rest()),
            kind => kind,
        };
        if max_packet == 0 || !self.slots.take_remote(remote) {
            return Err(r.malformed());
        }
        let kind = kind.and_then(|kind| self.permitted(&kind).map(|()| kind));
        let kind = match kind.and_then(|kind| self.has_place().map(|()| kind)) {
            Ok(kind) => kind,
            Err(why) => {
                self.put_refusal(remote, why, "");
                return Ok(());
            }
        };
        // The window is assigned when the application confirms.
        let mut channel = Channel::new(Stage::Asked, remote, 0);
        if let ChannelKind::Own(own) = &kind {
            channel.own = Some(own.octets());
            self.asked_octets += own.octets();
        }
        channel.peer_takes(window, max_packet, &self.limits);
        match self.slots.insert(channel) {
            Some(channel) => {
                self.asked += 1;
                self.events.push_back(Event::Open { channel, kind });
            }
            None => {
                if let ChannelKind::Own(own) = &kind {
                    self.asked_octets -= own.octets();
                }
                self.put_refusal(remote, OpenFailure::Shortage, "");
            }
        }
        Ok(())
    }

    /// Parses a channel of an unknown type. Pending ones may contain at most `queue` bytes in
    /// total.
    fn of_own_type(&self, name: &[u8], data: &[u8]) -> Result<ChannelKind, OpenFailure> {
        if !self.takes_own {
            return Err(OpenFailure::UnknownType);
        }
        self.has_place()?;
        let octets = self.asked_octets.saturating_add(name.len() + data.len());
        if octets > self.limits.queue {
            return Err(OpenFailure::Shortage);
        }
        let own = Own::read(name, data).ok_or(OpenFailure::UnknownType)?;
        Ok(ChannelKind::Own(own))
    }

    /// Checks that the peer may open such a channel at all.
    fn permitted(&self, kind: &ChannelKind) -> Result<(), OpenFailure> {
        let client = self.role == Role::Client;
        let fine = match kind {
            ChannelKind::Session => !client && !self.no_more_sessions,
            ChannelKind::DirectTcpip { .. }
            | ChannelKind::DirectStreamlocal { .. }
            | ChannelKind::Tun { .. } => !client,
            ChannelKind::ForwardedTcpip { address, port, .. } => {
                client && self.forwards.has(address, *port)
            }
            ChannelKind::ForwardedStreamlocal { path } => client && self.forwards.has_path(path),
            ChannelKind::X11 { .. } => client && self.slots.iter().any(|c| c.x11),
            ChannelKind::Agent => client && self.slots.iter().any(|c| c.agent),
            ChannelKind::Own(_) => self.takes_own,
        };
        if fine {
            Ok(())
        } else {
            Err(OpenFailure::Prohibited)
        }
    }

    fn has_place(&self) -> Result<(), OpenFailure> {
        if self.slots.count() < self.limits.channels && self.asked < self.limits.pending_opens {
            Ok(())
        } else {
            Err(OpenFailure::Shortage)
        }
    }

    /// Refuses a channel; the peer may reuse its number.
    pub(super) fn put_refusal(&mut self, remote: u32, why: OpenFailure, text: &str) {
        self.slots.free_remote(remote);
        self.outbox.push(|out| {
            out.put_u8(msg::CHANNEL_OPEN_FAILURE);
            out.put_u32(remote);
            out.put_u32(why.code());
            out.put_string(text.as_bytes());
            out.put_string(b"");
        });
    }

    pub(super) fn confirmed(&mut self, body: &[u8]) -> Result<(), SshError> {
        let unexpected = SshError::Unexpected(msg::CHANNEL_OPEN_CONFIRMATION);
        let mut r = Reader::new(body, "CHANNEL_OPEN_CONFIRMATION");
        let number = r.u32()?;
        // The type decides what follows the four numbers: the built-in types have no further
        // fields, and those of application-defined types are ignored.
        let (remote, window, max_packet) = (r.u32()?, r.u32()?, r.u32()?);
        let wanted = self.slots.by_number(number);
        let wanted = wanted.filter(|(_, channel)| channel.stage == Stage::Wanted);
        let (id, _) = wanted.ok_or(unexpected)?;
        if max_packet == 0 || !self.slots.take_remote(remote) {
            return Err(r.malformed());
        }
        let Some(channel) = self.slots.get_mut(id) else {
            return Ok(());
        };
        (channel.stage, channel.remote) = (Stage::Open, remote);
        channel.peer_takes(window, max_packet, &self.limits);
        if channel.dropped {
            // The application has closed the channel in the meantime.
            self.close(id);
        } else {
            self.events.push_back(Event::Opened(id));
        }
        Ok(())
    }

    pub(super) fn failed(&mut self, body: &[u8]) -> Result<(), SshError> {
        let unexpected = SshError::Unexpected(msg::CHANNEL_OPEN_FAILURE);
        let mut r = Reader::new(body, "CHANNEL_OPEN_FAILURE");
        let number = r.u32()?;
        let reason = OpenFailure::from_code(r.u32()?);
        let text = r.string()?;
        let wanted = self.slots.by_number(number);
        let wanted = wanted.filter(|(_, channel)| channel.stage == Stage::Wanted);
        let (channel, _) = wanted.ok_or(unexpected)?;
        self.forget(channel);
        self.events.push_back(Event::OpenFailed {
            channel,
            reason,
            text: printable(text),
        });
        Ok(())
    }
}

/// Returns the peer's text in a form that is safe for a terminal and a log.
fn printable(text: &[u8]) -> String {
    let plain = |b: &u8| b.is_ascii_graphic() || *b == b' ';
    let shown = text.iter().take(MAX_WORDS);
    shown
        .map(|b| if plain(b) { char::from(*b) } else { '?' })
        .collect()
}
