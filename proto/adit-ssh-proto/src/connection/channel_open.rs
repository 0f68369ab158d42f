//! Opening of channels: the peer's requests and answers.

use adit_wire::Role;

use super::channel::{Channel, ChannelStage};
use super::{ChannelKind, Connection, ConnectionEvent, CustomMessage, OpenFailureReason};
use crate::error::SshError;
use crate::msg;
use crate::wire::{MessageReader, SshBufMut};

/// Maximum number of characters kept of the peer's text.
const MAX_WORDS: usize = 256;

impl Connection {
    pub(super) fn on_channel_open(&mut self, body: &[u8]) -> Result<(), SshError> {
        let mut r = MessageReader::new(body, "CHANNEL_OPEN");
        let name = r.read_string()?;
        let remote = r.read_u32()?;
        let (window, max_packet) = (r.read_u32()?, r.read_u32()?);
        let kind = match ChannelKind::parse(name, &mut r)? {
            Err(OpenFailureReason::UnknownType) => self.parse_custom_type(name, r.remaining()),
            kind => kind,
        };
        if max_packet == 0 || !self.slots.claim_remote(remote) {
            return Err(r.malformed_error());
        }
        let kind = kind.and_then(|kind| self.check_permitted(&kind).map(|()| kind));
        let kind = match kind.and_then(|kind| self.check_channel_limits().map(|()| kind)) {
            Ok(kind) => kind,
            Err(why) => {
                self.send_open_failure(remote, why, "");
                return Ok(());
            }
        };
        // The window is assigned when the application confirms.
        let mut channel = Channel::new(ChannelStage::RequestedByPeer, remote, 0);
        if let ChannelKind::Custom(own) = &kind {
            channel.own = Some(own.byte_len());
            self.pending_open_bytes += own.byte_len();
        }
        channel.set_peer_limits(window, max_packet, &self.limits);
        match self.slots.insert(channel) {
            Some(channel) => {
                self.pending_opens += 1;
                self.events
                    .push_back(ConnectionEvent::Open { channel, kind });
            }
            None => {
                if let ChannelKind::Custom(own) = &kind {
                    self.pending_open_bytes -= own.byte_len();
                }
                self.send_open_failure(remote, OpenFailureReason::Shortage, "");
            }
        }
        Ok(())
    }

    /// Parses a channel of an unknown type. Pending ones may contain at most `queue` bytes in
    /// total.
    fn parse_custom_type(
        &self,
        name: &[u8],
        data: &[u8],
    ) -> Result<ChannelKind, OpenFailureReason> {
        if !self.accepts_custom_channels {
            return Err(OpenFailureReason::UnknownType);
        }
        self.check_channel_limits()?;
        let octets = self
            .pending_open_bytes
            .saturating_add(name.len() + data.len());
        if octets > self.limits.queue {
            return Err(OpenFailureReason::Shortage);
        }
        let own = CustomMessage::from_wire(name, data).ok_or(OpenFailureReason::UnknownType)?;
        Ok(ChannelKind::Custom(own))
    }

    /// Checks that the peer may open such a channel at all.
    fn check_permitted(&self, kind: &ChannelKind) -> Result<(), OpenFailureReason> {
        let client = self.role == Role::Client;
        let fine = match kind {
            ChannelKind::Session => !client && !self.no_more_sessions,
            ChannelKind::DirectTcpip { .. }
            | ChannelKind::DirectStreamlocal { .. }
            | ChannelKind::Tun { .. } => !client,
            ChannelKind::ForwardedTcpip { address, port, .. } => {
                client && self.forwards.allows_address(address, *port)
            }
            ChannelKind::ForwardedStreamlocal { path } => client && self.forwards.allows_path(path),
            ChannelKind::X11 { .. } => client && self.slots.iter().any(|c| c.x11),
            ChannelKind::Agent => client && self.slots.iter().any(|c| c.agent),
            ChannelKind::Custom(_) => self.accepts_custom_channels,
        };
        if fine {
            Ok(())
        } else {
            Err(OpenFailureReason::Prohibited)
        }
    }

    fn check_channel_limits(&self) -> Result<(), OpenFailureReason> {
        if self.slots.count() < self.limits.channels
            && self.pending_opens < self.limits.pending_opens
        {
            Ok(())
        } else {
            Err(OpenFailureReason::Shortage)
        }
    }

    /// Refuses a channel; the peer may reuse its number.
    pub(super) fn send_open_failure(&mut self, remote: u32, why: OpenFailureReason, text: &str) {
        self.slots.release_remote(remote);
        self.outbox.push(|out| {
            out.put_u8(msg::CHANNEL_OPEN_FAILURE);
            out.put_u32(remote);
            out.put_u32(why.code());
            out.put_string(text.as_bytes());
            out.put_string(b"");
        });
    }

    pub(super) fn on_open_confirmation(&mut self, body: &[u8]) -> Result<(), SshError> {
        let unexpected = SshError::Unexpected(msg::CHANNEL_OPEN_CONFIRMATION);
        let mut r = MessageReader::new(body, "CHANNEL_OPEN_CONFIRMATION");
        let number = r.read_u32()?;
        // The type decides what follows the four numbers: the built-in types have no further
        // fields, and those of application-defined types are ignored.
        let (remote, window, max_packet) = (r.read_u32()?, r.read_u32()?, r.read_u32()?);
        let wanted = self.slots.by_number(number);
        let wanted = wanted.filter(|(_, channel)| channel.stage == ChannelStage::RequestedLocally);
        let (id, _) = wanted.ok_or(unexpected)?;
        if max_packet == 0 || !self.slots.claim_remote(remote) {
            return Err(r.malformed_error());
        }
        let Some(channel) = self.slots.get_mut(id) else {
            return Ok(());
        };
        (channel.stage, channel.remote) = (ChannelStage::Open, remote);
        channel.set_peer_limits(window, max_packet, &self.limits);
        if channel.closed_locally {
            // The application has closed the channel in the meantime.
            self.close_channel(id);
        } else {
            self.events.push_back(ConnectionEvent::Opened(id));
        }
        Ok(())
    }

    pub(super) fn on_open_failure(&mut self, body: &[u8]) -> Result<(), SshError> {
        let unexpected = SshError::Unexpected(msg::CHANNEL_OPEN_FAILURE);
        let mut r = MessageReader::new(body, "CHANNEL_OPEN_FAILURE");
        let number = r.read_u32()?;
        let reason = OpenFailureReason::from_code(r.read_u32()?);
        let text = r.read_string()?;
        let wanted = self.slots.by_number(number);
        let wanted = wanted.filter(|(_, channel)| channel.stage == ChannelStage::RequestedLocally);
        let (channel, _) = wanted.ok_or(unexpected)?;
        self.remove_channel(channel);
        self.events.push_back(ConnectionEvent::OpenFailed {
            channel,
            reason,
            text: to_display_text(text),
        });
        Ok(())
    }
}

/// Returns the peer's text in a form that is safe for a terminal and a log.
fn to_display_text(text: &[u8]) -> String {
    let plain = |b: &u8| b.is_ascii_graphic() || *b == b' ';
    let shown = text.iter().take(MAX_WORDS);
    shown
        .map(|b| if plain(b) { char::from(*b) } else { '?' })
        .collect()
}
